"""Classes of tasks and what users occupy, by class of queue, over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import polars as pl

from brokerlab.lifecycle import classes as lifecycle
from brokerlab.lifecycle.classes import TOTAL, ClassRules, SiteClasses
from brokerlab.report.replays.shares import DAY, shares
from brokerlab.report.site_classes.inputs import Inputs
from brokerlab.report.site_classes.rating import CLASSES, NONE

TASK_CLASSES = ("S", "A", "B", "C")
NOT_RATED = "not rated"
NO_NAME = "(none)"
"""Name of tasks without share or user."""


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Classes of tasks and slots of users.

    Attributes:
        rows: Rated tasks: ``snapshot, at, day, jeditaskid, user, gshare, class_name, pct_finished, reason, to_express``.
        n_tasks: Tasks rated at some instant.
        by_class: `shares` of the (task, instant) cells by class.
        by_gshare: The same by ``gshare``.
        by_user: The same by ``user``.
        users: One row per user: medians and peaks of slots at hi, and hi and mid queues: ``user, slots_hi, slots_mid,
            slots_lo`` (mean over the instants with a row), ``peak_a`` (most at hi queues), ``peak_b`` (most at hi and mid
            ones), ``tasks``.
        thresholds: USER_USAGE_THRESHOLD_A and B as they were last [slots].
        over_time: ``time, gshare, class_name, tasks`` (mean number over the instants of a step).
        other: Share of the cells with another class under the other rule set; null where it is not known.
    """

    rows: pl.DataFrame
    n_tasks: int
    by_class: pl.DataFrame
    by_gshare: pl.DataFrame
    by_user: pl.DataFrame
    users: pl.DataFrame
    thresholds: tuple[float, float] | None
    over_time: pl.DataFrame
    other: pl.DataFrame


def studied(
    inputs: Inputs,
    found: SiteClasses,
    other: tuple[ClassRules, SiteClasses],
    step: str,
    *,
    n_boot: int,
    seed: int,
) -> Tasks | None:
    """Rate the tasks at every instant; None where the archive has no tasks of users.

    Args:
        inputs: From `load`.
        found: Classes of queues.
        other: The other rule set, and its classes of queues.
        step: Step of charts over time.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.
    """
    if inputs.states is None:
        return None
    rows, usage = _rated(inputs, inputs.rules, found)
    if rows.is_empty():
        return None
    others, _ = _rated(inputs, *other)
    divided = partial(shares, unit=DAY, n_boot=n_boot, seed=seed)
    marked = rows.with_columns(
        *(
            (pl.col("class_name") == name).cast(pl.Int64).alias(name)
            for name in (*TASK_CLASSES, NOT_RATED)
        ),
        cell=pl.lit(1),
    )
    names = [*TASK_CLASSES, NOT_RATED]
    keys = ["snapshot", "jeditaskid"]
    both = marked.join(others.select(*keys, there="class_name"), on=keys, how="left")
    differs = both.with_columns(differs=(pl.col("class_name") != pl.col("there")).cast(pl.Int64))
    return Tasks(
        rows=rows,
        n_tasks=rows["jeditaskid"].n_unique(),
        by_class=divided(marked, names, "cell"),
        by_gshare=divided(marked, names, "cell", by=["gshare"]),
        by_user=divided(marked, names, "cell", by=["user"]),
        users=_users(usage, rows),
        thresholds=_thresholds(usage),
        over_time=_over_time(inputs, rows, step),
        other=divided(differs, ["differs"], "cell"),
    )


def _rated(
    inputs: Inputs, rules: ClassRules, found: SiteClasses
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rated tasks and the users' usage."""
    usage = lifecycle.user_usage(
        inputs.user_slots, found.classes, config=inputs.config, rules=rules
    ).users
    classes = lifecycle.task_classes(
        inputs.states, inputs.progress, usage, at=inputs.instants, config=inputs.config, rules=rules
    ).classes
    rows = classes.select(
        "snapshot",
        "at",
        pl.col("at").dt.date().alias("day"),
        "jeditaskid",
        pl.col("username").fill_null(NO_NAME).alias("user"),
        pl.col("gshare").fill_null(NO_NAME),
        pl.col("class_name").fill_null(NOT_RATED),
        *["pct_finished", "reason", "to_express"],
    )
    return rows, usage


def _users(usage: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return what each user occupies, in the mean and at most."""
    both = pl.col("slots_hi") + pl.col("slots_mid")
    slots = [pl.col(f"slots_{name}").mean() for name in CLASSES]
    found = (
        usage.filter(pl.col("produsername") != TOTAL)
        .group_by(user="produsername")
        .agg(*slots, peak_a=pl.col("slots_hi").max(), peak_b=both.max(), instants=pl.len())
    )
    tasks = rows.group_by("user").agg(tasks=pl.col("jeditaskid").n_unique())
    joined = found.join(tasks, on="user", how="full", coalesce=True)
    numbers = pl.col(
        *(f"slots_{name}" for name in CLASSES), "peak_a", "peak_b", "tasks", "instants"
    )
    return joined.with_columns(numbers.fill_null(0)).sort(
        "peak_b", "tasks", "user", descending=[True, True, False]
    )


def _thresholds(usage: pl.DataFrame) -> tuple[float, float] | None:
    if usage.is_empty():
        return None
    last = usage.sort("snapshot").row(-1, named=True)
    return last["threshold_a"], last["threshold_b"]


def _over_time(inputs: Inputs, rows: pl.DataFrame, step: str) -> pl.DataFrame:
    """Return the mean number of tasks by class and share, step by step; 0 where there is none."""
    at = inputs.instants.select(time=pl.col("at").dt.truncate(step))
    instants = at.group_by("time").len("instants")
    kinds = rows.select("gshare", "class_name").unique()
    counts = rows.group_by("gshare", "class_name", time=pl.col("at").dt.truncate(step)).len("n")
    every = instants.join(kinds, how="cross")
    joined = every.join(counts, on=["time", "gshare", "class_name"], how="left")
    tasks = pl.col("n").fill_null(0) / pl.col("instants")
    return joined.select("time", "gshare", "class_name", tasks=tasks).sort(
        "gshare", "time", "class_name"
    )


def slots_over_time(rows: pl.DataFrame, step: str) -> pl.DataFrame:
    """Return the analysis slots that run at queues of each class: ``time, class_name, slots`` (mean over the instants).

    Args:
        rows: Rated cells.
        step: Length of a step.
    """
    timed = rows.with_columns(time=pl.col("at").dt.truncate(step))
    instants = timed.group_by("time").agg(instants=pl.col("snapshot").n_unique())
    kinds = pl.DataFrame({"class_name": [*CLASSES, NONE]})
    sums = timed.group_by("time", "class_name").agg(pl.col("slots").sum())
    every = instants.join(kinds, how="cross").join(sums, on=["time", "class_name"], how="left")
    mean = pl.col("slots").fill_null(0) / pl.col("instants")
    return every.select("time", "class_name", slots=mean).sort("time", "class_name")
