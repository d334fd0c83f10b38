"""The charts of the brokerage replay report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from brokerlab.charts import brokerage as charts
from brokerlab.report.brokerage_replay import sentences as say
from brokerlab.report.brokerage_replay.nuclei import NOT_REACHED
from brokerlab.report.brokerage_replay.study import Study
from brokerlab.report.brokerage_replay.tables import SMALL
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.period import grain
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.words import largest, named, of, value_of
from brokerlab.words import number, percent, thin

LEVELS_SHOWN = 10
"""Shares in charts, those with most tasks."""


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
    return shared.draw(study, drawers, folder)


def funnel(study: Study) -> Drawn | None:
    """Draw what each check removes, in order; those that remove next to nothing together."""
    if not study.n_pairs:
        return None
    removed = study.by_check.filter(pl.col("part") != CANDIDATE)
    shown = removed.filter(pl.col("share") >= 5 * SMALL).select(
        check="part", share="share", lo="lo", hi="hi", left="left"
    )
    rest = float(removed.filter(pl.col("share") < 5 * SMALL)["share"].sum())
    hard = 1 - value_of(study.by_check, CANDIDATE) - value_of(study.by_check, say.RANK)
    finding = thin(
        f"{percent(hard)} of the pairs fail a check, {percent(value_of(study.by_check, say.RANK))} are not among the "
        f"best ten, {percent(value_of(study.by_check, CANDIDATE))} become candidates"
    )
    sample = f"{say.sample(study)}. In the order of removal; all checks below 0.5 % together remove {percent(rest)}."
    chart = charts.funnel_chart(
        shown, finding=finding, sample=thin(sample), removed_title="removed [% of pairs looked at]"
    )
    return chart, finding


def over_time(study: Study) -> Drawn | None:
    """Draw how the checks that remove most change with time."""
    step = "day" if grain(study.inputs.window) == "1d" else "week"
    sample = f"{say.sample(study)}; none where all pairs are of one task"
    return shared.over_time(study.by_time, study.top, step=step, whole="pairs", sample=sample)


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
    whole = "pairs" if level == "gshare" else "brokerages"
    sample = (
        f"{say.sample(study, bars=False)}; the reasons that remove most, in order, and what is left"
    )
    return shared.reasons(
        frame, level, levels, order=study.order, beyond=say.RANK, whole=whole, sample=sample
    )


def history(study: Study) -> Drawn | None:
    """Draw where jobs ran, by what the replay says of the queue."""
    return shared.history(study.agreement, study.against, beyond=say.RANK, when=say.days(study))


def composition(study: Study) -> Drawn | None:
    """Draw the shares of the factors in the spread of the weights, in all and by gshare."""
    rows = largest(study.composition, 9, ())
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
    what = "share of the expected jobs (nuclei: chance of tasks)"
    return shared.settings(study.settings, sample=say.sample(study), what=what)


def rule_sets(study: Study) -> Drawn | None:
    """Draw the most frequent changes between the rule sets."""
    return shared.rule_sets(study.rule_sets, sample=say.sample(study))


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
        f"{of(found.by_check, CANDIDATE)} of the (task, nucleus) pairs pass; most are removed by "
        f"{named(largest(found.by_check, 2))}"
    )
    n_tasks, n_pairs = found.decisions.tasks.height, found.decisions.nuclei.height
    sample = f"{say.days(study)}: {number(n_tasks)} tasks, {number(n_pairs)} pairs; bars: 95 % intervals over tasks"
    frame = shown.select("share", "lo", "hi", "left", check="part")
    chart = charts.funnel_chart(
        frame, finding=finding, sample=sample, removed_title="removed [% of pairs looked at]"
    )
    return chart, finding
