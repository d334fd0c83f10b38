"""The production task brokerage as a value."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage import contracts as shared
from brokerlab.brokerage.engine.brokerage import Brokerage, Weight
from brokerlab.brokerage.production_tasks import ranking
from brokerlab.brokerage.production_tasks.contracts import ABSENT, NEEDED, OPTIONS, TABLES
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.production_tasks.facts import ends, facts, lookups
from brokerlab.brokerage.production_tasks.ranking import checks, of_tasks
from brokerlab.brokerage.rules import ProductionRules


def place_of(key: str) -> str:  # noqa: ARG001 - all of them
    """Return ``app/component`` in which the task brokerage looks a key up."""
    return "jedi/taskbrokerage"


def weight(rules: ProductionRules) -> Weight:  # noqa: ARG001 - of one form
    """Return what the weight of a nucleus is made of."""
    says = "input at hand x tape x free part of the storage x free space / work left"
    return Weight(source="production-tasks.md 4", says=says, column="factor")


BROKERAGE = Brokerage(
    name="production-tasks",
    organisation="brokerlab",
    description="the nucleus that gathers the outputs of a production task",
    documentation="production-tasks.md",
    stage="tasks",
    rule_set=ProductionRules,
    tables=TABLES,
    later=OPTIONS,
    others=shared.TABLES,
    options={"hint_queues": None, "seed": 0, "draws": None},
    needed=NEEDED,
    otherwise=ABSENT,
    facts=facts,
    lookups=lookups,
    derived=of_tasks,
    place_of=place_of,
    ends=ends,
    checks=checks,
    steps=ranking.steps,
    cycle=ranking.cycle_of,
    weight=weight,
    decisions=TaskDecisions,
    place="nucleus",
    ranks={"factor": pl.Float64()},
    also_read=("position",),
)
"""The production task brokerage of the documents. Tasks of one ``snapshot`` are handled in one cycle, in the order of
``position``: a task that gets a nucleus makes it busier for those after it.

Options: ``hint_queues``: ``jeditaskid, snapshot, panda_queue`` of the queues that could run each task, from the job
brokerage in hint mode; a task without rows has none; null: check ``no_queue`` is left out. ``seed`` of the draws.
``draws``: ``jeditaskid[, snapshot], draw`` in [0, 1), where they are known.
"""
decide = BROKERAGE.decide
