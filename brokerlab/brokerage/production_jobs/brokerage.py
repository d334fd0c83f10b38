"""The production job brokerage as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.engine.brokerage import Brokerage, Weight
from brokerlab.brokerage.engine.lookup import Lookup
from brokerlab.brokerage.production_jobs import lookups, ranking
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.facts import ends, facts
from brokerlab.brokerage.production_jobs.lookups import of_state
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.production_jobs.settings import NETWORK_KEYS, of_tasks, place_of
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config


def looked_up(rules: ProductionRules) -> tuple[Lookup, ...]:
    """Return the facts that are looked up."""
    return (*lookups.of_nucleus(), *lookups.of_places(rules), *lookups.of_input(), *of_state(rules))


def weight(rules: ProductionRules) -> Weight:
    """Return what the weight of a queue is made of."""
    says = "running against queued jobs x input at hand x network"
    says += " x nucleus" if rules.nucleus_preferred else ""
    says += " x hardware preference" if rules.hardware_preferred else ""
    return Weight(source="production-jobs.md 7", says=says, keys=NETWORK_KEYS)


BROKERAGE = Brokerage(
    name="production-jobs",
    organisation="brokerlab",
    description="queues that may receive the jobs of production tasks",
    documentation="production-jobs.md",
    stage="jobs",
    rule_set=ProductionRules,
    tables=TABLES,
    options={"hint": False},
    needed=NEEDED,
    otherwise=ABSENT,
    facts=facts,
    lookups=looked_up,
    made=(lookups.COMPLETE,),
    derived=of_tasks,
    place_of=place_of,
    ends=ends,
    checks=queue_checks,
    steps=ranking.steps,
    weight=weight,
    decisions=Decisions,
    ranks={"weight": pl.Float64(), "rank": pl.Int64(), "jumbo": pl.Boolean()},
    also_read=ranking.REPORTED,
    last="rank",
)
"""The production job brokerage of the documents; option ``hint``: only say which queues could run the tasks (task
brokerage), nuclei are not looked at."""
decide = BROKERAGE.decide


def hint_queues(
    tables: Mapping[str, Any], *, rules: ProductionRules | None = None, config: Config | None = None
) -> pl.DataFrame:
    """Return the queues that could run each task, for the choice of its nucleus: ``jeditaskid, snapshot, panda_queue`` (str).

    Source: production-tasks.md 3, row 7.
    """
    decided = decide(tables, rules=rules, config=config, hint=True).queues
    return decided.filter(pl.col("check").is_null()).select(
        "jeditaskid", "snapshot", pl.col("panda_queue").cast(pl.String)
    )
