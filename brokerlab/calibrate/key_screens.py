"""Does another value of a key change what scouts, the checks that stop tasks, or the waiting limits decide?

The screen of the brokerage's keys is :mod:`brokerlab.calibrate.thresholds.screening`; this one is of the keys that decide
what tasks reserve, which of them are stopped, and how long jobs may wait. History is decided again with one key at another
value, all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from typing import Any

import polars as pl

from brokerlab.archive.given import Source, scans_of
from brokerlab.calibrate.key_trials import POINTS, Trial, known_rows, trial_of
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.settings import last_change, settings_at
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
PARTS = {"scouts": "tasks", "retries": "tasks", "limits": "jobs", "analysis limit": "jobs"}
"""Part of the screen -> what decisions are counted in."""


def screen_keys(
    source: Source,
    keys: Sequence[str] | None = None,
    *,
    rules: str = "document",
    config: Config | None = None,
    points: int = POINTS,
) -> pl.DataFrame:
    """Try other values of the keys of scouts, exhausted checks and waiting limits on what is recorded.

    Scouts are read as at the first trigger of each task, retries asked for all tasks as they stand at the end of the
    archive, limits are asked of all recorded waits, and `ANALY_TIMEOUT` of the jobs that wait at the end of the archive.
    What other decisions would have led to is not followed.

    Args:
        source: An archive with jobs, or its tables by name; keys whose tables are missing have a reason instead.
        keys: Of :func:`screened_keys`, as the catalogue writes them; null: all.
        rules: ``document`` or ``production``.
        config: The configuration that acts; null: the archive's at its end, else the catalogue's defaults.
        points: Values between the guard rails, besides the current one, its half and its double.

    Returns:
        One row per key: ``key, component, unit``; ``part`` (scouts, retries, limits, analysis limit); ``current`` (null:
        none), ``n_values`` tried; ``state`` (`CHANGES`, `NOTHING`, `UNTOLD`: the archive cannot tell); of the value that
        changes most ``at``, ``n_changed`` (tasks with another parameter, or tasks or jobs with another decision),
        ``n_decided`` (how many were decided), ``counts`` (tasks, jobs); ``beside``: keys that are off and were switched on to
        try it, in words (null: none); ``reason`` why the archive cannot tell (null where it can).

    Raises:
        ConfigError: Unknown keys or rules.

    Source: scouts.md 5, exhausted.md 2 and 3, waiting.md 1 to 3; gdpconfig.md, Calibration.
    """
    parts = {row.key: part for part, row in _rows(rules)}
    wanted = known_rows(keys, screened_keys(rules))
    screen = _Screen(source, rules, config)
    found: list[dict[str, Any]] = []
    for part, counts in PARTS.items():
        rows = [row for row in wanted if parts[row.key] == part]
        if not rows:
            continue
        try:
            tried = screen.screen(part, rows, points)
        except (DataError, InsufficientDataError) as problem:
            tried = [{"state": UNTOLD, "reason": str(problem)} for _ in rows]
        about = [{"key": r.key, "component": r.components[0], "unit": r.unit} for r in rows]
        found += [
            a | {"part": part, "counts": counts} | t for a, t in zip(about, tried, strict=True)
        ]
    order = pl.DataFrame({"key": [row.key for row in wanted]}, schema={"key": pl.String})
    return order.join(
        pl.DataFrame(found, schema=_SCHEMA), on="key", how="left", maintain_order="left"
    )


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


Decide = Callable[[Config], pl.DataFrame]
"""Decisions under a configuration: columns that name what is decided, and what is decided of it."""
Decided = tuple[Decide, int]
"""The same, and of how many tasks or jobs."""


@dataclass(frozen=True)
class _Screen:
    """What decisions are made again from."""

    source: Source
    rules: str
    given: Config | None

    def screen(self, part: str, rows: Sequence[CatalogueKey], points: int) -> list[dict[str, Any]]:
        """Try the keys of a part."""
        scouts = ScoutRules(self.rules)
        switches = {row.key: switches_of(row.key, scouts) for row in rows}
        scopes = self.labels() if PARTS[part] == "tasks" else self.workflows()
        trials = [
            trial_of(self.config, row, scopes, switches=switches[row.key], points=points)
            for row in rows
        ]
        decide, n_decided = {
            "scouts": self._scouts,
            "retries": self._retries,
            "limits": self._limits,
            "analysis limit": self._analysis,
        }[part](trials)
        return [_largest_change(trial, decide, n_decided) for trial in trials]

    @cached_property
    def config(self) -> Config:
        """The configuration that acts."""
        return settings_at(self.source, self.end) if self.given is None else self.given

    @cached_property
    def end(self) -> datetime:
        """End of the archive."""
        return last_change(self.source)

    def labels(self) -> dict[str, list[str]]:
        """Return the labels that keys of tasks are set for."""
        tasks = scans_of(self.source, ["tasks"])["tasks"]
        return {"prodsourcelabel": _distinct(tasks, "prodsourcelabel")}

    def workflows(self) -> dict[str, list[str]]:
        """Return the workflows that have a limit."""
        queues = scans_of(self.source, (), ["queues"])
        names = _distinct(queues["queues"], "workflow") if queues else []
        return {"workflow": list(Limits.of(self.config, names).heartbeat_s)}

    def _scouts(self, _trials: Sequence[Trial]) -> Decided:
        """Ask scouts as at the first trigger of each task."""
        rules = ScoutRules(self.rules)
        history = read_scout_history(self.source, rules=rules, config=self.config)
        return history.decided, history.tasks.height

    def _retries(self, _trials: Sequence[Trial]) -> Decided:
        """Ask of every task whether it is exhausted, or its retry rejected, at the end of the archive."""
        tables = scans_of(self.source, SCOUT_TABLES)
        jobs, files, tasks = (tables[name] for name in ("jobs", "files", "tasks"))
        rules = ScoutRules(self.rules)
        scouts = estimate(tables, rules=rules, config=self.config, max_scouts=None)
        fixed: dict[str, Any] = {"files": files, "scouts": scouts, "rules": rules, "at": self.end}

        def decide(config: Config) -> pl.DataFrame:
            found = retry_checks(tasks, jobs, config=config, **fixed)
            return found.verdicts.select("jeditaskid", "rule", "action")

        return decide, _n_rows(tasks)

    def _limits(self, trials: Sequence[Trial]) -> Decided:
        """Ask which waits are ended, from one reading at the shortest limits that are tried."""
        shortest = self.config
        for trial in trials:
            least = min(value for value in (trial.current, *trial.configs) if value)
            shortest = shortest.with_values(dict.fromkeys(trial.entries, least))
        tables = scans_of(self.source, ["jobs"], ["job_status_log", "queues"])
        known = histories(
            tables["jobs"],
            tables.get("job_status_log"),
            at=self.end,
            queues=tables.get("queues"),
            rules=TimeoutRules(self.rules),
            config=shortest,
        )
        return lambda config: _fired(replace(known, config=config).fired()), _n_rows(tables["jobs"])

    def _analysis(self, _trials: Sequence[Trial]) -> Decided:
        """Ask which jobs that wait at the end of the archive go back to brokerage."""
        tables = scans_of(self.source, ["jobs"], ["queues", "job_status_log"])
        if "queues" in tables:
            tables["queues"] = tables["queues"].unique("panda_queue", keep="last")
        names = {"job_status_log": "status_log"}
        held = {names.get(name, name): table.collect() for name, table in tables.items()}
        rules = TimeoutRules(self.rules)

        def decide(config: Config) -> pl.DataFrame:
            return _fired(decide_waits(held, at=self.end, rules=rules, config=config).fired)

        return decide, held["jobs"].height


def _fired(found: pl.DataFrame) -> pl.DataFrame:
    """Return one row per job and rule that ends its wait; a job that waits on has none."""
    return found.select(*JOB, fired=pl.lit(value=True))


def _distinct(table: pl.LazyFrame, name: str) -> list[str]:
    values: list[str] = (
        table.select(pl.col(name).drop_nulls().unique().sort()).collect()[name].to_list()
    )
    return values


def _n_rows(table: pl.LazyFrame) -> int:
    return int(table.select(pl.len()).collect().item())


def _largest_change(trial: Trial, decide: Decide, n_decided: int) -> dict[str, Any]:
    """Return what a trial changes at most: the tasks or jobs of which anything is decided otherwise."""
    base = decide(trial.base)
    names = ["jeditaskid"] if "jeditaskid" in base.columns else list(JOB)
    changed = {
        value: changed_outcomes(base, decide(config), names)[names[0]].n_unique()
        for value, config in trial.configs.items()
    }
    at = max(changed, key=lambda value: changed[value], default=None)
    n_changed = changed[at] if at is not None else 0
    return {
        "current": None if trial.current is None else float(trial.current),
        "n_values": len(changed),
        "state": CHANGES if n_changed else NOTHING,
        "at": float(at) if n_changed and at is not None else None,
        "n_changed": n_changed,
        "n_decided": n_decided,
        "beside": words_of(trial.beside) or None,
        "reason": None,
    }
