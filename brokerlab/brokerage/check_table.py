"""The checks of a brokerage as a table: documentation that cannot fall behind."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.check import Reason
from brokerlab.brokerage.origins import QUEUE, TASK, fields
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.late import late_reasons, weight_keys
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.production_tasks.checks import checks as nucleus_checks
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config

STAGES = ("jobs", "tasks")
_SCHEMA: dict[str, Any] = {
    "step": pl.Int64,
    **dict.fromkeys(("check", "kind", "looks_at", "source"), pl.String),
    **dict.fromkeys(("keys", "inputs", "queue_fields", "task_fields"), pl.List(pl.String)),
    "sentence": pl.String,
}


def checks_table(rules: ProductionRules | None = None, *, stage: str = "jobs") -> pl.DataFrame:
    """Return the checks of the production brokerage in the order in which they run.

    Args:
        rules: Rule set; null = ``document``.
        stage: ``jobs``: the checks of queues; ``tasks``: the checks of nuclei.

    Returns:
        ``step`` (1...), ``check``, ``kind`` (``persistent, temporary``; ``weight`` for the row of what the weight
        reads), ``looks_at`` (``one place``, or ``all places`` of a task together), ``source``, ``keys`` of gdpconfig,
        ``inputs`` (columns compared), ``queue_fields``, ``task_fields`` (what a person could change), ``sentence``
        (with the names of the numbers in braces).

    Raises:
        ConfigError: Unknown stage.
    """
    rules = rules or ProductionRules()
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    if stage == "tasks":
        rows = [_row(check, check.kind, "one place") for check in nucleus_checks(rules)]
    else:
        settings = JobSettings.of(Config.empty())
        rows = [_row(check, check.kind, "one place") for check in queue_checks(rules, settings)]
        rows += [_row(late, late.kind, "all places") for late in late_reasons(rules, settings)]
        rows.append(_row(_weight(rules), "weight", "one place"))
    numbered = [(step, *row) for step, row in enumerate(rows, start=1)]
    return pl.DataFrame(numbered, schema=_SCHEMA, orient="row")


def _row(reason: Reason, kind: str, looks_at: str) -> tuple[object, ...]:
    return (
        reason.name,
        kind,
        looks_at,
        reason.source,
        list(reason.keys),
        list(reason.inputs),
        fields(reason.inputs, QUEUE),
        fields(reason.inputs, TASK),
        reason.says,
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
