"""Does the replay agree with what happened: was the queue where jobs ran a candidate, and which tasks have no queue whose jobs ran?"""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK
from brokerlab.brokerage.explanations import explain
from brokerlab.brokerage.obstacles import what_would_help
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.brokerage.words import counted
from brokerlab.intervals import shares


def brokerages_of_jobs(ran: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that ran with ``snapshot``, the last brokerage of their task before they were made, sorted by ``made``.

    Jobs made before the first brokerage are left out.
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

    Jobs of a unified queue count for that of its pseudo-queues which came furthest (``best``).

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

    See :func:`brokerlab.intervals.shares`; parts are the checks that occur, and `NOT_LOOKED_AT`.
    """
    others = matched.filter(pl.col("check") != CANDIDATE)["check"].unique().sort().to_list()
    jobs = pl.col("n_jobs")
    table = matched.with_columns(
        pl.when(pl.col("check") == name).then(jobs).otherwise(0).alias(name) for name in others
    )
    result = shares(table, others, "n_jobs", unit=TASK[0], **dice)
    return result.sort("share", "part", descending=[True, False])


MOST_CHECKS = 3
"""Checks named that stand alone before a queue."""


def explain_stranded(
    replay: Replay,
    decided: pl.DataFrame,
    matched: pl.DataFrame,
    rules: ProductionRules,
    *,
    most: int = 5,
) -> pl.DataFrame:
    """Explain the brokerages without a queue whose jobs were most, one per task, ``most`` of them.

    Returns:
        ``jeditaskid, snapshot, at, outcome, stage, n_jobs`` (that ran all the same), ``queue`` (where most of them
        did), ``why`` it was not a candidate and what would ``help`` the task, as `explain` and `what_would_help` answer;
        most jobs first.
    """
    busiest = matched.sort("n_jobs", "queue", descending=[True, False]).group_by(
        TASK, maintain_order=True
    )
    jobs = busiest.agg(pl.col("queue", "place").first(), pl.col("n_jobs").sum())
    without = decided.filter(pl.col("outcome") != "candidates")
    chosen = (
        without.join(jobs, on=TASK)
        .sort("n_jobs", *TASK, descending=[True, False, False])
        .unique("jeditaskid", keep="first", maintain_order=True)
        .head(most)
    )
    rows = list(chosen.iter_rows(named=True))
    tables = replay.of(chosen.select(TASK)).tables_of(BROKERAGE.tables)
    decisions = BROKERAGE.decide(tables, rules=rules, config=replay.config)
    return chosen.select(*TASK, "at", "outcome", "stage", "n_jobs", "queue").with_columns(
        why=pl.Series([_why(decisions, row) for row in rows], dtype=pl.String),
        help=pl.Series([_help(decisions, row) for row in rows], dtype=pl.String),
    )


def _why(decisions: Decisions, row: dict[str, Any]) -> str:
    """Say why the task was not sent to the queue: the answer's first sentence, less what the row says already."""
    answer = explain(
        decisions,
        jeditaskid=row["jeditaskid"],
        panda_queue=row["place"] or row["queue"],
        snapshot=row["snapshot"],
    )
    _, colon, reason = answer.sentences[0].partition(": ")
    sentence = reason if colon else answer.sentences[0]
    others = len(answer.obstacles) - 1
    return sentence if others < 1 else f"{sentence} {counted(others, 'more check')} against it."


def _help(decisions: Decisions, row: dict[str, Any]) -> str:
    """Say which single checks stand between the task and a queue, those of most queues first."""
    if row["outcome"] != "no_candidates":
        return row["detail"] or "no queue was looked at"
    table = what_would_help(decisions, jeditaskid=row["jeditaskid"], snapshot=row["snapshot"])
    alone = table.filter(pl.col("n_gained") > 0).head(MOST_CHECKS)
    parts = [
        f"without {check}, {counted(n, 'queue')}"
        for check, n in alone.select("check", "n_gained").iter_rows()
    ]
    return "; ".join(parts) or "at least two checks stand before every queue"
