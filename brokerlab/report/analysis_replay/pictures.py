"""The charts of the report on user tasks: their frames, and titles that say what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from brokerlab.brokerage.studies.user_tasks import lorenz_curves
from brokerlab.brokerage.studies.user_tasks.outcomes import CLASS_ORDER, FAMILIES, PASSED, RULES
from brokerlab.brokerage.studies.user_tasks.weights import CLASSES
from brokerlab.charts import analysis as charts
from brokerlab.charts import brokerage as shared_charts
from brokerlab.report.analysis_replay import sentences as say
from brokerlab.report.analysis_replay.sentences import BEYOND, FIRST, SECOND
from brokerlab.report.analysis_replay.study import Study
from brokerlab.report.content import Picture
from brokerlab.report.replays import pictures as shared
from brokerlab.report.replays.period import grain
from brokerlab.report.replays.pictures import Drawn
from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.report.replays.words import of, value_of
from brokerlab.words import number, percent, thin

SMALL = 0.005
"""Checks that remove a smaller share in both loops are left out of the chart."""
UNITS_SHOWN = 14
QUEUES_SHOWN = 15


def draw(study: Study, folder: Path) -> dict[str, Picture]:
    """Draw every chart that the study has numbers for, and save it.

    Args:
        study: The study.
        folder: Where the charts go.

    Returns:
        Pictures by chart.
    """
    drawers: dict[str, Callable[[Study], Drawn | None]] = {
        "held": held,
        "held_over_time": held_over_time,
        "held_units": held_units,
        "loops": loops,
        "history": history,
        "stabilizer": stabilizer,
        "weights": weights,
        "gains": gains,
        "fairness": fairness,
        "waits": waits,
        "rule_sets": rule_sets,
        "settings": settings,
    }
    return shared.draw(study, drawers, folder)


def held(study: Study) -> Drawn | None:
    """Draw what each rule holds back, in order."""
    rows = study.by_rule.filter(pl.col("part").is_in(RULES)).with_columns(
        left=1 - pl.col("share").cum_sum()
    )
    shown = rows.filter(pl.col("total") > 0)
    if shown.is_empty():
        return None
    finding = thin(f"{say.held_share(study)} of the brokerages of user tasks are held back")
    chart = shared_charts.funnel_chart(
        shown.select("share", "lo", "hi", "left", check="part"), finding=finding,
        sample=say.sample(study), removed_title="held back [% of brokerages]",
    )  # fmt: skip
    return chart, finding


def held_over_time(study: Study) -> Drawn | None:
    """Draw how much is held back over time, by family of rules."""
    order = [name for name in FAMILIES if (study.by_time["part"] == name).any()]
    step = "day" if grain(study.inputs.window) == "1d" else "week"
    sample = f"{say.sample(study)}; none where all are of one user"
    return shared.over_time(study.by_time, order, step=step, whole="brokerages", sample=sample)


def held_units(study: Study) -> Drawn | None:
    """Draw the users and groups held back, by rule."""
    rows = study.units.filter(pl.col("held") > 0).head(UNITS_SHOWN)
    if rows.is_empty():
        return None
    there = [rule for rule in RULES if rows[rule].sum()]
    shares = rows.with_columns(
        (pl.col(name) / pl.col("brokerages")).alias(name) for name in there
    ).with_columns((1 - pl.col("share")).alias(PASSED))
    table = shares.select("unit", *there, PASSED).unpivot(
        index="unit", variable_name="check", value_name="share"
    )
    places = (
        rows.select("unit").with_row_index("y"),
        pl.DataFrame({"check": [*there, PASSED]}).with_row_index("x"),
    )
    shown = table.join(places[0], on="unit").join(places[1], on="check").sort("y", "x")
    top = rows.row(0, named=True)
    finding = thin(
        f"Most jobs wait for {top['unit']}: {percent(top['share'])} of its brokerages are held back"
    )
    chart = shared_charts.reasons_chart(
        shown.select("check", "share", level="unit"), finding=finding,
        sample=f"{say.days(study)}: users and groups with most jobs held back, of {study.units.height}; rules that hold them",
        share_title="[% of brokerages]",
    )  # fmt: skip
    return chart, finding


def loops(study: Study) -> Drawn | None:
    """Draw what each check removes in either loop."""
    if study.by_loop.is_empty():
        return None
    rows = study.by_loop.filter(pl.col("part") != CANDIDATE)
    kept = [
        name for name in study.order if (rows.filter(pl.col("part") == name)["share"] >= SMALL).any()
    ]  # fmt: skip
    whole = dict(rows.unique("loop").select("loop", "whole").iter_rows())
    titles = {FIRST: "with locality", SECOND: "without"}
    named = {
        loop: f"{titles[loop]}: {number(whole[loop])} pairs" for loop in titles if loop in whole
    }
    place = pl.DataFrame({"part": kept}).with_row_index("place")
    shown = rows.join(place, on="part").sort("place", "loop")
    frame = shown.filter(pl.col("share") > 0).select(
        "share", "lo", "hi", pl.col("left").clip(lower_bound=0.0), check="part",
        loop=pl.col("loop").replace_strict(named, return_dtype=pl.String),
    )  # fmt: skip
    last = study.by_check
    finding = thin(
        f"{percent(1 - value_of(last, CANDIDATE) - value_of(last, BEYOND))} of the pairs fail a check, "
        f"{percent(value_of(last, CANDIDATE))} become candidates"
    )
    sample = f"{say.sample(study, 'tasks')}. Removed → left after it, in order; checks below 0.5 % in both loops are left out."
    ordered = pl.concat([frame.filter(pl.col("loop") == name) for name in named.values()])
    chart = charts.loops_chart(
        ordered.sort(pl.col("check").replace_strict({n: i for i, n in enumerate(kept)}, return_dtype=pl.Int64), maintain_order=True),
        finding=finding, sample=sample, removed_title="removed [% of pairs]",
    )  # fmt: skip
    return chart, finding


def history(study: Study) -> Drawn | None:
    """Draw where jobs ran, by what the replay says of the queue."""
    return shared.history(study.agreement, study.against, beyond=BEYOND, when=say.days(study))


def stabilizer(study: Study) -> Drawn | None:
    """Draw the limits of the stabilizer queue by queue."""
    rows = study.limits_by_queue.head(QUEUES_SHOWN)
    if rows.is_empty():
        return None
    words = pl.format(
        "{} % can, {} % marked",
        (100 * pl.col("throttled")).round(0).cast(pl.Int64),
        (100 * pl.col("marked_share")).round(1),
    )
    finding = thin(
        f"{of(study.limits, 'looked_at')} of the pairs can be throttled, {of(study.limits, 'user_queue')} are marked"
    )
    sample = (
        f"{say.days(study)}: {rows.height} of {study.limits_by_queue.height} queues, those marked most first. Red: max_q_len, "
        "median and 1st to 9th decile; black: jobs of the user waiting, 9th decile; grey squares: all waiting jobs of the share, "
        "median. Right: pairs that can be throttled and that are marked."
    )
    chart = charts.limits_chart(
        rows.with_columns(words=words), finding=finding, sample=sample, jobs_title="waiting jobs [jobs]"
    )  # fmt: skip
    return chart, finding


def weights(study: Study) -> Drawn | None:
    """Draw where the jobs of each class of tasks go under either weight."""
    places = study.weights.places
    if places.is_empty():
        return None
    there = [name for name in CLASS_ORDER if (places["task_class"] == name).any()]
    levels = pl.DataFrame({"task_class": there}).with_row_index("y")
    parts = pl.DataFrame({"part": CLASSES}).with_row_index("x")
    shown = places.join(levels, on="task_class").join(parts, on="part").sort("x", "y", "weight")
    frame = shown.select(
        "weight", "share", "lo", "hi", part=pl.format("at {} queues", "part"),
        level=pl.format("{} ({} users)", "task_class", "n_users"),
    )  # fmt: skip
    finding = thin(
        f"{of(study.weights.moved, 'moved')} of the expected jobs go elsewhere by the new basic weight"
    )
    sample = (
        f"{say.days(study)}: {number(study.weights.n_brokerages)} brokerages with candidates under both; grey: original, blue: "
        "new weight; bars: 95 % intervals over users; lines: class of the task."
    )
    chart = charts.classes_chart(frame, finding=finding, sample=sample, share_title="jobs [%]")
    return chart, finding


def gains(study: Study) -> Drawn | None:
    """Draw the queues that gain and lose most."""
    rows = study.weights.gains
    if rows.is_empty():
        return None
    top, low = rows.row(0, named=True), rows.row(-1, named=True)
    finding = thin(
        f"{top['part']} would get {say.points(top)} of all jobs more, {low['part']} {say.points(low, -1)} less"
    )
    sample = f"{say.days(study)}: queues that change most by the new basic weight; bars: 95 % intervals over users"
    chart = shared_charts.differences_chart(
        rows.select("share", "lo", "hi", name="part"), finding=finding, sample=sample,
        difference_title="change [% of all expected jobs]",
    )  # fmt: skip
    return chart, finding


def fairness(study: Study) -> Drawn | None:
    """Draw how unevenly jobs and core hours are divided among users."""
    words = {
        "asked": "jobs asked for",
        "placed": "jobs that find a queue",
        "core_h": "core hours that ran",
    }
    curves = lorenz_curves(study.users).with_columns(pl.col("quantity").replace(words))
    if curves.is_empty():
        return None
    finding = thin(
        f"Jain's index is {say.index_of(study, 'asked')} for what is asked, {say.index_of(study, 'placed')} for what finds a queue"
    )
    sample = f"{say.days(study)}: {number(study.n_users)} users; the pale line: all have the same"
    return charts.lorenz_chart(curves, finding=finding, sample=sample), finding


def waits(study: Study) -> Drawn | None:
    """Draw how long jobs really waited, by class of task."""
    rows = study.waits.filter(pl.col("part") == "wait_h")
    order = [name for name in CLASS_ORDER if (rows["task_class"] == name).any()]
    if len(order) < 2:
        return None
    place = pl.DataFrame({"task_class": order}).with_row_index("y")
    shown = rows.join(place, on="task_class").sort("y")
    one = shown.filter(pl.col("task_class") != "all").sort("share", "task_class")
    low, high = one.row(0, named=True), one.row(-1, named=True)
    finding = thin(
        f"Jobs waited {number(low['share'], 1)} h in class {low['task_class']}, {number(high['share'], 1)} h in class {high['task_class']}"
        if one.height > 1
        else f"Jobs waited {number(low['share'], 1)} h"
    )
    names = pl.format("{} ({} users)", "task_class", "n_users")
    sample = (
        f"{say.days(study)}: {number(shown['whole'][0])} jobs that really ran, by the class of their task when they were made; "
        "bars: 95 % intervals over users"
    )
    chart = charts.dots_chart(
        shown.select("lo", "hi", value="share", name=names), finding=finding, sample=sample,
        value_title="mean wait from being made to the start [h]",
    )  # fmt: skip
    return chart, finding


def rule_sets(study: Study) -> Drawn | None:
    """Draw the most frequent changes between the rule sets."""
    return shared.rule_sets(study.rule_sets, sample=say.sample(study, "tasks"))


def settings(study: Study) -> Drawn | None:
    """Draw the curves of the keys that matter most."""
    what = "mean share of a task's expected jobs"
    return shared.settings(study.settings, sample=say.sample(study, "tasks"), what=what)
