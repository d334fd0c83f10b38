"""One row per brokerage of a user task: whose it is, what class it has, what held it back."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.facts import INCOMPLETE
from brokerlab.brokerage.analysis_jobs.throttle import OUTCOMES
from brokerlab.report.replays.removal import KEYS, NO_SHARE

TASK_CLASSES = {2: "S", 1: "A", 0: "B", -1: "C"}
UNRATED = "unrated"
"""Class of tasks of which nothing is known; weights take them for A, no class holds them back."""
CLASS_ORDER = (*TASK_CLASSES.values(), UNRATED)
NO_USER = "(none)"
GO = "passed"
"""What a brokerage is called that nothing holds back."""
RULES = (*OUTCOMES, INCOMPLETE)
"""What may hold a task back, in order: rules T1 to T10, and incomplete input."""
FAMILIES = {
    "caps": ("cap_running_jobs", "cap_queued_jobs", "cap_running_cores", "cap_queued_cores"),
    "classes": ("gshare_class_c", "gshare_class_b", "gshare_class_a"),
    "quota": ("global_quota", "near_global_quota", "quota_unavailable"),
    "input": (INCOMPLETE,),
}
"""Rules of one kind."""
ROUTES = ("first", "then_second", "second_only", "held")
"""How a brokerage went through the locality loops; see `brokerages`."""


def brokerages(decisions: AnalysisDecisions) -> pl.DataFrame:
    """Tell of each brokerage whose it is and how it went.

    Args:
        decisions: Of the analysis brokerage.

    Returns:
        One row per brokerage, sorted: ``jeditaskid, snapshot, at, gshare, user`` (who is accounted, without group),
        ``unit`` (the working group where the task has one, else the user), ``task_class`` (`CLASS_ORDER`), ``merging``,
        ``jobs`` (that the chunk splits into), ``rule`` (of `RULES` that holds it back, else `GO`), ``family`` (of
        `FAMILIES`, else `GO`), ``outcome``, ``route`` of `ROUTES`: only the loop with locality, both, only the one
        without (a relaxation), none; ``one`` (1).
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
    rated = decisions.world.throttle.select(
        *KEYS,
        task_class=pl.col("class").replace_strict(
            TASK_CLASSES, default=UNRATED, return_dtype=pl.String
        ),
    )
    families = {rule: name for name, rules in FAMILIES.items() for rule in rules}
    again = decisions.first_loop.select(KEYS).unique().with_columns(again=pl.lit(value=True))
    frame = (
        decisions.tasks.select(
            *KEYS, "at", "outcome", "loop", rule=pl.col("throttle").fill_null(GO)
        )
        .join(given, on=KEYS, how="left")
        .join(rated, on=KEYS, how="left")
        .join(again, on=KEYS, how="left")
    )
    second = pl.col("loop") == 2
    route = (
        pl.when(pl.col("rule") != GO).then(pl.lit("held"))
        .when(second & pl.col("again").fill_null(value=False)).then(pl.lit("then_second"))
        .when(second).then(pl.lit("second_only"))
        .otherwise(pl.lit("first"))
    )  # fmt: skip
    return frame.select(
        *KEYS, "at", "gshare", "user", "unit", pl.col("task_class").fill_null(UNRATED), "merging", "jobs",
        "rule", family=pl.col("rule").replace_strict(families, default=GO, return_dtype=pl.String),
        outcome="outcome", route=route, one=pl.lit(1),
    ).sort(KEYS)  # fmt: skip


def flagged(rows: pl.DataFrame, column: str, values: tuple[str, ...]) -> pl.DataFrame:
    """Return the rows with one column of 0 and 1 per value of a column."""
    return rows.with_columns(
        (pl.col(column) == value).cast(pl.Int64).alias(value) for value in values
    )
