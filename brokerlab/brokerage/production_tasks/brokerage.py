"""The production task brokerage as a value."""

from __future__ import annotations

from typing import Any

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.plugins import Brokerage
from brokerlab.brokerage.production_tasks.checks import checks
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.production_tasks.decide import decide
from brokerlab.brokerage.rules import ProductionRules


def checks_of(rules: ProductionRules, settings: Any) -> tuple[Rule, ...]:  # noqa: ARG001 - limits are columns
    """Return the checks of nuclei, in order; limits come as columns of the pairs, not from settings."""
    return checks(rules)


BROKERAGE = Brokerage(
    name="production-tasks",
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-task-brokerage.md",
    decide=decide,
    checks=checks_of,
    tables=TABLES,
)
"""The production task brokerage of the documents."""
