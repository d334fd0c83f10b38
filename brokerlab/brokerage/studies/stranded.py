"""Tasks that the replay leaves without a queue, though most jobs of theirs really ran."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.explanations import explain
from brokerlab.brokerage.obstacles import what_would_help
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import counted

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
    """Explain the brokerages without a queue whose jobs were most, one per task.

    Args:
        replay: What the job brokerage saw.
        decided: Table of tasks of its decisions.
        matched: From `history.match_jobs`.
        rules: Rule set.
        most: How many.

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
