"""Make a brokerage that stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from brokerlab.brokerage import contracts
from brokerlab.brokerage.analysis_jobs import contracts as analysis_contracts
from brokerlab.brokerage.analysis_jobs import facts as analysis
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.live import analysis as of_analysis
from brokerlab.brokerage.live import jobs as of_jobs
from brokerlab.brokerage.live.analysis import AnalysisStanding
from brokerlab.brokerage.live.jobs import JobStanding
from brokerlab.brokerage.production_jobs import facts as jobs
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Rules = TypeVar("Rules", ProductionRules, AnalysisRules)

STAGES = {
    "jobs": (of_jobs.STATE_TABLES, contracts.TABLES),
    "analysis": (of_analysis.STATE_TABLES, analysis_contracts.TABLES),
}
"""Stage -> names of the tables that may change, and contracts of all tables."""


@overload
def prepare(
    tables: Mapping[str, Any],
    *,
    stage: Literal["jobs"] = "jobs",
    rules: ProductionRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> JobStanding: ...


@overload
def prepare(
    tables: Mapping[str, Any],
    *,
    stage: Literal["analysis"],
    rules: AnalysisRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> AnalysisStanding: ...


@overload
def prepare(
    tables: Mapping[str, Any],
    *,
    stage: str,
    rules: ProductionRules | AnalysisRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> JobStanding | AnalysisStanding: ...


def prepare(
    tables: Mapping[str, Any],
    *,
    stage: str = "jobs",
    rules: ProductionRules | AnalysisRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> JobStanding | AnalysisStanding:
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
          that is not given keeps what ``tables`` said. Which tables are given may change, but each new choice costs as
          much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, an unknown stage.
    """
    settings = config or Config.empty()
    if stage == "jobs":
        rule_set = _held(rules, ProductionRules)
        return JobStanding.of(
            jobs.prepare(
                prepared(tables, contracts.TABLES), rules=rule_set,
                matching=MatchingRules(rule_set.rules), config=settings, own=tuple(own),
            )
        )  # fmt: skip
    if stage == "analysis":
        of_users = _held(rules, AnalysisRules)
        return AnalysisStanding.of(
            analysis.prepare(
                prepared(tables, analysis_contracts.TABLES), rules=of_users,
                matching=MatchingRules(of_users.rules), config=settings, own=tuple(own),
            )
        )  # fmt: skip
    raise _unknown(stage)


def _held(rules: Any, kind: type[Rules]) -> Rules:
    """Return the rule set, ``document`` where there is none.

    Raises:
        ConfigError: It is one of another stage.
    """
    if rules is None:
        return kind("document")
    if not isinstance(rules, kind):
        raise ConfigError(
            f"rules are {type(rules).__name__}; this stage goes by {kind.__name__}, give such ones or the other stage"
        )
    return rules


def _unknown(stage: str) -> ConfigError:
    return ConfigError(f"stage {stage!r} cannot stand; allowed are {', '.join(STAGES)}")


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
    if stage not in STAGES:
        raise _unknown(stage)
    names, tables = STAGES[stage]
    return {
        name: tuple(
            "world" if column == "snapshot" else column for column in tables[name].columns()
        )
        for name in names
    }
