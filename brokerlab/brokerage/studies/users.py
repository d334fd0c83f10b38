"""User tasks: whose each brokerage is and how it went, who is held back and why, what takes queues from them, and fairness between users."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules, asked_of, place_of
from brokerlab.brokerage.analysis_jobs.throttle import (
    INCOMPLETE,
    LIMITED_SHARE,
    NO_TARGET_PCT,
    OUTCOMES,
    USAGE_A,
    USAGE_B,
    USAGE_C,
)
from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.engine.steps import value_at
from brokerlab.brokerage.studies.removal import (
    CANDIDATE,
    NO_SHARE,
    brokerages_of_jobs,
    removal_order,
    removal_shares,
    with_flags,
)
from brokerlab.intervals import Formula, Sums, clustered, shares, summed
from brokerlab.lifecycle.classification.task_classes import NAMES as TASK_CLASSES
from brokerlab.numerics import FloatArray

USER = "user"
"""Column of the unit of chance of most intervals: what one user sends rises and falls together."""
UNRATED = "unrated"
"""Class of tasks of which nothing is known; weights take them for A, no class holds them back."""
CLASS_ORDER = ("all", *TASK_CLASSES.values(), UNRATED)
"""How classes of tasks are sorted, those of all tasks together first."""
NO_USER = "(none)"
HELD, PASSED = "held", "passed"
"""What a brokerage is called that some rule holds back, or none."""
RULES = (*OUTCOMES, INCOMPLETE)
"""What may hold a task back, in order: rules T1 to T10, and incomplete input."""
FAMILIES = {
    "caps": ("cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores"),
    "classes": ("gshare_class_c", "gshare_class_b", "gshare_class_a"),
    "quota": ("global_quota", "near_global_quota", "quota_unavailable"),
    "input": (INCOMPLETE,),
}
"""Rules of one kind."""


def outcomes(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return whose each brokerage is and how it went, sorted.

    ``jeditaskid, snapshot, at, gshare, user`` (who is accounted, without group), ``unit`` (the working group where the task has
    one, else the user), ``task_class`` (S, A, B, C or `UNRATED`), ``merging``, ``jobs`` (that the chunk splits into), ``rule``
    (of `RULES` that holds it back, else `PASSED`), ``family`` (of `FAMILIES`, else `PASSED`), ``outcome``, ``route`` through the
    locality loops (``first``: only the one with locality; ``then_second``: both; ``second_only``: only the one without, a
    relaxation; ``held``: none); ``one`` (1).
    """
    given = decisions.world.tables["tasks"].select(
        "jeditaskid",
        pl.col("snapshot").fill_null(0),
        pl.col("gshare").fill_null(NO_SHARE),
        user=pl.coalesce("origusername", "username", pl.lit(NO_USER)),
        unit=pl.coalesce("workinggroup", "origusername", "username", pl.lit(NO_USER)),
        merging=pl.col("is_merging").fill_null(value=False),
        jobs=pl.col("n_jobs_to_submit").fill_null(0).cast(pl.Float64),
    )
    task_class = pl.col("class").replace_strict(
        TASK_CLASSES, default=UNRATED, return_dtype=pl.String
    )
    rated = decisions.world.tasks.select(*TASK, task_class=task_class)
    again = decisions.first_loop.select(TASK).unique().with_columns(again=pl.lit(value=True))
    ended = decisions.tasks.select(
        *TASK, "at", "outcome", "loop", rule=pl.col("throttle").fill_null(PASSED)
    )
    families = {rule: name for name, rules in FAMILIES.items() for rule in rules}
    second = pl.col("loop") == 2
    return (
        ended.join(given, on=TASK, how="left")
        .join(rated, on=TASK, how="left")
        .join(again, on=TASK, how="left")
        .with_columns(
            pl.col("task_class").fill_null(UNRATED),
            family=pl.col("rule").replace_strict(families, default=PASSED, return_dtype=pl.String),
            route=pl.when(pl.col("rule") != PASSED)
            .then(pl.lit(HELD))
            .when(second & pl.col("again").fill_null(value=False))
            .then(pl.lit("then_second"))
            .when(second)
            .then(pl.lit("second_only"))
            .otherwise(pl.lit("first")),
            one=pl.lit(1),
        )
        .drop("loop", "again")
        .sort(TASK)
    )


def in_order(frame: pl.DataFrame, column: str, size: str) -> pl.DataFrame:
    """Sort rows by the levels of a column: classes of tasks by `CLASS_ORDER`, others the largest first."""
    if column == "task_class":
        return frame.sort(pl.col(column).cast(pl.Enum(CLASS_ORDER)))
    return frame.sort(size, column, descending=[True, False])


def held_by_rule(rows: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return the share of brokerages that each rule holds back.

    Returns:
        `intervals.shares` over users, parts `RULES`, `HELD` (by any of them) and `PASSED`; with ``jobs`` of these
        brokerages, ``tasks`` and ``units`` (users or groups) that each meets.
    """
    parts = (*RULES, HELD, PASSED)
    flags = with_flags(rows, "rule", parts).with_columns((1 - pl.col(PASSED)).alias(HELD))
    held = shares(flags, parts, "one", unit=USER, **dice)
    any_rule = rows.filter(pl.col("rule") != PASSED).with_columns(rule=pl.lit(HELD))
    met = (
        pl.concat([rows, any_rule])
        .group_by(part="rule")
        .agg(
            jobs=pl.col("jobs").sum(),
            tasks=pl.col("jeditaskid").n_unique().cast(pl.Int64),
            units=pl.col("unit").n_unique().cast(pl.Int64),
        )
    )
    joined = held.join(met, on="part", how="left", maintain_order="left")
    return joined.with_columns(pl.col("jobs", "tasks", "units").fill_null(0))


def held_by_level(
    rows: pl.DataFrame, columns: Sequence[str] = ("task_class", "gshare"), **dice: Any
) -> pl.DataFrame:
    """Return the share of brokerages that each family of rules holds back, by level of some columns.

    Returns:
        One row per column and level, see `in_order`: ``column``, ``level``, ``brokerages``, ``jobs`` (asked for); of
        each of `FAMILIES`, of `HELD` (any of them) and `PASSED` the share of the brokerages with its ends (``caps,
        caps_lo, caps_hi``); ``resampled``, ``n_units``.
    """
    flags = with_flags(rows, "family", (*FAMILIES, PASSED))
    flags = flags.with_columns((1 - pl.col(PASSED)).alias(HELD))
    formulas = {name: (name, "one") for name in (*FAMILIES, HELD, PASSED)}
    parts = []
    for column in columns:
        held = clustered(flags, formulas, unit=USER, by=[column], **dice)
        counts = rows.group_by(column).agg(
            brokerages=pl.len().cast(pl.Int64), jobs=pl.col("jobs").sum()
        )
        levels = in_order(counts.join(held, on=column), column, "brokerages")
        names = levels.rename({column: "level"}).insert_column(0, pl.lit(column).alias("column"))
        parts.append(names)
    return pl.concat(parts)


def held_over_time(rows: pl.DataFrame, step: str, **dice: Any) -> pl.DataFrame:
    """Return the share of brokerages that each family of rules holds back, by day or week (``step`` 1d or 1w).

    Returns:
        `intervals.shares` over users by ``time``, of families that hold anything back at all.
    """
    timed = rows.with_columns(time=pl.col("at").dt.truncate(step))
    families = [name for name in FAMILIES if (rows["family"] == name).any()]
    flags = with_flags(timed, "family", families)
    return shares(flags, families, "one", by=["time"], unit=USER, **dice)


def held_by_unit(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how often each user or group is held back.

    Returns:
        One row per unit, those with most jobs held back first: ``unit``, ``brokerages``, ``held``, ``share`` of them
        held, ``jobs`` asked for, ``jobs_held``, ``most_by`` (the rule that holds most of its brokerages; null: none), and
        one column per rule of `RULES` [brokerages].
    """
    held = pl.col("rule") != PASSED
    most = (
        rows.filter(held)
        .group_by("unit", most_by="rule")
        .len()
        .sort("len", "most_by", descending=[True, False])
        .unique("unit", keep="first", maintain_order=True)
        .drop("len")
    )
    return (
        rows.group_by("unit")
        .agg(
            brokerages=pl.len().cast(pl.Int64),
            held=held.sum().cast(pl.Int64),
            share=held.mean(),
            jobs=pl.col("jobs").sum(),
            jobs_held=pl.col("jobs").filter(held).sum(),
            **{rule: (pl.col("rule") == rule).sum().cast(pl.Int64) for rule in RULES},
        )
        .join(most, on="unit", how="left")
        .sort("jobs_held", "held", "unit", descending=[True, True, False])
    )


def limit_margins(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Return how near tasks come to each limit of the throttle.

    Returns:
        One row per rule T1 to T7, in order: ``rule``, ``limited`` (brokerages for which the limit exists and the number
        is known; no target of 0, in production no cap for merging), ``median`` and ``largest`` of the number over its limit [1]; null where there is none.
    """
    frame = decisions.world.tasks
    rows = [
        frame.select(
            rule=pl.lit(name),
            limited=ratio.count().cast(pl.Int64),
            median=ratio.median().cast(pl.Float64),
            largest=ratio.max().cast(pl.Float64),
        )
        for name, ratio in _over_limit(decisions.world.rules).items()
    ]
    return pl.concat(rows)


def _over_limit(rules: AnalysisRules) -> dict[str, pl.Expr]:
    """Return, for rules T1 to T7, the number that is compared over its limit; null where there is none."""
    usage = pl.col("usage_pct")
    usage = pl.when(usage < NO_TARGET_PCT).then(usage)  # no part of a target of 0
    mine, its_class = pl.col("t_gshare") == LIMITED_SHARE, pl.col("class")
    used = usage * pl.col("used_fraction")
    capped = pl.when(asked_of(pl.col("t_merging"), rules))
    return {
        "cap_running_jobs": capped.then(pl.col("nrunjobs") / pl.col("cap_jobs")),
        "cap_queued_jobs": capped.then(pl.col("nqueuedjobs") / (2 * pl.col("cap_jobs"))),
        "cap_running_cores": capped.then(pl.col("nruncores") / pl.col("cap_cores")),
        "cap_queued_cores": capped.then(pl.col("nqueuedcores") / (2 * pl.col("cap_cores"))),
        "gshare_class_c": pl.when(mine & (its_class == -1)).then(usage / USAGE_C),
        "gshare_class_b": pl.when(mine & (its_class == 0)).then(usage / USAGE_B),
        "gshare_class_a": pl.when(mine & (its_class == 1)).then(used / USAGE_A),
    }


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


QUANTITIES = ("asked", "let_through", "placed", "core_h")
"""What is divided among users: jobs asked for, those that the throttle lets through, those that find a queue, and the
core hours that really ran."""
STEPS = {"throttle": ("asked", "let_through"), "checks": ("let_through", "placed")}
"""What changes the first of these quantities into the second."""


def totals_by_user(rows: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return what each user asked for and got, sorted: ``user``, ``asked``, ``let_through``, ``placed`` [jobs], ``core_h``."""
    n = pl.col("jobs")
    asked = rows.group_by(USER).agg(
        asked=n.sum(),
        let_through=n.filter(pl.col("route") != "held").sum(),
        placed=n.filter(pl.col("outcome") == "candidates").sum(),
    )
    used = summed(jobs, [USER], ["core_h"])
    joined = asked.join(used, on=USER, how="left")
    return joined.with_columns(pl.col("core_h").fill_null(0.0)).sort(USER)


def jain_indices(users: pl.DataFrame, **dice: Any) -> pl.DataFrame:
    """Return Jain's index of what users asked for and got, with intervals over users.

    The index is 1 where all have the same and 1/n where one of n has all.

    Returns:
        One row per quantity of `QUANTITIES` and per step of `STEPS`: ``quantity``, ``index, index_lo, index_hi`` (null
        ends with fewer than two users; null where nobody has anything), ``resampled``, ``n_units``; a step is the
        index of the later less that of the earlier, of the same draws.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301 (1984), equation 3.
    """
    squares = [(pl.col(name) ** 2).alias(_square(name)) for name in QUANTITIES]
    formulas: dict[str, Formula] = {name: partial(_jain, name) for name in QUANTITIES}
    formulas |= {step: partial(_jain_step, *ends) for step, ends in STEPS.items()}
    row = clustered(
        users.with_columns(*squares, one=pl.lit(1)),
        formulas,
        unit=USER,
        measures=["one", *QUANTITIES, *map(_square, QUANTITIES)],
        **dice,
    ).row(0, named=True)
    values: list[dict[str, Any]] = [
        {"quantity": name}
        | {f"index{end}": row[f"{name}{end}"] for end in ("", "_lo", "_hi")}
        | {key: row[key] for key in ("resampled", "n_units")}
        for name in formulas
    ]
    floats = dict.fromkeys(("index", "index_lo", "index_hi"), pl.Float64)
    schema = {"quantity": pl.String, **floats, "resampled": pl.String, "n_units": pl.Int64}
    return pl.DataFrame(values, schema=schema)


def _square(quantity: str) -> str:
    return f"{quantity}_squared"


def _jain(quantity: str, sums: Sums) -> FloatArray:
    return sums[quantity] ** 2 / (sums["one"] * sums[_square(quantity)])


def _jain_step(first: str, last: str, sums: Sums) -> FloatArray:
    return _jain(last, sums) - _jain(first, sums)


def lorenz_curves(users: pl.DataFrame) -> pl.DataFrame:
    """Return how much the users with least have together, of ``asked, placed, core_h`` of `totals_by_user`.

    ``quantity``, ``users`` (share of them, those with least first) and ``part`` (of the whole) [1]; last the line of
    the quantity ``equal``, where all have the same. A quantity of which nobody has anything is left out.
    """
    curves = []
    for name in ("asked", "placed", "core_h"):
        values = np.sort(users[name].to_numpy().astype(np.float64))
        if values.sum() > 0:
            sums = np.concatenate([[0.0], np.cumsum(values)])
            frame = {"users": np.linspace(0, 1, len(sums)), "part": sums / sums[-1]}
            curves.append(
                pl.DataFrame(frame).select(pl.lit(name).alias("quantity"), "users", "part")
            )
    equal = {"quantity": "equal", "users": [0.0, 1.0], "part": [0.0, 1.0]}
    return pl.concat([*curves, pl.DataFrame(equal)])


def jobs_with_users(jobs: pl.DataFrame, tasks: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that really ran with ``user`` and ``snapshot`` of the last brokerage of their task before they were made."""
    users = rows.select(*TASK, USER)
    joined = brokerages_of_jobs(jobs, tasks).join(users, on=TASK, how="left")
    return joined.with_columns(pl.col(USER).fill_null(NO_USER))
