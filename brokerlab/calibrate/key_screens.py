"""Does another value of a key change what scouts, the checks that stop tasks, or the waiting limits decide?

The screen of the brokerage's keys is :mod:`brokerlab.calibrate.thresholds.screening`; this one is of the keys that decide
what tasks reserve, which of them are stopped, and how long jobs may wait. History is decided again with one key at another
value, all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from brokerlab.archive.given import Source
from brokerlab.calibrate.key_trials import Trial, known_rows, trial_of
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.settings import last_change, scans_once, settings_at
from brokerlab.calibrate.stops import read_scout_history, stop_keys, switches_of, words_of
from brokerlab.calibrate.thresholds.screening import CHANGES, NOTHING, UNTOLD
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, find
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table, histories
from brokerlab.lifecycle.timeouts import decide as decide_waits
from brokerlab.lifecycle.timeouts.settings import ANALY_TIMEOUT, Limits
from brokerlab.rulesets import changed_outcomes
from brokerlab.scouts import ScoutRules, estimate, retry_checks
from brokerlab.scouts.estimate import PARAMETER_KEYS
from brokerlab.scouts.estimate import TABLES as SCOUT_TABLES
from brokerlab.scouts.retry import retry_rules

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
        return end, settings_at(source, end) if config is None else config

    for part, (counts, prepare) in PARTS.items():
        here = [row for row in wanted if parts[row.key] == part]
        try:
            tried = _screen(source, rules, at_end(), counts, prepare, here) if here else {}
        except (DataError, InsufficientDataError) as problem:
            tried = {row.key: {"state": UNTOLD, "reason": str(problem)} for row in here}
        for key, result in tried.items():
            rows[key] |= {"counts": counts, **result}
    return pl.DataFrame(list(rows.values()), schema=_SCHEMA)


_SCHEMA: dict[str, Any] = {
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
    result = {}
    for trial in trials:
        base = decide(trial.base)
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
