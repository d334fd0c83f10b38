"""One row per brokerage of a user task: whose it is, what class it has, what held it back, which loop decided."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.throttle import INCOMPLETE, OUTCOMES
from brokerlab.brokerage.engine.decisions import TASK
from brokerlab.brokerage.studies.removal import NO_SHARE
from brokerlab.lifecycle.classification.task_classes import NAMES as TASK_CLASSES

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
