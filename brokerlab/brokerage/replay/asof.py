"""Tables with a time of validity: the rows that hold at every instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.brokerage.replay.clock import Clock, repeated
from brokerlab.brokerage.replay.tables import TIME, Types, collect, narrow
from brokerlab.numerics import IntArray


def as_of(
    frame: Any,
    table: str,
    columns: Types,
    clock: Clock,
    *,
    entity: Sequence[str],
    time: str = "ts",
    max_age_s: int | None = None,
    where: nw.Expr | None = None,
    only: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the rows of a table that hold at each instant.

    What is known of an entity at ``ts`` holds from then to its next ``ts``: ``[ts, next ts)``. All rows of that time
    hold together, so that what a later time leaves out is gone. Rows without a time hold until the first that has one.
    The engine keeps the last time before each instant; the rest is small.

    Args:
        frame: Table of any engine.
        table: Its name, for messages.
        columns: Columns to read with their types, without the time.
        clock: The instants.
        entity: Columns of one thing with a history, e.g. a link and its key; none if the whole table is one.
        time: The column of the time.
        max_age_s: Rows count only while younger than this [s]: ``now < ts + max_age_s``.
        where: Rows to read.
        only: ``snapshot`` and columns of the table: the combinations that are wanted; others are left out.

    Returns:
        ``snapshot``, the columns, the time; sorted by ``snapshot`` and all columns. Without ``snapshot`` if the same
        rows hold at every instant.

    Raises:
        SchemaError: A column of the entity is missing.
    """
    lazy = narrow(frame, table, {**columns, time: TIME}, tuple(entity))
    if where is not None:
        lazy = lazy.filter(where)
    known = _last_before_instants(lazy, clock, entity, time)
    held = _held(known, clock, entity, time, max_age_s)
    order = [*entity, time, *(name for name in columns if name not in entity)]
    everywhere = (held["place"] == 0).all() and (held["until"] == len(clock)).all()
    if everywhere and only is None:
        return held.select(*columns, time).sort(order)
    return _spread(held, clock, [*columns, time], only).sort("snapshot", *order)


def _last_before_instants(
    lazy: nw.LazyFrame[Any], clock: Clock, entity: Sequence[str], time: str
) -> pl.DataFrame:
    """Keep in the engine the rows of the last time of each entity before each instant, with ``place``."""
    if not len(clock):
        return collect(lazy.head(0)).with_columns(place=pl.lit(0, pl.Int64))
    stamped = clock.moments(lazy, time)
    latest = stamped.with_columns(latest=nw.col(time).max().over(*entity, "moment"))
    kept = latest.filter(nw.col(time) == nw.col("latest")).drop("latest")
    found = collect(kept)
    placed = found.with_columns(place=clock.place(found["moment"]).cast(pl.Int64)).drop("moment")
    always = collect(lazy.filter(nw.col(time).is_null())).with_columns(place=pl.lit(0, pl.Int64))
    return pl.concat([placed, always.select(placed.columns)])


def _held(
    known: pl.DataFrame, clock: Clock, entity: Sequence[str], time: str, max_age_s: int | None
) -> pl.DataFrame:
    """Add ``until``: the position of the first instant at which a row holds no more."""
    numbered = known.with_columns(thing=_numbers(known, entity))
    versions = numbered.select("thing", "place", time).unique().sort("thing", "place", time)
    last = pl.struct("thing", "place") != pl.struct("thing", "place").shift(-1)
    versions = versions.filter(last.fill_null(value=True))
    same = pl.col("thing") == pl.col("thing").shift(-1)
    until = pl.when(same).then(pl.col("place").shift(-1)).otherwise(len(clock))
    versions = versions.with_columns(until=until)
    if max_age_s is not None:
        limit = versions[time].cast(pl.Int64).to_numpy() + max_age_s * 1_000_000
        end = pl.Series("end", np.searchsorted(clock.at_us, limit, side="left"), dtype=pl.Int64)
        versions = versions.with_columns(end).with_columns(until=pl.min_horizontal("until", "end"))
    held = numbered.join(
        versions.select("thing", "place", time, "until"),
        on=["thing", "place", time],
        nulls_equal=True,
    )
    return held.filter(pl.col("place") < pl.col("until")).drop("thing")


def _numbers(frame: pl.DataFrame, entity: Sequence[str]) -> pl.Series:
    """Return a number for each combination of the texts of an entity: sorting numbers costs a fraction."""
    number = np.zeros(frame.height, dtype=np.int64)
    for name in entity:
        codes = frame[name].cast(pl.Categorical).to_physical().cast(pl.Int64).fill_null(-1)
        known, place = np.unique(codes.to_numpy(), return_inverse=True)
        number = number * len(known) + place
    return pl.Series("thing", number)


def _spread(
    held: pl.DataFrame, clock: Clock, columns: Sequence[str], only: pl.DataFrame | None
) -> pl.DataFrame:
    """Repeat rows for every instant that they hold at, or for the wanted ones among them."""
    if only is None:
        first, beyond = held["place"].to_numpy(), held["until"].to_numpy()
        row, at = repeated(first, beyond - first)
    else:
        held, slots, first, beyond = _wanted(held, clock, only)
        row, slot = repeated(first, beyond - first)
        at = slots[slot] % max(len(clock), 1)
    snapshot = pl.Series("snapshot", clock.snapshots[at], dtype=pl.Int64)
    return held.select(columns)[row].select(snapshot, *columns)


def _wanted(
    held: pl.DataFrame, clock: Clock, only: pl.DataFrame
) -> tuple[pl.DataFrame, IntArray, IntArray, IntArray]:
    """Find which of the wanted instants each row holds at.

    Returns:
        The rows of wanted things, the wanted (thing, instant) as sorted numbers, and where in them the instants of each
        row begin and end.
    """
    instants = max(len(clock), 1)
    shared = [name for name in only.columns if name != "snapshot"]
    things = only.select(shared).unique().with_row_index("thing")
    places = pl.DataFrame({"snapshot": clock.snapshots}).with_row_index("at")
    asked = only.join(places, on="snapshot").join(things, on=shared, nulls_equal=True)
    number = asked.select(pl.col("thing").cast(pl.Int64) * instants + pl.col("at")).to_series()
    slots = np.unique(number.to_numpy())
    own = held.join(things, on=shared, nulls_equal=True)
    begin = own["thing"].cast(pl.Int64).to_numpy() * instants
    first = np.searchsorted(slots, begin + own["place"].to_numpy())
    return own, slots, first, np.searchsorted(slots, begin + own["until"].to_numpy())
