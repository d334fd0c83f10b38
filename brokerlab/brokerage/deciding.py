"""Decide by any brokerage: what a replay saw, an archive, or tables made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from brokerlab.archive.store import Archive
from brokerlab.brokerage import plugins
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.replaying.build import Replay, build
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.rulesets import RuleSet

AnyRules: TypeAlias = ProductionRules | AnalysisRules


@call("brokerage.decide")
def decide(
    source: Replay | Archive | Mapping[str, Any],
    *,
    brokerage: str | Brokerage[Any, Any] | None = None,
    rules: AnyRules | str | None = None,
    config: Config | None = None,
) -> PlaceDecisions:
    """Decide for every task and every candidate place.

    Args:
        source: What was seen (:func:`brokerlab.brokerage.replay`); an archive, whose whole period is replayed first, under the same rule set; or the
            brokerage's input tables by name (:func:`brokerlab.brokerage.world` makes them from a few rows).
        brokerage: It, perhaps with rules of one's own, or its name (``brokerlab brokerages``); null: that of the replay's
            stage, of others ``production-jobs``.
        rules: Rule set, or its name; null = ``document``.
        config: Settings; null = those of the replay, of tables the catalogue's defaults.

    Returns:
        The decisions; ask them with :func:`brokerlab.brokerage.funnel`, ``explain`` and ``what_if``.

    Raises:
        ConfigError: An unknown brokerage, one of another stage than the replay, rules of another one, or settings that no rule
            can work with.
        SchemaError: Unknown tables and columns, values of another type.
        DataError: The archive cannot be replayed, see :func:`brokerlab.brokerage.replay`.

    Source: docs/rules/production-jobs.md; production-tasks.md; analysis-jobs.md.
    """
    stage = source.stage if isinstance(source, Replay) else "jobs"
    chosen = plugins.get(brokerage) if isinstance(brokerage, str) else brokerage
    chosen = chosen or plugins.of_stage(stage)
    if isinstance(source, Archive):
        name = rules.rules if isinstance(rules, RuleSet) else rules
        own = rules if isinstance(rules, ProductionRules) else name
        source = build(source, stage=chosen.stage, rules=own)
    if isinstance(source, Replay) and chosen.stage != source.stage:
        raise ConfigError(
            f"brokerage={chosen.name}: it is of stage {chosen.stage}, the replay of {source.stage}; replay that stage, or name "
            "no brokerage"
        )
    if not isinstance(source, Replay):
        made: PlaceDecisions = chosen.decide(source, rules=rules, config=config)
        return made
    seen = source if config is None else source.with_config(config)
    made = chosen.decide(seen.tables_of(chosen.tables), rules=rules, config=seen.config)
    return made  # noqa: RET504 - typed
