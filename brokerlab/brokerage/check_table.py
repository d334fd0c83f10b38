"""The checks of a brokerage as a table: documentation that cannot fall behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.analysis_jobs import late as analysis
from brokerlab.brokerage.analysis_jobs.checks import queue_checks as analysis_checks
from brokerlab.brokerage.analysis_jobs.held import throttle_reasons
from brokerlab.brokerage.analysis_jobs.settings import AnalysisSettings
from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.origins import QUEUE, TASK, fields
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.late import late_reasons, weight_keys
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.production_tasks.checks import checks as nucleus_checks
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import shown
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config

STABILIZED = ("x_users", "x_users_running", "x_nr", "s_running", "s_rate", "u_queued", "u_running")
_Line: TypeAlias = tuple[object, ...]
_SCHEMA: dict[str, Any] = {
    "step": pl.Int64,
    **dict.fromkeys(("check", "kind", "looks_at", "source"), pl.String),
    **dict.fromkeys(("keys", "inputs", "queue_fields", "task_fields"), pl.List(pl.String)),
    "sentence": pl.String,
}


def checks_table(
    rules: ProductionRules | AnalysisRules | None = None, *, stage: str | None = None
) -> pl.DataFrame:
    """Return the checks of a brokerage in the order in which they run.

    Args:
        rules: Rule set; null = ``document``.
        stage: ``jobs``: the checks of queues for production tasks; ``tasks``: of nuclei; ``analysis``: of queues for
            user tasks; null = ``analysis`` for analysis rules, else ``jobs``.

    Returns:
        ``step`` (1...), ``check``, ``kind`` (``persistent, temporary``; ``throttle`` for a rule that holds a
        user task back, ``mark`` for a reason why a queue is problematic for it; ``weight`` for the row of what the weight reads), ``looks_at`` (``one place``, ``all places`` of a task together, ``the task``), ``source``, ``keys`` of gdpconfig,
        ``inputs`` (columns compared), ``queue_fields``, ``task_fields`` (what a person could change), ``sentence``
        (with the names of the numbers in braces).

    Raises:
        ConfigError: Unknown stage, or rules of another brokerage.
    """
    if stage is None:
        stage = "analysis" if isinstance(rules, AnalysisRules) else "jobs"
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    kind, rows = STAGES[stage]
    if rules is not None and not isinstance(rules, kind):
        raise ConfigError(f"stage={stage!r} has {kind.__name__}, given are {type(rules).__name__}")
    numbered = [(step, *row) for step, row in enumerate(rows(rules or kind()), start=1)]
    return pl.DataFrame(numbered, schema=_SCHEMA, orient="row")


def _of_jobs(rules: ProductionRules) -> list[_Line]:
    settings = JobSettings.of(Config.empty())
    return [
        *(_row(check, check.kind, "one place") for check in queue_checks(rules, settings)),
        *(_row(late, late.kind, "all places") for late in late_reasons(rules, settings)),
        _row(_weight(rules), "weight", "one place"),
    ]


def _of_analysis(rules: AnalysisRules) -> list[_Line]:
    settings = AnalysisSettings.of(Config.empty())
    rows: list[_Line] = [
        *(_row(check, check.kind, "one place") for check in analysis_checks(rules, settings)),
        *(_row(late, late.kind, "all places") for late in analysis.late_reasons(rules, settings)),
    ]
    marks = [_row(mark, "mark", "one place") for mark in analysis.mark_reasons(rules, settings)]
    held = [_row(reason, "throttle", "the task") for reason in throttle_reasons()]
    first_marked = next(at for at, row in enumerate(rows) if row[0] == analysis.ALL_MARKED)
    rows[first_marked:first_marked] = marks
    return [*held, *rows, _row(_analysis_weight(rules), "weight", "one place")]


def _analysis_weight(rules: AnalysisRules) -> Reason:
    """Return what the basic weight in use and the data factor read."""
    counts: tuple[str, ...]
    if rules.basic_weight == "original":
        basic = "running against queued jobs of the share"
        counts = (
            "x_nr",
            "x_nq",
            "x_starting",
            "s_pilots",
            "s_workers",
            "x_numslots",
            "q_corecount",
        )
    else:
        basic = "jobs of the task for the class of the queue x what the stabilizer lets the user queue there"
        counts = ("t_n_jobs", "t_class", "t_gshare", "s_class", *STABILIZED)
    return Reason(
        name="weight",
        source="analysis-job-brokerage.md 6",
        says=f"{basic} x input at hand",
        inputs=(*counts, "t_total", "t_local", "t_union", "x_data_weight", "x_avail"),
        keys=analysis.weight_keys(rules),
    )


def _of_nuclei(rules: ProductionRules) -> list[_Line]:
    return [_row(check, check.kind, "one place") for check in nucleus_checks(rules)]


def _row(reason: Reason, kind: str, looks_at: str) -> _Line:
    return (
        reason.name,
        kind,
        looks_at,
        reason.source,
        list(reason.keys),
        list(reason.inputs),
        fields(reason.inputs, QUEUE),
        fields(reason.inputs, TASK),
        shown(reason.says),
    )


def _weight(rules: ProductionRules) -> Reason:
    return Reason(
        name="weight",
        source="production-job-brokerage.md 6",
        says="running against queued jobs x input at hand x nucleus x network x hardware preference",
        inputs=(
            *(
                "running",
                "x_activated",
                "x_assigned",
                "x_starting",
                "defined",
                "t_total",
                "x_avail",
            ),
            *("missing_files", "x_near", "t_t1_factor", "l_weight", "x_preference"),
        ),
        keys=weight_keys(rules),
    )


STAGES: dict[str, tuple[type[Any], Callable[[Any], list[_Line]]]] = {
    "jobs": (ProductionRules, _of_jobs),
    "tasks": (ProductionRules, _of_nuclei),
    "analysis": (AnalysisRules, _of_analysis),
}
"""Brokerage to its rules and the lines of its checks."""
