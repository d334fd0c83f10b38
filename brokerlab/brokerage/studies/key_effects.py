"""Which keys matter: every key over its sensible range, all else as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from brokerlab.brokerage import production_tasks
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_tasks.decisions import TaskDecisions
from brokerlab.brokerage.reach import reachable
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.sensitivities import keys_read, what_if_by_task
from brokerlab.brokerage.studies.kinds import PRODUCTION, JobDecisions, Kind, kind_of
from brokerlab.brokerage.view import PLACED, TASK, AnyDecisions, view
from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.keys import CatalogueKey, rows, rows_of
from brokerlab.gdpconfig.ranges import grid, scale_of
from brokerlab.intervals import N_BOOT, shares

JOBS, NUCLEI = "jobs", "nuclei"
"""What a key decides: where jobs go, or which nucleus a task gets."""
SCOPES = ("brokerage", "classification")
"""Parts of the system whose keys decide where work goes."""
WORTH = 0.01
"""A key is worth calibrating if, halved or doubled, the interval of the share it moves begins at so much or more [1]."""


@dataclass(frozen=True, kw_only=True)
class KeyEffects:
    """What other values of the keys would change.

    Attributes:
        keys: One row per key, the one that matters most first: ``key``, ``name`` (with its unit in brackets), ``decides`` (jobs, nuclei), ``unit``,
            ``scale``, ``current``, ``least`` and ``most`` tried; and of the value at which most goes elsewhere:
            ``at``, ``shift, shift_lo, shift_hi`` (share of the expected jobs that goes elsewhere), ``pairs`` (share
            decided differently), ``without`` (change of the share of brokerages without a queue), ``reachable`` (change
            of the mean share of slots; null for nuclei), all [1]; ``half, half_lo, half_hi`` and ``double, double_lo,
            double_hi``, the shares at half and twice the current value, within the range (null: there is no such
            value); ``worth`` (one of their lower ends reaches `WORTH`; of a key without such values, ``shift_lo``).
        curves: One row per key and value: ``key, decides, unit, scale, value, current, is_current``, ``shift,
            shift_lo, shift_hi, pairs, without, reachable``.
        skipped: ``key``, ``reason`` why it could not be tried: ``no_nuclei`` (the choice of the nucleus is not
            replayed), ``not_read`` (no check and no weight reads it under this rule set and these settings).
    """

    keys: pl.DataFrame
    curves: pl.DataFrame
    skipped: pl.DataFrame

    @property
    def steps(self) -> pl.DataFrame:
        """What moves at half the current value, at its double and at most, where there is such a value.

        ``key, value`` (halved, doubled, at the value that moves most), ``share, share_lo, share_hi`` [1].
        """
        names = {"half": "halved", "double": "doubled", "shift": "at the value that moves most"}
        return pl.concat(
            self.keys.select(
                "key",
                value=pl.lit(name),
                **{f"share{end}": f"{column}{end}" for end in ("", "_lo", "_hi")},
            )
            for column, name in names.items()
        ).drop_nulls("share")


def check_keys(keys: Iterable[str], kind: Kind = PRODUCTION) -> None:
    """Refuse keys that the catalogue does not know for a brokerage, all at once.

    Raises:
        ConfigError: Which, and what was meant.
    """
    known = {row.key for row in _catalogue_rows(kind)}
    problems = [
        f"{key!r} is no key of the {kind.name} brokerage, {nearest(key, known)}"
        for key in keys
        if not _rows_of(key, kind)
    ]
    if problems:
        raise ConfigError("; ".join(problems))


def which_keys_matter(
    decisions: JobDecisions,
    keys: Sequence[str],
    *,
    nuclei: Replay | None = None,
    replay: Replay | None = None,
    points: int = 5,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> KeyEffects:
    """Try every key over its range.

    Args:
        decisions: Of a job brokerage.
        keys: Keys or patterns of the catalogue; a pattern is set for every share that occurs.
        nuclei: What the choice of the nucleus saw; null: its keys are skipped.
        replay: What was decided on; keys on which its tables depend are tried on it.
        points: Values tried per key, besides its own, its half and its double.
        n_boot: Replicates over tasks.
        seed: Of the replicates.

    Raises:
        ConfigError: A key that the brokerage does not have.
    """
    kind = kind_of(decisions)
    check_keys(keys, kind)
    world = decisions.world
    sides = {JOBS: _side(JOBS, decisions, decisions, world.tables["tasks"])}
    if nuclei is not None and isinstance(decisions, Decisions):
        chosen = production_tasks.decide(
            nuclei.for_tasks(), rules=decisions.world.rules, config=nuclei.config
        )
        sides[NUCLEI] = _side(NUCLEI, nuclei, chosen, nuclei.tasks)
    curves, skipped = [pl.DataFrame(schema=_CURVE)], []
    for key in dict.fromkeys(keys):
        row = _rows_of(key, kind)[0]
        side = sides.get(NUCLEI if row.components == ("taskbrokerage",) else JOBS)
        remakes_tables = replay is not None and row.key in kind.table_keys
        if side is None:
            skipped.append((key, "no_nuclei"))
        elif not remakes_tables and row.key not in side.read:
            skipped.append((key, "not_read"))
        else:
            asked = replace(side, asked=replay) if remakes_tables and replay is not None else side
            values = {"points": points, "n_boot": n_boot, "seed": seed}
            curves.append(_sweep(key, row, asked, world, **values))
    every = pl.concat(curves)
    reasons = pl.DataFrame(
        skipped, schema=dict.fromkeys(("key", "reason"), pl.String), orient="row"
    )
    return KeyEffects(keys=_rank_keys(every), curves=every, skipped=reasons)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One of the brokerages, as it decides with the settings in force.

    Attributes:
        name: `JOBS` or `NUCLEI`.
        asked: What the sensitivity is asked of.
        read: Keys that it reads.
        tasks: ``jeditaskid, snapshot, gshare, label, placed`` (the task got a queue, or a nucleus).
        n_pairs: Pairs looked at.
        reachable: Mean share of slots that a task may reach; null for nuclei.
    """

    name: str
    asked: JobDecisions | Replay
    read: frozenset[str]
    tasks: pl.DataFrame
    n_pairs: int
    reachable: float | None


def _side(
    name: str, asked: JobDecisions | Replay, decisions: AnyDecisions, given: pl.DataFrame
) -> _Side:
    """Return a brokerage as it decides now; ``given`` are the tasks as they were given."""
    seen = view(decisions)
    facts = given.with_columns(pl.col("snapshot").fill_null(0))
    facts = facts.select(*TASK, "gshare", label="prodsourcelabel")
    tasks = seen.tasks.select(*TASK, placed=pl.col("outcome").is_in(PLACED))
    reach: Any = None
    if not isinstance(decisions, TaskDecisions):
        reach = reachable(decisions)["reachable"].mean()
    return _Side(
        name=name,
        asked=asked,
        read=frozenset(keys_read(asked)),
        tasks=tasks.join(facts, on=TASK, how="left", maintain_order="left"),
        n_pairs=seen.pairs.height,
        reachable=reach,
    )


_CURVE = pl.Schema(
    {
        **dict.fromkeys(("key", "decides", "unit", "scale"), pl.String()),
        **dict.fromkeys(("value", "current"), pl.Float64()),
        "is_current": pl.Boolean(),
        **dict.fromkeys(("shift", "shift_lo", "shift_hi"), pl.Float64()),
        **dict.fromkeys(("pairs", "without", "reachable"), pl.Float64()),
    }
)


def _sweep(
    key: str, row: CatalogueKey, side: _Side, world: Any, points: int, **dice: Any
) -> pl.DataFrame:
    """Try one key over its range; return its curve in shares and differences from now."""
    current = _current(world.config, key, row, side.tasks)
    values = grid(row, current, points)
    totals, changes = what_if_by_task(
        side.asked, key, values, rules=world.rules, own=world.own if side.name == JOBS else ()
    )
    ends = _ends_of_shift(changes, side.tasks, len(values), **dice)
    n_tasks = max(side.tasks.height, 1)
    n_without = side.tasks.height - int(side.tasks["placed"].sum())
    reach = pl.col("slots_reachable") - pl.lit(side.reachable, pl.Float64)
    return (
        totals.hstack(ends)
        .select(
            key=pl.lit(key),
            decides=pl.lit(side.name),
            unit=pl.lit(row.unit),
            scale=pl.lit(scale_of(row)),
            value=pl.col("value").cast(pl.Float64),
            current=pl.lit(None if current is None else float(current), pl.Float64),
            is_current="is_current",
            shift=pl.col("weight_shift").fill_nan(None),
            shift_lo="shift_lo",
            shift_hi="shift_hi",
            pairs=pl.col("n_pairs") / max(side.n_pairs, 1),
            without=(pl.col("n_without") - n_without) / n_tasks,
            reachable=reach,
        )
        .cast(_CURVE)
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


def _ends_of_shift(
    changes: pl.DataFrame, tasks: pl.DataFrame, n_values: int, **dice: Any
) -> pl.DataFrame:
    """Return the interval of the share of jobs that go elsewhere, one row per value."""
    every = tasks.select(*TASK, "placed").join(pl.DataFrame({"step": range(n_values)}), how="cross")
    weighed = pl.col("placed") | (pl.col("without") == -1)
    table = every.join(changes, on=["step", *TASK], how="left").select(
        "step",
        "jeditaskid",
        shift=pl.col("shift").fill_nan(None).fill_null(0.0),
        weighed=weighed.fill_null(value=False).cast(pl.Int64),
    )
    result = shares(table, ["shift"], "weighed", unit="jeditaskid", by=["step"], **dice)
    return result.select(shift_lo="share_lo", shift_hi="share_hi")


def _rank_keys(curves: pl.DataFrame) -> pl.DataFrame:
    """Return one row per key, the one that moves most first, at the value where most goes elsewhere."""
    moved = pl.col("shift").fill_null(0)
    order = curves.sort("key", moved, "pairs", "value", descending=[False, True, True, False])
    ends = curves.group_by("key").agg(least=pl.col("value").min(), most=pl.col("value").max())
    first = order.unique("key", keep="first", maintain_order=True).rename({"value": "at"})
    result = first.drop("is_current").join(ends, on="key")
    near = curves.filter(pl.col("current") != 0)  # 0 has neither half nor double
    below = near.filter(pl.col("value") < pl.col("current")).sort("value", descending=True)
    above = near.filter(pl.col("value") > pl.col("current")).sort("value")
    for name, side in (("half", below), ("double", above)):
        step = side.unique("key", keep="first", maintain_order=True)
        columns = {f"{name}{end}": f"shift{end}" for end in ("", "_lo", "_hi")}
        result = result.join(step.select("key", **columns), on="key", how="left")
    no_steps = pl.col("half").is_null() & pl.col("double").is_null()
    least = pl.when(no_steps).then("shift_lo").otherwise(pl.max_horizontal("half_lo", "double_lo"))
    named = pl.format("{} [{}]", "key", "unit")
    return result.with_columns(
        worth=(least >= WORTH).fill_null(value=False),
        name=pl.when(pl.col("unit") == "").then("key").otherwise(named),
    ).sort(moved, "pairs", "key", descending=[True, True, False])


def _catalogue_rows(kind: Kind) -> list[CatalogueKey]:
    """Return the rows of the catalogue that a brokerage reads, those of its own components first."""
    places: dict[tuple[str, ...], int] = {(name,): n for n, name in enumerate(kind.components)}
    own = [row for row in rows() if row.components in places and row.scope in SCOPES]
    others = [row for row in rows() if row.key in kind.borrowed and row not in own]
    return [*sorted(own, key=lambda row: places[row.components]), *others]


def _rows_of(key: str, kind: Kind) -> list[CatalogueKey]:
    """Return the rows of a key that a brokerage reads."""
    of_key = rows_of(key)
    return [row for row in _catalogue_rows(kind) if row in of_key]
