"""The charts of the site classes report: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from brokerlab.charts import brokerage as brokerage_charts
from brokerlab.charts import classes as charts
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.replays.shares import DAY
from brokerlab.report.replays.words import of
from brokerlab.report.site_classes import sentences as say
from brokerlab.report.site_classes.study import Study
from brokerlab.report.site_classes.waits import STEERED
from brokerlab.report.site_classes.words import NAMES, setting, time
from brokerlab.words import listed, number, percent, thin

SHARES_SHOWN = 4
"""Shares whose classes of tasks are drawn, those with most of them."""
LEAVES_SHOWN = 12
"""Shares drawn against targets, those with the largest."""


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it."""
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "strip": strip,
        "what_if": what_if,
        "limits": limits,
        "waits": waits,
        "means": means,
        "switches": switches,
        "tasks": tasks,
        "slots": slots,
        "targets": targets,
    }
    return shared.draw(study, drawers, folder)


def strip(study: Study) -> Drawn | None:
    """Draw the class of the busiest queues over time."""
    if not study.n_rated:
        return None
    queues = study.spells["queue"].unique().to_list()
    found = study.by_queue.filter(pl.col("queue").is_in(queues))
    usual = {
        name: found.filter(pl.col("part") == name, pl.col("share") > say.USUAL).height
        for name in ("hi", "mid", "lo")
    }
    n = len(queues)
    finding = thin(
        f"Of the {n} busiest queues {usual['hi']} are usually hi, {usual['mid']} mid and {usual['lo']} lo; the others change too often"
        if sum(usual.values()) < n
        else f"Of the {n} busiest queues {usual['hi']} are usually hi, {usual['mid']} mid and {usual['lo']} lo"
    )
    size = int(study.spells["instants"][0])
    words = f"{say.sample(study)}; the {n} that most analysis jobs were made for, the quickest on top. none: no class, counts as mid."
    if size > 1:
        words += f" The commonest class of {size} instants each."
    return charts.strip_chart(study.spells, finding=finding, sample=words), finding


def what_if(study: Study) -> Drawn | None:
    """Draw what other numbers of the rules would move."""
    if not study.n_rated:
        return None
    frame = study.what_if.curves.with_columns(
        key=pl.col("key").replace_strict(NAMES, return_dtype=pl.String), scale=pl.lit("linear")
    )
    frame = frame.filter(pl.col("key").len().over("key") > 1)
    if frame.is_empty():
        return None
    frame = _drawn_up_to(frame)
    steps = [row for key in NAMES for row in say.neighbours(study, key)]
    top = max(steps, key=lambda row: row["share"] or 0.0)
    moved = percent(top["share"], top["lo"], top["hi"])
    finding = thin(
        f"Of the values next to the current ones, {NAMES[top['key']]} {setting(top['value'], top['unit'])} moves most: {moved}"
    )
    sample = f"{say.sample(study, bars='bands')}. Share that gets another class; grey dashes: current value."
    columns = ["key", "unit", "value", "current", "scale", "share", "lo", "hi"]
    chart = brokerage_charts.sensitivity_chart(
        frame.select(columns), finding=finding, sample=sample, share_title="moved [%]"
    )
    return chart, finding


def _drawn_up_to(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out values far beyond the others, which stand for "no limit" and would squeeze the axis."""
    far = pl.col("value") > 10 * pl.col("value").median().over("key").clip(1)
    return frame.filter(~far | pl.col("is_current"))


def limits(study: Study) -> Drawn | None:
    """Draw the percentiles over time, and the hours."""
    if not study.n_rated:
        return None
    rules = study.inputs.rules
    low, high = (f"percentile {100 * r:g}" for r in (rules.percentile_low, rules.percentile_high))
    timed = study.percentiles.join(study.inputs.instants, on="snapshot").with_columns(
        time=pl.col("at").dt.truncate(study.step)
    )
    medians = timed.group_by("time").agg(pl.col("p33", "p67").median()).sort("time")
    frame = pl.concat(
        medians.select("time", name=pl.lit(name), class_name=pl.lit(kind), limit_s=column)
        for name, kind, column in ((low, "hi", "p33"), (high, "lo", "p67"))
    ).drop_nulls("limit_s")
    if frame.is_empty():
        return None
    binding = study.what_if.binding
    finding = thin(
        f"The percentile is the limit of hi at {of(binding, 'percentile_hi')} of the instants, that of lo at "
        f"{of(binding, 'percentile_lo')}"
    )
    sample = f"{say.sample(study)}; medians of {study.step}. Lines: percentiles of the queues; dashes: the hours that count at least."
    chart = charts.limits_chart(
        frame, hi_hours=float(rules.hi_limit_hours), lo_hours=float(rules.lo_limit_hours),
        finding=finding, sample=sample,
    )  # fmt: skip
    return chart, finding


def waits(study: Study) -> Drawn | None:
    """Draw how long jobs waited, by class."""
    frame = study.waits.above.filter(
        pl.col("class_name").is_in(["hi", "mid", "lo"]), pl.col("n_days") > 1
    )
    rows = study.waits.by_class.filter(pl.col("kind") == STEERED)
    medians = {
        row["class_name"]: time(row["median_s"], row["median_lo"], row["median_hi"])
        for row in rows.iter_rows(named=True)
        if row["n"]
    }
    shown = [name for name in ("hi", "mid", "lo") if name in frame["class_name"]]
    if not shown:
        return None
    finding = thin(
        f"Half of the analysis jobs waited longer than {listed([f'{medians[name]} at {name}' for name in shown])} queues"
    )
    n = int(rows["n"].sum())
    sample = (
        f"{say.days(study)}: {number(n)} analysis jobs without merge jobs and probes, by the class of their queue when they were made; bands: "
        "95 % intervals over days"
    )
    frame = frame.with_columns(pl.col("lo", "hi").fill_null(pl.col("share")))
    chart = charts.waits_chart(
        frame.select("class_name", "time_s", "share", "lo", "hi"), finding=finding, sample=sample
    )
    return chart, finding


def means(study: Study) -> Drawn | None:
    """Draw upper limit against mean, queue by queue."""
    modal = study.marked.group_by("queue").agg(class_name=pl.col("modal").first())
    frame = study.waits.queues.join(modal, on="queue").sort("queue")
    if frame.is_empty():
        return None
    ratio = float((frame["w_cl95upp"] / frame["w_mean"]).median())  # type: ignore[arg-type]
    finding = f"The upper limit is {number(ratio, 1 if ratio < 10 else 0)} times the mean wait in the median; dots are larger where more jobs count"
    sample = (
        f"{say.days(study)}: {number(frame.height)} queues with a class at some instant; medians over the instants. Dashes: limit and mean "
        "are equal."
    )
    columns = ["queue", "class_name", "w_mean", "w_cl95upp", "sum_of_weights"]
    return charts.means_chart(frame.select(columns), finding=finding, sample=sample), finding


def switches(study: Study) -> Drawn | None:
    """Draw what every single difference of the rule sets moves."""
    found = study.rule_sets
    if found.switches.is_empty() or not study.n_rated:
        return None
    row = found.switches.row(0, named=True)
    finding = thin(
        f"{of(found.totals, 'differs')} are classed otherwise; most alone does {row['switch']}: {percent(row['share'], row['lo'], row['hi'])}"
    )
    frame = found.switches.select("share", "lo", "hi", name="switch")
    sample = f"{say.sample(study, bars='bars')}. The {found.current} rules with one switch as in the {found.other} rules."
    chart = brokerage_charts.differences_chart(
        frame, finding=finding, sample=sample, difference_title="queues and instants moved [%]"
    )
    return chart, finding


def tasks(study: Study) -> Drawn | None:
    """Draw how many tasks have which class, over time."""
    found = study.tasks
    if found is None:
        return None
    totals = found.rows.group_by("gshare").len("n").sort("n", "gshare", descending=[True, False])
    shown = totals["gshare"].head(SHARES_SHOWN).to_list()
    places = pl.DataFrame({"gshare": shown}).with_row_index("row")
    frame = found.over_time.join(places, on="gshare").sort("row", "time", "class_name")
    parts = [
        f"{name} {of(found.by_class, name)}" for name in ("S", "A", "B", "C") if _some(study, name)
    ]
    finding = thin(f"Active tasks of users are {listed(parts)}")
    sample = f"{say.days(study)}: {number(found.n_tasks)} tasks; mean number over the instants of {study.step}, by gshare"
    chart = charts.stacked_chart(
        frame.select("time", "class_name", level="gshare", number="tasks"),
        colours=charts.TASK_COLOURS, finding=finding, sample=sample, number_title="active [tasks]",
    )  # fmt: skip
    return chart, finding


def _some(study: Study, name: str) -> bool:
    return study.tasks is not None and bool(
        study.tasks.by_class.filter(pl.col("part") == name, pl.col("total") > 0).height
    )


def slots(study: Study) -> Drawn | None:
    """Draw the analysis slots that run at queues of each class, over time."""
    if not study.n_rated or not study.slots["slots"].sum():
        return None
    over = study.overall.filter(pl.col("over") == DAY)
    finding = thin(
        f"{of(over, 'slots_hi')} of the analysis slots run at hi queues, {of(over, 'slots_lo')} at lo ones"
    )
    sample = (
        f"{say.sample(study)}; mean over the instants of {study.step}. none: queues without class."
    )
    frame = study.slots.select("time", "class_name", level=pl.lit("all"), number="slots")
    chart = charts.stacked_chart(
        frame,
        colours=charts.QUEUE_COLOURS,
        finding=finding,
        sample=sample,
        number_title="running [slots]",
    )
    return chart, finding


def targets(study: Study) -> Drawn | None:
    """Draw shares against targets over time."""
    found = study.targets
    if found is None:
        return None
    largest = found.hs.filter(pl.col("target_hs") > 0).sort(
        "target_hs", "gshare", descending=[True, False]
    )
    shown = largest["gshare"].head(LEAVES_SHOWN).to_list()
    if not shown:
        return None
    places = pl.DataFrame({"gshare": shown}).with_row_index("row")
    frame = found.over_time.join(places, on="gshare").sort("row", "time").drop_nulls("usage")
    known = found.leaves.filter(pl.col("gshare").is_in(shown), pl.col("share").is_not_null())
    ordered = known.sort("share", "gshare", descending=[True, False]).to_dicts()
    finding = thin(
        f"{ordered[0]['gshare']} runs {percent(ordered[0]['share'])} of its target, {ordered[-1]['gshare']} {percent(ordered[-1]['share'])}"
    )
    sample = f"{say.days(study)}: running HS06 over target, means of {study.step}; red dashes: the target"
    chart = charts.usage_chart(
        frame.select("gshare", "time", "usage"), finding=finding, sample=sample
    )
    return chart, finding
