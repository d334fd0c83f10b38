"""What each check removes, and which brokerages leave their task without a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.check_table import checks_table
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.sensitivities import BEYOND_THE_BEST
from brokerlab.brokerage.studies.period import JobDecisions, Kind
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


def best_pseudo_queues(decisions: JobDecisions, queues: pl.DataFrame) -> pl.DataFrame:
    """Say what became of each stored queue at each brokerage, by that of its pseudo-queues which came furthest.

    Returns:
        One row per brokerage and stored queue: ``jeditaskid, snapshot, queue``, ``place`` (name of that pseudo-queue,
        or the queue itself), ``check`` (`CANDIDATE`: not removed), ``rank`` (null: not ranked), ``n`` (1).
    """
    steps = pl.DataFrame({"check": removal_order(decisions)}).with_row_index("step")
    parents = queues.select("panda_queue", "unified_name").unique("panda_queue")
    rank = pl.col("rank").fill_null(99)
    return (
        decisions.queues.select(*TASK, pl.col("panda_queue", "check").cast(pl.String), "rank")
        .with_columns(pl.col("check").fill_null(CANDIDATE))
        .join(steps, on="check")
        .join(parents, on="panda_queue", how="left")
        .with_columns(queue=pl.coalesce("unified_name", "panda_queue"))
        .sort("step", rank, "panda_queue", descending=[True, False, False])
        .unique([*TASK, "queue"], keep="first", maintain_order=True)
        .select(*TASK, "queue", "check", "rank", place="panda_queue", n=pl.lit(1, pl.Int64))
        .sort(*TASK, "queue")
    )
