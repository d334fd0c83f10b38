"""What takes queues from user tasks: checks in both locality loops, and the Analysis Stabilizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.settings import place_of
from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.engine.settings import value_at
from brokerlab.brokerage.studies.removal import CANDIDATE, removal_order, removal_shares
from brokerlab.brokerage.studies.users import USER
from brokerlab.intervals import shares

BOUNDS = ("base", "running", "rate")
"""What sets nQ_max: the base length, running jobs, the to-running rate."""
LIMITS = ("base_user", "ratio", "percentage")
"""What sets max_q_len: the base length per user, running jobs of the queue, the user's part of nQ_max."""


def removed_by_loop(decisions: AnalysisDecisions, **dice: Any) -> pl.DataFrame:
    """Return the share of the pairs of either locality loop that each check removes, in order: `removal_shares` by ``loop``.

    Parts are the checks in order of removal and, last, `CANDIDATE` (not removed).
    """
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    pairs = pl.concat(
        frame.select(*TASK, pl.col("loop").cast(pl.Int64), check)
        for frame in (decisions.queues, decisions.first_loop)
    )
    counts = pairs.group_by(*TASK, "loop", "check").len("n")
    order = removal_order(decisions)
    return removal_shares(counts, order, by=["loop"], **dice)


def stabilizer_state(decisions: AnalysisDecisions, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the state of the stabilizer at every (task, unified queue) that no check removed before.

    Returns:
        ``jeditaskid, snapshot, queue``; ``user, gshare, merging``; ``nq, nr`` (waiting and running jobs of the share),
        ``trr`` [jobs/h], ``nq_max``, ``user_share`` (the percentage, 0 to 1), ``max_q_len``, ``u_queued`` (the user's
        jobs waiting); ``looked_at`` (it can be throttled), `MARKS`, `BOUNDS` and `LIMITS` as 0 or 1, ``one``.
    """
    config = decisions.world.config
    longest, own = pl.col("nq_max"), pl.col("max_q_len")
    bound = (
        pl.when(longest == value_at(config, "BASE_QUEUE_LENGTH_PER_PQ", place_of))
        .then(pl.lit("base"))
        .when(longest == value_at(config, "MAX_EXPECTED_WAIT_HOUR", place_of) * pl.col("trr"))
        .then(pl.lit("rate"))
        .otherwise(pl.lit("running"))
    )
    limit = (
        pl.when(own == value_at(config, "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER", place_of))
        .then(pl.lit("base_user"))
        .when(own == longest * pl.col("user_share"))
        .then(pl.lit("percentage"))
        .otherwise(pl.lit("ratio"))
    )
    frame = (
        decisions.weighed.filter(longest.is_not_null())
        .with_columns(pl.col("panda_queue").cast(pl.String))
        .join(unified_queues(decisions), on="panda_queue", how="left")
        .sort(*TASK, "queue", "panda_queue")
        .unique([*TASK, "queue"], keep="first", maintain_order=True)
        .join(rows.select(*TASK, "user", "gshare", "merging"), on=TASK, how="left")
        .with_columns(bound=bound, limit=limit)
    )
    marked = ("looked_at", *MARKS)
    return frame.select(
        *(*TASK, "queue", "user", "gshare", "merging"),
        *(pl.col("x_nq").alias("nq"), pl.col("x_nr").alias("nr")),
        *("trr", "nq_max", "user_share", "max_q_len", "u_queued"),
        *(pl.col(name).fill_null(value=False).cast(pl.Int64) for name in marked),
        *((pl.col("bound") == name).cast(pl.Int64).alias(name) for name in BOUNDS),
        *((pl.col("limit") == name).cast(pl.Int64).alias(name) for name in LIMITS),
        one=pl.lit(1),
    )


def unified_queues(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return ``panda_queue`` and ``queue``, the unified queue of pseudo-queues, else its own name."""
    names = decisions.world.facts.queues.select("panda_queue", "parent").unique(
        "panda_queue", keep="first", maintain_order=True
    )
    return names.select("panda_queue", queue=pl.coalesce("parent", "panda_queue"))


def stabilizer_shares(state: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the share of pairs where the stabilizer may act, that it marks, and by what its limits are set.

    `intervals.shares` over users, parts ``looked_at``, `MARKS`, `BOUNDS` and `LIMITS`.
    """
    parts: Sequence[str] = ("looked_at", *MARKS, *BOUNDS, *LIMITS)
    return shares(state, parts, "one", unit=USER, **dice)


def stabilizer_by_queue(state: pl.DataFrame) -> pl.DataFrame:
    """Return the state of the stabilizer queue by queue.

    Returns:
        One row per queue, those that the stabilizer takes most often first: ``queue``, ``pairs``, ``throttled`` (share
        where it can be), ``marked`` [pairs] and ``marked_share``; medians ``nq, nr, trr, nq_max, user_share,
        max_q_len``; first and ninth deciles ``max_q_len_d1, max_q_len_d9, u_queued_d9``.
    """
    names = ("nq", "nr", "trr", "nq_max", "user_share", "max_q_len")
    deciles = [("max_q_len", 1), ("max_q_len", 9), ("u_queued", 9)]
    return (
        state.group_by("queue")
        .agg(
            pl.len().cast(pl.Int64).alias("pairs"),
            pl.col("looked_at").mean().alias("throttled"),
            pl.col("user_queue").sum().alias("marked"),
            pl.col("user_queue").mean().alias("marked_share"),
            *(pl.col(name).median() for name in names),
            *(
                pl.col(name).quantile(n / 10, interpolation="linear").alias(f"{name}_d{n}")
                for name, n in deciles
            ),
        )
        .sort("marked", "throttled", "pairs", "queue", descending=[True, True, True, False])
    )
