"""The production job brokerage as a value, and others made of its parts."""

from __future__ import annotations

from functools import partial

from brokerlab.brokerage import plugins
from brokerlab.brokerage.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.facts import PRODUCTION

brokerage_of = partial(
    plugins.brokerage_of,
    stage="jobs",
    decide=decide,
    tables=TABLES,
    absent=absent_means(NEEDED, ABSENT),
)
"""Make another one of a recipe, see :func:`brokerlab.brokerage.plugins.brokerage_of`."""
BROKERAGE = brokerage_of(
    PRODUCTION,
    organisation="brokerlab",
    description="queues that may receive the jobs of production tasks",
    documentation="production-jobs.md",
)
"""The production job brokerage of the documents."""
