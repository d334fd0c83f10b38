"""Make a brokerage that stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerlab.brokerage import plugins
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.live.standing import Stage, Standing
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config

STAGES = ("jobs", "analysis")
"""Stages that can stand."""


def prepare(
    tables: Mapping[str, Any],
    *,
    brokerage: str | Brokerage[Any, Any] = plugins.STAGES["jobs"],
    rules: ProductionRules | AnalysisRules | None = None,
    config: Config | None = None,
) -> Standing:
    """Prepare a brokerage that is asked again and again with other counts.

    What does not change from cycle to cycle is worked out here and at the first question, the rest at every question, by
    the same functions as in ``decide``.

    Args:
        tables: Input tables as ``decide`` of the brokerage takes them; ``tasks`` has one row per (jeditaskid, snapshot), a
            snapshot being a time over which queues, endpoints, links and replicas stay as they are.
        brokerage: Of jobs, of production or of users: it, perhaps with rules of one's own, or its name (``brokerlab brokerages``).
        rules: Its rule set; null = ``document``.
        config: Settings; null = defaults.

    Returns:
        The brokerage. ``standing.decide(wanted, state)`` answers with :class:`~.ranked.Ranked`:

        * ``wanted``: ``jeditaskid, snapshot`` (null = 0), ``world`` (i64: number of the simulated state that the task
          sees; of one snapshot), perhaps ``at`` (time of the cycle, for the age of what the state tells; null: that of
          the task's row). The same task may come with several worlds.
        * ``state``: some of the tables of :func:`count_tables` by name, ``world`` in the place of ``snapshot``. A table
          that is not given keeps what ``tables`` said, and has no rows if that did not have it either. Which tables are given may change, but each new choice costs as
          much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings; ``standing.with_config(*configs)`` asks
        it under several at once, ``setting`` in ``wanted`` (i64, null = 0) being the number of a task's.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, an unknown brokerage, or one that cannot stand.
    """
    chosen = plugins.get(brokerage) if isinstance(brokerage, str) else brokerage
    _check_stage(chosen.stage)
    if rules is not None and not isinstance(rules, chosen.rule_set):
        raise ConfigError(
            f"rules are {type(rules).__name__}; this brokerage goes by {chosen.rule_set.__name__}, give such ones or the "
            "other brokerage"
        )
    later = Stage.tables(chosen)
    return Standing.of(Stage(chosen.prepare(tables, rules=rules, config=config, later=later)))


def _check_stage(stage: str) -> None:
    if stage not in STAGES:
        raise ConfigError(f"stage {stage!r} cannot stand; allowed are {', '.join(STAGES)}")


def count_tables(stage: str = "jobs") -> dict[str, tuple[str, ...]]:
    """Return the tables of a state: name to columns.

    Args:
        stage: ``jobs`` (production) or ``analysis``.

    Raises:
        ConfigError: An unknown stage.

    Example:
        >>> count_tables("jobs")["live"]
        ('world', 'panda_queue', 'njobs')
    """
    _check_stage(stage)
    brokerage = plugins.of_stage(stage)
    return {
        name: tuple(
            "world" if column == "snapshot" else column
            for column in brokerage.tables[name].columns()
        )
        for name in Stage.tables(brokerage)
    }
