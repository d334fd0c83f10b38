"""The Analysis Stabilizer and the weights of analysis queues (analysis-jobs.md 5 and 7); one row per (task, unified queue)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules, asked_of
from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived
from brokerlab.units import GB


def limited(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return the state of the stabilizer.

    It reads jobs of the share (``x_nq, x_nr``), running jobs of all shares (``s_running``), the to-running rate
    (``s_rate``), users with jobs and their running jobs, jobs of the task's user (``u_known``: there is a row), and makes
    ``trr`` [jobs/h], ``looked_at`` (step 3 did not exempt the queue), ``running_users`` (nR), ``nq_max``,
    ``user_share``, ``max_q_len``, ``rem_q_len``, ``over_limit`` (the user's jobs waiting exceed max_q_len), ``too_many_bad``.

    Source: analysis-jobs.md 4 and 5.
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
    bad = pl.col("x_failed") + pl.col("x_closed")
    limit = pl.max_horizontal(2 * pl.col("x_finished"), setting("MIN_BAD_JOBS_TO_SKIP_PQ"))
    if rules.bad_jobs_mode == "all":
        return (bad >= limit) & asked_of(pl.col("t_merging"), rules)
    return (bad > limit) & asked_of(pl.col("t_merging"), rules) & pl.col("looked_at")


MOST_WORKERS = 20
"""Batch workers that count as running jobs at most, and running jobs below which they do."""
BY_CLASS = ("User Analysis", "Express Analysis")
"""Shares whose jobs go to queues by class."""
CLASS_B, CLASS_C = 0, -1
SITE_CLASSES = {1: "hi", 0: "mid", -1: "lo"}
UNASSIGNED = 0.001
LEAST_SHARE = 0.001
LEAST_WEIGHT = 2.0**-20
ROUNDING = 1e-9
"""What is less than this part of a sum is what rounding left of 0."""
EPSILON_1, EPSILON_2 = 0.05, 0.002
"""Weights of the page's table beside the matching class."""


def weighed(rules: AnalysisRules) -> tuple[Derived, ...]:
    """Return the basic weights, the data factor and the weight, of unified queues that are left, and what they are made of.

    ``really_running``, ``waiting``, ``starting`` (jobs that count), ``running`` (R), ``orig``, ``new``, ``new_document``,
    ``budget_hi``, ``budget_mid``, ``budget_lo`` (M), ``data_factor``, ``weight``.

    Source: analysis-jobs.md 7.
    """
    new = "new" if rules.new_weight == "budgets" else "new_document"
    basic = pl.col("orig" if rules.basic_weight == "original" else new)
    factor = pl.when(rules.data_factor).then(_data_factor()).otherwise(1.0)
    weight = pl.col("basic") * pl.col("data_factor") if rules.data_factor else pl.col("basic")
    return (
        Derived(counted(rules)),
        Derived({"running": _running(rules)}),
        Derived({
            "orig": (pl.col("running") + 1) / (pl.col("waiting") + 1),
            "jobs": pl.col("t_n_jobs").cast(pl.Float64),
            **_sums(),
        }),
        *_budgets(),
        Derived({"new": _new(), "new_document": _new_document(), "data_factor": factor}),
        Derived({"basic": basic}),
        Derived({"weight": weight}),
    )  # fmt: skip


def counted(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return the jobs that count at a queue: all of them, or those of the share (switch ``counted_jobs``)."""
    every = rules.counted_jobs == "queue"
    names = ("s_running", "s_waiting", "s_starting") if every else ("x_nr", "x_nq", "x_starting")
    new = ("really_running", "waiting", "starting")
    return {name: pl.col(column) for name, column in zip(new, names, strict=True)}


def _running(rules: AnalysisRules) -> pl.Expr:
    """Return R, the number of running jobs that counts (6.1).

    Source:
        002, ATLAS Analysis Job Brokerage: "The brokerage uses the largest one as the number of running jobs among the
        following numbers".
    """
    real, slots = pl.col("really_running"), pl.col("x_numslots")
    workers = pl.min_horizontal("s_workers", MOST_WORKERS)
    boots = (real < MOST_WORKERS) & (workers > real)
    if rules.workers_need_pilots:
        boots = boots & (pl.col("s_pilots") > 0)
    base = pl.when(boots).then(workers).otherwise(real)
    filled = slots // pl.max_horizontal("q_corecount", 1) if rules.slots_per_core else slots
    if rules.slots_zero_mode == "sum":
        none = base + pl.col("starting")
    else:
        none = pl.max_horizontal(base, "starting")
    return (
        pl.when(slots.is_null()).then(base)
        .when(slots == 0).then(none)
        .otherwise(pl.max_horizontal(filled, base))
    )  # fmt: skip


def _sums() -> dict[str, pl.Expr]:
    """Return Q and n of the task, of each class (``_hi``...) and of the queue's own class (``_class``)."""
    remaining = pl.col("rem_q_len")
    return {
        "q_all": remaining.sum().over("t"),
        "n_all": pl.len().over("t").cast(pl.Float64),
        "q_class": remaining.sum().over("t", "s_class"),
        "n_class": pl.len().over("t", "s_class").cast(pl.Float64),
        **{
            f"q_{name}": remaining.filter(pl.col("s_class") == value).sum().over("t")
            for value, name in SITE_CLASSES.items()
        },
    }


def _budgets() -> tuple[Derived, ...]:
    """Return how many of the jobs each class of queues gets (6.2)."""
    cls = pl.col("t_class")
    jobs, hi = pl.col("shared_jobs"), pl.col("first_hi")
    first_b, first_a = pl.col("mid_b") > 0, hi > 0
    lo_a = jobs - hi - pl.col("mid_a")
    hi_a = pl.when(first_a).then(hi - 0.052).otherwise(hi)
    mid_a = pl.when(first_a).then(pl.col("mid_a") + 0.05).otherwise("mid_a")
    lo_a = pl.when(first_a).then(lo_a + 0.002).otherwise(lo_a)
    lo_b = jobs - pl.col("mid_b")
    mid_b = pl.when(first_b).then(pl.col("mid_b") - 0.1).otherwise("mid_b")
    lo_b = pl.when(first_b).then(lo_b + 0.1).otherwise(lo_b)
    limited = pl.col("t_gshare").is_in(BY_CLASS).fill_null(value=False)

    def by_class(of_a: pl.Expr, of_b: pl.Expr, of_c: pl.Expr) -> pl.Expr:
        chosen = pl.when(cls == CLASS_C).then(of_c).when(cls == CLASS_B).then(of_b).otherwise(of_a)
        return pl.when(limited).then(chosen).otherwise(UNASSIGNED)

    unassigned = pl.lit(UNASSIGNED)
    return (
        Derived({"shared_jobs": pl.min_horizontal("jobs", "q_all")}),
        Derived({
            "first_hi": pl.min_horizontal("shared_jobs", "q_hi"),
            "mid_b": pl.min_horizontal("shared_jobs", "q_mid"),
        }),
        Derived({"mid_a": pl.min_horizontal(jobs - hi, "q_mid")}),
        Derived({
            "budget_hi": by_class(hi_a, unassigned, unassigned),
            "budget_mid": by_class(mid_a, mid_b, unassigned),
            "budget_lo": by_class(lo_a, lo_b, jobs),
            "limited": limited,
        }),
    )  # fmt: skip


def _new() -> pl.Expr:
    """Return the new basic weight: jobs of the class times the queue's part of them."""
    limited = pl.col("limited")
    budget = (
        pl.when(pl.col("s_class") == 1).then("budget_hi")
        .when(pl.col("s_class") == -1).then("budget_lo")
        .otherwise("budget_mid")
    )  # fmt: skip
    own = pl.when(limited).then(budget).otherwise("jobs")
    total = pl.when(limited).then("q_class").otherwise("q_all")
    number = pl.when(limited).then("n_class").otherwise("n_all")
    return own * _part(own, total, number) + LEAST_WEIGHT


def _part(jobs: pl.Expr, total: pl.Expr, number: pl.Expr) -> pl.Expr:
    """Return W_q: what the queue has left after an even share of the jobs, as part of what all have left."""
    left = pl.max_horizontal(pl.col("rem_q_len") - jobs / number, LEAST_SHARE * jobs)
    rest = total - jobs
    return (
        pl.when((rest > ROUNDING * total) & ~pl.col("t_merging")).then(left / rest)
        .when(total > 0).then(pl.col("rem_q_len") / total)
        .otherwise(pl.col("t_one") / number)
    )  # fmt: skip


def _new_document() -> pl.Expr:
    """Return the new basic weight of the page: epsilon beside the matching class, all queues together."""
    cls, site, jobs = pl.col("t_class"), pl.col("s_class"), pl.col("jobs")
    fits = (
        pl.when(cls == CLASS_C).then(site == -1)
        .when(cls == CLASS_B).then(site == 0)
        .otherwise(site == 1)
    )  # fmt: skip
    nearer = (site == 0) | ((site == -1) & (cls == CLASS_B))
    beside = pl.when(nearer).then(EPSILON_1).otherwise(EPSILON_2)
    own = pl.when(fits | ~pl.col("limited")).then(jobs).otherwise(beside)
    return own * _part(jobs, pl.col("q_all"), pl.col("n_all"))


def _data_factor() -> pl.Expr:
    here_gb = (pl.col("x_avail") / GB).floor()
    by_size = 1 + here_gb / (10 * pl.col("t_one"))
    large = pl.col("t_total") >= GB
    weight = pl.when(pl.col("x_data_weight") > 0).then("x_data_weight").otherwise(1.0)
    return (
        pl.when(pl.col("t_local") & ~pl.col("t_union")).then(weight)
        .when(large).then(by_size)
        .otherwise(1.0)
    )  # fmt: skip
