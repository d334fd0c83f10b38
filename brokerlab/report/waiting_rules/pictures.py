"""The charts of the waiting rules report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import altair as alt
import polars as pl

from brokerlab.charts import waiting as charts
from brokerlab.lifecycle.waiting import ALL_RULES as ALL
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.period import grain
from brokerlab.report.waiting_rules import sentences as say
from brokerlab.report.waiting_rules.inputs import ALWAYS
from brokerlab.report.waiting_rules.study import Study
from brokerlab.report.waiting_rules.words import hours, jobs, labelled, limit, signed
from brokerlab.words import number, percent, thin

Drawn = tuple[alt.TopLevelMixin, str]
"""A chart and its finding."""
CLOSE = (0.15, 0.09)
"""Points nearer than these parts of the axes would write over each other."""
PANELS = 6
"""Rules with a panel of their own, those with most jobs."""
OUTCOMES = {
    "soon": "went on soon",
    "later": "went on later",
    "ended": "came to nothing",
    "still": "still waits",
    "undecided": "nobody knows yet",
}
UNITS = {"RATIO": "ratio", "FRAC": "fraction"}


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "firing": firing,
        "over_time": over_time,
        "outcomes": outcomes,
        "limits": limits,
        "fast": fast,
        "fast_keys": fast_keys,
        "rule_sets": rule_sets,
    }
    return shared.draw(study, drawers, folder)


def firing(study: Study) -> Drawn | None:
    """Draw how many jobs each rule times out."""
    rows = say.ranked(study)
    if rows.is_empty():
        return None
    top = rows.row(0, named=True)
    finding = thin(
        f"{top['name']} fires most: for {jobs(top)} jobs, after {hours(top, 'waited_h')} of waiting"
    )
    words = [f"{number(row['jobs'])} jobs, {number(row['waited_h'])} h" for row in rows.to_dicts()]
    frame = rows.select("name", "jobs", lo="jobs_lo", hi="jobs_hi").with_columns(
        words=pl.Series(words, dtype=pl.String)
    )
    sample = f"{say.sample(study)}. Behind the bar: jobs, and their waiting until then."
    chart = charts.firing_chart(
        frame, finding=finding, sample=sample, jobs_title="timed out [jobs]"
    )
    return chart, finding


def over_time(study: Study) -> Drawn | None:
    """Draw how many jobs the rules time out over time."""
    names = say.ranked(study)["rule"].unique(maintain_order=True).head(PANELS).to_list()
    rows = study.by_time.filter(pl.col("rule").is_in(names))
    if rows.is_empty():
        return None
    place = pl.DataFrame({"rule": names}).with_row_index("place")
    frame = rows.join(place, on="rule").sort("place", "time")
    worst = rows.sort("jobs", "rule", "time", descending=[True, False, False]).row(0, named=True)
    share = worst["jobs"] / rows.filter(rule=worst["rule"])["jobs"].sum()
    step = "day" if grain(study.inputs.window) == "1d" else "week"
    finding = thin(
        f"{percent(share)} of the firings of {worst['rule']} fall on one {step}, {worst['time']:%d %B}: {number(worst['jobs'])}"
    )
    chart = charts.over_time_chart(
        frame, finding=finding, sample=say.sample(study), jobs_title=f"[jobs per {step}]"
    )
    return chart, finding


def outcomes(study: Study) -> Drawn | None:
    """Draw what became of the jobs."""
    rows = say.ranked(study)
    if rows.is_empty():
        return None
    long = rows.select("name", *OUTCOMES, total="jobs").unpivot(
        list(OUTCOMES), index=["name", "total"], variable_name="outcome", value_name="n"
    )
    frame = long.filter(pl.col("n") > 0).select(
        "name", pl.col("outcome").replace(OUTCOMES), share=pl.col("n") / pl.col("total")
    )
    order = pl.DataFrame({"name": rows["name"]}).with_row_index("place")
    shown = frame.join(order, on="name").sort("place", "outcome").drop("place")
    total = study.total
    soon = percent(total["soon_share"], total["soon_share_lo"], total["soon_share_hi"])
    finding = thin(
        f"{soon} of the jobs would have gone on within {limit(study.inputs.waiting.soon_h)} after the rule"
    )
    sample = f"{say.sample(study)}. Orange: interrupted for nothing."
    return charts.outcomes_chart(shown, finding=finding, sample=sample), finding


def limits(study: Study) -> Drawn | None:
    """Draw what shorter and longer limits would do."""
    single = study.limits.filter(pl.col("rule") != ALL)
    if single.is_empty():
        return None
    most = labelled(single).group_by("name").agg(pl.col("jobs").max(), pl.col("number").first())
    names = most.sort("jobs", "number", descending=[True, False])["name"].head(PANELS).to_list()
    together = study.limits.filter(pl.col("rule") == ALL).with_columns(name=pl.lit(ALL))
    known = pl.concat([together, labelled(single).select(together.columns)])
    place = pl.DataFrame({"name": [ALL, *names[: PANELS - 1]]}).with_row_index("place")
    shown = known.join(place, on="name").sort("place", "scale")
    words = [
        word for _, rows in shown.group_by("place", maintain_order=True) for word in _beside(rows)
    ]
    half = say.scaled(study, 0.5)
    finding = thin(
        f"Halved limits: {signed(half, 'more_after_h', 'h')} of waiting ended, {signed(half, 'more_soon')} jobs interrupted "
        "for nothing"
        if half
        else "Waiting ended against jobs interrupted for nothing"
    )
    frame = shown.select(
        "scale", "soon", "soon_lo", "soon_hi", "after_h", "after_h_lo", "after_h_hi", rule="name"
    ).with_columns(limit=pl.Series(words, dtype=pl.String))
    chart = charts.limits_chart(frame, finding=finding, sample=say.sample(study))
    return chart, finding


def _beside(rows: pl.DataFrame) -> list[str]:
    """Return the text beside the points of a panel that stand for the ends, half, one and double; close ones share it."""
    sure = rows.filter(pl.col("scale").is_in(ALWAYS))  # these have intervals, which the axes hold
    reach = [
        max([1.0, *rows[name], *sure[f"{name}_hi"].drop_nulls()]) for name in ("soon", "after_h")
    ]
    named = {*ALWAYS, rows["scale"].min(), rows["scale"].max()}
    groups: list[tuple[dict[str, float], list[str]]] = []
    words: list[list[str]] = []
    for row in rows.to_dicts():
        if row["scale"] not in named:
            words.append([])
            continue
        own = f"×{row['scale']:g}" if row["name"] == ALL else limit(row["limit_h"])
        for first, told in groups:
            near = (
                (row["soon"] - first["soon"]) / reach[0],
                (row["after_h"] - first["after_h"]) / reach[1],
            )
            if abs(near[0]) < CLOSE[0] and abs(near[1]) < CLOSE[1]:
                told.append(own)
                words.append([])
                break
        else:
            groups.append((row, [own]))
            words.append(groups[-1][1])
    return [", ".join(told) for told in words]


def fast(study: Study) -> Drawn | None:
    """Draw how many jobs fast rebrokerage would move at the instants."""
    found = study.fast
    if found is None or found.places.is_empty():
        return None
    worst = found.by_time.sort("to_move", "at", descending=[True, False]).row(0, named=True)
    finding = thin(
        f"At most {number(worst['to_move'])} jobs at an instant would move, on {worst['at']:%d %B}"
    )
    dry = (
        "no share has a threshold, 10 is taken"
        if found.dry_run
        else "10 is taken for shares without a threshold"
    )
    sample = f"{say.days(study)}: {found.n_instants} instants, {found.places.height} pairs of queue and share; {dry}"
    return charts.instants_chart(
        found.by_time.select("at", "to_move"), finding=finding, sample=sample
    ), finding  # fmt: skip


def fast_keys(study: Study) -> Drawn | None:
    """Draw what the keys of fast rebrokerage do."""
    found = study.fast
    if found is None or found.places.is_empty():
        return None
    spread = found.keys.group_by("key").agg(
        low=pl.col("to_move").min(), high=pl.col("to_move").max()
    )
    top = spread.sort(pl.col("high") - pl.col("low"), "key", descending=[True, False]).row(
        0, named=True
    )
    finding = thin(
        f"{top['key'].removeprefix('FAST_REBRO_THRESHOLD_')} matters most: {number(top['low'], 1)} to "
        f"{number(top['high'], 1)} jobs per instant over the values tried"
    )
    kind = pl.col("key").str.split("_").list.last().replace_strict(UNITS, default="jobs")
    sample = (
        f"{say.days(study)}: one key at a time, that of the threshold for all shares alike; dashes: as set. Bands: 95 % "
        "intervals from drawing queues again."
    )
    return charts.keys_chart(
        found.keys.with_columns(unit=kind, current=pl.col("value").filter("is_current").first().over("key")), finding=finding, sample=sample
    ), finding  # fmt: skip


def rule_sets(study: Study) -> Drawn | None:
    """Draw the most frequent changes between the rule sets."""
    found = study.rule_sets
    if found.pairs.is_empty():
        return None
    shown = found.pairs.head(PANELS)
    names = [
        f"{r['current'] or 'none'} → {r['other'] or 'none'}{_late(r)}" for r in shown.to_dicts()
    ]
    frame = shown.select("jobs", lo="jobs_lo", hi="jobs_hi").with_columns(
        name=pl.Series(names, dtype=pl.String),
        words=pl.Series([f"{number(value)} jobs" for value in shown["jobs"]], dtype=pl.String),
    )
    share = found.n_different / found.n_any
    finding = thin(
        f"{percent(share)} of the jobs timed out fare differently, most often {names[0]}"
    )
    inputs = study.inputs
    chart = charts.firing_chart(
        frame, finding=finding, sample=f"{say.sample(study)}. {inputs.waiting.rules.rules} → {inputs.waiting.other.rules} rules.",
        jobs_title="fare differently [jobs]",
    )  # fmt: skip
    return chart, finding


def _late(row: dict[str, str]) -> str:
    return " (other time)" if row["kind"] == "other_time" else ""
