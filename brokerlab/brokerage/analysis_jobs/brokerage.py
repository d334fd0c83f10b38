"""The analysis job brokerage as a value."""

from __future__ import annotations

from brokerlab.brokerage.analysis_jobs.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.analysis_jobs.decide import decide
from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.plugins import Brokerage, table_of

BROKERAGE = Brokerage(
    name="analysis-jobs",
    organisation="brokerlab",
    description="queues that may receive the jobs of user tasks",
    documentation="analysis-jobs.md",
    decide=decide,
    table=table_of("analysis"),
    tables=TABLES,
    absent=absent_means(NEEDED, ABSENT),
)
"""The analysis job brokerage of the documents."""
