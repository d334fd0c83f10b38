"""Carry a function of a chunk over all tasks, on this machine or on Spark.

A chunk is all rows of some tasks, as Polars frames by name of their table. The large tables are dealt out once, by task id
modulo the number of chunks, so that their order does not matter and both engines make the same chunks; small tables travel
with the function. What the function returns should have the size of the tasks: it comes to the caller in the order of the
chunks (`Chunks.map`, or one by one `Chunks.each`), or stays where it was made for further functions (`Chunks.keep`).

Example:
    >>> jobs, files = pl.LazyFrame({"jeditaskid": [7, 7, 8]}), pl.LazyFrame({"jeditaskid": [8]})
    >>> chunks = deal({"jobs": nw.from_native(jobs), "files": nw.from_native(files)}, {})
    >>> chunks.map(lambda chunk: chunk["jobs"].height)
    [3]
"""

from __future__ import annotations

import os
import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa

from brokerlab.engines import collect
from brokerlab.errors import DataError
from brokerlab.temporary import TemporaryFolder

TASK, CHUNK = "jeditaskid", "chunk__"
CHUNK_ROWS = 200_000  # rows of the larger table in a chunk, about
BATCH_ROWS = 500_000  # most rows dealt out at a time, about
PART_ROWS = 1_000  # rows for each chunk dealt out at a time, at least, if `BATCH_ROWS` allow it
COMPRESSION = "lz4"  # of what is kept
MOST_HELD_ROWS = (
    4_000_000  # rows dealt out in memory (1 to 2 GB, by the columns asked for); more into files
)
MOST_PLAIN_ROWS = (
    30_000_000  # rows dealt out without compression: more (7 GB) may not fit into memory
)
WORKERS = min(2, os.cpu_count() or 1)  # chunks worked on at once; Polars uses the other cores

Chunk = dict[str, pl.DataFrame]
Batch = tuple[pl.DataFrame, Sequence[int]]
"""Rows sorted by chunk; where those of each chunk begin, and the last end."""
Narrow = Callable[[pl.DataFrame], pl.DataFrame]
T = TypeVar("T")
R = TypeVar("R")


class Chunks(ABC, Generic[T]):
    """Chunks of tasks, or what a function made of each."""

    @abstractmethod
    def each(self, function: Callable[[T], R]) -> Iterator[R]:
        """Yield what a function makes of each, in the order of the chunks; on this machine few are made ahead."""

    def map(self, function: Callable[[T], R]) -> list[R]:
        """Return what a function makes of each, in the order of the chunks."""
        return list(self.each(function))

    @abstractmethod
    def keep(self, function: Callable[[T], R]) -> Chunks[R]:
        """Apply a function and leave what it returns where it is made."""


def whole(content: T) -> Chunks[T]:
    """Return one chunk that holds everything, in memory."""
    return _Here(lambda _: content, 1)


def deal(
    tables: Mapping[str, nw.LazyFrame[Any]],
    beside: Mapping[str, pl.DataFrame],
    *,
    least: int = 1,
    narrow: Mapping[str, Narrow] = MappingProxyType({}),
) -> Chunks[Chunk]:
    """Deal tables out by task: each chunk gets the rows of its tasks of all of them; there are ``least`` chunks or more.

    ``tables`` are the large ones, two at most, all of Spark or none, with ``jeditaskid``, whose nulls are left out; those ``beside``
    them fit into memory. ``narrow`` makes of rows of a table, whichever they are, what chunks hold of them: on this machine before
    they are dealt out.
    """
    engines = {name: table.implementation for name, table in tables.items()}
    by_spark = [engine.is_pyspark() for engine in engines.values()]
    if any(by_spark) and not all(by_spark):
        result = ", ".join(f"{name}: {engine.value}" for name, engine in engines.items())
        raise DataError(
            f"large tables must all come from one Spark session, or none; found {result}; open them "
            "from one archive, or convert them"
        )
    sizes = [int(table.select(nw.len()).collect("polars").item()) for table in tables.values()]
    n = max(-(-max(sizes, default=0) // CHUNK_ROWS), least, 1)
    known = {name: table.filter(~nw.col(TASK).is_null()) for name, table in tables.items()}
    narrows = {name: narrow.get(name, lambda rows: rows) for name in tables}
    if any(by_spark):
        return _dealt_by_spark(known, beside, n, narrows)
    return _dealt_here(known, beside, n, narrows, sum(sizes))


def _of_chunk(tables: Mapping[str, pl.DataFrame], number: int, n: int) -> Chunk:
    """Keep the rows of the tasks of a chunk."""
    if n == 1:
        return dict(tables)
    return {name: table.filter(pl.col(TASK) % n == number) for name, table in tables.items()}


# ---- this machine


@dataclass(frozen=True)
class _Here(Chunks[T]):
    """Chunks on this machine: how to load each."""

    load: Callable[[int], T]
    n: int

    def each(self, function: Callable[[T], R]) -> Iterator[R]:
        """See `Chunks`."""

        def make(number: int) -> R:
            return function(self.load(number))

        if self.n == 1:
            yield make(0)
            return
        made = deque[Future[R]]()
        with ThreadPoolExecutor(min(WORKERS, self.n)) as pool:
            for number in range(self.n):
                made.append(pool.submit(make, number))
                if len(made) > WORKERS:
                    yield made.popleft().result()
            while made:
                yield made.popleft().result()

    def keep(self, function: Callable[[T], R]) -> Chunks[R]:
        """See `Chunks`."""
        if self.n == 1:
            return whole(function(self.load(0)))
        folder = TemporaryFolder()

        def put(number: int) -> None:
            made = function(self.load(number))
            with pa.CompressedOutputStream(folder.path / str(number), COMPRESSION) as file:
                pickle.dump(made, file, protocol=5)

        with folder.filling():
            for done, _ in enumerate(_Here(put, self.n).each(lambda _: None), 1):
                folder.share = done / self.n

        def load(number: int) -> R:
            with pa.CompressedInputStream(folder.path / str(number), COMPRESSION) as file:
                made: R = pickle.load(file)  # noqa: S301 - our own file
            return made

        return _Here(load, self.n)


def _dealt_here(
    tables: Mapping[str, nw.LazyFrame[Any]],
    beside: Mapping[str, pl.DataFrame],
    n: int,
    narrows: Mapping[str, Narrow],
    rows: int,
) -> Chunks[Chunk]:
    """Deal tables of so many rows out on this machine: as they are if they make one chunk, else by chunk in memory or in files."""
    if n == 1:
        large = {name: narrows[name](collect(table)).rechunk() for name, table in tables.items()}
        return whole(large | dict(beside))
    least = min(PART_ROWS * n, BATCH_ROWS)
    dealt = {
        name: _by_chunk(_join(map(narrows[name], _batches(table)), least), n)
        for name, table in tables.items()
    }
    load = _in_memory(dealt) if rows <= MOST_HELD_ROWS else _in_files(dealt, n, rows)
    return _Here(lambda number: load(number) | _of_chunk(beside, number, n), n)


def _in_memory(dealt: Mapping[str, Iterable[Batch]]) -> Callable[[int], Chunk]:
    """Hold what is dealt out; return how to load a chunk."""
    held = {name: list(batches) for name, batches in dealt.items()}

    def load(number: int) -> Chunk:
        parts = {
            name: [rows[ends[number] : ends[number + 1]] for rows, ends in batches]
            for name, batches in held.items()
        }
        return {name: pl.concat(own, rechunk=True) for name, own in parts.items()}

    return load


def _in_files(dealt: Mapping[str, Iterable[Batch]], n: int, rows: int) -> Callable[[int], Chunk]:
    """Write what is dealt out to one file per chunk and table; return how to load a chunk."""
    folder = TemporaryFolder()
    compression = COMPRESSION if rows > MOST_PLAIN_ROWS else None
    with folder.filling():
        for name, batches in dealt.items():
            files = [folder.path / f"{name}-{number}" for number in range(n)]
            for written in _write(batches, files, compression):
                folder.share += written / max(rows, 1)

    def load(number: int) -> Chunk:
        files = {name: folder.path / f"{name}-{number}" for name in dealt}
        # rows in many pieces are gathered slowly
        return {name: pl.read_ipc_stream(file).rechunk() for name, file in files.items()}

    return load


def _batches(table: nw.LazyFrame[Any]) -> Iterator[pl.DataFrame]:
    """Read a table piece by piece."""
    yield collect(table.head(0))
    native = table.to_native()
    if table.implementation.is_duckdb():
        for batch in native.to_arrow_reader(BATCH_ROWS):
            yield pl.DataFrame(pl.from_arrow(batch))
    elif table.implementation.is_polars():
        yield from native.collect_batches(chunk_size=BATCH_ROWS)
    else:
        yield collect(table)


def _join(pieces: Iterable[pl.DataFrame], least: int) -> Iterator[pl.DataFrame]:
    """Put pieces together, which may be as small as a row group, until they have so many rows."""
    waiting = list[pl.DataFrame]()
    for piece in pieces:
        waiting.append(piece)
        if sum(each.height for each in waiting) >= least:
            yield pl.concat(waiting, rechunk=True)
            waiting.clear()
    if waiting:
        yield pl.concat(waiting, rechunk=True)


def _by_chunk(batches: Iterable[pl.DataFrame], n: int) -> Iterator[Batch]:
    """Sort the rows of every batch by chunk."""
    for batch in batches:
        number = (batch[TASK] % n).to_numpy()
        # of few bytes stable is fastest
        order = np.argsort(number.astype(np.min_scalar_type(n)), kind="stable")
        sizes = np.bincount(number, minlength=n)
        yield batch[order], [0, *sizes.cumsum().tolist()]


def _write(
    batches: Iterable[Batch], files: Sequence[Path], compression: str | None
) -> Iterator[int]:
    """Append the rows of every batch to the file of their chunk; yield how many."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with ExitStack() as stack:
        writers: list[Any] = []
        for batch, ends in batches:
            rows = batch.to_arrow()
            writers = writers or [
                stack.enter_context(pa.ipc.new_stream(file, rows.schema, options=options))
                for file in files
            ]
            for writer, (start, end) in zip(writers, pairwise(ends), strict=True):
                writer.write_table(rows.slice(start, end - start))
            yield batch.height


# ---- Spark


@dataclass(frozen=True)
class _Spark(Chunks[T]):
    """Chunks on Spark: how a function is applied to all of them, giving ``chunk, made`` (pickled)."""

    apply: Callable[[Callable[[T], Any]], Any]

    def each(self, function: Callable[[T], R]) -> Iterator[R]:
        """See `Chunks`."""
        for row in sorted(self.apply(function).collect()):
            yield pickle.loads(row["made"])  # noqa: S301 - of our own workers

    def keep(self, function: Callable[[T], R]) -> Chunks[R]:
        """See `Chunks`."""
        kept = self.apply(function).persist()

        def apply(then: Callable[[R], Any]) -> Any:
            def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    for row in batch.to_pylist():
                        made = then(pickle.loads(row["made"]))  # noqa: S301 - of our own workers
                        yield from _row(row["chunk"], made).to_batches()

            return kept.mapInArrow(each, MADE)

        return _Spark(apply)


MADE = "chunk long, made binary"


def _row(number: int, made: Any) -> pa.Table:
    """Return one row of what a function made of a chunk."""
    pickled = pa.array([pickle.dumps(made, protocol=5)], pa.binary())
    return pa.table({"chunk": pa.array([number], pa.int64()), "made": pickled})


def _dealt_by_spark(
    tables: Mapping[str, nw.LazyFrame[Any]],
    beside: Mapping[str, pl.DataFrame],
    n: int,
    narrows: Mapping[str, Narrow],
) -> _Spark[Chunk]:
    """Group the two tables by chunk on Spark; every chunk is there, also without rows."""
    names, natives = list(tables), [table.to_native() for table in tables.values()]
    if len(natives) == 1:  # what has one table has another, without rows
        names, natives = [*names, ""], [*natives, natives[0].limit(0)]

    def grouped(native: Any) -> Any:
        from pyspark.sql import functions as sf

        dealt = native.withColumn(CHUNK, sf.expr(f"pmod({TASK}, {n})"))
        every = native.sparkSession.range(n).select(sf.col("id").alias(CHUNK))
        filled = dealt.unionByName(every, allowMissingColumns=True)
        # not one task for each of 200 partitions
        return filled.repartition(n, CHUNK).groupBy(CHUNK)

    left, right = map(grouped, natives)

    def apply(function: Callable[[Chunk], Any]) -> Any:
        def of(key: tuple[Any, ...], first: pa.Table, second: pa.Table) -> pa.Table:
            number = key[0].as_py()
            large = {
                name: narrows[name](pl.DataFrame(pl.from_arrow(side)).drop(CHUNK).drop_nulls(TASK))
                for name, side in zip(names, (first, second), strict=True)
                if name
            }
            return _row(number, function(large | _of_chunk(beside, number, n)))

        return left.cogroup(right).applyInArrow(of, MADE)

    return _Spark(apply)
