"""Rows put aside in sorted runs and taken out again piece by piece: there may be more than memory holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import polars as pl

from brokerlab.archive.contracts import key_columns, scan
from brokerlab.errors import writing

KEY = "__key"
"""Digest of the key of a row."""
TASK = "jeditaskid"
RUN_BYTES = 256 << 20
"""Bytes of a run, about: so many are in memory."""

_DAY, _PLACE = "__day", "__place"
_NO_DAY = date(1970, 1, 1)
_GROUP_ROWS = 65_536
"""Rows that are read at least where a part of a run is."""
_BITS = 63
"""Bits of a whole number that is not negative."""


def key_of(table: str) -> pl.Expr:
    """Return the digest of the key of each row."""
    return pl.struct(key_columns(table)).hash(seed=0).alias(KEY)


def in_order(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return rows sorted by columns, nulls last; the columns of the given frame are used up, so that rows are in memory once."""
    order = _order(rows.select(pl.col(by).to_physical()))
    if order is None:
        return rows
    # in one piece: a column of many pieces is gathered in four times the time
    return pl.DataFrame([rows.drop_in_place(name).rechunk().gather(order) for name in rows.columns])


def _order(keys: pl.DataFrame) -> pl.Series | None:
    """Return the order of rows by all columns, nulls last, None where they are in order.

    Whole numbers that fit into one together are sorted as that one, in a tenth of the time.
    """
    packed, bits = pl.lit(0, dtype=pl.Int64), 0
    for key in keys:
        if not key.dtype.is_integer():
            bits = _BITS + 1
            break
        ends: list[Any] = [key.min() or 0, key.max() or 0]
        last: int = ends[1] - ends[0] + key.has_nulls()
        bits += last.bit_length()
        value = (pl.col(key.name).cast(pl.Int64) - ends[0]).fill_null(last)
        packed = packed * 2 ** last.bit_length() + value
    if bits > _BITS:
        return keys.select(pl.arg_sort_by(keys.columns, nulls_last=True)).to_series()
    numbers = keys.select(packed).to_series()
    return None if numbers.is_sorted() else numbers.arg_sort()


@dataclass(frozen=True)
class _Run:
    """Rows sorted by day and place, of each day the first one and how many there are, and the file they are in, if any."""

    rows: pl.LazyFrame
    days: dict[date, tuple[int, int]]
    file: Path | None = None


class Spill:
    """Rows of one table, sorted by the day of their folder and by task, or by key where they have none.

    Args:
        folder: Where runs are written that memory does not hold.
        table: Canonical table.
        by_key: By key only.
    """

    def __init__(self, folder: Path, table: str, *, by_key: bool = False) -> None:
        self.table = table
        self._folder = folder
        self._by_key = by_key
        self._waiting: list[pl.DataFrame] = []
        self._runs: list[_Run] = []

    def put(self, rows: pl.DataFrame) -> None:
        """Put rows aside; columns that say nothing are left out, as they come back as null.

        Args:
            rows: Canonical rows, and any columns beside them.
        """
        if rows.is_empty():
            return
        keys = key_columns(self.table)
        filled = [c for c in rows.columns if c in keys or rows[c].null_count() < len(rows)]
        number = pl.col(KEY).reinterpret(signed=True)
        place, day = number, pl.lit(_NO_DAY)
        if not self._by_key and TASK in filled:
            place = pl.coalesce(TASK, pl.min_horizontal(number, -1 - number))
        if not self._by_key and self.table == "jobs" and "modificationtime" in filled:
            day = pl.col("modificationtime").dt.date().fill_null(_NO_DAY)
        keyed = (
            rows.select(*filled, key_of(self.table)) if KEY not in filled else rows.select(filled)
        )
        self._waiting.append(keyed.with_columns(place.alias(_PLACE), day.alias(_DAY)))
        if sum(part.estimated_size() for part in self._waiting) >= RUN_BYTES:
            self._end_run(on_disk=True)

    def _end_run(self, *, on_disk: bool) -> None:
        """Sort the rows that wait."""
        if not self._waiting:
            return
        rows = pl.concat(self._waiting, how="diagonal_relaxed")
        self._waiting.clear()
        keys = [c for c in key_columns(self.table) if c in rows.columns and c != TASK]
        rows = in_order(rows, [_DAY, _PLACE, *keys])
        runs = rows[_DAY].rle().struct.unnest()
        starts = runs["len"].cum_sum() - runs["len"]
        days = dict(zip(runs["value"], zip(starts, runs["len"], strict=True), strict=True))
        self._runs.append(self._written(rows, days) if on_disk else _Run(rows.lazy(), days))

    def _written(self, rows: pl.DataFrame, days: dict[date, tuple[int, int]]) -> _Run:
        """Write rows to a file and return them as they are read from there."""
        path = self._folder / f"{self.table}-{uuid4().hex}"
        with writing(path):
            # dictionaries make it as small as any quick compression, in less time
            rows.write_parquet(
                path, compression="uncompressed", statistics=False, row_group_size=_GROUP_ROWS
            )
        return _Run(scan(path), days, path)

    def columns(self, *names: str) -> pl.LazyFrame:
        """Return columns of all rows."""
        self._end_run(on_disk=False)
        return pl.concat(run.rows.select(names) for run in self._runs)

    def split(self, keys: pl.Series) -> "Spill":
        """Take the rows of some keys out, and return them by key.

        Args:
            keys: Digests of keys, sorted, at least one.
        """
        taken = Spill(self._folder, self.table, by_key=True)
        self._end_run(on_disk=False)
        runs, self._runs = self._runs, []
        for run in runs:
            own = run.rows.select(KEY).collect()[KEY]
            hits = keys.gather(keys.search_sorted(own).clip(0, len(keys) - 1)) == own
            if not hits.any():
                self._runs.append(run)
                continue
            rows = run.rows.collect()
            taken.put(rows.filter(hits).drop(_DAY, _PLACE))
            self.put(rows.filter(~hits).drop(_DAY, _PLACE))
            if run.file:
                run.file.unlink()
        return taken

    def pieces(self, size: int) -> Iterator[pl.DataFrame]:
        """Yield the rows, folder by folder and place by place.

        Args:
            size: Rows of a piece, about: a day's last one has fewer, and a place is never cut.
        """
        self._end_run(on_disk=False)
        if not self._runs:
            return
        head = pl.concat([run.rows.head(0) for run in self._runs], how="diagonal_relaxed")
        for day in sorted({day for run in self._runs for day in run.days}):
            runs = [(run.rows, *run.days[day]) for run in self._runs if day in run.days]
            parts = zip(*(pairwise(cut) for cut in _cuts(runs, size)), strict=True)
            for part in parts:
                slices = [
                    rows.slice(start + first, last - first)
                    for (rows, start, _), (first, last) in zip(runs, part, strict=True)
                    if last > first
                ]
                if slices:
                    whole = pl.concat([head, *slices], how="diagonal_relaxed")
                    yield whole.drop(KEY, _DAY, _PLACE).collect()


def _cuts(runs: list[tuple[pl.LazyFrame, int, int]], size: int) -> list[list[int]]:
    """Cut rows of runs, each from a first one on, at the same places: between two of them are about so many rows of all runs."""
    places = [
        rows.slice(start, count).select(_PLACE).collect()[_PLACE] for rows, start, count in runs
    ]
    every = np.concatenate([own.to_numpy() for own in places])
    at = [*range(size, len(every), size)]
    if at:
        every.partition(at)  # in place: a table without days has all its rows here
    edges = pl.Series(every[at])
    return [[0, *own.search_sorted(edges), len(own)] for own in places]
