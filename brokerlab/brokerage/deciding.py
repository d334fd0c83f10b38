"""Decide: what a replay, an archive, or tables made by hand from a few rows say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

import dataframely as dy
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.brokerage import plugins
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.replaying.build import Replay, build
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, SchemaError
from brokerlab.frames import polars_frame, prepared
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.rulesets import RuleSet

DEFAULTS: dict[str, dict[str, Any]] = {
    "tasks": {"at": datetime(2026, 1, 1), "prodsourcelabel": "managed"},  # noqa: DTZ001 - UTC without zone
    "queues": {
        "type": "unified",
        "status": "online",
        "corepower": 10.0,
        "direct_access_lan": True,
        "jobseed": "all",
        "wnconnectivity": "full",
        "releases": ["AUTO"],
    },
    "queue_endpoints": {"is_default": True},
    "storage_endpoints": {"type": "DATADISK", "space_free": 1e6, "space_total": 2e6},
    "nuclei": {"role": "nucleus", "state": "ACTIVE"},
    "site_activity": {"getjob": 1},
}
"""Table to what stands in its columns where nothing is given and null would remove queues."""
USERS: dict[str, Any] = {"prodsourcelabel": "user"}
"""What differs for user tasks."""


def world(
    tasks: Any, queues: Any = None, *, brokerage: str = "production-jobs", **tables: Any
) -> dict[str, pl.DataFrame]:
    """Return input tables for ``decide``, made from those that are at hand.

    Every table is a frame of any engine, a list of dicts (one per row; a key that is not there is not given) or a mapping
    of columns. What is not given removes no queue: a column has the value of :data:`DEFAULTS`, else null, which
    ``brokerlab tables`` explains; tasks are numbered from 1. The page reads something into three gaps:
    a task without ``cputime`` needs queues of 24 h (and in production without ``mintime``), one with ``ipconnectivity`` alone
    those without ip stack. Queues have slots of the largest ``corecount`` given
    anywhere, and where that is several cores, tasks take slots of any size. A table that is not given is left out, and ``decide`` takes it as unknown.

    Args:
        tasks: The tasks.
        queues: The queues; null = not known (production task brokerage looks at ``nuclei``).
        brokerage: ``production-jobs``, ``analysis-jobs``, ``production-tasks`` or another one that is installed.
        **tables: Further tables by name.

    Returns:
        Table name to frame, with every column of its contract.

    Raises:
        SchemaError: Unknown tables and columns, each with the nearest name, values of another type, nulls in
            required columns: all at once.
        ConfigError: There is no such brokerage.

    Source: docs/rules/README.md.

    Example:
        >>> from brokerlab.brokerage import production_jobs
        >>> queues = [{"panda_queue": "SMALL", "maxrss": 2000}, {"panda_queue": "LARGE"}]
        >>> decided = production_jobs.decide(world([{"ramcount": 4000}], queues))
        >>> decided.queues.select("panda_queue", "check").rows()
        [('LARGE', None), ('SMALL', 'memory_max')]
    """
    contracts = plugins.get(brokerage).tables
    given = {"tasks": tasks} | ({} if queues is None else {"queues": queues}) | tables
    cores = max(_cores(given[name], contracts[name]) for name in given.keys() & {"tasks", "queues"})
    more = {
        "tasks": {"corecount": 0 if cores > 1 else 1}
        | (USERS if brokerage == "analysis-jobs" else {}),
        "queues": {"corecount": cores},
    }
    filled = {
        name: _fill(name, table, contracts, more.get(name, {})) for name, table in given.items()
    }
    filled["tasks"] = _number(filled["tasks"])
    made = prepared(filled, contracts, exact=True)
    return {name: made[name] for name in contracts if name in filled}


def _fill(
    name: str, table: Any, contracts: Mapping[str, type[dy.Schema]], more: Mapping[str, Any]
) -> Any:
    """Return a table as a frame, with defaults where nothing is given; as it is where it cannot be read."""
    if name not in contracts:
        return table
    types = {key: column.dtype for key, column in contracts[name].columns().items()}
    values = {**DEFAULTS.get(name, {}), **more}
    values = {key: value for key, value in values.items() if key in types}
    if isinstance(table, list | tuple) and all(isinstance(row, Mapping) for row in table):
        table = [{**values, **row} for row in table]
    try:
        frame = polars_frame(table, contracts[name])
    except SchemaError:
        return table
    return frame.with_columns(
        pl.Series(key, [value] * frame.height, dtype=types[key])
        for key, value in values.items()
        if key not in frame.columns
    )


def _cores(table: Any, contract: type[dy.Schema]) -> int:
    try:
        cores = polars_frame(table, contract)["corecount"].cast(pl.Int64, strict=False)
    except (SchemaError, pl.exceptions.PolarsError):
        return 1
    return int(max([1, *cores.drop_nulls()]))


def _number(tasks: Any) -> Any:
    if not isinstance(tasks, pl.DataFrame) or "jeditaskid" in tasks.columns:
        return tasks
    return tasks.with_columns(jeditaskid=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))


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
