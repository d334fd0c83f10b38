"""Instants of brokerage, and how an engine buckets times to them without a join.

Times are UTC without zone. An event at an instant has happened by then: what begins at ``t`` is seen at ``t``, what
ends at ``t`` is not (intervals are closed on the left, open on the right).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.engines import microseconds
from brokerlab.errors import DataError
from brokerlab.numerics import IntArray
from brokerlab.times import rounded

FINEST_CELL_US = 60_000_000
"""Cells of instants that lie on no common grid [us]."""


def instants(tasks: pl.DataFrame, *, every: str | None = "10m") -> pl.DataFrame:
    """Number the distinct instants at which tasks are brokered.

    Args:
        tasks: ``at``, naive UTC; rows without it are left out.
        every: Grid to which instants are rounded down, so that tasks share them; None keeps each.

    Returns:
        ``snapshot`` i64 from 0 in the order of time, ``at``.

    Raises:
        ConfigError: The grid is not a duration.

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
    """Instants in the order of time, and the cells that an engine groups times by.

    Attributes:
        snapshots: Number of each instant.
        at_us: The instants [us since 1970], ascending.
    """

    snapshots: IntArray
    at_us: IntArray

    @classmethod
    def of(cls, instants: pl.DataFrame) -> Clock:
        """Read a table of instants.

        Raises:
            DataError: A column is missing, a value is null, or a snapshot comes twice.
        """
        problems = [f"instants.{n}: missing" for n in ("snapshot", "at") if n not in instants]
        if not problems:
            nulls = instants.select(pl.col("snapshot", "at").null_count()).row(0, named=True)
            problems = [f"instants.{n}: {count} null(s)" for n, count in nulls.items() if count]
            doubled = instants["snapshot"].is_duplicated()
            if doubled.any():
                problems += [f"instants.snapshot: {doubled.sum()} rows share a number"]
        if problems:
            raise DataError("; ".join(problems) + "; make them with replay.instants")
        typed = instants.select(
            pl.col("snapshot").cast(pl.Int64), pl.col("at").cast(pl.Datetime("us")).cast(pl.Int64)
        ).sort("at", "snapshot")
        return cls(typed["snapshot"].to_numpy(), typed["at"].to_numpy())

    def __len__(self) -> int:
        return len(self.at_us)

    @property
    def first_us(self) -> int:
        """The first instant [us since 1970]."""
        return int(self.at_us[0])

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

    def moments(self, frame: nw.LazyFrame[Any], time: str = "time") -> nw.LazyFrame[Any]:
        """Add ``moment``, which stands for a time: no instant lies between the two.

        Args:
            frame: A table of any engine.
            time: Column of the time.

        Returns:
            The table with ``moment``: microseconds after the first instant, 0 for everything up to it; without the rows
            whose time is null or after the last instant.
        """
        span = int(self.at_us[-1]) - self.first_us
        # two steps: one expression would hold the time many times over, and take Spark long to plan
        counted = frame.with_columns(moment=microseconds(frame, nw.col(time)) - self.first_us)
        after = nw.max_horizontal(nw.col("moment"), nw.lit(0))
        cell = (after + (self.step_us - 1)) // self.step_us
        whole = cell * self.step_us
        if self.split_cells:
            whole = nw.when(cell.is_in(self.split_cells)).then(after).otherwise(whole)
        near = counted.filter(nw.col("moment") <= span)
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


def repeated(first: IntArray, length: IntArray) -> tuple[IntArray, IntArray]:
    """Write out ranges: for each number the row of its range, and the number.

    Args:
        first: First number of each range.
        length: How many.

    Example:
        >>> row, number = repeated(np.array([5, 9]), np.array([3, 1]))
        >>> row.tolist(), number.tolist()
        ([0, 0, 0, 1], [5, 6, 7, 9])
    """
    ends = np.cumsum(length)
    row = np.repeat(np.arange(len(length)), length)
    offset = np.arange(len(row)) - (ends - length)[row]
    return row, first[row] + offset
