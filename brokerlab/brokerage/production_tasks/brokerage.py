"""The production task brokerage as a value, and others made of its parts."""

from __future__ import annotations

from functools import partial

from brokerlab.brokerage import plugins
from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.production_tasks.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.production_tasks.decide import decide
from brokerlab.brokerage.production_tasks.facts import NUCLEI

brokerage_of = partial(
    plugins.brokerage_of,
    stage="tasks",
    decide=decide,
    tables=TABLES,
    absent=absent_means(NEEDED, ABSENT),
)
"""Make another one of a recipe, see :func:`brokerlab.brokerage.plugins.brokerage_of`."""
BROKERAGE = brokerage_of(
    NUCLEI,
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-tasks.md",
)
"""The production task brokerage of the documents."""
