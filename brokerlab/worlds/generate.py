"""Generate an archive block by block, with memory that does not grow with its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from brokerlab.archive import manifest as manifests
from brokerlab.archive.manifest import Manifest, Source
from brokerlab.archive.writer import ROW_GROUP, ArchiveWriter
from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.numerics import IntArray
from brokerlab.worlds import activity, brokerage_settings, links, queues, software, storage
from brokerlab.worlds.assemble import draw, tables_of
from brokerlab.worlds.grid import Grid, draw_grid
from brokerlab.worlds.queues import World, draw_world
from brokerlab.worlds.roles import truth_spells
from brokerlab.worlds.settings import SynthSettings
from brokerlab.worlds.stories import stories
from brokerlab.worlds.users import truth_users

BLOCK_JOBS = 50_000
"""Jobs of one block; fixed, since another size gives another archive."""
BUFFER_ROWS = 400_000
"""Most rows of ``jobs``, and of each other table, kept before some are written."""
MANY_PARTS = 12
"""Parts of one day that are joined into one."""

Progress = Callable[[int, int], None]
"""Called with the jobs done and the jobs to do."""


def synthesise(
    into: str | Path,
    *,
    jobs: int,
    days: float,
    seed: int,
    start: str = "2026-03-01",
    progress: Progress | None = None,
    **settings: object,
) -> Manifest:
    """Generate a synthetic archive with its truth beside it.

    The same settings give the same bytes. A folder that already holds exactly this archive is left
    as it is; another synthetic archive is replaced; a real one is never touched.

    Args:
        into: Folder of the archive.
        jobs: Rows of ``jobs``, met exactly [jobs].
        days: Period over which work is submitted [days].
        seed: Seed of every draw.
        start: First instant, naive UTC.
        progress: Called after every block.
        **settings: Further fields of ``SynthSettings``.

    Returns:
        The manifest; ``is_made`` tells beforehand whether there is anything to do.

    Raises:
        ConfigError: A setting is unknown or impossible.
        DataError: The folder holds a real archive, or the settings make tasks too small.

    Source:
        Data statistics, sections 3, 4, 5, 8 and 10; scouts.md sections 5 and 7.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = synthesise(folder, jobs=500, days=2, seed=1)
        ...     made.counts["jobs"], made.synthetic
        (500, True)
    """
    asked = make_settings(jobs=jobs, days=days, seed=seed, start=start, **settings)
    present = is_made(into, asked)
    if present is not None:
        return present
    with ArchiveWriter(into, synthetic=True, note=asked.note(), mode="replace") as writer:
        rng = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(0,)))
        world = draw_world(asked, rng)
        grid = draw_grid(asked, world)
        write_grid(writer, asked, grid)
        write_blocks(writer, asked, grid, _drawn_blocks(asked, world, grid), progress)
        return writer.commit(sources=[Source(name="synthetic", format="synthetic", notes=(asked.note(),))])  # fmt: skip


def make_settings(**settings: object) -> SynthSettings:
    """Build the settings; unknown names are refused with the nearest valid one."""
    valid = {f.name for f in fields(SynthSettings)}
    unknown = sorted(set(settings) - valid)
    if unknown:
        hints = "; ".join(f"unknown setting '{u}': {nearest(u, valid)}" for u in unknown)
        raise ConfigError(f"synthetic archive: {hints}")
    return SynthSettings(**settings)  # type: ignore[arg-type]


def is_made(into: str | Path, settings: SynthSettings, note: str | None = None) -> Manifest | None:
    """Return the manifest if the folder holds exactly this archive, else None.

    Args:
        into: The folder.
        settings: What was asked.
        note: How such an archive calls itself; None: as drawn archives of these settings do.

    Raises:
        DataError: The folder holds a real archive.
    """
    folder = Path(into)
    if not (folder / manifests.NAME).exists():
        return None
    present = manifests.read(folder)
    if not present.synthetic and present.counts:
        raise DataError(
            f"{folder}: holds a real archive ({present.counts.get('jobs', 0)} jobs); a synthetic "
            "one does not replace it: choose another folder, or delete this one yourself"
        )
    whole = all((folder / f.path).is_file() for f in present.files())
    return present if whole and present.note == (note or settings.note()) else None


def write_grid(
    writer: ArchiveWriter,
    settings: SynthSettings,
    grid: Grid,
    *,
    config: pl.DataFrame | None = None,
    slots: pl.DataFrame | None = None,
    least_mbps: float | None = None,
    queued_share: float | None = None,
) -> None:
    """Write the tables that no job is needed for.

    Args:
        writer: Of the archive.
        settings: Its settings.
        grid: The sites.
        config: ``gdpconfig``; None: the usual one.
        slots: ``slots``; None: of a few queues.
        least_mbps: Of every link that was measured, see :func:`.links.network_matrix` ...
        queued_share: ... and this, too.
    """
    usual = pl.concat([queues.gdpconfig(settings), brokerage_settings.gdpconfig()])
    tables = {
        "queues": grid.queues,
        "resource_types": queues.resource_types(),
        "gshares": queues.gshares(),
        "gdpconfig": usual if config is None else config,
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
    for part in links.network_matrix(
        settings, grid, least_mbps=least_mbps, queued_share=queued_share
    ):
        writer.write("network_matrix", part, trusted=True)


def quotas(settings: SynthSettings) -> list[int]:
    """Return the jobs of every block."""
    n_blocks = -(-settings.jobs // BLOCK_JOBS)
    edges = np.linspace(0, settings.jobs, n_blocks + 1).astype(np.int64)
    return [int(n) for n in np.diff(edges)]


def _drawn_blocks(
    settings: SynthSettings, world: World, grid: Grid
) -> Iterator[dict[str, pl.DataFrame]]:
    """Draw the rows of block after block."""
    told, sizes = stories(settings, world, grid), quotas(settings)
    for index, quota in enumerate(sizes):
        drawn = draw(settings, world, grid, told, index=index, n_blocks=len(sizes), quota=quota)
        yield tables_of(settings, world, grid, drawn)


def write_blocks(
    writer: ArchiveWriter,
    settings: SynthSettings,
    grid: Grid,
    blocks: Iterable[dict[str, pl.DataFrame]],
    progress: Progress | None = None,
    *,
    workers: IntArray | None = None,
) -> None:
    """Write block after block, jobs when their day is complete or the buffer is full, then what is counted of jobs.

    Args:
        writer: Of the archive.
        settings: Its settings.
        grid: The sites.
        blocks: The tables of every block, in the order of time.
        progress: Called after every block.
        workers: Batch workers that usually run at each queue; pilots then ask whatever jobs the archive has. None: both follow
            from the jobs.
    """
    days, rest = _Days(writer), _Rest(writer)
    pulse = activity.Pulse(settings, grid.names)
    n_blocks, done = len(quotas(settings)), 0
    for index, tables in enumerate(blocks):
        jobs = tables.pop("jobs")
        pulse.add(jobs)
        days.add(jobs)
        for table, rows in tables.items():
            rest.add(table, rows)
        days.flush(before=_next_start(settings, index + 1, n_blocks))
        done += len(jobs)
        if progress is not None:
            progress(done, settings.jobs)
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
