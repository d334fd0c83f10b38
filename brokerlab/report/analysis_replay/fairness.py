"""Fairness between users and between classes of tasks: Jain's index, and who waits how long."""

from __future__ import annotations

from typing import cast

import numpy as np
import polars as pl

from brokerlab.intervals import bootstrap_weights, percentile_interval
from brokerlab.numerics import FloatArray
from brokerlab.report.analysis_replay.brokerages import NO_USER, UNRATED
from brokerlab.report.replays.removal import KEYS
from brokerlab.report.replays.shares import CONFIDENCE, USER, shares, summed

QUANTITIES = ("asked", "let_through", "placed", "core_h")
"""What is divided among users: jobs asked for, those that the throttle lets through, those that find a queue, and the
core hours that really ran."""


def of_users(rows: pl.DataFrame, ran: pl.DataFrame) -> pl.DataFrame:
    """Return what each user asked for and got.

    Args:
        rows: From `brokerages.brokerages`.
        ran: From `rated`.

    Returns:
        One row per user, sorted: ``user``, ``asked``, ``let_through``, ``placed`` [jobs], ``core_h``.
    """
    jobs = pl.col("jobs")
    asked = rows.group_by("user").agg(
        asked=jobs.sum(),
        let_through=jobs.filter(pl.col("route") != "held").sum(),
        placed=jobs.filter(pl.col("outcome") == "candidates").sum(),
    )
    used = summed(ran, ["user"], ["core_h"])
    return (
        asked.join(used, on="user", how="left")
        .with_columns(pl.col("core_h").fill_null(0.0))
        .sort("user")
    )


def jain(values: FloatArray) -> float:
    """Return Jain's index: 1 where all have the same, 1/n where one of n has all; NaN where nobody has anything.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301 (1984), equation 3.

    Example:
        >>> jain(np.array([1.0, 1.0, 1.0, 1.0])), jain(np.array([0.0, 0.0, 0.0, 4.0]))
        (1.0, 0.25)
    """
    squares = len(values) * float(values @ values)
    return float(values.sum()) ** 2 / squares if squares > 0 else float("nan")


def indices(users: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return Jain's index of what users asked for and got, with intervals over users.

    Args:
        users: From `of_users`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        One row per quantity of `QUANTITIES` and of the steps between the first three: ``quantity``, ``index``,
        ``lo, hi`` (null bounds with fewer than two users; null where nobody has anything), ``n_users``; a step is the
        index of the later less that of the earlier, drawn together.
    """
    numbers = users.select(QUANTITIES).to_numpy().astype(np.float64)
    drawn = _replicates(numbers, n_boot=n_boot, seed=seed) if len(numbers) > 1 else None
    values = [jain(numbers[:, i]) for i in range(len(QUANTITIES))]
    names = [*QUANTITIES, "throttle", "checks"]
    values += [values[1] - values[0], values[2] - values[1]]
    lows: list[float | None] = [None] * len(names)
    highs = list(lows)
    if drawn is not None:
        drawn = np.column_stack([drawn, drawn[:, 1] - drawn[:, 0], drawn[:, 2] - drawn[:, 1]])
        low, high = percentile_interval(drawn, CONFIDENCE, n_tasks=len(numbers))
        lows, highs = (
            cast("list[float | None]", low.tolist()),
            cast("list[float | None]", high.tolist()),
        )
    schema = {"quantity": pl.String, **dict.fromkeys(("index", "lo", "hi"), pl.Float64)}
    table = pl.DataFrame(
        list(zip(names, values, lows, highs, strict=True)), schema=schema, orient="row"
    )
    known = pl.col("index").is_not_nan()
    return table.with_columns(
        pl.when(known).then(name).alias(name) for name in ("index", "lo", "hi")
    ).with_columns(n_users=pl.lit(len(numbers), dtype=pl.Int64))


def _replicates(numbers: FloatArray, *, n_boot: int, seed: int) -> FloatArray:
    """Return the indices of every draw of users."""
    blocks = []
    for weights in bootstrap_weights(len(numbers), n_boot=n_boot, seed=seed):
        sums, squares = weights @ numbers, weights @ numbers**2
        n = weights.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            blocks.append(np.where(squares > 0, sums**2 / (n * squares), np.nan))
    return np.concatenate(blocks)


def rated(ran: pl.DataFrame, tasks: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Say whose the jobs that really ran are, and of which class their task was when they were made.

    Args:
        ran: From `period.ran`.
        tasks: Of the replay, with ``brokerage_time``.
        rows: From `brokerages.brokerages`.

    Returns:
        ``ran`` with ``user`` and ``task_class`` of the last brokerage before; jobs made before the first one are left
        out.
    """
    times = tasks.select(*KEYS, "brokerage_time").sort("brokerage_time")
    found = ran.sort("made").join_asof(
        times, left_on="made", right_on="brokerage_time", by="jeditaskid", strategy="backward",
        check_sortedness=False,
    )  # fmt: skip
    about = rows.select(*KEYS, "user", "task_class")
    return (
        found.drop_nulls("snapshot")
        .join(about, on=KEYS, how="left")
        .with_columns(pl.col("user").fill_null(NO_USER), pl.col("task_class").fill_null(UNRATED))
    )


def waits(ran: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the mean wait of the jobs that really ran, from being made to their start, in all and by class.

    Args:
        ran: From `rated`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        `shares` over users by ``task_class`` (all, or one), parts ``wait_h`` (the mean wait of a job [h]) and
        ``core_h`` (mean core hours of a job), whole: jobs.
    """
    both = pl.concat([ran.with_columns(task_class=pl.lit("all")), ran])
    return shares(
        both, ["wait_h", "core_h"], "n_jobs", by=["task_class"], unit=USER, n_boot=n_boot, seed=seed
    )
