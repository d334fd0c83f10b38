"""Every key of the gdpconfig catalogue once: which rules read it, and whether it is calibrated, screened, or neither and why.

What reads a key is asked of the rules, and what a calibration or a screen tries is asked of these, so that the table
cannot fall behind either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import polars as pl

from brokerlab.brokerage import checks_table, production_tasks
from brokerlab.brokerage.analysis_jobs.keys import place_of as analysis_place
from brokerlab.brokerage.production_jobs.settings import place_of as production_place
from brokerlab.brokerage.sensitivities import keys_read
from brokerlab.brokerage.studies.kinds import ANALYSIS, PRODUCTION, Kind
from brokerlab.calibrate.key_screens import screened_keys
from brokerlab.calibrate.network_curve.proposal import KEYS as CURVE_KEYS
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


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """What tries other values of keys.

    Attributes:
        name: The call.
        how: ``calibrated``: it may propose a value; ``screened``: it says whether a value changes decisions.
        report: The report that shows it.
        keys: What it tries.
        named: Keys that the report tries only if they are named (``-p keys=``); none: it tries all.
    """

    name: str
    how: How
    report: str
    keys: Callable[[], frozenset[Place]]
    named: Callable[[], frozenset[Place]] = frozenset


def _percentile_keys() -> frozenset[Place]:
    named = ((p.rank_key, p.margin_key) for p in PARAMETERS.values())
    return frozenset((SCOUTS, key) for pair in named for key in pair if key)


def _thresholds(*judged_by: str) -> frozenset[Place]:
    return frozenset((t.component, t.key) for t in THRESHOLDS if t.judged_by in judged_by)


def _brokerage_keys(*stages: str) -> frozenset[Place]:
    """Return the keys of which :func:`which_keys_matter` tries values if it is asked to."""
    return frozenset(_place(stage, key) for stage in stages for key in _keys_of(stage))


def _unusual_keys(*stages: str) -> frozenset[Place]:
    """Return those of them that the report does not try by itself."""
    usual = {rows_of(key)[0].key for stage in stages for key in STAGES[stage].usual_keys}
    return frozenset(place for place in _brokerage_keys(*stages) if place[1] not in usual)


def _component(row: CatalogueKey) -> Place:
    return row.components[0], row.key


def _waiting_keys() -> frozenset[Place]:
    return frozenset(place for place, _ in _waiting_rules())


MECHANISMS: tuple[Mechanism, ...] = (
    Mechanism(
        name="calibrate.propose",
        how="calibrated",
        report="scout-percentiles",
        keys=_percentile_keys,
    ),
    Mechanism(
        name="calibrate.thresholds.study_archive",
        how="calibrated",
        report="thresholds",
        keys=lambda: _thresholds("simulation"),
    ),
    Mechanism(
        name="calibrate.network_curve",
        how="calibrated",
        report="network-curve",
        keys=lambda: frozenset({("jobbroker", CURVE_KEYS[0])}),  # the others it only keeps
    ),
    Mechanism(
        name="calibrate.thresholds.screen",
        how="screened",
        report="thresholds",
        keys=lambda: _thresholds("simulation", "screen"),
    ),
    Mechanism(
        name="brokerage.studies.key_effects.which_keys_matter",
        how="screened",
        report="brokerage-replay",
        keys=lambda: _brokerage_keys("jobs", "tasks"),
        named=lambda: _unusual_keys("jobs", "tasks"),
    ),
    Mechanism(
        name="brokerage.studies.key_effects.which_keys_matter",
        how="screened",
        report="analysis-replay",
        keys=lambda: _brokerage_keys("analysis"),
        named=lambda: _unusual_keys("analysis"),
    ),
    Mechanism(
        name="lifecycle.waits.limit_changes",
        how="screened",
        report="waiting-rules",
        keys=_waiting_keys,
    ),
    Mechanism(
        name="calibrate.key_screens.screen_keys",
        how="screened",
        report="thresholds",
        keys=lambda: frozenset(
            _component(row) for name in RULE_SETS for row in screened_keys(name)
        ),
    ),
)
"""What tries values, what calibrates first."""


@cache
def read_by() -> dict[Place, tuple[str, ...]]:
    """Return which rules read each key, under either rule set; a key that no rule reads is not in it."""
    found: dict[Place, dict[str, None]] = {}
    for place, rule in _readers():
        found.setdefault(place, {})[rule] = None
    return {place: tuple(rules) for place, rules in found.items()}


def _readers() -> Iterator[tuple[Place, str]]:
    """Yield keys with a rule that reads them."""
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
    tried = [(one, one.keys()) for one in MECHANISMS]
    return pl.DataFrame([_row(row, tried) for row in rows()], schema=_SCHEMA)


def coverage_of(brokerage: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the coverage with what screens of one archive say.

    Args:
        brokerage: Keys of a :class:`brokerlab.calibrate.thresholds.Screen`.
        others: Result of :func:`brokerlab.calibrate.key_screens.screen_keys`.

    Returns:
        The columns of :func:`coverage`; ``state`` (of the screen; null: not tried here), ``at`` (value that changes most
        [unit of the key]), ``n_changed`` (tasks or jobs decided otherwise there), ``counts`` (tasks, jobs), ``beside`` (keys that are off
        and were switched on to try it; null: none).
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
    named = counted.with_columns(
        key=pl.col("key").map_elements(lambda key: rows_of(key)[0].key, return_dtype=pl.String)
    )
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


def _row(row: CatalogueKey, tried: list[tuple[Mechanism, frozenset[Place]]]) -> dict[str, object]:
    places = {(component, row.key) for component in row.components}
    mechanisms = [one for one, keys in tried if not places.isdisjoint(keys)]
    readers = [rule for place in sorted(places) for rule in read_by().get(place, ())]
    how: How = mechanisms[0].how if mechanisms else "not"
    return {
        "key": row.key,
        "component": "|".join(row.components),
        "scope": row.scope,
        "read_by": readers,
        "how": how,
        "by": list(dict.fromkeys(one.name for one in mechanisms)),
        "reports": list(dict.fromkeys(one.report for one in mechanisms)),
        "if_named": bool(mechanisms) and all(places <= one.named() for one in mechanisms),
        "reason": None if mechanisms else _reason(row, readers),
    }


def _reason(row: CatalogueKey, readers: list[str]) -> str:
    """Say why nothing tries other values."""
    if row.never_read:
        return NEVER_READ
    return NO_TRIAL if readers else UNREAD[row.scope]
