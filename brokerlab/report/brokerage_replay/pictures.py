"""The charts of the brokerage replay report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import altair as alt
import polars as pl

from brokerlab.charts import brokerage as charts
from brokerlab.charts import theme
from brokerlab.report.brokerage_replay import sentences as say
from brokerlab.report.brokerage_replay.inputs import grain
from brokerlab.report.brokerage_replay.nuclei import NOT_REACHED
from brokerlab.report.brokerage_replay.study import Study
from brokerlab.report.brokerage_replay.tables import SMALL, chance
from brokerlab.report.content import Picture
from brokerlab.report.format import number
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.wording import listed, percent, thin

Drawn = tuple[alt.TopLevelMixin, str]
"""A chart and its finding."""
LEVELS_SHOWN = 10
"""Shares in charts, those with most tasks."""
REASONS_SHOWN = 8
"""Where jobs ran that the replay would not have sent there: reasons shown."""
KEYS_SHOWN = 10
"""Keys whose curves are drawn, those that matter most."""


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "funnel": funnel,
        "over_time": over_time,
        "by_gshare": by_gshare,
        "by_queue": by_queue,
        "history": history,
        "composition": composition,
        "settings": settings,
        "rule_sets": rule_sets,
        "nuclei": nuclei,
    }
    pictures = {}
    for name, drawer in drawers.items():
        drawn = drawer(study)
        if drawn is not None:
            theme.save(drawn[0], folder, name)
            pictures[name] = Picture(chart=name, alt=drawn[1])
    return pictures


def funnel(study: Study) -> Drawn | None:
    """Draw what each check removes, in order; those that remove next to nothing together."""
    if not study.n_pairs:
        return None
    removed = study.by_check.filter(pl.col("part") != CANDIDATE)
    shown = removed.filter(pl.col("share") >= 5 * SMALL).select(
        check="part", share="share", lo="lo", hi="hi", left="left"
    )
    rest = float(removed.filter(pl.col("share") < 5 * SMALL)["share"].sum())
    hard = 1 - say.value_of(study.by_check, CANDIDATE) - say.value_of(study.by_check, say.RANK)
    finding = thin(
        f"{percent(hard)} of the pairs fail a check, {percent(say.value_of(study.by_check, say.RANK))} are not among the "
        f"best ten, {percent(say.value_of(study.by_check, CANDIDATE))} become candidates"
    )
    sample = f"{say.sample(study)}. In the order of removal; all checks below 0.5 % together remove {percent(rest)}."
    chart = charts.funnel_chart(
        shown, finding=finding, sample=thin(sample), removed_title="removed [% of pairs looked at]"
    )
    return chart, finding


def over_time(study: Study) -> Drawn | None:
    """Draw how the checks that remove most change with time."""
    if study.by_time.is_empty():
        return None
    frame = study.by_time.sort("time").rename({"part": "check"})
    place = pl.DataFrame({"check": study.top}).with_row_index("place")
    frame = frame.join(place, on="check").sort("place", "time")
    sure = frame.filter(pl.col("lo").is_not_null())  # a day with one task says little of the day
    spread = (
        (sure if sure.height else frame)
        .group_by("check")
        .agg(low=pl.col("share").min(), high=pl.col("share").max())
    )
    row = spread.sort(pl.col("high") - pl.col("low"), "check", descending=[True, False]).row(
        0, named=True
    )
    finding = thin(
        f"{row['check']} changes most: from {percent(row['low'])} to {percent(row['high'])} of the pairs of a "
        f"{'day' if _daily(study) else 'week'}"
    )
    words = f"{say.sample(study)}; none where all pairs are of one task"
    chart = charts.over_time_chart(frame, finding=finding, sample=words, share_title="[% of pairs]")
    return chart, finding


def _daily(study: Study) -> bool:
    return grain(study.inputs.window) == "1d"


def by_gshare(study: Study) -> Drawn | None:
    """Draw what becomes of the pairs of each gshare."""
    order = study.stuck_by_gshare.filter(pl.col("part") == "stuck").sort(
        "n_tasks", "gshare", descending=[True, False]
    )
    return _reasons(study, study.by_gshare, "gshare", order["gshare"].head(LEVELS_SHOWN).to_list())


def by_queue(study: Study) -> Drawn | None:
    """Draw what becomes of the queues where most jobs ran."""
    jobs = study.inputs.ran.group_by(queue="computingsite").agg(pl.col("n_jobs").sum())
    order = (
        study.by_queue.select("queue")
        .unique()
        .join(jobs, on="queue", how="left")
        .sort("n_jobs", "queue", descending=[True, False])
    )
    return _reasons(study, study.by_queue, "queue", order["queue"].to_list())


def _reasons(study: Study, frame: pl.DataFrame, level: str, levels: list[str]) -> Drawn | None:
    """Draw the shares of the largest reasons among some levels."""
    rows = frame.filter(pl.col(level).is_in(levels))
    if rows.is_empty():
        return None
    totals = (
        rows.filter(~pl.col("part").is_in([CANDIDATE, say.RANK]))
        .group_by("part")
        .agg(pl.col("total").sum())
    )
    biggest = totals.sort("total", "part", descending=[True, False])["part"].head(6).to_list()
    columns = [name for name in study.order if name in (*biggest, say.RANK, CANDIDATE)]
    places = (
        pl.DataFrame({level: levels}).with_row_index("y"),
        pl.DataFrame({"part": columns}).with_row_index("x"),
    )
    shown = rows.join(places[0], on=level).join(places[1], on="part").sort("y", "x")
    table = shown.select(level=level, check="part", share="share")
    passed = rows.filter(pl.col("part") == CANDIDATE).sort("share", level)
    low, high = passed.row(0, named=True), passed.row(-1, named=True)
    unit = "pairs" if level == "gshare" else "brokerages"
    finding = thin(
        f"Candidates in {percent(low['share'])} of the {unit} of {low[level]}, in {percent(high['share'])} of {high[level]}"
        if len(passed) > 1
        else f"Candidates in {percent(low['share'])} of the {unit} of {low[level]}"
    )
    sample = (
        f"{say.sample(study, bars=False)}; the reasons that remove most, in order, and what is left"
    )
    chart = charts.reasons_chart(
        table, finding=finding, sample=sample, share_title=f"[% of {unit}]"
    )
    return chart, finding


def history(study: Study) -> Drawn | None:
    """Draw where jobs ran, by what the replay says of the queue."""
    candidate = study.agreement.filter(pl.col("part") == "candidate")
    if candidate.is_empty():
        return None
    rows = pl.concat([candidate, study.against.head(REASONS_SHOWN)])
    finding = thin(
        f"{say.of(study.agreement, 'candidate')} of the jobs ran at a candidate; by chance it would be "
        f"{percent(chance(study))}"
    )
    sample = (
        f"{say.days(study)}: {number(candidate['whole'][0])} jobs of {candidate['n_tasks'][0]} tasks; bars: 95 % intervals "
        "over tasks. Other lines: what the replay says against the queue. Grey tick: queues drawn at random."
    )
    chart = charts.history_chart(
        rows.select("share", "lo", "hi", name=pl.col("part").replace(say.RANK, "rank: beyond the best ten")),
        chance=chance(study), finding=finding, sample=sample,
    )  # fmt: skip
    return chart, finding


def composition(study: Study) -> Drawn | None:
    """Draw the shares of the factors in the spread of the weights, in all and by gshare."""
    rows = say.largest(study.composition, 9, ())
    if not rows:
        return None
    factors = [row["part"] for row in rows if row["share"] >= SMALL][:4]
    every = study.composition.with_columns(gshare=pl.lit("all"))
    groups = study.composition_by_gshare.select(every.columns)
    order = groups.unique("gshare").sort("n_tasks", "gshare", descending=[True, False])
    levels = ["all", *order["gshare"].head(LEVELS_SHOWN)]
    places = (
        pl.DataFrame({"gshare": levels}).with_row_index("y"),
        pl.DataFrame({"part": factors}).with_row_index("x"),
    )
    shown = (
        pl.concat([every, groups])
        .join(places[0], on="gshare")
        .join(places[1], on="part")
        .sort("x", "y")
    )
    top = rows[0]
    finding = thin(
        f"{say.FACTORS[top['part']].capitalize()} makes {percent(top['share'], top['lo'], top['hi'])} of the spread of the weight"
    )
    sample = (
        f"{say.days(study)}: {number(study.n_weighed)} brokerages with two or more competing queues; bars: 95 % intervals "
        "over tasks. Share of the variance of the log weight within a brokerage."
    )
    frame = shown.select("share", "lo", "hi", "n_tasks", level="gshare", factor="part")
    return charts.composition_chart(frame, finding=finding, sample=sample), finding


def settings(study: Study) -> Drawn | None:
    """Draw the curves of the keys that matter most."""
    keys = study.settings.keys.head(KEYS_SHOWN)
    if keys.is_empty():
        return None
    place = keys.select("key").with_row_index("place")
    frame = study.settings.curves.join(place, on="key").sort("place", "value")
    frame = frame.with_columns(pl.col("current").fill_null(pl.col("value").max().over("key")))
    worth = study.settings.keys.filter("worth")["key"].to_list()
    top = keys.row(0, named=True)
    finding = thin(
        f"Worth calibrating: {listed(worth[:4])}{' and others' if len(worth) > 4 else ''}"
        if worth
        else f"Most moves with {top['key']}: {percent(top['shift'], top['lo'], top['hi'])}; halved or doubled, none moves 1 % beyond doubt"
    )
    sample = (
        f"{say.sample(study)}. Blue: share of the expected jobs (nuclei: chance of tasks) that goes elsewhere at another "
        "value; grey dashes: current value."
    )
    chart = charts.sensitivity_chart(
        frame.select("key", "unit", "value", "current", "scale", "lo", "hi", share=pl.col("shift").fill_null(0)),
        finding=finding, sample=sample, share_title="elsewhere [%]",
    )  # fmt: skip
    return chart, finding


def rule_sets(study: Study) -> Drawn | None:
    """Draw the most frequent changes between the rule sets."""
    found = study.rule_sets
    if found.by_check.is_empty():
        return None
    top = found.by_check.row(0, named=True)
    finding = thin(
        f"{say.of(found.totals, 'pairs')} of the pairs are decided otherwise, most often {top['part']}"
    )
    frame = found.by_check.select("share", "lo", "hi", name="part")
    sample = f"{say.sample(study)}. {found.current} → {found.other} rules."
    chart = charts.differences_chart(
        frame, finding=finding, sample=sample, difference_title="pairs decided otherwise [%]"
    )
    return chart, finding


def nuclei(study: Study) -> Drawn | None:
    """Draw what removes nuclei."""
    found = study.nuclei
    if found is None or found.by_check.is_empty():
        return None
    shown = found.by_check.filter(
        pl.col("total") > 0, ~pl.col("part").is_in([CANDIDATE, NOT_REACHED])
    )
    if shown.is_empty():
        return None
    finding = thin(
        f"{say.of(found.by_check, CANDIDATE)} of the (task, nucleus) pairs pass; most are removed by "
        f"{say.named(say.largest(found.by_check, 2))}"
    )
    n_tasks, n_pairs = found.decisions.tasks.height, found.decisions.nuclei.height
    sample = f"{say.days(study)}: {number(n_tasks)} tasks, {number(n_pairs)} pairs; bars: 95 % intervals over tasks"
    frame = shown.select("share", "lo", "hi", "left", check="part")
    chart = charts.funnel_chart(
        frame, finding=finding, sample=sample, removed_title="removed [% of pairs looked at]"
    )
    return chart, finding
