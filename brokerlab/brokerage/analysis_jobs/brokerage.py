"""The analysis job brokerage as a value, and others made of its parts."""

from __future__ import annotations

from functools import partial

from brokerlab.brokerage import plugins
from brokerlab.brokerage.analysis_jobs.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.analysis_jobs.decide import decide
from brokerlab.brokerage.analysis_jobs.facts import ANALYSIS
from brokerlab.brokerage.inputs.given import absent_means

brokerage_of = partial(
    plugins.brokerage_of,
    stage="analysis",
    decide=decide,
    tables=TABLES,
    absent=absent_means(NEEDED, ABSENT),
)
"""Make another one of a recipe, see :func:`brokerlab.brokerage.plugins.brokerage_of`."""
BROKERAGE = brokerage_of(
    ANALYSIS,
    organisation="brokerlab",
    description="queues that may receive the jobs of user tasks",
    documentation="analysis-jobs.md",
)
"""The analysis job brokerage of the documents."""
