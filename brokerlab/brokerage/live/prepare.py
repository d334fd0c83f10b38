"""Make a brokerage that stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.live.jobs import STATE_TABLES, JobStanding
from brokerlab.brokerage.production_jobs import facts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

STAGES = ("jobs",)


def prepare(
    tables: Mapping[str, Any],
    *,
    stage: str = "jobs",
    rules: ProductionRules | None = None,
    config: Config | None = None,
) -> JobStanding:
    """Prepare a brokerage that is asked again and again with other counts.

    What does not change from cycle to cycle is worked out here and at the first question, the rest at every question, by
    the same functions as in ``decide``.

    Args:
        tables: Input tables as ``decide`` of the stage takes them; ``tasks`` has one row per (jeditaskid, snapshot), a
            snapshot being a time over which queues, endpoints, links and replicas stay as they are.
        stage: ``jobs`` (production) or ``analysis``.
        rules: Rule set of the stage; null = ``document``.
        config: Settings; null = defaults.

    Returns:
        The brokerage. ``standing.decide(wanted, state)`` answers with :class:`~.ranked.Ranked`:

        * ``wanted``: ``jeditaskid, snapshot`` (null = 0), ``world`` (i64: number of the simulated state that the task
          sees; of one snapshot), perhaps ``at`` (time of the cycle, for the age of what the state tells; null: that of
          the task's row). The same task may come with several worlds.
        * ``state``: some of the tables of :func:`count_tables` by name, ``world`` in the place of ``snapshot``. A table
          that is not given keeps what ``tables`` said. Which tables are given may change, but each new choice costs as
          much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, an unknown stage.
    """
    if stage not in STAGES:
        raise ConfigError(f"stage {stage!r} cannot stand; allowed are {', '.join(STAGES)}")
    rules = rules or ProductionRules()
    world = facts.prepare(
        prepared(tables, TABLES), rules=rules, matching=MatchingRules(rules.rules),
        config=config or Config.empty(),
    )  # fmt: skip
    return JobStanding.of(world)


def count_tables(stage: str = "jobs") -> dict[str, tuple[str, ...]]:
    """Return the tables of a state: name to columns.

    Example:
        >>> count_tables("jobs")["live"]
        ('world', 'panda_queue', 'njobs')
    """
    if stage not in STAGES:
        raise ConfigError(f"stage {stage!r} cannot stand; allowed are {', '.join(STAGES)}")
    return {
        name: tuple(
            "world" if column == "snapshot" else column for column in TABLES[name].columns()
        )
        for name in STATE_TABLES
    }
