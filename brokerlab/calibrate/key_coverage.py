"""Every key of the gdpconfig catalogue once: which rules read it, and whether it is calibrated, screened, or neither and why.

What reads a key is asked of the rules, and what a calibration or a screen tries is asked of these, so that the table cannot fall
behind either. `screen_keys` is the screen of the keys that decide what tasks reserve, which of them are stopped, and how long
jobs may wait (that of the brokerage's keys is :mod:`brokerlab.calibrate.thresholds.screening`): history is decided again with
one key at another value, all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal, NamedTuple

import polars as pl

from brokerlab.archive.given import Source
from brokerlab.brokerage import checks_table, production_tasks
from brokerlab.brokerage.analysis_jobs.settings import place_of as analysis_place
from brokerlab.brokerage.production_jobs.settings import place_of as production_place
from brokerlab.brokerage.sensitivities import keys_read
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION, Kind
from brokerlab.calibrate.network_curve.study import KEYS as CURVE_KEYS
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.stops import (
    last_change,
    read_scout_history,
    scans_once,
    stop_keys,
    switches_of,
    words_of,
)
from brokerlab.calibrate.thresholds.screening import CHANGES, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import THRESHOLDS
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, find, rows, rows_of
from brokerlab.gdpconfig.ranges import Trial, known_rows, trial_of
from brokerlab.lifecycle.classification.rules import COMPONENT as CLASS_COMPONENT
from brokerlab.lifecycle.classification.rules import KEYS as CLASS_KEYS
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table, histories
from brokerlab.lifecycle.timeouts import decide as decide_waits
from brokerlab.lifecycle.timeouts.facts import ANALY_TIMEOUT, FRACTION, NQUEUE, RATIO, Limits
from brokerlab.rulesets import changed_outcomes
from brokerlab.scouts import ScoutRules, estimate, retry_checks
from brokerlab.scouts.checks import checks
from brokerlab.scouts.estimate import PARAMETER_KEYS
from brokerlab.scouts.estimate import TABLES as SCOUT_TABLES
from brokerlab.scouts.retry import retry_rules
from brokerlab.scouts.used_jobs import LABEL_KEYS

How = Literal["calibrated", "screened", "not"]
Place = tuple[str, str]
"""Component and key, as the catalogue writes them."""
RULE_SETS = ("document", "production")
SCOUTS, WATCHDOG, RETRIES = "dbproxy", "watchdog", "retry_task"
STAGES: dict[str, Kind] = {"jobs": PRODUCTION, "tasks": PRODUCTION, "analysis": ANALYSIS}
"""Stages of the brokerage, and whose rules each follows."""
BROKERAGES = {
    "jobs": "production jobs",
    "tasks": "choice of the nucleus",
    "analysis": "analysis jobs",
}

UNREAD: dict[str, str] = {
    "watchdog": "what watchdogs do to running tasks and idle queues is not re-decided",
    "throttle": "job generation is not re-decided: jobs are taken as they were made",
    "job generation": "job generation is not re-decided: jobs are taken as they were made",
    "submission": "tasks are taken as they were submitted",
    "refinement": "tasks are taken as they were refined",
    "event service": "event service and jumbo jobs are made as they were, not re-decided",
    "dispatch": "which job a pilot gets is not re-decided",
    "out of scope": "decides neither where work goes, nor what it reserves, nor how long it waits",
}
"""Scope of the catalogue to the reason why no rule here reads its keys."""
NEVER_READ = "documented, but no code reads it"
NO_TRIAL = "read, but no calibration and no screen tries other values"


@dataclass(frozen=True)
class Mechanism:
    """A call that tries other values of keys, and the report that shows it.

    ``calibrated``: it may propose a value; ``screened``: it says whether a value changes decisions. The report tries those
    ``named`` only if they are named (``-p keys=``).
    """

    name: str
    how: How
    report: str
    keys: AbstractSet[Place]
    named: AbstractSet[Place] = frozenset()


@cache
def mechanisms() -> tuple[Mechanism, ...]:
    """Return what tries values, what calibrates first."""
    ranks = {
        (SCOUTS, key) for p in PARAMETERS.values() for key in (p.rank_key, p.margin_key) if key
    }
    thresholds = {(one.component, one.key): one.judged_by for one in THRESHOLDS}
    simulated = {place for place, judge in thresholds.items() if judge == "simulation"}
    curve = {("jobbroker", CURVE_KEYS[0])}  # the others it only keeps
    waits = {place for place, _ in _waiting_rules()}
    others = {(row.components[0], row.key) for name in RULE_SETS for row in screened_keys(name)}
    archive_study, screen = "calibrate.thresholds.study_archive", "calibrate.thresholds.screen"
    return (
        Mechanism("calibrate.propose", "calibrated", "scout-percentiles", ranks),
        Mechanism(archive_study, "calibrated", "thresholds", simulated),
        Mechanism("calibrate.network_curve", "calibrated", "network-curve", curve),
        Mechanism(screen, "screened", "thresholds", set(thresholds)),
        _replay("brokerage-replay", "jobs", "tasks"),
        _replay("analysis-replay", "analysis"),
        Mechanism("lifecycle.waits.limit_changes", "screened", "waiting-rules", waits),
        Mechanism("calibrate.key_coverage.screen_keys", "screened", "thresholds", others),
    )


def _replay(report: str, *stages: str) -> Mechanism:
    """Return the screen of the keys of some stages; the report tries by itself only those that are usual."""
    keys = {_place(stage, key) for stage in stages for key in _keys_of(stage)}
    usual = {rows_of(key)[0].key for stage in stages for key in STAGES[stage].usual_keys}
    return Mechanism(
        name="brokerage.studies.alternatives.which_keys_matter",
        how="screened",
        report=report,
        keys=keys,
        named={place for place in keys if place[1] not in usual},
    )


@cache
def read_by() -> dict[Place, tuple[str, ...]]:
    """Return which rules read each key, under either rule set; a key that no rule reads is not in it."""
    result: dict[Place, dict[str, None]] = {}
    for place, rule in _readers():
        result.setdefault(place, {})[rule] = None
    return {place: tuple(rules) for place, rules in result.items()}


def _readers() -> Iterator[tuple[Place, str]]:
    yield from (((SCOUTS, key), f"scouts: {name}") for name, key in PARAMETER_KEYS.items())
    yield from (((SCOUTS, key), "scouts: counts of jobs") for key in LABEL_KEYS.values())
    for name in RULE_SETS:
        for check in checks(ScoutRules(name)):
            yield from (((SCOUTS, key), f"exhausted: {check.name}") for key in check.keys)
        for check in retry_rules(ScoutRules(name)):
            component = WATCHDOG if check.name == "E1" else RETRIES
            yield from (((component, key), f"exhausted: {check.name}") for key in check.keys)
    yield from _brokerage_rules()
    yield from (((CLASS_COMPONENT, key), "classes of tasks") for key in CLASS_KEYS.values())
    yield from _waiting_rules()
    yield ("rebroker", ANALY_TIMEOUT), "waiting: analysis_rebrokerage"
    yield from ((("rebroker", key), "fast rebrokerage") for key in (RATIO, FRACTION, NQUEUE))


def _brokerage_rules() -> Iterator[tuple[Place, str]]:
    """Yield the keys of the brokerages with the check that reads each; of what no check names, with the brokerage."""
    for stage, kind in STAGES.items():
        unnamed = set(_keys_of(stage))
        for name in RULE_SETS:
            table = checks_table(kind.brokerage.rule_set(name), stage=stage)
            for check, keys in table.select("check", "keys").iter_rows():
                yield from ((_place(stage, key), f"{BROKERAGES[stage]}: {check}") for key in keys)
                unnamed -= set(keys)
        yield from ((_place(stage, key), BROKERAGES[stage]) for key in sorted(unnamed))


@cache
def _keys_of(stage: str) -> frozenset[str]:
    """Return the keys that a stage of the brokerage reads under either rule set, its replay's tables included."""
    kind = STAGES[stage]
    decide = production_tasks.decide if stage == "tasks" else kind.brokerage.decide
    read = (keys_read(decide({}, rules=kind.brokerage.rule_set(name))) for name in RULE_SETS)
    return frozenset(kind.table_keys if stage != "tasks" else ()).union(*read)


def _place(stage: str, key: str) -> Place:
    """Return where a stage of the brokerage looks a key up."""
    if stage == "tasks":
        return "taskbrokerage", key
    place = analysis_place(key) if stage == "analysis" else production_place(key)
    return place.split("/")[1], key


def _waiting_rules() -> Iterator[tuple[Place, str]]:
    components = {row.key: row.components[0] for row in rows()}
    for name in RULE_SETS:
        table = decision_table(rules=TimeoutRules(name))
        for rule, keys in table.select("rule", "keys").iter_rows():
            yield from (((components[key], key), f"waiting: {rule}") for key in keys)


def coverage() -> pl.DataFrame:
    """Return every key of the catalogue with what reads it and what tries other values of it.

    Returns:
        One row per row of :func:`brokerlab.gdpconfig.catalogue`, in its order: ``key``, ``component``, ``scope``;
        ``read_by`` (rules that read it under either rule set; empty: none), ``how`` (``calibrated``: a calibration may
        propose a value; ``screened``: a screen says whether a value changes a decision or a task's parameters;
        ``not``), ``by`` (calls of this package that try values), ``reports`` (that show it), ``if_named`` (these
        reports try it only if it is named, ``-p keys=``), ``reason`` why not (null where it is calibrated or screened).

    Source: gdpconfig.md, Calibration.

    Example:
        >>> coverage().filter(key="SCOUT_RAMCOUNT_RANK").select("how", "reports").row(0)
        ('calibrated', ['scout-percentiles'])
    """
    return pl.DataFrame([_row(row) for row in rows()], schema=_COVERED)


def coverage_of(brokerage: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the coverage with what screens of one archive say of the keys of the brokerage (:class:`.Screen`) and the others.

    Its columns are those of :func:`coverage`; ``state`` (of the screen; null: not tried here), ``at`` (value that changes most
    [unit of the key]), ``n_changed`` (tasks or jobs decided otherwise there), ``counts`` (tasks, jobs), ``beside`` (keys that are
    off and were switched on to try it; null: none).
    """
    counted = brokerage.select(
        "key",
        "state",
        "at",
        beside=pl.lit(None, pl.String),
        n_changed=pl.coalesce("n_tasks", "n_jobs"),
        counts=pl.when(pl.col("n_tasks").is_null()).then(pl.lit("jobs")).otherwise(pl.lit("tasks")),
    )
    # of exact keys of one pattern the one that changes most
    patterns = [rows_of(key)[0].key for key in counted["key"]]
    named = counted.with_columns(key=pl.Series(patterns, dtype=pl.String))
    every = pl.concat([named, others.select(named.columns)])
    ordered = every.sort("n_changed", descending=True, nulls_last=True, maintain_order=True)
    first = ordered.unique("key", keep="first", maintain_order=True)
    return coverage().join(first, on="key", how="left", maintain_order="left")


_COVERED: dict[str, pl.DataType] = {
    **dict.fromkeys(("key", "component", "scope"), pl.String()),
    "read_by": pl.List(pl.String()),
    "how": pl.String(),
    **dict.fromkeys(("by", "reports"), pl.List(pl.String())),
    "if_named": pl.Boolean(),
    "reason": pl.String(),
}


def _row(row: CatalogueKey) -> dict[str, object]:
    places = {(component, row.key) for component in row.components}
    trying = [one for one in mechanisms() if not places.isdisjoint(one.keys)]
    readers = [rule for place in sorted(places) for rule in read_by().get(place, ())]
    how: How = trying[0].how if trying else "not"
    reason = None
    if not trying:
        reason = NEVER_READ if row.never_read else NO_TRIAL if readers else UNREAD[row.scope]
    return {
        "key": row.key,
        "component": "|".join(row.components),
        "scope": row.scope,
        "read_by": readers,
        "how": how,
        "by": list(dict.fromkeys(one.name for one in trying)),
        "reports": list(dict.fromkeys(one.report for one in trying)),
        "if_named": bool(trying) and all(places <= one.named for one in trying),
        "reason": reason,
    }


# --- does another value of a key change what scouts, stops or waiting limits decide? ----------------------------------


JOB = ("pandaid", "rule", "action")


def screen_keys(
    source: Source,
    keys: Sequence[str] | None = None,
    *,
    rules: str = "document",
    config: Config | None = None,
) -> pl.DataFrame:
    """Try other values of the keys of scouts, exhausted checks and waiting limits on what is recorded.

    Scouts are read as at the first trigger of each task, retries asked for all tasks as they stand at the end of the
    archive, limits are asked of all recorded waits, and `ANALY_TIMEOUT` of the jobs that wait at the end of the archive.
    What other decisions would have led to is not followed. The configuration is by default the archive's at its end, else the
    catalogue's defaults; keys (of :func:`screened_keys`; null: all) whose tables are missing have a reason instead.

    Returns:
        One row per key: ``key, component, unit``; ``part`` (scouts, retries, limits, analysis limit); ``current`` (null:
        none), ``n_values`` tried; ``state`` (`CHANGES`, `NOTHING`, `UNTOLD`: the archive cannot tell); of the value that
        changes most ``at``, ``n_changed`` of ``n_decided`` tasks or jobs (``counts``); ``beside``: keys that are off and were
        switched on to try it, in words (null: none); ``reason`` why the archive cannot tell (null where it can).

    Raises:
        ConfigError: Unknown keys or rules.

    Source: scouts.md 5, exhausted.md 2 and 3, waiting.md 1 to 3; gdpconfig.md, Calibration.
    """
    parts = {row.key: part for part, row in _rows(rules)}
    wanted = known_rows(keys, screened_keys(rules))
    rows: dict[str, dict[str, Any]] = {
        row.key: {"key": row.key, "component": row.components[0], "unit": row.unit, "part": parts[row.key]}
        for row in wanted
    }  # fmt: skip

    @cache
    def at_end() -> tuple[datetime, Config]:
        """Return when a job changed last, and what acts then."""
        end = last_change(source)
        return end, Config.recorded(source, end) if config is None else config

    for part, (counts, prepare) in PARTS.items():
        here = [row for row in wanted if parts[row.key] == part]
        try:
            tried = _screen(source, rules, at_end(), counts, prepare, here) if here else {}
        except (DataError, InsufficientDataError) as problem:
            tried = {row.key: {"state": UNTOLD, "reason": str(problem)} for row in here}
        for key, result in tried.items():
            rows[key] |= {"counts": counts, **result}
    return pl.DataFrame(list(rows.values()), schema=_SCREENED)


_SCREENED: dict[str, Any] = {
    **dict.fromkeys(("key", "component", "unit", "part"), pl.String),
    "current": pl.Float64,
    "n_values": pl.Int64,
    "state": pl.String,
    "at": pl.Float64,
    **dict.fromkeys(("n_changed", "n_decided"), pl.Int64),
    **dict.fromkeys(("counts", "beside", "reason"), pl.String),
}


def screened_keys(rules: str = "document") -> tuple[CatalogueKey, ...]:
    """Return the keys that :func:`screen_keys` tries, by what reads them."""
    return tuple(row for _, row in _rows(rules))


@cache
def _rows(rules: str) -> tuple[tuple[str, CatalogueKey], ...]:
    """Return the part of the screen and the row of every key; ranks and margins are calibrated, not screened."""
    calibrated = {key for one in PARAMETERS.values() for key in (one.rank_key, one.margin_key)}
    scouts, waiting = ScoutRules(rules), decision_table(rules=TimeoutRules(rules))
    named = {
        "scouts": [
            *(key for key in PARAMETER_KEYS.values() if key not in calibrated),
            *(row.key for row in stop_keys(scouts)),
        ],
        "retries": [key for check in retry_rules(scouts) for key in check.keys],
        "limits": waiting["keys"].explode().drop_nulls().to_list(),
        "analysis limit": [ANALY_TIMEOUT],
    }
    return tuple((part, find(key)) for part, keys in named.items() for key in dict.fromkeys(keys))


class _Asked(NamedTuple):
    """What decisions are made again from."""

    source: Source
    rules: str
    config: Config
    end: datetime
    trials: Sequence[Trial]


Decide = Callable[[Config], pl.DataFrame]
"""Decisions under a configuration: columns that name what is decided, and what is decided of it."""
Prepare = Callable[[_Asked], tuple[Decide, int]]
"""Reads what a part needs once; returns how it decides, and how many tasks or jobs."""


def _screen(
    source: Source,
    rules: str,
    at_end: tuple[datetime, Config],
    counts: str,
    prepare: Prepare,
    rows: Sequence[CatalogueKey],
) -> dict[str, dict[str, Any]]:
    """Try the keys of a part; return what each changes at most: tasks or jobs of which anything is decided otherwise."""
    (end, config), scouts = at_end, ScoutRules(rules)
    if counts == "tasks":
        scopes = {"prodsourcelabel": _distinct(source, "tasks", "prodsourcelabel")}
    else:
        workflows = _distinct(source, "queues", "workflow", optional=True)
        scopes = {"workflow": list(Limits.of(config, workflows).heartbeat_s)}
    trials = [trial_of(config, row, scopes, switches=switches_of(row.key, scouts)) for row in rows]
    decide, n_decided = prepare(_Asked(source, rules, config, end, trials))
    result, bases = {}, {one.base.digest: one.base for one in trials}
    decided = {digest: decide(base) for digest, base in bases.items()}
    for trial in trials:
        base = decided[trial.base.digest]
        names = ["jeditaskid"] if "jeditaskid" in base.columns else list(JOB)
        changed = {
            value: changed_outcomes(base, decide(other), names)[names[0]].n_unique()
            for value, other in trial.configs.items()
        }
        at = max(changed, key=lambda value: changed[value], default=None)
        n_changed = changed.get(at, 0)
        result[trial.row.key] = {
            "current": None if trial.current is None else float(trial.current),
            "n_values": len(changed),
            "state": CHANGES if n_changed else NOTHING,
            "at": float(at) if n_changed and at is not None else None,
            "n_changed": n_changed,
            "n_decided": n_decided,
            "beside": words_of(trial.beside) or None,
        }
    return result


def _distinct(source: Source, table: str, name: str, *, optional: bool = False) -> list[str]:
    """Return the values of a column; none where an optional table is missing."""
    result = scans_once(source, () if optional else [table], [table] if optional else ())
    values = [one.select(pl.col(name).drop_nulls().unique().sort()).collect() for one in result.values()]  # fmt: skip
    return values[0][name].to_list() if values else []


def _scouts(asked: _Asked) -> tuple[Decide, int]:
    """Ask scouts as at the first trigger of each task."""
    history = read_scout_history(asked.source, rules=ScoutRules(asked.rules), config=asked.config)
    return history.decided, history.tasks.height


def _retries(asked: _Asked) -> tuple[Decide, int]:
    """Ask of every task whether it is exhausted, or its retry rejected, at the end of the archive."""
    tables, rules = scans_once(asked.source, SCOUT_TABLES), ScoutRules(asked.rules)
    scouts = estimate(tables, rules=rules, config=asked.config, max_scouts=None)
    fixed: dict[str, Any] = {"files": tables["files"], "scouts": scouts, "rules": rules, "at": asked.end}  # fmt: skip

    def decide(config: Config) -> pl.DataFrame:
        result = retry_checks(tables["tasks"], tables["jobs"], config=config, **fixed)
        return result.verdicts.select("jeditaskid", "rule", "action")

    return decide, _n_rows(tables["tasks"])


def _limits(asked: _Asked) -> tuple[Decide, int]:
    """Ask which waits are ended, from one reading at the shortest limits that are tried."""
    shortest = asked.config
    for trial in asked.trials:
        least = min(value for value in (trial.current, *trial.configs) if value)
        shortest = shortest.with_values(dict.fromkeys(trial.entries, least))
    tables = scans_once(asked.source, ["jobs"], ["job_status_log", "queues"])
    known = histories(
        tables["jobs"],
        tables.get("job_status_log"),
        at=asked.end,
        queues=tables.get("queues"),
        rules=TimeoutRules(asked.rules),
        config=shortest,
    )
    return lambda config: _fired(replace(known, config=config).fired()), _n_rows(tables["jobs"])


def _analysis(asked: _Asked) -> tuple[Decide, int]:
    """Ask which jobs that wait at the end of the archive go back to brokerage."""
    tables = scans_once(asked.source, ["jobs"], ["queues", "job_status_log"])
    names = {"job_status_log": "status_log"}
    held = {names.get(name, name): table.collect() for name, table in tables.items()}
    rules = TimeoutRules(asked.rules)

    def decide(config: Config) -> pl.DataFrame:
        return _fired(decide_waits(held, at=asked.end, rules=rules, config=config).fired)

    return decide, held["jobs"].height


def _fired(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per job and rule that ends its wait; a job that waits on has none."""
    return rows.select(*JOB, fired=pl.lit(value=True))


def _n_rows(table: pl.LazyFrame) -> int:
    return int(table.select(pl.len()).collect().item())


PARTS: dict[str, tuple[str, Prepare]] = {
    "scouts": ("tasks", _scouts),
    "retries": ("tasks", _retries),
    "limits": ("jobs", _limits),
    "analysis limit": ("jobs", _analysis),
}
"""Part of the screen -> what decisions are counted in, and what makes them again."""
