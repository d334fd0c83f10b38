"""Does another value of a key change what scouts, the checks that stop tasks, or the waiting limits decide?

The screen of the brokerage's keys is :mod:`brokerlab.calibrate.thresholds.screening`; this one is of the keys that decide
what tasks reserve, which of them are stopped, and how long jobs may wait. History is decided again with one key at another
value, all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.calibrate.key_trials import POINTS, Trial, known_rows, trial_of
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.stops import (
    ScoutHistory,
    config_of,
    end_of,
    has_table,
    read_scout_history,
    stop_keys,
    switches_of,
    table_of,
    words_of,
)
from brokerlab.calibrate.thresholds.screening import CHANGES, NOTHING, UNTOLD
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, find
from brokerlab.lifecycle.timeouts import TimeoutRules, decide, decision_table, histories
from brokerlab.lifecycle.timeouts.settings import ANALY_TIMEOUT, Limits
from brokerlab.scouts import ScoutRules, estimate, exhausted, retry_checks
from brokerlab.scouts.estimate import PARAMETER_KEYS
from brokerlab.scouts.estimate import TABLES as SCOUT_TABLES
from brokerlab.scouts.retry import retry_rules
from brokerlab.scouts.write import WRITTEN

if TYPE_CHECKING:
    from brokerlab.archive import Archive

TASK = ("jeditaskid",)
JOB = ("pandaid", "rule", "action")
PARTS = {"scouts": "tasks", "retries": "tasks", "limits": "jobs", "analysis limit": "jobs"}
"""Part of the screen -> what decisions are counted in."""


def screen_keys(
    archive: Archive | Mapping[str, Any],
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
        archive: An archive with jobs, or its tables as Polars frames by name; keys whose tables are missing are not told.
        keys: Of :func:`screened_keys`, as the catalogue writes them; null: all.
        rules: ``document`` or ``production``.
        config: The configuration that acts; null: the archive's at its end, else the catalogue's defaults.
        points: Values between the guard rails, besides the current one, its half and its double.

    Returns:
        One row per key: ``key, component, unit``; ``part`` (scouts, retries, limits, analysis limit); ``current`` (null:
        none), ``n_values`` tried; ``state`` (`CHANGES`, `NOTHING`, `UNTOLD`: the archive cannot tell); of the value that
        changes most ``at``, ``n_changed`` (tasks with another parameter, or tasks or jobs with another decision),
        ``n_decided`` (how many were decided), ``counts`` (tasks, jobs); ``beside``: keys that are off and were switched on to
        try it, in words (null: none); ``reason`` why it is not told (null where it is).

    Raises:
        ConfigError: Unknown keys or rules.

    Source: scouts.md 5, exhausted.md 2 and 3, waiting.md 1 to 3; gdpconfig.md, Calibration.
    """
    parts = {row.key: part for part, row in _rows(rules)}
    wanted = known_rows(keys, screened_keys(rules))
    source = _Source(archive, rules, config)
    found: list[dict[str, Any]] = []
    for part, counts in PARTS.items():
        rows = [row for row in wanted if parts[row.key] == part]
        if not rows:
            continue
        try:
            told = source.screen(part, rows, points)
        except (DataError, InsufficientDataError) as problem:
            told = [{"state": UNTOLD, "reason": str(problem)} for _ in rows]
        about = [{"key": r.key, "component": r.components[0], "unit": r.unit} for r in rows]
        found += [
            a | {"part": part, "counts": counts} | t for a, t in zip(about, told, strict=True)
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


@dataclass(frozen=True)
class _Source:
    """What decisions are made again from."""

    archive: Archive | Mapping[str, Any]
    rules: str
    given: Config | None

    def screen(self, part: str, rows: Sequence[CatalogueKey], points: int) -> list[dict[str, Any]]:
        """Try the keys of a part."""
        scouts = ScoutRules(self.rules)
        switches = {row.key: switches_of(row.key, scouts) for row in rows}
        trials = [
            trial_of(self.config, row, self.scopes(part), switches=switches[row.key], points=points)
            for row in rows
        ]
        names = TASK if part in ("scouts", "retries") else JOB
        decided, n_decided = self.decided(part, trials)
        return [_told(trial, decided, names, n_decided) for trial in trials]

    def decided(self, part: str, trials: Sequence[Trial]) -> tuple[Decide, int]:
        """Return what decides, and of how many tasks or jobs."""
        if part == "scouts":
            return partial(_of_scouts, self.history), self.history.tasks.height
        if part == "retries":
            return self._retries(), self._count("tasks")
        if part == "limits":
            return self._limits(trials), self._count("jobs")
        return self._analysis(), self._count("jobs")

    @cached_property
    def history(self) -> ScoutHistory:
        """The tasks with scouts."""
        return read_scout_history(self.archive, rules=ScoutRules(self.rules), config=self.config)

    @cached_property
    def config(self) -> Config:
        """The configuration that acts."""
        return config_of(self.archive) if self.given is None else self.given

    @cached_property
    def end(self) -> datetime:
        """End of the archive."""
        return end_of(self.archive)

    def has(self, name: str) -> bool:
        """Tell whether there is a table."""
        return has_table(self.archive, name)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return a table."""
        return table_of(self.archive, name)

    def scopes(self, part: str) -> dict[str, list[str]]:
        """Return the names that patterns of keys stand for; workflows are those that have a limit."""
        if part in ("scouts", "retries"):
            labels = self.scan("tasks").select(
                pl.col("prodsourcelabel").drop_nulls().unique().sort()
            )
            return {"prodsourcelabel": labels.collect().to_series().to_list()}
        names: list[str] = []
        if self.has("queues"):
            queues = self.scan("queues").select(pl.col("workflow").drop_nulls().unique().sort())
            names = queues.collect().to_series().to_list()
        return {"workflow": list(Limits.of(self.config, names).heartbeat_s)}

    def _count(self, name: str) -> int:
        return int(self.scan(name).select(pl.len()).collect().item())

    def _retries(self) -> Decide:
        """Ask of every task whether it is exhausted, or its retry rejected, at the end of the archive."""
        tables = {name: self.scan(name) for name in SCOUT_TABLES}
        jobs, files, tasks = (tables[name] for name in ("jobs", "files", "tasks"))
        rules = ScoutRules(self.rules)
        said = estimate(tables, rules=rules, config=self.config, max_scouts=None)
        fixed: dict[str, Any] = {"files": files, "scouts": said, "rules": rules, "at": self.end}

        def decided(config: Config) -> pl.DataFrame:
            found = retry_checks(tasks, jobs, config=config, **fixed)
            return found.verdicts.select(*TASK, "rule", "action")

        return decided

    def _limits(self, trials: Sequence[Trial]) -> Decide:
        """Ask which waits are ended, from one reading at the shortest limits that are tried."""
        shortest = self.config
        for trial in trials:
            least = min(value for value in (trial.current, *trial.configs) if value)
            shortest = shortest.with_values(dict.fromkeys(trial.entries, least))
        known = histories(
            self.scan("jobs"),
            self.scan("job_status_log") if self.has("job_status_log") else None,
            at=self.end,
            queues=self.scan("queues") if self.has("queues") else None,
            rules=TimeoutRules(self.rules),
            config=shortest,
        )
        return lambda config: replace(known, config=config).fired().select(*JOB)

    def _analysis(self) -> Decide:
        """Ask which jobs that wait at the end of the archive go back to brokerage."""
        tables = {"jobs": self.scan("jobs")}
        if self.has("queues"):
            tables["queues"] = self.scan("queues").unique("panda_queue", keep="last")
        if self.has("job_status_log"):
            tables["status_log"] = self.scan("job_status_log")
        held = {name: table.collect() for name, table in tables.items()}
        rules = TimeoutRules(self.rules)

        def decided(config: Config) -> pl.DataFrame:
            return decide(held, at=self.end, rules=rules, config=config).fired.select(*JOB)

        return decided


def _of_scouts(history: ScoutHistory, config: Config) -> pl.DataFrame:
    """Return the parameters that scouts write, and whether and by which check a task is stopped."""
    said = history.scouts(config)
    verdicts = exhausted({"tasks": history.tasks}, scouts=said, config=config).verdicts
    written = [name for name in WRITTEN if name in said.parameters.columns]
    return said.parameters.select(*TASK, "succeeded", "newng", *written).join(
        verdicts.select(*TASK, "rule", "action"), on=TASK
    )


def _told(trial: Trial, decided: Decide, names: Sequence[str], n_decided: int) -> dict[str, Any]:
    """Return what a trial changes at most."""
    base = decided(trial.base)
    changed = {v: _changed(base, decided(config), names) for v, config in trial.configs.items()}
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


def _changed(base: pl.DataFrame, other: pl.DataFrame, names: Sequence[str]) -> int:
    """Count the tasks or jobs of which anything is decided otherwise."""
    marked = (frame.with_columns(decided=pl.lit(value=True)) for frame in (base, other))
    left, right = marked
    both = left.join(right, on=list(names), how="full", coalesce=True, suffix="_other")
    values = [name for name in left.columns if name not in names]
    differs = pl.any_horizontal(pl.col(n).ne_missing(pl.col(f"{n}_other")) for n in values)
    return both.filter(differs)[names[0]].n_unique()
