"""What each check removes, which brokerages leave their task without a queue, and whether jobs ran where the replay would send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.check_table import checks_table
from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK, PlaceDecisions, furthest
from brokerlab.brokerage.explanations import explain
from brokerlab.brokerage.funnels import what_would_help
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.sensitivities import BEYOND_THE_BEST
from brokerlab.brokerage.studies.period import JobDecisions, Kind
from brokerlab.brokerage.words import counted
from brokerlab.intervals import shares

CANDIDATE = "candidate"
"""Stands for the check of a pair that no check removed."""
NO_SHARE = "(none)"
"""Name of tasks without gshare."""


def with_flags(frame: pl.DataFrame, column: str, values: Sequence[str]) -> pl.DataFrame:
    """Return the rows with one column of 0 and 1 per value of a column."""
    return frame.with_columns(
        (pl.col(column) == value).cast(pl.Int64).alias(value) for value in values
    )


def count_removals(decisions: PlaceDecisions, tasks: pl.DataFrame) -> pl.DataFrame:
    """Count the pairs of task and queue (nucleus) that each check removed, brokerage by brokerage.

    Returns:
        One row per brokerage and check that removed something: ``jeditaskid, snapshot, check`` (`CANDIDATE`: not
        removed), ``n`` [pairs], ``at``, ``gshare``; sorted.
    """
    facts = tasks.select(*TASK, "at", pl.col("gshare").fill_null(NO_SHARE))
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    counts = decisions.pairs.group_by(*TASK, "check").len("n").with_columns(check)
    return counts.join(facts, on=TASK).sort(*TASK, "check")


def removal_order(decisions: PlaceDecisions) -> list[str]:
    """Return every check in the order in which queues (nuclei) are removed, candidates last."""
    return [*decisions.order["check"].cast(pl.String), CANDIDATE]


def removal_shares(
    counts: pl.DataFrame, checks: Sequence[str], *, by: Sequence[str] = (), **dice: Any
) -> pl.DataFrame:
    """Return the share of pairs that each check removes, and what is left after it.

    ``counts``: ``jeditaskid, snapshot, check, n`` [pairs] and the columns of ``by``; ``checks`` in the order of removal, all of
    ``counts``, or ``left`` is too large.

    Returns:
        See :func:`brokerlab.intervals.shares`, one row per group and check: ``by, part`` (the check), ``total, whole``
        [pairs], ``share, share_lo, share_hi`` [1], ``resampled, n_units``; and ``left`` [1], the share of pairs that neither
        it nor an earlier check removes.
    """
    per_check = [pl.col("n").filter(pl.col("check") == name).sum().alias(name) for name in checks]
    table = counts.group_by(*TASK, *by).agg(*per_check, looked_at=pl.col("n").sum())
    result = shares(table, checks, "looked_at", unit=TASK[0], by=by, **dice)
    removed = pl.col("share").cum_sum()
    return result.with_columns(left=1 - (removed.over(by) if by else removed))


def rank_checks(removed: pl.DataFrame) -> pl.DataFrame:
    """Return the checks of :func:`removal_shares` that removed something, the one that removed most first.

    Candidates, and being beyond the best ten, are no checks.
    """
    checks = removed.filter(
        ~pl.col("part").is_in([CANDIDATE, *BEYOND_THE_BEST]), pl.col("total") > 0
    )
    return checks.sort("share", "part", descending=[True, False])


def sum_up_levels(
    removed: pl.DataFrame, by: str, *, without_queue: pl.DataFrame | None = None, most: int = 3
) -> pl.DataFrame:
    """Return what becomes of the pairs of each group, one row each.

    Returns:
        ``by``, ``whole`` [pairs], ``candidates, candidates_lo, candidates_hi`` [1], ``reasons`` (the checks that remove
        most, as text), and with ``without_queue`` (:func:`shares_without_queue` by that column) also ``n_tasks, n_brokerages,
        stuck, stuck_lo, stuck_hi`` [1]; those without a queue most often first, or those that are candidates least often.
    """

    def shares_of(frame: pl.DataFrame, part: str, name: str) -> pl.DataFrame:
        ends = {f"{name}{end}": f"share{end}" for end in ("", "_lo", "_hi")}
        return frame.filter(part=part).select(by, "whole", "n_units", **ends)

    checks = removed.filter(pl.col("part") != CANDIDATE, pl.col("total") > 0)
    reasons = (
        checks.sort("share", "part", descending=[True, False])
        .group_by(by, maintain_order=True)
        .agg(reasons=pl.col("part").head(most).str.join(", "))
    )
    passed = shares_of(removed, CANDIDATE, "candidates").drop("n_units")
    levels = passed.join(reasons, on=by, how="left").sort("candidates", by)
    if without_queue is None:
        return levels
    names = {"whole": "n_brokerages", "n_units": "n_tasks"}
    stuck = shares_of(without_queue, "stuck", "stuck").rename(names)
    return stuck.join(levels, on=by, how="left").sort("stuck", by, descending=[True, False])


def describe_checks(removed: pl.DataFrame, rules: ProductionRules, stage: str) -> pl.DataFrame:
    """Join the ``kind`` of each check (``part``), and the gdpconfig ``keys`` that it reads as text."""
    table = checks_table(rules, stage=stage).unique("check", keep="first")
    about = table.select("kind", part="check", keys=pl.col("keys").list.join(", "))
    return removed.join(about, on="part", how="left", maintain_order="left")


def shares_without_queue(
    decided: pl.DataFrame, tasks: pl.DataFrame, kind: Kind, *, by: Sequence[str] = (), **dice: Any
) -> pl.DataFrame:
    """Return the share of brokerages that leave their task without a queue, by outcome, see :func:`brokerlab.intervals.shares`.

    Parts are the outcomes of `Kind.stuck`, and ``stuck``, any of them.
    """
    names = kind.stuck
    facts = tasks.select(*TASK, pl.col("gshare").fill_null(NO_SHARE))
    table = with_flags(decided.join(facts, on=TASK), "outcome", names).with_columns(
        stuck=(pl.col("outcome") != "candidates").cast(pl.Int64), brokerages=pl.lit(1)
    )
    parts = [*names, "stuck"]
    return shares(table, parts, "brokerages", unit=TASK[0], by=by, **dice)


def best_pseudo_queues(decisions: JobDecisions) -> pl.DataFrame:
    """Say what became of each stored queue at each brokerage, see :func:`~.engine.decisions.furthest`; ``check`` is `CANDIDATE` where none removed it, ``n`` is 1."""
    best = furthest(decisions, decisions.queues)
    return best.with_columns(pl.col("check").fill_null(CANDIDATE), n=pl.lit(1, pl.Int64))


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
