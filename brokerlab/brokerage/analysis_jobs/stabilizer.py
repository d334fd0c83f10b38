"""The Analysis Stabilizer: how many jobs a user may have waiting at a queue (analysis-jobs.md 5).

Its columns are of one (task, unified queue).
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules, asked_of
from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived


def limited(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return the state of the stabilizer.

    It reads jobs of the share (``x_nq, x_nr``), running jobs of all shares (``s_running``), the to-running rate
    (``s_rate``), users with jobs and their running jobs, jobs of the task's user (``u_known``: there is a row).

    Args:
        rules: Switches ``trr_scaled``, ``count_total_row``, ``stabilizer_running``, ``bad_jobs_mode``,
            ``code_only_exemptions``.

    Returns:
        ``trr`` [jobs/h], ``looked_at`` (step 3 did not exempt the queue), ``running_users`` (nR), ``nq_max``,
        ``user_share``, ``max_q_len``, ``rem_q_len``, ``over_limit`` (the user's jobs waiting exceed max_q_len),
        ``too_many_bad``.

    Source:
        analysis-jobs.md 4 and 5.
    """
    rows = pl.col("x_users") > 0
    base_length = setting("BASE_QUEUE_LENGTH_PER_PQ")
    exempt = (pl.col("x_nq") < base_length) | (
        pl.col("x_nq") < setting("BASE_EXPECTED_WAIT_HOUR_ON_PQ") * pl.col("trr")
    )
    if rules.bad_jobs_mode == "after_stabilizer":  # only bad jobs see a user without jobs there
        exempt = exempt | ~pl.col("u_known")
    users = pl.when(rows).then(pl.col("x_users") + int(rules.count_total_row)).otherwise(1)
    running = pl.col("running_users")
    own = pl.when(running > 0).then(pl.col("u_running") / running).otherwise(0.0)
    limit = pl.max_horizontal(
        setting("BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        setting("BASE_QUEUE_RATIO_ON_PQ") * running,
        pl.col("nq_max") * pl.col("user_share"),
    )
    left = (pl.col("max_q_len") - pl.col("u_queued")).clip(lower_bound=0.0)
    limited = pl.col("looked_at") & asked_of(pl.col("t_merging"), rules)
    over = limited & (pl.col("u_queued") > pl.col("max_q_len"))
    by_users = rows & pl.lit(value=rules.stabilizer_running == "users")
    return (
        Derived({
            "trr": _rate(rules),
            "running_users": pl.when(by_users).then("x_users_running").otherwise("x_nr").cast(pl.Float64),
        }),
        Derived({
            "looked_at": ~exempt,
            "user_share": pl.max_horizontal(pl.col("t_one") / users, own),
            "nq_max": pl.max_horizontal(
                base_length,
                setting("STATIC_MAX_QUEUE_RUNNING_RATIO") * running,
                setting("MAX_EXPECTED_WAIT_HOUR") * pl.col("trr"),
            ),
        }),
        Derived({"max_q_len": limit}),
        Derived({"rem_q_len": left, "over_limit": over, "too_many_bad": _too_many_bad(rules)}),
    )  # fmt: skip


def _rate(rules: AnalysisRules) -> pl.Expr:
    """Return the to-running rate of the queue [jobs/h], "number of jobs getting from queuing to running per hour in the PQ"."""
    rate = pl.col("s_rate")
    if not rules.trr_scaled:
        return rate
    every = pl.col("s_running")
    return pl.when(every > 0).then(pl.col("x_nr") * rate / every).otherwise(0.0)


def _too_many_bad(rules: AnalysisRules) -> pl.Expr:
    """Tell where too many jobs of the task went wrong (4.14)."""
    bad = pl.col("x_failed") + pl.col("x_closed")
    limit = pl.max_horizontal(2 * pl.col("x_finished"), setting("MIN_BAD_JOBS_TO_SKIP_PQ"))
    if rules.bad_jobs_mode == "all":
        return (bad >= limit) & asked_of(pl.col("t_merging"), rules)
    return (bad > limit) & asked_of(pl.col("t_merging"), rules) & pl.col("looked_at")
