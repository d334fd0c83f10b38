"""Classes of tasks, what users occupy, and what runs in each share against its target, over a period."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.intervals import N_BOOT, Formula, clustered
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.class_history.ratings import CLASSES, QueueRatings
from brokerlab.lifecycle.classification import TOTAL
from brokerlab.lifecycle.classification.usage import TOP

TASK_CLASSES = ("S", "A", "B", "C")
NOT_RATED = "not_rated"
NO_NAME = "(none)"  # name of tasks without share or user
ALL = "(all)"  # stands for all shares, or users


@dataclass(frozen=True, kw_only=True)
class TaskRatings:
    """Classes of the tasks of users, and the slots of their users."""

    # one row per instant and active task: ``snapshot, at, day, jeditaskid, user, gshare, class_name`` (S, A, B,
    # C, not_rated), ``pct_finished`` [%], ``reason, to_express``
    cells: pl.DataFrame
    usage: pl.DataFrame  # `brokerlab.lifecycle.classification.UserUsage.users`

    @property
    def n_tasks(self) -> int:
        """Tasks rated at some instant."""
        return self.cells["jeditaskid"].n_unique()

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """USER_USAGE_THRESHOLD_A and B as they were last [slots]; None where no user occupies a slot."""
        if self.usage.is_empty():
            return None
        last = self.usage.sort("snapshot").row(-1, named=True)
        return last["threshold_a"], last["threshold_b"]


def rate_tasks(ratings: QueueRatings) -> TaskRatings | None:
    """Rate the tasks at every instant; None where the archive has no task of a user in a status that is rated.

    Source: docs/rules/classes.md 4 and 5.
    """
    period, rules = ratings.period, ratings.rules
    if period.states is None:
        return None
    usage = classification.user_usage(
        period.user_slots, ratings.found.classes, config=period.config, rules=rules
    ).users
    rated = classification.task_classes(
        period.states, period.progress, usage, at=period.instants, config=period.config, rules=rules
    ).classes
    cells = rated.select(
        "snapshot",
        "at",
        pl.col("at").dt.date().alias("day"),
        "jeditaskid",
        pl.col("username").fill_null(NO_NAME).alias("user"),
        pl.col("gshare").fill_null(NO_NAME),
        pl.col("class_name").fill_null(NOT_RATED),
        *["pct_finished", "reason", "to_express"],
    )
    return TaskRatings(cells=cells, usage=usage) if cells.height else None


def task_classes_by(
    tasks: TaskRatings, by: str, *, n_boot: int = N_BOOT, seed: int = 1
) -> pl.DataFrame:
    """Divide tasks among the classes, over the instants at which they were active.

    One row for `ALL` tasks, then one per group: ``by``, ``n_tasks``, ``S, A, B, C, not_rated`` (shares [1] of the
    cells) with ``_lo, _hi``, ``resampled, n_units``.
    """
    names = (*TASK_CLASSES, NOT_RATED)
    flags = {name: (pl.col("class_name") == name).cast(pl.Int64) for name in names}
    marked = tasks.cells.with_columns(**flags, cell=pl.lit(1))
    formulas: dict[str, Formula] = {name: (name, "cell") for name in names}
    groups = pl.concat([marked.with_columns(pl.lit(ALL).alias(by)), marked])
    shares = clustered(groups, formulas, unit="day", by=[by], n_boot=n_boot, seed=seed)
    counts = groups.group_by(by).agg(n_tasks=pl.col("jeditaskid").n_unique().cast(pl.Int64))
    return counts.join(shares, on=by).sort(pl.col(by) != ALL, by)


def changed_tasks(
    here: TaskRatings, there: TaskRatings, *, n_boot: int = N_BOOT, seed: int = 1
) -> pl.DataFrame:
    """Return the shares of the cells with another class under other rules, ``differs``, and of those without any, ``unrated``.

    One row: both [1], with ``_lo, _hi``; what is unrated under both is in neither.
    """
    keys = ["snapshot", "jeditaskid"]
    both = here.cells.join(there.cells.select(*keys, there="class_name"), on=keys, how="left")
    differs = pl.col("class_name") != pl.col("there")
    unrated = differs & (pl.col("there") == NOT_RATED)
    table = both.with_columns(
        differs=differs.cast(pl.Int64), unrated=unrated.cast(pl.Int64), cell=pl.lit(1)
    )
    formulas: dict[str, Formula] = {name: (name, "cell") for name in ("differs", "unrated")}
    return clustered(table, formulas, unit="day", n_boot=n_boot, seed=seed)


def slots_of_users(tasks: TaskRatings, *, n_boot: int = N_BOOT, seed: int = 1) -> pl.DataFrame:
    """Return what each user occupies, and the classes of the user's tasks.

    One row per user, those with most slots at hi and mid queues first: ``user, n_tasks``; ``slots_hi, slots_mid,
    slots_lo`` (means over the ``instants`` at which the user had active jobs [slots]); ``peak_a`` (most at hi queues),
    ``peak_b`` (most at hi and mid ones) [slots]; the classes as in :func:`task_classes_by`, null without tasks.
    """
    both = pl.col("slots_hi") + pl.col("slots_mid")
    means = [f"slots_{name}" for name in CLASSES]
    slots = (
        tasks.usage.filter(pl.col("produsername") != TOTAL)
        .group_by(user="produsername")
        .agg(
            pl.col(means).mean(),
            peak_a=pl.col("slots_hi").max(),
            peak_b=both.max(),
            instants=pl.len(),
        )
    )
    by_user = task_classes_by(tasks, "user", n_boot=n_boot, seed=seed).filter(pl.col("user") != ALL)
    numbers = pl.col(*means, "peak_a", "peak_b", "n_tasks", "instants")
    joined = slots.join(by_user, on="user", how="full", coalesce=True)
    return joined.with_columns(numbers.fill_null(0)).sort(
        "peak_b", "n_tasks", "user", descending=[True, True, False]
    )


def tasks_over_time(tasks: TaskRatings, instants: pl.DataFrame, step: str) -> pl.DataFrame:
    """Return the mean number of active tasks by class and share, step by step; 0 where there is none.

    ``time, gshare, class_name, tasks``, sorted.
    """
    at = instants.select(time=pl.col("at").dt.truncate(step))
    kinds = tasks.cells.select("gshare", "class_name").unique()
    timed = tasks.cells.group_by("gshare", "class_name", time=pl.col("at").dt.truncate(step))
    every = at.group_by("time").len("instants").join(kinds, how="cross")
    joined = every.join(timed.len("n"), on=["time", "gshare", "class_name"], how="left")
    number = pl.col("n").fill_null(0) / pl.col("instants")
    return joined.select("time", "gshare", "class_name", tasks=number).sort(
        "gshare", "time", "class_name"
    )


def shares_against_targets(
    usage: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1
) -> pl.DataFrame:
    """Say what runs in every leaf share against its target.

    One row per leaf, the largest ``usage`` first: ``gshare``; ``usage`` (HS06 running over target, summed over the
    instants [1]; null without a target) and ``above`` (share [1] of the instants above the target) with ``_lo, _hi``;
    ``running_hs, target_hs, queuing_hs`` (means [HS06]); ``off_target`` (the interval of ``usage`` is without 1; null
    without an interval); ``resampled, n_units``.

    Source: docs/rules/classes.md 7.
    """
    hs = ["running_hs", "target_hs", "queuing_hs"]
    leaves = _leaves(usage).with_columns(
        day=pl.col("at").dt.date(),
        above=(pl.col("running_hs") > pl.col("target_hs")).cast(pl.Int64),
        instant=pl.lit(1),
    )
    formulas: dict[str, Formula] = {
        "usage": ("running_hs", "target_hs"),
        "above": ("above", "instant"),
    }
    held = clustered(leaves, formulas, unit="day", by=["gshare"], n_boot=n_boot, seed=seed)
    means = leaves.group_by("gshare").agg(pl.col(hs).mean())
    off_target = (pl.col("usage_lo") > 1) | (pl.col("usage_hi") < 1)
    known = held.join(means, on="gshare").with_columns(off_target=off_target)
    return known.sort("usage", "gshare", descending=[True, False], nulls_last=True)


def shares_over_time(usage: pl.DataFrame, step: str) -> pl.DataFrame:
    """Return what runs over its target, leaf by leaf: ``time, gshare, usage`` [1], null without a target."""
    timed = _leaves(usage).group_by("gshare", time=pl.col("at").dt.truncate(step))
    sums = timed.agg(pl.col("running_hs", "target_hs").sum())
    ratio = pl.when(pl.col("target_hs") > 0).then(pl.col("running_hs") / pl.col("target_hs"))
    return sums.select("time", "gshare", usage=ratio).sort("gshare", "time")


def _leaves(usage: pl.DataFrame) -> pl.DataFrame:
    return usage.filter(~pl.col("gshare").str.starts_with(TOP), pl.col("rank") > 0)
