"""Decide which queues may receive the jobs of tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.decide import asking
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.recipe import Recipe
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.facts import PRODUCTION, prepare
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules


def decide(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    hint: bool = False,
    recipe: Recipe = PRODUCTION,
    own: Sequence[Own] = (),
) -> Decisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`brokerlab.brokerage.contracts.TABLES`; frames of any engine, lists of
            dicts or mappings of columns. A table that is missing is unknown: checks that need it
            (:data:`brokerlab.brokerage.contracts.NEEDED`) remove nothing, and ``world.unasked`` of the result names them.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        hint: Only say which queues could run the tasks (task brokerage); nuclei are not looked at.
        recipe: What an organisation replaced: checks, weight, tables and facts of its own.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables and columns, values of another type.
        ConfigError: Settings that no rule can work with, or a recipe.

    Source:
        production-jobs.md.
    """
    rules = rules or ProductionRules()
    given = read_given(tables, {**TABLES, **recipe.tables})
    world = prepare(
        given.tables,
        missing=given.missing,
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
        hint=hint,
        recipe=recipe,
        own=tuple(own),
    )
    return Decisions.of(world, world.parts(asking(world)))


def hint_queues(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Return the queues that could run each task, for the choice of its nucleus.

    Args:
        tables: See :func:`decide`.
        rules: See :func:`decide`.
        matching: See :func:`decide`.
        config: See :func:`decide`.

    Returns:
        ``jeditaskid, snapshot, panda_queue`` (str).

    Source:
        production-tasks.md 3, row 7.
    """
    decided = decide(tables, rules=rules, matching=matching, config=config, hint=True).queues
    return decided.filter(pl.col("check").is_null()).select(
        "jeditaskid", "snapshot", pl.col("panda_queue").cast(pl.String)
    )
