"""Which settings matter: every key over its sensible range, all else as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from brokerlab.brokerage import production_tasks
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.reach import reachable
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.sensitivities import keys_read, sensitivity_by_task
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, rows, rows_of
from brokerlab.gdpconfig.ranges import grid, scale_of
from brokerlab.report.replays.kinds import PRODUCTION, JobDecisions, Kind, kind_of
from brokerlab.report.replays.removal import KEYS
from brokerlab.report.replays.shares import shares

JOBS, TASKS = "jobs", "nuclei"
"""What a key decides: where jobs go, or which nucleus a task gets."""
SCOPES = ("brokerage", "classification")
"""Parts of the system whose keys decide where work goes."""
WORTH = 0.01
"""A key is worth calibrating if, halved or doubled, it sends at least so many of the jobs elsewhere, beyond doubt [1]."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the keys would change.

    Attributes:
        keys: One row per key, the one that matters most first: ``key``, ``decides`` (jobs, nuclei), ``unit``,
            ``current``, ``least`` and ``most`` tried, ``scale``; and of the value at which most goes elsewhere:
            ``at``, ``shift, lo, hi`` (share of the expected jobs that goes elsewhere), ``pairs`` (share decided
            differently), ``without`` (change of the share of brokerages without a queue), ``reachable`` (change of the
            mean share of slots; null for nuclei); ``half, half_lo, half_hi`` and ``double, double_lo, double_hi``, the
            shares at half and twice the current value, within the range (null: there is no such value); ``worth`` (one
            of their lower ends reaches `WORTH`; of a key without such values, that of ``at``).
        curves: One row per key and value: ``key, decides, value, is_current``, ``shift, lo, hi, pairs, without,
            reachable``.
        skipped: Key to the reason why it could not be tried.
    """

    keys: pl.DataFrame
    curves: pl.DataFrame
    skipped: dict[str, str]


def check_keys(keys: Iterable[str], kind: Kind = PRODUCTION, *, name: str = "keys") -> None:
    """Refuse keys that the catalogue does not know for a brokerage, all at once.

    Args:
        keys: Names of keys.
        kind: The brokerage.
        name: Name of the parameter, for messages.

    Raises:
        ConfigError: Which, and what was meant.
    """
    problems = []
    for key in keys:
        if not _rows(key, kind):
            known = {row.key for row in _brokerage_rows(kind)}
            problems.append(
                f"{name}: {key!r} is no key of the {kind.name} brokerage, {nearest(key, known)}"
            )
    if problems:
        raise ConfigError("; ".join(problems))


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One of the brokerages, as it decides with the settings in force.

    Attributes:
        name: `JOBS` or `TASKS`.
        what: What the sensitivity is asked of.
        read: Keys that it reads.
        tasks: ``jeditaskid, snapshot, gshare, label, placed`` (the task got a queue, or a nucleus).
        n_pairs: Pairs looked at.
        reachable: Mean share of slots that a task may reach; null for nuclei.
    """

    name: str
    what: JobDecisions | Replay
    read: frozenset[str]
    tasks: pl.DataFrame
    n_pairs: int
    reachable: float | None


def studied(
    decisions: JobDecisions,
    nuclei: Replay | None,
    keys: Sequence[str],
    *,
    points: int,
    n_boot: int,
    seed: int,
    replay: Replay | None = None,
) -> Settings:
    """Try every key.

    Args:
        decisions: Of a job brokerage.
        nuclei: What the choice of the nucleus saw; None: its keys are skipped.
        keys: Keys or patterns of the catalogue; a pattern is set for every share that occurs.
        points: Values tried per key, besides its own, its half and its double.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.
        replay: What was decided on; keys on which its tables depend are tried on it.
    """
    kind = kind_of(decisions)
    sides = {JOBS: _of_jobs(decisions)}
    if nuclei is not None and isinstance(decisions, Decisions):
        sides[TASKS] = _of_nuclei(nuclei, decisions.world.rules)
    parts, skipped = [], {}
    for key in dict.fromkeys(keys):
        row = _rows(key, kind)[0]
        name = TASKS if row.components == ("taskbrokerage",) else JOBS
        again = replay if row.key in kind.table_keys else None
        if name not in sides:
            skipped[key] = "the archive cannot tell the choice of the nucleus"
        elif again is None and row.key not in sides[name].read:
            skipped[key] = "no check and no weight reads it under this rule set and these settings"
        else:
            side = sides[name] if again is None else replace(sides[name], what=again)
            parts.append(
                _tried(key, row, side, decisions.world, points=points, n_boot=n_boot, seed=seed)
            )
    curves = pl.concat(parts) if parts else pl.DataFrame(schema=_CURVE)
    return Settings(keys=_ranked(curves), curves=curves, skipped=skipped)


def _tried(
    key: str, row: CatalogueKey, side: _Side, world: Any, *, points: int, n_boot: int, seed: int
) -> pl.DataFrame:
    """Try one key over its range."""
    current = _current(world.config, key, row, side.tasks)
    values = grid(row, current, points)
    totals, changes = sensitivity_by_task(side.what, key, values, rules=world.rules)
    bounds = _bounds(changes, side.tasks, len(values), n_boot=n_boot, seed=seed)
    return _curve(key, row, current, side, totals, bounds)


_CURVE = pl.Schema(
    {
        **dict.fromkeys(("key", "decides", "unit", "scale"), pl.String()),
        **dict.fromkeys(("value", "current"), pl.Float64()),
        "is_current": pl.Boolean(),
        **dict.fromkeys(("shift", "lo", "hi", "pairs", "without", "reachable"), pl.Float64()),
    }
)


def _of_jobs(decisions: JobDecisions) -> _Side:
    given = decisions.world.tables["tasks"].with_columns(pl.col("snapshot").fill_null(0))
    facts = given.select(*KEYS, "gshare", label="prodsourcelabel")
    tasks = decisions.tasks.select(*KEYS, placed=pl.col("outcome") == "candidates")
    reach = reachable(decisions)["reachable"].mean()
    return _Side(
        name=JOBS,
        what=decisions,
        read=frozenset(keys_read(decisions)),
        tasks=tasks.join(facts, on=KEYS, how="left", maintain_order="left"),
        n_pairs=decisions.queues.height,
        reachable=None if reach is None else float(reach),  # type: ignore[arg-type]
    )


def _of_nuclei(replay: Replay, rules: ProductionRules) -> _Side:
    found = production_tasks.decide(replay.for_tasks(), rules=rules, config=replay.config)
    facts = replay.tasks.select(*KEYS, "gshare", label="prodsourcelabel")
    tasks = found.tasks.select(*KEYS, placed=pl.col("outcome") == "nucleus")
    return _Side(
        name=TASKS,
        what=replay,
        read=frozenset(keys_read(replay)),
        tasks=tasks.join(facts, on=KEYS, how="left", maintain_order="left"),
        n_pairs=found.nuclei.height,
        reachable=None,
    )


def _current(config: Config, key: str, row: CatalogueKey, tasks: pl.DataFrame) -> Any:
    """Return the value in force; of a key by share the one that most brokerages see."""
    place = {"app": row.app, "component": row.components[0], "vo": "atlas"}
    if row.key != key or row.pattern is None:
        return config.get(key, **place)
    scopes = (
        tasks.group_by("gshare", "label")
        .len()
        .sort("len", "gshare", "label", descending=[True, False, False])
    )
    seen: dict[Any, int] = {}
    for gshare, label, n in scopes.iter_rows():
        value = config.get(key, gshare=gshare, prodsourcelabel=label, **place)
        seen[value] = seen.get(value, 0) + n
    return max(seen, key=lambda value: seen[value])


def _bounds(
    changes: pl.DataFrame, tasks: pl.DataFrame, n_values: int, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the interval of the share of jobs that go elsewhere, one row per value."""
    every = tasks.select(*KEYS, "placed").join(pl.DataFrame({"step": range(n_values)}), how="cross")
    table = every.join(changes, on=["step", *KEYS], how="left").select(
        "step",
        "jeditaskid",
        moved=pl.col("shift").fill_nan(None).fill_null(0.0),
        weighed=(pl.col("placed") | (pl.col("without") == -1))
        .fill_null(value=False)
        .cast(pl.Int64),
    )
    found = shares(table, ["moved"], "weighed", by=["step"], n_boot=n_boot, seed=seed)
    return found.sort("step").select("lo", "hi")


def _curve(
    key: str,
    row: CatalogueKey,
    current: Any,
    side: _Side,
    totals: pl.DataFrame,
    bounds: pl.DataFrame,
) -> pl.DataFrame:
    """Put the curve of one key together, in shares and differences from now."""
    n_tasks = max(side.tasks.height, 1)
    without = side.tasks.height - int(side.tasks["placed"].sum())
    reach = (
        pl.lit(None, pl.Float64)
        if side.reachable is None
        else pl.col("slots_reachable") - side.reachable
    )
    return (
        totals.hstack(bounds)
        .select(
            key=pl.lit(key),
            decides=pl.lit(side.name),
            unit=pl.lit(row.unit),
            scale=pl.lit(scale_of(row)),
            value=pl.col("value").cast(pl.Float64),
            current=pl.lit(None if current is None else float(current), pl.Float64),
            is_current="is_current",
            shift=pl.col("weight_shift").fill_nan(None),
            lo="lo",
            hi="hi",
            pairs=pl.col("n_pairs") / max(side.n_pairs, 1),
            without=(pl.col("n_without") - without) / n_tasks,
            reachable=reach,
        )
        .cast(_CURVE)
    )


def _ranked(curves: pl.DataFrame) -> pl.DataFrame:
    """Return one row per key, the one that moves most first, at the value where most goes elsewhere."""
    moved = pl.col("shift").fill_null(0)
    order = curves.sort("key", moved, "pairs", "value", descending=[False, True, True, False])
    first = order.unique("key", keep="first", maintain_order=True).rename({"value": "at"})
    ends = curves.group_by("key").agg(least=pl.col("value").min(), most=pl.col("value").max())
    found = first.drop("is_current").join(ends, on="key")
    below = curves.filter(pl.col("value") < pl.col("current")).sort("value", descending=True)
    above = curves.filter(pl.col("value") > pl.col("current")).sort("value")
    for name, side in (("half", below), ("double", above)):
        step = side.unique("key", keep="first", maintain_order=True)
        named = {"shift": name, "lo": f"{name}_lo", "hi": f"{name}_hi"}
        found = found.join(step.select("key", *named).rename(named), on="key", how="left")
    least = pl.max_horizontal("half_lo", "double_lo")
    least = (
        pl.when(pl.col("half").is_null() & pl.col("double").is_null()).then("lo").otherwise(least)
    )
    return found.with_columns(worth=(least >= WORTH).fill_null(value=False)).sort(
        moved, "pairs", "key", descending=[True, True, False]
    )


def _brokerage_rows(kind: Kind) -> list[CatalogueKey]:
    """Return the rows of the catalogue that a brokerage reads, those of its own components first."""
    places: dict[tuple[str, ...], int] = {(name,): n for n, name in enumerate(kind.components)}
    own = [row for row in rows() if row.components in places and row.scope in SCOPES]
    others = [row for row in rows() if row.key in kind.borrowed and row not in own]
    return [*sorted(own, key=lambda row: places[row.components]), *others]


def _rows(key: str, kind: Kind) -> list[CatalogueKey]:
    """Return the rows of a key that a brokerage reads."""
    found = rows_of(key)
    return [row for row in _brokerage_rows(kind) if row in found]
