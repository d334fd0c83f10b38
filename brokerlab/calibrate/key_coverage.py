"""Every key of the gdpconfig catalogue once: which rules read it, and whether it is calibrated, screened, or neither and why.

What reads a key is asked of the rules, and what a calibration or a screen tries is asked of these, so that the table
cannot fall behind either.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Literal

import polars as pl

from brokerlab.brokerage import checks_table, production_tasks
from brokerlab.brokerage.analysis_jobs.settings import place_of as analysis_place
from brokerlab.brokerage.production_jobs.settings import place_of as production_place
from brokerlab.brokerage.sensitivities import keys_read
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION, Kind
from brokerlab.calibrate.key_screens import screened_keys
from brokerlab.calibrate.network_curve.study import KEYS as CURVE_KEYS
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.thresholds.keys import THRESHOLDS
from brokerlab.gdpconfig.keys import CatalogueKey, rows, rows_of
from brokerlab.lifecycle.classification.settings import COMPONENT as CLASS_COMPONENT
from brokerlab.lifecycle.classification.settings import KEYS as CLASS_KEYS
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table
from brokerlab.lifecycle.timeouts.settings import ANALY_TIMEOUT, FRACTION, NQUEUE, RATIO
from brokerlab.scouts import ScoutRules
from brokerlab.scouts.checks import checks
from brokerlab.scouts.estimate import PARAMETER_KEYS
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
    """What tries other values of keys.

    Attributes:
        name: The call.
        how: ``calibrated``: it may propose a value; ``screened``: it says whether a value changes decisions.
        report: The report that shows it.
        named: Keys that the report tries only if they are named (``-p keys=``).
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
        Mechanism("calibrate.key_screens.screen_keys", "screened", "thresholds", others),
    )


def _replay(report: str, *stages: str) -> Mechanism:
    """Return the screen of the keys of some stages; the report tries by itself only those that are usual."""
    keys = {_place(stage, key) for stage in stages for key in _keys_of(stage)}
    usual = {rows_of(key)[0].key for stage in stages for key in STAGES[stage].usual_keys}
    return Mechanism(
        name="brokerage.studies.key_effects.which_keys_matter",
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
    return pl.DataFrame([_row(row) for row in rows()], schema=_SCHEMA)


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


_SCHEMA: dict[str, pl.DataType] = {
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
