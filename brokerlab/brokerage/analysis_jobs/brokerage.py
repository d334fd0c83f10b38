"""The analysis job brokerage as a value."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs import lookups, ranking
from brokerlab.brokerage.analysis_jobs.checks import queue_checks
from brokerlab.brokerage.analysis_jobs.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.analysis_jobs.facts import ends, facts
from brokerlab.brokerage.analysis_jobs.lookups import of_state
from brokerlab.brokerage.analysis_jobs.ranking import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules, of_tasks, place_of
from brokerlab.brokerage.analysis_jobs.throttle import of_users, throttle_rules
from brokerlab.brokerage.engine.brokerage import Brokerage, Weight
from brokerlab.brokerage.engine.lookup import Lookup


def looked_up(rules: AnalysisRules) -> tuple[Lookup, ...]:  # noqa: ARG001 - of one form
    """Return the facts that are looked up."""
    return (*lookups.of_places(), *lookups.of_input(), *of_state(), *of_users())


def weight(rules: AnalysisRules) -> Weight:
    """Return what the basic weight in use and the data factor are made of."""
    whose = "queue" if rules.counted_jobs == "queue" else "share"
    says = f"running against queued jobs of the {whose}"
    if rules.basic_weight != "original":
        says = "jobs of the task for the class of the queue x what the stabilizer lets the user queue there"
    says += " x input at hand" if rules.data_factor else ""
    return Weight(source="analysis-jobs.md 7", says=says)


BROKERAGE = Brokerage(
    name="analysis-jobs",
    organisation="brokerlab",
    description="queues that may receive the jobs of user tasks",
    documentation="analysis-jobs.md",
    stage="analysis",
    rule_set=AnalysisRules,
    tables=TABLES,
    needed=NEEDED,
    otherwise=ABSENT,
    facts=facts,
    lookups=looked_up,
    made=(lookups.LOCALITY,),
    derived=of_tasks,
    place_of=place_of,
    ends=ends,
    before=throttle_rules,
    checks=queue_checks,
    steps=ranking.steps,
    second=ranking.second_loop,
    weight=weight,
    decisions=AnalysisDecisions,
    ranks={"weight": pl.Float64(), "rank": pl.Int64()},
    also_read=("t_relaxed", "t_second", "t_preassigned", "s_running", "u_known"),
    last="low_weight",
    marked="badsite",
)
"""The analysis job brokerage of the documents."""
decide = BROKERAGE.decide
