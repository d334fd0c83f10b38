"""Does the replay agree with what happened: was the queue where jobs ran a candidate?"""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.intervals import shares


def brokerages_of_jobs(ran: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that ran with the last brokerage of their task before they were made.

    Args:
        ran: ``jeditaskid``, ``made`` and further columns, see `period.jobs_that_ran`.
        tasks: Of the replay: ``jeditaskid, snapshot, brokerage_time``.

    Returns:
        ``ran`` with ``snapshot``, sorted by ``made``; jobs made before the first brokerage are left out.
    """
    times = tasks.select(*TASK, "brokerage_time").sort("brokerage_time")
    jobs = ran.sort("made").join_asof(
        times,
        left_on="made",
        right_on="brokerage_time",
        by="jeditaskid",
        strategy="backward",
        check_sortedness=False,
    )
    return jobs.drop_nulls("snapshot").drop("brokerage_time")


def match_jobs(ran: pl.DataFrame, tasks: pl.DataFrame, best: pl.DataFrame) -> pl.DataFrame:
    """Say what the replay decided on the queue of every job that ran.

    Jobs of a unified queue count for that of its pseudo-queues which came furthest.

    Args:
        ran: ``jeditaskid, computingsite, made, n_jobs``, see `period.jobs_that_ran`.
        tasks: Of the replay: ``jeditaskid, snapshot, brokerage_time``.
        best: From `removal.best_pseudo_queues`.

    Returns:
        One row per brokerage and queue with jobs: ``jeditaskid, snapshot, queue, n_jobs``, ``check`` (`CANDIDATE`,
        `NOT_LOOKED_AT`, also where the brokerage ended before any queue was looked at), ``rank, place`` and ``by_chance`` [1], the share of the brokerage's queues that are candidates.
    """
    grouped = (
        brokerages_of_jobs(ran, tasks)
        .group_by(*TASK, queue="computingsite")
        .agg(n_jobs=pl.col("n_jobs").sum())
    )
    chance = best.group_by(TASK).agg(by_chance=(pl.col("check") == CANDIDATE).mean())
    return (
        grouped.join(best.drop("n"), on=[*TASK, "queue"], how="left")
        .join(chance, on=TASK, how="left")
        .with_columns(pl.col("check").fill_null(NOT_LOOKED_AT), pl.col("by_chance").fill_null(0.0))
        .sort(*TASK, "queue")
    )


def agreement_shares(matched: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the shares of jobs that ran at a candidate, at the best three, at the first; and by chance.

    Args:
        matched: From :func:`match_jobs`.
        **dice: ``n_boot`` (replicates over tasks) and ``seed``, see :func:`brokerlab.intervals.shares`.

    Returns:
        See :func:`brokerlab.intervals.shares`; parts ``candidate``, ``best_three``, ``first``, ``by_chance``.
    """
    jobs = pl.col("n_jobs").cast(pl.Float64)
    is_candidate = pl.col("check") == CANDIDATE

    def where(flag: pl.Expr) -> pl.Expr:
        return pl.when(flag.fill_null(value=False)).then(jobs).otherwise(0.0)

    table = matched.with_columns(
        candidate=where(is_candidate),
        best_three=where(is_candidate & (pl.col("rank") <= 3)),
        first=where(is_candidate & (pl.col("rank") == 1)),
        by_chance=pl.col("by_chance") * jobs,
        jobs=jobs,
    )
    parts = ["candidate", "best_three", "first", "by_chance"]
    return shares(table, parts, "jobs", unit=TASK[0], **dice)


def disagreement_shares(matched: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the share of jobs that ran where a check of the replay says skip, check by check, largest first.

    Args:
        matched: From :func:`match_jobs`.
        **dice: ``n_boot`` (replicates over tasks) and ``seed``, see :func:`brokerlab.intervals.shares`.

    Returns:
        See :func:`brokerlab.intervals.shares`; parts are the checks that occur, and `NOT_LOOKED_AT`.
    """
    others = matched.filter(pl.col("check") != CANDIDATE)["check"].unique().sort().to_list()
    jobs = pl.col("n_jobs")
    table = matched.with_columns(
        pl.when(pl.col("check") == name).then(jobs).otherwise(0).alias(name) for name in others
    )
    result = shares(table, others, "n_jobs", unit=TASK[0], **dice)
    return result.sort("share", "part", descending=[True, False])
