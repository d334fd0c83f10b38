"""The Analysis Stabilizer: where it may act, what its limit is made of, how many queues it takes from tasks."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.report.replays.removal import KEYS
from brokerlab.report.replays.shares import USER, shares

MARKS = ("user_queue", "bad_jobs", "no_running")
"""Why a queue is marked, and then dropped from the final list."""
PARTS = ("looked_at", *MARKS)
BOUNDS = ("base", "running", "rate")
"""What sets nQ_max: the base length, running jobs, the to-running rate."""
LIMITS = ("base_user", "ratio", "percentage")
"""What sets max_q_len: the base length per user, running jobs of the queue, the user's part of nQ_max."""


def state(decisions: AnalysisDecisions, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the state of the stabilizer at every (task, unified queue) that no check removed before.

    Args:
        decisions: Of the analysis brokerage.
        rows: From `brokerages.brokerages`.

    Returns:
        ``jeditaskid, snapshot, queue``; ``user, gshare, merging``; ``nq, nr`` (waiting and running jobs of the share),
        ``trr`` [jobs/h], ``nq_max``, ``user_share`` (the percentage, 0 to 1), ``max_q_len``, ``u_queued`` (the user's
        jobs waiting); ``looked_at`` (it can be throttled), `MARKS` as 0 or 1, `BOUNDS` and `LIMITS` as 0 or 1, ``one``.
    """
    settings = decisions.world.settings
    names = decisions.world.facts.queues.select("panda_queue", "parent").unique(
        "panda_queue", keep="first", maintain_order=True
    )
    frame = (
        decisions.weighed.filter(pl.col("nq_max").is_not_null())
        .with_columns(pl.col("panda_queue").cast(pl.String))
        .join(names, on="panda_queue", how="left")
        .with_columns(queue=pl.coalesce("parent", "panda_queue"))
        .sort(*KEYS, "queue", "panda_queue")
        .unique([*KEYS, "queue"], keep="first", maintain_order=True)
        .join(rows.select(*KEYS, "user", "gshare", "merging"), on=KEYS, how="left")
    )
    longest = pl.col("nq_max")
    bound = (
        pl.when(longest == settings.base_queue_length).then(pl.lit("base"))
        .when(longest == settings.max_expected_wait_h * pl.col("trr")).then(pl.lit("rate"))
        .otherwise(pl.lit("running"))
    )  # fmt: skip
    own = pl.col("max_q_len")
    limit = (
        pl.when(own == settings.base_queue_length_user).then(pl.lit("base_user"))
        .when(own == longest * pl.col("user_share")).then(pl.lit("percentage"))
        .otherwise(pl.lit("ratio"))
    )  # fmt: skip
    numbers = ("trr", "nq_max", "user_share", "max_q_len", "u_queued")
    return frame.with_columns(bound=bound, limit=limit).select(
        *KEYS, "queue", "user", "gshare", "merging", nq="x_nq", nr="x_nr", **{name: name for name in numbers},
        **{name: pl.col(name).fill_null(value=False).cast(pl.Int64) for name in PARTS},
        **{name: (pl.col("bound") == name).cast(pl.Int64) for name in BOUNDS},
        **{name: (pl.col("limit") == name).cast(pl.Int64) for name in LIMITS},
        one=pl.lit(1),
    )  # fmt: skip


def totals(seen: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of pairs where the stabilizer may act, that it marks, and by what its limits are set.

    Args:
        seen: From `state`.
        n_boot: Bootstrap replicates over users.
        seed: Of the bootstrap.

    Returns:
        `shares` over users, parts `PARTS`, `BOUNDS` and `LIMITS`.
    """
    parts = (*PARTS, *BOUNDS, *LIMITS)
    return shares(seen, parts, "one", unit=USER, n_boot=n_boot, seed=seed)


def by_queue(seen: pl.DataFrame) -> pl.DataFrame:
    """Return the state of every queue.

    Args:
        seen: From `state`.

    Returns:
        One row per queue, those that the stabilizer takes most often first: ``queue``, ``pairs``, ``throttled`` (share
        where it can be), ``marked`` [pairs] and ``marked_share``; medians ``nq, nr, trr, nq_max, user_share,
        max_q_len``, ``max_q_len_lo`` and ``max_q_len_hi`` (1st and 9th decile), ``u_queued_hi`` (9th decile).
    """
    names = ("nq", "nr", "trr", "nq_max", "user_share", "max_q_len")
    medians = {name: pl.col(name).median() for name in names}
    return (
        seen.group_by("queue")
        .agg(
            pairs=pl.len().cast(pl.Int64),
            throttled=pl.col("looked_at").mean(),
            marked=pl.col("user_queue").sum(),
            marked_share=pl.col("user_queue").mean(),
            **medians,
            max_q_len_lo=pl.col("max_q_len").quantile(0.1, interpolation="linear"),
            max_q_len_hi=pl.col("max_q_len").quantile(0.9, interpolation="linear"),
            u_queued_hi=pl.col("u_queued").quantile(0.9, interpolation="linear"),
        )
        .sort("marked", "throttled", "pairs", "queue", descending=[True, True, True, False])
    )
