"""Make a brokerage that stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerlab.brokerage.analysis_jobs import facts as analysis
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.inputs.given import read_given
from brokerlab.brokerage.live.analysis import AnalysisStage
from brokerlab.brokerage.live.jobs import JobStage
from brokerlab.brokerage.live.standing import Stage, Standing
from brokerlab.brokerage.production_jobs import facts as jobs
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules


@dataclass(frozen=True)
class _Chapter:
    """What makes a stage: its class, its kind of rules, and what prepares its facts."""

    stage: type[Stage[Any]]
    rules: type[ProductionRules | AnalysisRules]
    prepare: Callable[..., Any]


STAGES = {
    "jobs": _Chapter(JobStage, ProductionRules, jobs.prepare),
    "analysis": _Chapter(AnalysisStage, AnalysisRules, analysis.prepare),
}


def prepare(
    tables: Mapping[str, Any],
    *,
    stage: str = "jobs",
    rules: ProductionRules | AnalysisRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> Standing:
    """Prepare a brokerage that is asked again and again with other counts.

    What does not change from cycle to cycle is worked out here and at the first question, the rest at every question, by
    the same functions as in ``decide``.

    Args:
        tables: Input tables as ``decide`` of the stage takes them; ``tasks`` has one row per (jeditaskid, snapshot), a
            snapshot being a time over which queues, endpoints, links and replicas stay as they are.
        stage: ``jobs`` (production) or ``analysis``.
        rules: Rule set of the stage; null = ``document``.
        config: Settings; null = defaults.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The brokerage. ``standing.decide(wanted, state)`` answers with :class:`~.ranked.Ranked`:

        * ``wanted``: ``jeditaskid, snapshot`` (null = 0), ``world`` (i64: number of the simulated state that the task
          sees; of one snapshot), perhaps ``at`` (time of the cycle, for the age of what the state tells; null: that of
          the task's row). The same task may come with several worlds.
        * ``state``: some of the tables of :func:`count_tables` by name, ``world`` in the place of ``snapshot``. A table
          that is not given keeps what ``tables`` said, and has no rows if that did not have it either. Which tables are given may change, but each new choice costs as
          much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, an unknown stage.
    """
    chapter = _chapter(stage)
    chosen = chapter.rules("document") if rules is None else rules
    if not isinstance(chosen, chapter.rules):
        raise ConfigError(
            f"rules are {type(rules).__name__}; this stage goes by {chapter.rules.__name__}, give such ones or the other "
            "stage"
        )
    given = read_given(tables, chapter.stage.TABLES, later=chapter.stage.STATE)
    world = chapter.prepare(
        given.tables,
        missing=given.missing,
        rules=chosen,
        matching=MatchingRules(chosen.rules),
        config=config or Config.empty(),
        own=tuple(own),
    )
    return Standing.of(chapter.stage(world))


def rules_of(stage: str, rules: str) -> ProductionRules | AnalysisRules:
    """Return the rule set of a stage by its name, ``document`` or ``production``.

    Raises:
        ConfigError: An unknown stage or name.
    """
    return _chapter(stage).rules(rules)


def _chapter(stage: str) -> _Chapter:
    if stage not in STAGES:
        raise ConfigError(f"stage {stage!r} cannot stand; allowed are {', '.join(STAGES)}")
    return STAGES[stage]


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
    found = _chapter(stage).stage
    return {
        name: tuple(
            "world" if column == "snapshot" else column for column in found.TABLES[name].columns()
        )
        for name in found.STATE
    }
