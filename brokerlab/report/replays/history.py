"""Compare the replay with what happened: was the queue where jobs ran a candidate?"""

from __future__ import annotations

import polars as pl

from brokerlab.report.replays.removal import CANDIDATE, KEYS
from brokerlab.report.replays.shares import shares

NOT_LOOKED_AT = "not looked at"
"""The queue was no candidate to begin with, or the brokerage ended before any queue was looked at."""


def placed(ran: pl.DataFrame, tasks: pl.DataFrame, best: pl.DataFrame) -> pl.DataFrame:
    """Say what the replay thinks of the queue of every job that ran.

    A job belongs to the last brokerage of its task before it was made. Jobs of a unified queue count for that of its
    pseudo-queues which came furthest.

    Args:
        ran: ``jeditaskid, computingsite, made, n_jobs``.
        tasks: Of the replay.
        best: From `removal.best_of_queue`.

    Returns:
        One row per brokerage and queue with jobs: ``jeditaskid, snapshot, queue, n_jobs, check, rank, place`` and
        ``by_chance``, the share of the brokerage's queues that are candidates.
    """
    times = tasks.select(*KEYS, "brokerage_time").sort("brokerage_time")
    jobs = ran.sort("made").join_asof(
        times, left_on="made", right_on="brokerage_time", by="jeditaskid", strategy="backward",
        check_sortedness=False,
    )  # fmt: skip
    grouped = (
        jobs.drop_nulls("snapshot")
        .group_by(*KEYS, queue="computingsite")
        .agg(n_jobs=pl.col("n_jobs").sum())
    )
    chance = best.group_by(KEYS).agg(by_chance=(pl.col("check") == CANDIDATE).mean())
    return (
        grouped.join(best, on=[*KEYS, "queue"], how="left")
        .join(chance, on=KEYS, how="left")
        .with_columns(pl.col("check").fill_null(NOT_LOOKED_AT), pl.col("by_chance").fill_null(0.0))
        .sort(*KEYS, "queue")
    )


def agreement(found: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the shares of jobs that ran at a candidate, at the best three, at the first; and by chance.

    Args:
        found: From `placed`.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        `shares` with the parts ``candidate``, ``best_three``, ``first``, ``by_chance``.
    """
    jobs = pl.col("n_jobs").cast(pl.Float64)
    is_candidate = pl.col("check") == CANDIDATE

    def where(flag: pl.Expr) -> pl.Expr:
        return pl.when(flag.fill_null(value=False)).then(jobs).otherwise(0.0)

    table = found.with_columns(
        candidate=where(is_candidate),
        best_three=where(is_candidate & (pl.col("rank") <= 3)),
        first=where(is_candidate & (pl.col("rank") == 1)),
        by_chance=pl.col("by_chance") * jobs,
        jobs=jobs,
    )
    parts = ["candidate", "best_three", "first", "by_chance"]
    return shares(table, parts, "jobs", n_boot=n_boot, seed=seed)


def against(found: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of jobs that ran where a check of the replay says skip, check by check, largest first.

    Args:
        found: From `placed`.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.
    """
    others = found.filter(pl.col("check") != CANDIDATE)["check"].unique().sort().to_list()
    table = found.with_columns(
        *(
            pl.when(pl.col("check") == name).then("n_jobs").otherwise(0).alias(name)
            for name in others
        )
    )
    return shares(table, others, "n_jobs", n_boot=n_boot, seed=seed).sort(
        "share", "part", descending=[True, False]
    )
