"""Decide which queues may receive the jobs of user tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.decisions import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.facts import ANALYSIS, prepare
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.decide import asking
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.recipe import Recipe
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules


def decide(
    tables: Mapping[str, Any],
    *,
    rules: AnalysisRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    recipe: Recipe = ANALYSIS,
    own: Sequence[Own] = (),
) -> AnalysisDecisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`~.contracts.TABLES`; frames of any engine, lists of dicts or mappings
            of columns. A table that is missing is unknown: checks that need it (:data:`~.contracts.NEEDED`) remove
            nothing, and ``world.unasked`` of the result names them.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        recipe: What an organisation replaced: checks, weight, tables and facts of its own.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables and columns, values of another type.
        ConfigError: A recipe, or rules of one's own, that cannot work.

    Source:
        analysis-jobs.md.
    """
    rules = rules or AnalysisRules()
    given = read_given(tables, {**TABLES, **recipe.tables})
    world = prepare(
        given.tables,
        missing=given.missing,
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
        recipe=recipe,
        own=tuple(own),
    )
    return AnalysisDecisions.of(world, world.parts(asking(world)))
