"""What is asked of a standing brokerage: which tasks in which worlds, and the state of these worlds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.brokerage.inputs.valid import at_every
from brokerlab.errors import DataError, SchemaError, nearest
from brokerlab.frames import polars_frame, prepared

KEY = ["jeditaskid", "snapshot", "world"]

Tables = dict[str, pl.DataFrame]


def asked(wanted: Any, known: pl.DataFrame, n_settings: int) -> pl.DataFrame:
    """Return what is wanted (see :func:`.standing.prepare`), sorted, with ``t``, the number of the task, and ``instant``.

    ``known``: the tasks prepared, ``jeditaskid, snapshot, t``. The instant is the number of the state that a task sees, its
    world's where no world is asked for at several snapshots.

    Raises:
        SchemaError: Missing columns, values of another type, nulls.
        DataError: Tasks or numbers of settings that were not prepared, rows that repeat a key.
    """
    rows = prepared({"wanted": wanted}, {"wanted": _Wanted})["wanted"]
    rows = rows.with_columns(pl.col("snapshot", "setting").fill_null(0)).sort(KEY)
    found = rows.join(known, on=KEY[:2], how="left", maintain_order="left")
    strange = pl.col("t").is_null() | ~pl.col("setting").is_between(0, n_settings - 1)
    odd = found.filter(strange | pl.struct(KEY).is_duplicated())
    if odd.height:
        raise DataError(
            f"wanted: {odd.height} rows repeat a key, or are of tasks or settings that were not prepared, such as "
            f"{odd.row(0, named=True)}"
        )
    if found["world"].n_unique() == found.n_unique(["world", "snapshot"]):
        return found.with_columns(instant="world")
    instants = found.select("world", "snapshot").unique().sort("world", "snapshot")
    instants = instants.with_columns(instant=pl.int_range(pl.len(), dtype=pl.Int64))
    return found.join(instants, on=["world", "snapshot"], how="left", maintain_order="left")


class _Wanted(dy.Schema):
    jeditaskid = dy.Int64(nullable=False)
    snapshot = dy.Int64(nullable=True)
    world = dy.Int64(nullable=False)
    at = dy.Datetime(nullable=True, time_unit="us")
    setting = dy.Int64(nullable=True)


def states(
    state: Mapping[str, Any],
    contracts: Mapping[str, type[dy.Schema]],
    allowed: Collection[str],
    instants: pl.DataFrame,
) -> Tables:
    """Return the tables of a state, held to their contracts; ``snapshot`` is the instant, see :func:`asked`.

    ``state`` has frames of any engine with ``world`` instead of ``snapshot`` (null: every world), ``instants`` are
    ``world, instant`` of what is asked for.

    Raises:
        SchemaError: Tables that may not change, rows of no world, whatever else the contracts do not allow.
    """
    given = {}
    for name, table in state.items():
        if name not in allowed:
            raise SchemaError(f"state: '{name}' may not change: {nearest(name, allowed)}")
        frame = polars_frame(table, contracts[name])
        world = frame.schema.get("world", pl.Unknown())
        if not (world.is_integer() or world == pl.Null) or "snapshot" in frame.columns:
            raise SchemaError(
                f"state: {name} must have a world, a whole number (null: every one), in the place of snapshot; found "
                f"{', '.join(f'{key} {kind}' for key, kind in frame.schema.items())}"
            )
        given[name] = frame.rename({"world": "snapshot"})
    held = prepared(given, {name: contracts[name] for name in given})
    worlds = instants.select(snapshot="world").unique()
    found = {name: at_every(frame, worlds, name) for name, frame in held.items()}
    if instants["world"].equals(instants["instant"]):
        return found
    return {name: at_instants(frame, instants, "world") for name, frame in found.items()}


def at_instants(frame: pl.DataFrame, instants: pl.DataFrame, of: str) -> pl.DataFrame:
    """Return rows for the instants; the frame's ``snapshot`` is a world or a snapshot, as ``of`` says."""
    known = instants.select(of, "instant").unique()
    joined = frame.join(known, left_on="snapshot", right_on=of, maintain_order="left")
    return joined.with_columns(snapshot="instant").drop("instant")


def with_others(
    given: Tables,
    rows: pl.DataFrame,
    prepared_tables: Mapping[str, pl.DataFrame],
    together: Iterable[Iterable[str]],
) -> Tables:
    """Add the tables that are read together with some that are given, as they were prepared."""
    lost = [
        name
        for names in together
        if given.keys() & set(names)
        for name in names
        if name not in given
    ]
    if not lost:
        return given
    snapshots = rows.select("snapshot").unique()
    others = {
        name: at_every(prepared_tables[name], snapshots, name) for name in dict.fromkeys(lost)
    }
    return given | {name: at_instants(frame, rows, "snapshot") for name, frame in others.items()}
