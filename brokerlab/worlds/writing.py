"""Write an archive block by block, with memory that does not grow with its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta

import polars as pl

from brokerlab.archive.writer import ROW_GROUP, ArchiveWriter
from brokerlab.numerics import IntArray
from brokerlab.worlds import activity, links, planted, queues, software, storage
from brokerlab.worlds.grid import Grid
from brokerlab.worlds.roles import truth_spells
from brokerlab.worlds.settings import SynthSettings
from brokerlab.worlds.users import truth_users

BUFFER_ROWS = 400_000
"""Most rows of ``jobs``, and of each other table, kept before some are written."""
MANY_PARTS = 12
"""Parts of one day that are joined into one."""


def write_grid(
    writer: ArchiveWriter, settings: SynthSettings, grid: Grid, slots: pl.DataFrame | None = None
) -> None:
    """Write the tables that no job is needed for.

    Args:
        writer: Of the archive.
        settings: Its settings.
        grid: The sites.
        slots: ``slots``; None: of a few queues.
    """
    tables = {
        "queues": grid.queues,
        "resource_types": queues.resource_types(),
        "gshares": queues.gshares(),
        "gdpconfig": planted.config(settings),
        "ddm_endpoints": storage.ddm_endpoints(settings, grid),
        "queue_endpoints": storage.queue_endpoints(settings, grid),
        "queue_storage_site": storage.queue_storage_site(grid),
        "software_tags": software.software_tags(settings, grid),
        "worker_node_gpu": software.worker_node_gpu(settings, grid),
        "worker_node_cpu_level": software.worker_node_cpu_level(settings, grid),
        "slots": activity.slots(settings, grid) if slots is None else slots,
    }
    for table, frame in tables.items():
        writer.write(table, frame, trusted=True)
    writer.write_truth("users", truth_users())
    writer.write_truth("spells", truth_spells(settings, grid.spells, grid.names))
    for part in links.network_matrix(settings, grid):
        writer.write("network_matrix", part, trusted=True)


def write_blocks(
    writer: ArchiveWriter,
    settings: SynthSettings,
    grid: Grid,
    blocks: Iterable[dict[str, pl.DataFrame]],
    *,
    n_blocks: int,
    workers: IntArray | None = None,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write block after block, jobs when their day is complete or the buffer is full, then what is counted of jobs.

    Args:
        writer: Of the archive.
        settings: Its settings.
        grid: The sites.
        blocks: The tables of every block, in the order of time.
        n_blocks: How many these are.
        workers: Batch workers that usually run at each queue; pilots then ask whatever jobs the archive has. None: both follow
            from the jobs.
        progress: Called after every block with the part of them that is written.
    """
    days, rest = _Days(writer), _Rest(writer)
    pulse = activity.Pulse(settings, grid.names)
    for index, tables in enumerate(blocks):
        jobs = tables.pop("jobs")
        pulse.add(jobs)
        days.add(jobs)
        for table, rows in tables.items():
            rest.add(table, rows)
        days.flush(before=_next_start(settings, index + 1, n_blocks))
        if progress is not None:
            progress((index + 1) / n_blocks)
    days.flush(before=None)
    rest.flush()
    asked = None if workers is None else activity.Pulse(settings, grid.names)
    writer.write("site_data", activity.site_data(grid, pulse, asked), trusted=True)
    writer.write("worker_stats", activity.worker_stats(grid, pulse, workers), trusted=True)


def _next_start(settings: SynthSettings, index: int, n_blocks: int) -> date:
    """Return the first day on which jobs of block ``index`` and later ones can end."""
    seconds = int(settings.submit_s / n_blocks * index)
    at = datetime(1970, 1, 1) + timedelta(  # noqa: DTZ001 - naive UTC throughout
        microseconds=settings.start_us + seconds * 1_000_000
    )
    return at.date()


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
