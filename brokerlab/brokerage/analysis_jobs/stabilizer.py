"""The Analysis Stabilizer: how many jobs a user may have waiting at a queue (analysis-job-brokerage.md 5).

Every function takes and returns one row per (task, unified queue).
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.engine.pairs import solid_plan

INPUTS = (
    "x_nq", "x_nr", "s_running", "s_rate", "x_users", "x_users_running", "u_queued", "u_running",
    "u_known", "x_failed", "x_closed", "x_finished", "t_merging",
)  # fmt: skip
MAKES = (
    "trr", "looked_at", "running_users", "nq_max", "user_share", "max_q_len", "rem_q_len", "over_limit", "too_many_bad",
)  # fmt: skip


def limited(
    places: pl.LazyFrame, *, rules: AnalysisRules, settings: AnalysisSettings
) -> pl.LazyFrame:
    """Add the state of the stabilizer.

    Args:
        places: :data:`INPUTS`: jobs of the share (``x_nq, x_nr``), running jobs of all shares (``s_running``),
            to-running rate (``s_rate``), users with jobs and their running jobs, jobs of the task's user
            (``u_known``: there is a row).
        rules: Switches ``trr_scaled``, ``count_total_row``, ``bad_jobs_mode``.
        settings: Limits in force.

    Returns:
        ``places`` with :data:`MAKES`: ``trr`` [jobs/h], ``looked_at`` (step 3 did not exempt the queue), ``running_users`` (nR*),
        ``nq_max``, ``user_share``, ``max_q_len``, ``rem_q_len``, ``over_limit`` (the user's jobs waiting exceed
        max_q_len), ``too_many_bad``.

    Source:
        analysis-job-brokerage.md 5, 4.14.
    """
    rows = pl.col("x_users") > 0
    frame = places.with_columns(
        trr=_rate(rules),
        running_users=pl.when(rows).then("x_users_running").otherwise("x_nr").cast(pl.Float64),
        one=pl.lit(1.0),
    )
    frame = solid_plan(frame)  # divided by
    exempt = (pl.col("x_nq") < settings.base_queue_length) | (
        pl.col("x_nq") < settings.base_expected_wait_h * pl.col("trr")
    )
    if rules.bad_jobs_mode == "after_stabilizer":  # only bad jobs see a user without jobs there
        exempt = exempt | ~pl.col("u_known")
    users = pl.when(rows).then(pl.col("x_users") + int(rules.count_total_row)).otherwise(1)
    running = pl.col("running_users")
    own = pl.when(running > 0).then(pl.col("u_running") / running).otherwise(0.0)
    frame = frame.with_columns(
        looked_at=~exempt,
        user_share=pl.max_horizontal(pl.col("one") / users, own),
        nq_max=pl.max_horizontal(
            pl.lit(float(settings.base_queue_length)),
            settings.max_queue_running_ratio * running,
            settings.max_expected_wait_h * pl.col("trr"),
        ),
    ).drop("one")
    limit = pl.max_horizontal(
        pl.lit(float(settings.base_queue_length_user)),
        settings.base_queue_ratio * running,
        pl.col("nq_max") * pl.col("user_share"),
    )
    frame = frame.with_columns(max_q_len=limit)
    return frame.with_columns(
        rem_q_len=(pl.col("max_q_len") - pl.col("u_queued")).clip(lower_bound=0.0),
        over_limit=pl.col("looked_at")
        & (pl.col("u_queued") > pl.col("max_q_len"))
        & ~pl.col("t_merging"),
        too_many_bad=_bad(rules, settings),
    )


def _rate(rules: AnalysisRules) -> pl.Expr:
    """Return the to-running rate of the share at the queue [jobs/h]."""
    rate = pl.col("s_rate")
    if not rules.trr_scaled:
        return rate
    every = pl.col("s_running")
    return pl.when(every > 0).then(pl.col("x_nr") * rate / every).otherwise(0.0)


def _bad(rules: AnalysisRules, settings: AnalysisSettings) -> pl.Expr:
    """Tell where too many jobs of the task went wrong (4.14)."""
    bad = pl.col("x_failed") + pl.col("x_closed")
    limit = pl.max_horizontal(
        2 * pl.col("x_finished"), pl.lit(settings.min_bad_jobs, dtype=pl.Int64)
    )
    if rules.bad_jobs_mode == "all":
        return (bad >= limit) & ~pl.col("t_merging")
    return (bad > limit) & ~pl.col("t_merging") & pl.col("looked_at")
