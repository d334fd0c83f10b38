"""Write an archive block by block, with memory that does not grow with its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path

import polars as pl

from brokerlab.archive.manifest import Manifest, Source
from brokerlab.archive.writer import ROW_GROUP, ArchiveWriter
from brokerlab.numerics import IntArray
from brokerlab.worlds import planted, queues, snapshots, software, storage
from brokerlab.worlds.queues import truth_spells
from brokerlab.worlds.settings import LIVED
from brokerlab.worlds.tasks import truth_users
from brokerlab.worlds.world import World

BUFFER_ROWS = 400_000
"""Most rows of ``jobs``, and of each other table, kept before some are written."""
MANY_PARTS = 12
"""Parts of one day that are joined into one."""


def write_archive(
    into: str | Path,
    world: World,
    blocks: Iterable[dict[str, pl.DataFrame]],
    *,
    n_blocks: int,
    slots: pl.DataFrame | None = None,
    workers: IntArray | None = None,
    truth: Mapping[str, pl.DataFrame] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Manifest:
    """Write an archive in the place of what the folder holds; the tables of the blocks come in the order of time.

    ``slots`` None: of a few queues. ``workers`` are batch workers that usually run at each queue, pilots then ask whatever
    jobs the archive has; None: both follow from the jobs. ``progress`` gets the part of the blocks that is written.
    """
    note = world.settings.note()
    name = LIVED if world.settings.lived else "synthetic"
    with ArchiveWriter(into, synthetic=True, note=note, mode="replace") as writer:
        _write_world(writer, world, slots)
        _write_blocks(writer, world, blocks, n_blocks, workers, progress)
        for table, frame in (truth or {}).items():
            writer.write_truth(table, frame)
        return writer.commit(sources=[Source(name=name, format="synthetic", notes=(note,))])


def _write_world(writer: ArchiveWriter, world: World, slots: pl.DataFrame | None) -> None:
    """Write the tables that no job is needed for."""
    tables = {
        "queues": world.queues,
        "resource_types": queues.resource_types(),
        "gshares": queues.gshares(),
        "gdpconfig": planted.config(world.settings),
        "ddm_endpoints": storage.ddm_endpoints(world),
        "queue_endpoints": storage.queue_endpoints(world),
        "queue_storage_site": storage.queue_storage_site(world),
        "software_tags": software.software_tags(world),
        "worker_node_gpu": software.worker_node_gpu(world),
        "worker_node_cpu_level": software.worker_node_cpu_level(world),
        "slots": snapshots.slots(world) if slots is None else slots,
    }
    for table, frame in tables.items():
        writer.write(table, frame, trusted=True)
    writer.write_truth("users", truth_users())
    writer.write_truth("spells", truth_spells(world.settings, world.spells, world.names))
    for part in snapshots.network_matrix(world):
        writer.write("network_matrix", part, trusted=True)


def _write_blocks(
    writer: ArchiveWriter,
    world: World,
    blocks: Iterable[dict[str, pl.DataFrame]],
    n_blocks: int,
    workers: IntArray | None,
    progress: Callable[[float], None] | None,
) -> None:
    """Write block after block, jobs when their day is complete or the buffer is full, then what is counted of jobs."""
    days, rest = _Days(writer), _Rest(writer)
    pulse = snapshots.Pulse(world)
    for index, tables in enumerate(blocks):
        jobs = tables.pop("jobs")
        pulse.add(jobs)
        days.add(jobs)
        for table, rows in tables.items():
            rest.add(table, rows)
        begin = int(world.settings.submit_s / n_blocks * (index + 1))  # of the jobs that come
        days.flush(before=world.settings.at(begin).date())
        if progress is not None:
            progress((index + 1) / n_blocks)
    days.flush(before=None)
    rest.flush()
    asked = None if workers is None else snapshots.Pulse(world)
    writer.write("site_data", snapshots.site_data(pulse, asked), trusted=True)
    writer.write("worker_stats", snapshots.worker_stats(pulse, workers), trusted=True)


class _Days:
    """Jobs waiting to be written, by day of ``modificationtime``."""

    def __init__(self, writer: ArchiveWriter) -> None:
        self._writer = writer
        self._parts: dict[date, list[pl.DataFrame]] = {}
        self._rows: dict[date, int] = {}

    def add(self, frame: pl.DataFrame) -> None:
        """Split a block's jobs by day; a day that grows too large is written in parts."""
        day = frame.select(pl.col("modificationtime").dt.date().alias("day"))["day"]
        for value in day.unique().sort():
            part = _compact(frame.filter(day == value))
            parts = self._parts.setdefault(value, [])
            parts.append(part)
            if len(parts) == MANY_PARTS:  # many frames of a few rows weigh more than their rows
                parts[:] = [_compact(pl.concat(parts, rechunk=True))]
            self._rows[value] = self._rows.get(value, 0) + len(part)
            if self._rows[value] >= ROW_GROUP:
                self._write(value)
        while sum(self._rows.values()) > BUFFER_ROWS:
            self._write(max(self._rows, key=lambda d: (self._rows[d], d)))

    def flush(self, *, before: date | None) -> None:
        """Write the days to which nothing can be added any more; all of them if None."""
        for value in sorted(self._rows):
            if before is None or value < before:
                self._write(value)

    def _write(self, value: date) -> None:
        rows = pl.concat(self._parts.pop(value)).sort("pandaid")
        del self._rows[value]
        self._writer.write("jobs", rows, trusted=True)


def _compact(part: pl.DataFrame) -> pl.DataFrame:
    """Copy the texts of a part: Polars' views would keep those of the whole block in memory."""
    return pl.DataFrame(pl.from_arrow(part.to_arrow(compat_level=pl.CompatLevel.oldest())))


class _Rest:
    """Rows of the other tables waiting to be written."""

    def __init__(self, writer: ArchiveWriter) -> None:
        self._writer = writer
        self._parts: dict[str, list[pl.DataFrame]] = {}

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Keep rows; a table that grows too large is written as a part."""
        parts = self._parts.setdefault(table, [])
        parts.append(frame)
        if sum(len(p) for p in parts) > BUFFER_ROWS:
            self._write(table)

    def flush(self) -> None:
        """Write what is left."""
        for table in sorted(self._parts):
            self._write(table)

    def _write(self, table: str) -> None:
        parts = [p for p in self._parts.pop(table, []) if len(p)]
        if not parts:
            return
        rows = pl.concat(parts)
        if table.startswith("truth/"):
            self._writer.write_truth(table.removeprefix("truth/"), rows)
        else:
            self._writer.write(table, rows, trusted=True)
