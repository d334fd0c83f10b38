"""The class of every queue at every instant of a period: how long it lasts, and the slots and jobs that it concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.archive.given import Source, archive_of
from brokerlab.intervals import N_BOOT, Formula, clustered
from brokerlab.lazy import call
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.class_history.period import KEYS, Period, read_period
from brokerlab.lifecycle.classification import ClassRules, SiteClasses
from brokerlab.results import Result, Shows

CLASSES = ("hi", "mid", "lo")
NONE = "none"  # A queue without class; the brokerage takes it for mid
PARTS = (*CLASSES, NONE)
RANK = {"hi": 0, "mid": 1, "lo": 2}
_DEFAULT = "mid"
STATISTICS = (
    "half_life_hours",
    "sample_status",
    "wait_time",
    "long_q_status",
    "effective_n",
    "empty_long_queue",
)
"""Switches that alter the statistics of the waits."""
USUAL = 0.5  # A queue is usually of a class that it has at more than this part of the instants
CHANGING = "changing"  # A queue without usual class
COARSER = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96, 192)  # instants that a chart may join


@dataclass(frozen=True, kw_only=True, repr=False)
class QueueRatings(Result):
    """Classes of the queues of a period under one rule set.

    Attributes:
        period: What they were made from.
        rules: The rule set.
        stats: Statistics of the waits, see :func:`brokerlab.lifecycle.classification.wait_stats`.
        found: Classes and percentiles.
        cells: One row per instant and queue, sorted: ``snapshot, queue, at, day``, ``slots`` (analysis slots that run
            there then), ``jobs`` (analysis jobs made until the next instant, without merge jobs and probes),
            ``class_name`` (hi, mid, lo, none), ``used`` (as the brokerage takes it: none is mid), ``reason`` (why there is
            none: ``no_sample``, ``no_statistics``, ``no_resource_type``, ``stale``), ``n`` (jobs of the sample),
            ``sum_of_weights, w_mean, w_cl95upp, long_q_mean, ranking`` [s], ``long_q_n``, ``starts`` (analysis jobs
            started in 24 h).
    """

    shows = Shows(
        about="classes of queues over time, one row per instant and queue",
        columns="at, queue, class_name, ranking [s], w_cl95upp [s], long_q_n, slots, jobs, reason",
        keys=("snapshot", "queue"),
        next=(
            "lifecycle.class_history.ratings.class_shares(marked)",
            "lifecycle.class_history.tasks.rate_tasks(result)",
            "compare(result, other)",
        ),
    )

    period: Period = field(repr=False)
    rules: ClassRules
    stats: pl.DataFrame
    found: SiteClasses
    cells: pl.DataFrame

    @property
    def n_rated(self) -> int:
        """Cells with a class."""
        return self.cells.filter(pl.col("class_name") != NONE).height

    def under(self, rules: ClassRules) -> QueueRatings:
        """Rate the same queues under other rules; statistics that these leave alone are not made again."""
        if rules == self.rules:
            return self
        same = all(getattr(rules, name) == getattr(self.rules, name) for name in STATISTICS)
        bare = self.cells.select(*KEYS, "at", "day", "slots", "jobs")
        return _rate(self.period, rules, self.stats if same else None, bare)

    def frame(self) -> pl.DataFrame:
        """Return one row per instant and queue."""
        return self.cells


@call("lifecycle.classes")
def classes(
    source: Source,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    every: str = "1h",
    rules: ClassRules | str | None = None,
) -> QueueRatings:
    """Rate the queues of an archive as hi, mid or lo at every instant of a period.

    Args:
        source: An archive, or its tables by name; ``jobs`` at least.
        start: First instant, UTC; null: see :func:`.period.read_period`, as for the others.
        end: Last instant.
        every: Step of the instants.
        rules: The rule set, or its name; null = ``document``.

    Returns:
        The ratings; :func:`brokerlab.lifecycle.class_history.tasks.rate_tasks` rates tasks by them.

    Raises:
        ConfigError: The step is not readable, or a time is none or has a zone.
        DataError: The archive cannot be read, or has no table of jobs.
        EmptyPeriodError: There is no analysis job, or no instant lies in the period.

    Source: docs/rules/classes.md 1 to 3.
    """
    return rate_queues(
        read_period(archive_of(source), start=start, end=end, every=every, rules=rules)
    )


def rate_queues(period: Period) -> QueueRatings:
    """Rate the queues at every instant (docs/rules/classes.md 1 to 3)."""
    return _rate(period, period.rules, None, _cells(period))


def _rate(
    period: Period, rules: ClassRules, stats: pl.DataFrame | None, cells: pl.DataFrame
) -> QueueRatings:
    stats = period.wait_stats(rules) if stats is None else stats
    result = classification.site_classes(stats, period.queues, period.activity, rules=rules)
    rated = result.classes.select(
        "snapshot",
        *["computingsite", "class_name", "reason"],
        *["w_cl95upp", "long_q_n", "long_q_mean", "ranking"],
        starts="analysis_starts_1d",
    )
    numbers = stats.select("snapshot", "computingsite", "n", "sum_of_weights", "w_mean")
    both = rated.join(numbers, on=["snapshot", "computingsite"], how="left")
    joined = cells.join(both.rename({"computingsite": "queue"}), on=KEYS, how="left").sort(KEYS)
    known = pl.col("class_name").is_in(CLASSES).fill_null(value=False)
    named = joined.with_columns(
        reason=pl.when(~known).then(pl.col("reason").fill_null("no_sample")),
        class_name=pl.when(known).then("class_name").otherwise(pl.lit(NONE)),
        used=pl.when(known).then("class_name").otherwise(pl.lit(_DEFAULT)),
    )
    return QueueRatings(period=period, rules=rules, stats=stats, found=result, cells=named)


def _cells(period: Period) -> pl.DataFrame:
    """Lay out every queue at every instant, and what its class concerns."""
    slots = period.user_slots.group_by("snapshot", queue="computingsite").agg(
        slots=pl.col("slotsrunning").sum()
    )
    jobs = period.jobs.filter(~pl.col("is_sampled")).group_by(KEYS).agg(jobs=pl.len())
    every = period.instants.join(period.queues.select(queue="panda_queue"), how="cross")
    numbers = ["slots", "jobs"]
    return (
        every.join(slots, on=KEYS, how="left")
        .join(jobs, on=KEYS, how="left")
        .with_columns(pl.col(numbers).fill_null(0).cast(pl.Int64), day=pl.col("at").dt.date())
        .select(*KEYS, "at", "day", *numbers)
        .sort(KEYS)
    )


def mark_changes(cells: pl.DataFrame) -> pl.DataFrame:
    """Mark, in every cell, its class, and whether it changed since the instant before.

    The cells, sorted, with ``hi, mid, lo, none`` (0 or 1), ``modal`` (the class that the queue has most of the time;
    ties: the better), ``in_modal``, ``change, up, down, jump`` (between hi and lo), ``cell`` (always 1) and
    ``watched`` (1; 0 at the first instant, before which no change can be seen).
    """
    rank = pl.col("used").replace_strict(RANK, return_dtype=pl.Int64)
    modal = (
        cells.group_by("queue", "used")
        .len("n")
        .sort("queue", "n", rank, descending=[False, True, False])
        .group_by("queue", maintain_order=True)
        .agg(modal=pl.col("used").first())
    )
    before = rank.shift(1).over("queue", order_by="snapshot")
    step = (rank - before).fill_null(0)
    flags = {name: pl.col("class_name") == name for name in PARTS}
    flags |= {"in_modal": pl.col("used") == pl.col("modal"), "watched": before.is_not_null()}
    flags |= {"change": step != 0, "up": step < 0, "down": step > 0, "jump": step.abs() == 2}
    marked = cells.join(modal, on="queue", how="left")
    return marked.with_columns(
        *(flag.cast(pl.Int64).alias(name) for name, flag in flags.items()), cell=pl.lit(1)
    ).sort(KEYS)


def class_shares(marked: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1) -> pl.DataFrame:
    """Divide cells, slots and jobs among the classes.

    One row per class, hi, mid, lo, none: ``class_name``; ``cells, slots, jobs`` (shares [1] of the cells, and of the
    slots and jobs at them) with ``_lo, _hi`` over days; ``over_queues``: the cells with ``_lo, _hi`` over queues;
    ``resampled, n_units`` (of the first).
    """
    long = pl.concat(
        marked.select(
            *("day", "queue", "cell", "slots", "jobs"),
            class_name=pl.lit(name),
            in_class=pl.col(name),
            slots_in=pl.col("slots") * pl.col(name),
            jobs_in=pl.col("jobs") * pl.col(name),
        )
        for name in PARTS
    )
    formulas: dict[str, Formula] = {
        "cells": ("in_class", "cell"),
        "slots": ("slots_in", "slots"),
        "jobs": ("jobs_in", "jobs"),
    }
    dice: dict[str, Any] = {"by": ["class_name"], "n_boot": n_boot, "seed": seed}
    shares = clustered(long, formulas, unit="day", **dice)
    queues = clustered(long, {"over_queues": ("in_class", "cell")}, unit="queue", **dice)
    ends = queues.select("class_name", "^over_queues.*$")
    return (
        pl.DataFrame({"class_name": PARTS})
        .join(shares, on="class_name", maintain_order="left")
        .join(ends, on="class_name", maintain_order="left")
    )


def stability(
    marked: pl.DataFrame,
    step_days: float,
    *,
    unit: str = "day",
    by: Sequence[str] = (),
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> pl.DataFrame:
    """Say how long queues keep their class.

    One row per group: ``hi, mid, lo, none, in_modal`` (shares [1] of the cells), ``per_day`` (changes per queue and
    day), ``up, down, jump`` (shares [1] of the changes), each with ``_lo, _hi``; ``resampled, n_units``.
    """
    formulas: dict[str, Formula] = {name: (name, "cell") for name in (*PARTS, "in_modal")}
    formulas |= {"per_day": ("change", "days")}
    formulas |= {name: (name, "change") for name in ("up", "down", "jump")}
    table = marked.with_columns(days=pl.col("watched") * step_days)
    return clustered(table, formulas, unit=unit, by=by, n_boot=n_boot, seed=seed)


def usual_classes(marked: pl.DataFrame) -> pl.DataFrame:
    """Return the class that each queue has most of the time, and what it concerns: ``queue, modal, jobs``."""
    return marked.group_by("queue").agg(pl.col("modal").first(), pl.col("jobs").sum()).sort("queue")


def usual_class() -> pl.Expr:
    """Name the class that a queue has at more than half of the instants, else `CHANGING`.

    Example:
        >>> shares = {"hi": [0.6, 0.3], "mid": [0.2, 0.3], "lo": [0.0, 0.0], "none": [0.2, 0.4]}
        >>> pl.DataFrame(shares).select(usual_class()).to_series().to_list()
        ['hi', 'changing']
    """
    names = [pl.when(pl.col(name) > USUAL).then(pl.lit(name)) for name in PARTS]
    return pl.coalesce(*names, pl.lit(CHANGING))


def count_usual(queues: pl.DataFrame) -> dict[str, int]:
    """Count queues by the class that they usually have.

    ``n_queues``; ``usually_hi, usually_mid, usually_lo, usually_none``: at more than half of the instants; ``changing``:
    none of these; ``never``: without class at every instant.

    Example:
        >>> shares = {"hi": [0.9, 0.5], "mid": [0.1, 0.5], "lo": [0.0, 0.0], "none": [0.0, 0.0]}
        >>> counts = count_usual(pl.DataFrame(shares))
        >>> counts["n_queues"], counts["usually_hi"], counts["changing"], counts["never"]
        (2, 1, 1, 0)
    """
    usual = queues.select(usual=usual_class())["usual"].to_list()
    return {
        "n_queues": queues.height,
        **{f"usually_{name}": usual.count(name) for name in PARTS},
        "changing": usual.count(CHANGING),
        "never": queues.filter(pl.col(NONE) == 1).height,
    }


def busiest_queues(marked: pl.DataFrame, most: int) -> list[str]:
    """Return the queues that most analysis jobs were made for, the quickest class first."""
    totals = marked.group_by("queue").agg(pl.col("jobs", *CLASSES).sum())
    busy = totals.sort("jobs", "queue", descending=[True, False]).head(most)
    score = pl.col("hi") - pl.col("lo")
    ordered = busy.sort(score, "hi", "mid", "queue", descending=[True, True, True, False])
    return ordered["queue"].to_list()


def class_spells(cells: pl.DataFrame, queues: Sequence[str], *, most: int = 4500) -> pl.DataFrame:
    """Return from when to when queues had which class, on a grid coarse enough for a chart.

    ``queue, class_name, start, end``, sorted by the order of the queues, then by time; ``instants`` per step.
    """
    times = cells["at"].unique().sort()
    step = times[1] - times[0] if len(times) > 1 else None
    shown = cells.filter(pl.col("queue").is_in(queues))
    for size in (*COARSER, len(times)):
        spells = _spells(shown, size)
        if spells.height <= most:
            break
    ended = spells.with_columns(end=pl.col("end") + step) if step is not None else spells
    places = pl.DataFrame({"queue": queues}, schema={"queue": pl.String}).with_row_index("row")
    return (
        ended.join(places, on="queue")
        .sort("row", "start")
        .select("queue", "class_name", "start", "end", instants=pl.lit(size))
    )


def _spells(cells: pl.DataFrame, size: int) -> pl.DataFrame:
    """Join neighbouring steps of ``size`` instants that have the same commonest class."""
    steps = (
        cells.group_by("queue", (pl.col("snapshot") // size).alias("place"))
        .agg(
            pl.col("class_name").sort().mode().sort().first(),
            start=pl.col("at").min(),
            last=pl.col("at").max(),
        )
        .sort("queue", "place")
        .with_columns(run=pl.col("class_name").rle_id().over("queue"))
    )
    return steps.group_by("queue", "run", "class_name").agg(
        start=pl.col("start").min(), end=pl.col("last").max()
    )


def slots_over_time(cells: pl.DataFrame, step: str) -> pl.DataFrame:
    """Return the analysis slots that run at queues of each class: ``time, class_name, slots`` (mean over the instants)."""
    timed = cells.with_columns(time=pl.col("at").dt.truncate(step))
    instants = timed.group_by("time").agg(instants=pl.col("snapshot").n_unique())
    kinds = pl.DataFrame({"class_name": PARTS})
    sums = timed.group_by("time", "class_name").agg(pl.col("slots").sum())
    every = instants.join(kinds, how="cross").join(sums, on=["time", "class_name"], how="left")
    mean = pl.col("slots").fill_null(0) / pl.col("instants")
    order = pl.col("class_name").cast(pl.Enum(PARTS))
    return every.select("time", "class_name", slots=mean).sort("time", order)


def missing_classes(cells: pl.DataFrame) -> pl.DataFrame:
    """Say why queues have no class.

    One row per reason, the commonest first: ``reason``, ``share`` (of all cells [1]), ``cells``, ``queues`` (with
    such a cell), ``jobs`` (analysis jobs made there then).
    """
    return (
        cells.filter(pl.col("class_name") == NONE)
        .group_by("reason")
        .agg(cells=pl.len(), queues=pl.col("queue").n_unique(), jobs=pl.col("jobs").sum())
        .with_columns(share=pl.col("cells") / max(cells.height, 1))
        .sort("cells", "reason", descending=[True, False])
    )
