"""The production job brokerage as a value, and others made of its parts."""

from __future__ import annotations

from functools import partial

from brokerlab.brokerage.contracts import ABSENT, NEEDED, TABLES
from brokerlab.brokerage.inputs.given import absent_means
from brokerlab.brokerage.plugins import Brokerage, table_of
from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.recipe import PRODUCTION, Recipe


def brokerage_of(
    recipe: Recipe, *, organisation: str, description: str, documentation: str
) -> Brokerage:
    """Return the brokerage that decides by a recipe; it takes what :func:`~.decide.decide` takes.

    Args:
        recipe: Checks, weight, tables and facts.
        organisation: Who answers for it.
        description: What it decides, in a line.
        documentation: Where its rules are written.
    """
    return Brokerage(
        name=recipe.name,
        organisation=organisation,
        description=description,
        documentation=documentation,
        decide=partial(decide, recipe=recipe),
        table=table_of("jobs", recipe=recipe),
        tables={**TABLES, **recipe.tables},
        absent=absent_means(NEEDED, ABSENT),
    )


BROKERAGE = brokerage_of(
    PRODUCTION,
    organisation="brokerlab",
    description="queues that may receive the jobs of production tasks",
    documentation="production-jobs.md",
)
"""The production job brokerage of the documents."""
