"""The analysis job brokerage as a value."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.decide import decide
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.plugins import Brokerage


def _table(rules: AnalysisRules | None, own: Sequence[Own]) -> pl.DataFrame:
    from brokerlab.brokerage.check_table import checks_table

    return checks_table(rules, stage="analysis", own=own)


BROKERAGE = Brokerage(
    name="analysis-jobs",
    organisation="brokerlab",
    description="queues that may receive the jobs of user tasks",
    documentation="analysis-job-brokerage.md",
    decide=decide,
    table=_table,
    tables=TABLES,
)
"""The analysis job brokerage of the documents."""
