"""The production task brokerage as a value."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.plugins import Brokerage
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.production_tasks.decide import decide
from brokerlab.brokerage.rules import ProductionRules


def _table(rules: ProductionRules | None, own: Sequence[Own]) -> pl.DataFrame:
    from brokerlab.brokerage.check_table import checks_table

    return checks_table(rules, stage="tasks", own=own)


BROKERAGE = Brokerage(
    name="production-tasks",
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-task-brokerage.md",
    decide=decide,
    table=_table,
    tables=TABLES,
)
"""The production task brokerage of the documents."""
