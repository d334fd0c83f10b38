"""Instants of brokerage, how an engine buckets times to them without a join, and the rows of a history that hold at each.

Times are UTC without zone. An event at an instant has happened by then: what begins at ``t`` is seen at ``t``, what
ends at ``t`` is not (intervals are closed on the left, open on the right).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import TIME, Types, collect, microseconds, narrow
from brokerlab.numerics import IntArray, repeated
from brokerlab.times import number_instants, rounded

FINEST_CELL_US = 60_000_000
"""Cells of instants that lie on no common grid [us]."""


def instants(tasks: pl.DataFrame, *, every: str | None = "10m") -> pl.DataFrame:
    """Number the distinct instants at which tasks are brokered, ``at`` (naive UTC), rounded down to a grid; None keeps each.

    ``snapshot`` i64 from 0 in the order of time, ``at``.

    Example:
        >>> from datetime import datetime
        >>> at = [datetime(2026, 3, 1, 12, 7), datetime(2026, 3, 1, 12, 3)]
        >>> instants(pl.DataFrame({"at": at})).rows()
        [(0, datetime.datetime(2026, 3, 1, 12, 0))]
    """
    at = rounded(pl.col("at").cast(pl.Datetime("us")), every)
    distinct = tasks.select(at=at).drop_nulls().unique().sort("at")
    return distinct.select(snapshot=pl.int_range(pl.len(), dtype=pl.Int64), at="at")


@dataclass(frozen=True)
class Clock:
    """Instants (``at_us`` [us since 1970], ascending, numbered by ``snapshots``), and the cells that engines group times by."""

    snapshots: IntArray
    at_us: IntArray

    @classmethod
    def of(cls, instants: pl.DataFrame) -> Clock:
        """Read a table of instants."""
        return cls(*number_instants(instants, "instants"))

    def __len__(self) -> int:
        return len(self.at_us)

    @property
    def first_us(self) -> int:
        """The first instant [us since 1970]; 0 where there is none."""
        return int(self.at_us[0]) if len(self) else 0

    @cached_property
    def step_us(self) -> int:
        """Length of a cell [us]: the grid of the instants where there is one, else a minute."""
        gaps = np.diff(np.unique(self.at_us))
        return max(math.gcd(*gaps.tolist()), FINEST_CELL_US)

    @cached_property
    def split_cells(self) -> list[int]:
        """Cells with an instant inside: their times are kept as they are."""
        after = self.at_us - self.first_us
        inside = after[after % self.step_us != 0]
        return [int(cell) for cell in np.unique(inside // self.step_us + 1)]

    def moments(
        self, frame: nw.LazyFrame[Any], time: str = "time", *, untimed: bool = False
    ) -> nw.LazyFrame[Any]:
        """Add ``moment``, which stands for a time: no instant lies between the two.

        It is microseconds after the first instant, 0 for everything up to it; rows after the last instant are left out, and
        those whose time is null unless they are asked for (``untimed``).
        """
        span = int(self.at_us[-1]) - self.first_us if len(self) else ALWAYS_US
        # two steps: one expression would hold the time many times over, and take Spark long to plan
        counted = frame.with_columns(moment=microseconds(frame, nw.col(time)) - self.first_us)
        after = nw.max_horizontal(nw.col("moment"), nw.lit(0))
        cell = (after + (self.step_us - 1)) // self.step_us
        whole = cell * self.step_us
        if self.split_cells:
            whole = nw.when(cell.is_in(self.split_cells)).then(after).otherwise(whole)
        kept = nw.col("moment") <= span
        near = counted.filter(kept | nw.col(time).is_null() if untimed else kept)
        return near.with_columns(moment=whole.cast(nw.Int64))

    def place(self, moment: pl.Series) -> pl.Series:
        """Return the position of the first instant at or after each moment."""
        after = self.at_us - self.first_us
        return pl.Series("place", np.searchsorted(after, moment.to_numpy(), side="left"))

    @property
    def instants(self) -> pl.DataFrame:
        """``snapshot``, ``at``, in the order of time."""
        at = pl.Series("at", self.at_us).cast(pl.Datetime("us"))
        return pl.DataFrame([pl.Series("snapshot", self.snapshots, dtype=pl.Int64), at])


ALWAYS_US = -(2**62)
"""Stands for no time: before all times [us]."""
MANY = 2_000_000
"""Rows that the engine thins out before they are read: to find the last ones is slower there."""


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
    each: bool = False,
) -> pl.DataFrame:
    """Return the rows of a table of any engine that hold at each instant.

    What is known of an entity at ``ts`` holds from then to its next ``ts``: ``[ts, next ts)``. All rows of that time
    hold together, so that what a later time leaves out is gone. Rows without a time hold until the first that has one.
    The engine keeps the last time before each instant; the rest is small.

    Args:
        frame: The table.
        table: Its name, for messages.
        columns: Columns to read with their types, without the time.
        clock: The instants.
        entity: Columns of one thing with a history, e.g. a link and its key; none if the whole table is one.
        time: The column of the time.
        max_age_s: Rows count only while younger than this [s]: ``now < ts + max_age_s``.
        where: Rows to read.
        only: ``snapshot`` and columns of the table: the combinations that are wanted; others are left out.
        each: Repeat rows that hold at every instant.

    Returns:
        ``snapshot``, the columns, the time; sorted by ``snapshot`` and all columns. Without ``snapshot`` if the same
        rows hold at every instant, unless they are asked for at ``each``.
    """
    lazy = narrow(frame, table, {**columns, time: TIME}, tuple(entity))
    if where is not None:
        lazy = lazy.filter(where)
    if only is not None:
        lazy = _of_wanted(lazy, only)
    known = _last_before_instants(lazy, clock, entity, time, max_age_s)
    held = _held(known, clock, [*entity], time, max_age_s)
    everywhere = (held["place"] == 0).all() and (held["until"] == len(clock)).all()
    if everywhere and only is None and not each:
        return held.select(*columns, time)
    return spread(held, clock, [*columns, time], only)


def _of_wanted(lazy: nw.LazyFrame[Any], only: pl.DataFrame) -> nw.LazyFrame[Any]:
    """Read rows of wanted things only, as far as one column at a time can tell."""
    for name in only.columns:
        if name != "snapshot" and not only[name].null_count():
            lazy = lazy.filter(nw.col(name).is_in(only[name].unique().to_list()))
    return lazy


def _last_before_instants(
    lazy: nw.LazyFrame[Any], clock: Clock, entity: Sequence[str], time: str, max_age_s: int | None
) -> pl.DataFrame:
    """Read the rows up to the last instant; of many only those of the last time of each entity before each instant."""
    if not len(clock):
        return collect(lazy.head(0))
    always = nw.col(time).is_null()
    rows = clock.moments(lazy, time, untimed=True)
    if max_age_s is not None:
        second = microseconds(rows, nw.col(time)) - clock.first_us
        young = rows.filter(always | (nw.col("moment") - second < max_age_s * 1_000_000))
        result = _read(young, entity, time)
        if not result[time].null_count():  # else a row too old to hold ends those without a time
            return result
    return _read(rows, entity, time)


def _read(rows: nw.LazyFrame[Any], entity: Sequence[str], time: str) -> pl.DataFrame:
    """Read rows with their ``moment``; of many only those of the last time of each entity at each moment, and those without."""
    few = collect(rows.drop("moment").head(MANY + 1))
    if len(few) <= MANY:
        return few
    del few  # so that rows are in memory once
    rows = rows.with_columns(latest=nw.col(time).max().over(*entity, "moment"))
    rows = rows.filter(nw.col(time).is_null() | (nw.col(time) == nw.col("latest")))
    return collect(rows.drop("moment", "latest"))


def _held(
    known: pl.DataFrame, clock: Clock, entity: list[str], time: str, max_age_s: int | None
) -> pl.DataFrame:
    """Return the rows that hold at some instant with ``place`` and ``until``: the first at which each does, and does no more.

    They are sorted by the entity, the time and all other columns.
    """
    others = [name for name in known.columns if name not in (*entity, time)]
    ordered = known.with_columns(thing=_numbers(known, entity)).sort("thing", time, *others)
    thing = ordered["thing"].to_numpy()
    at_us = ordered[time].cast(pl.Int64).fill_null(ALWAYS_US).to_numpy()
    # rows of one thing and time hold together, up to the next time of the thing
    changes = (np.diff(thing) != 0) | (np.diff(at_us) != 0)
    version = np.concatenate([[0], np.cumsum(changes)])[: len(thing)]
    first = np.searchsorted(version, np.arange(len(thing) and version[-1] + 1))
    place = np.searchsorted(clock.at_us, at_us[first])
    ends = np.append(thing[first][1:] != thing[first][:-1], True)[: len(first)]
    until = np.where(ends, len(clock), np.append(place[1:], 0)[: len(first)])
    if max_age_s is not None:
        limit = np.searchsorted(clock.at_us, at_us[first] + max_age_s * 1_000_000)
        until = np.where(at_us[first] == ALWAYS_US, until, np.minimum(until, limit))
    held = ordered.drop("thing").with_columns(
        place=pl.Series(place[version], dtype=pl.Int64),
        until=pl.Series(until[version], dtype=pl.Int64),
    )
    return held.filter(pl.col("place") < pl.col("until"))


def _numbers(frame: pl.DataFrame, entity: Sequence[str]) -> pl.Series:
    """Number the combinations of the texts of an entity, in their order: sorting numbers costs a fraction."""
    number = np.zeros(frame.height, dtype=np.int64)
    for name in entity:
        texts = frame[name].drop_nulls().unique().sort()
        codes = frame[name].cast(pl.Enum(texts)).to_physical().cast(pl.Int64) + 1
        number = number * (len(texts) + 1) + codes.fill_null(0).to_numpy()
    return pl.Series("thing", number)


def spread(
    held: pl.DataFrame, clock: Clock, columns: Sequence[str], only: pl.DataFrame | None
) -> pl.DataFrame:
    """Repeat rows for every instant that they hold at, or for the wanted ones among them, by instant."""
    if only is None:
        first, beyond = held["place"].to_numpy(), held["until"].to_numpy()
        row, at = repeated(first, beyond - first)
    else:
        held, slots, first, beyond = _wanted(held, clock, only)
        row, slot = repeated(first, beyond - first)
        at = slots[slot] % max(len(clock), 1)
    snapshot = clock.snapshots[at]
    order = np.argsort(snapshot, kind="stable")
    spread = held.select(columns)[row[order]]
    return spread.select(pl.Series("snapshot", snapshot[order], dtype=pl.Int64), *columns)


def _wanted(
    held: pl.DataFrame, clock: Clock, only: pl.DataFrame
) -> tuple[pl.DataFrame, IntArray, IntArray, IntArray]:
    """Find which of the wanted instants each row holds at.

    The rows of wanted things, the wanted (thing, instant) as sorted numbers, and where in them each row begins and ends.
    """
    instants = max(len(clock), 1)
    shared = [name for name in only.columns if name != "snapshot"]
    things = only.select(shared).unique().with_row_index("thing")
    places = pl.DataFrame({"snapshot": clock.snapshots}).with_row_index("at")
    asked = only.join(places, on="snapshot").join(things, on=shared, nulls_equal=True)
    number = asked.select(pl.col("thing").cast(pl.Int64) * instants + pl.col("at")).to_series()
    slots = np.unique(number.to_numpy())
    own = held.join(things, on=shared, nulls_equal=True, maintain_order="left")
    begin = own["thing"].cast(pl.Int64).to_numpy() * instants
    first = np.searchsorted(slots, begin + own["place"].to_numpy())
    return own, slots, first, np.searchsorted(slots, begin + own["until"].to_numpy())
