"""The production task brokerage as a value."""

from __future__ import annotations

from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.plugins import Brokerage, table_of
from brokerlab.brokerage.production_tasks.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.production_tasks.decide import decide

BROKERAGE = Brokerage(
    name="production-tasks",
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-tasks.md",
    decide=decide,
    table=table_of("tasks"),
    tables=TABLES,
    absent=absent_means(NEEDED, ABSENT),
)
"""The production task brokerage of the documents."""
