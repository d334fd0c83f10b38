"""The production job brokerage as a value, and others made of its parts."""

from __future__ import annotations

from functools import partial

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.plugins import Brokerage
from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.recipe import PRODUCTION, Recipe
from brokerlab.brokerage.production_jobs.settings import JobSettings
from brokerlab.brokerage.rules import ProductionRules


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

    def checks(rules: ProductionRules, settings: JobSettings) -> tuple[Rule, ...]:
        return tuple(recipe.checks(rules, settings))

    return Brokerage(
        name=recipe.name,
        organisation=organisation,
        description=description,
        documentation=documentation,
        decide=partial(decide, recipe=recipe),
        checks=checks,
        tables={**TABLES, **recipe.tables},
    )


BROKERAGE = brokerage_of(
    PRODUCTION,
    organisation="brokerlab",
    description="queues that may receive the jobs of production tasks",
    documentation="production-job-brokerage.md",
)
"""The production job brokerage of the documents."""
