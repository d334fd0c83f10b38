"""Make an archive of a world: draw it, live through it, write what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import brokerlab.archive
from brokerlab.archive.manifest import Manifest, Source
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.calibrate.simulation.record import NOTE as RECORDED
from brokerlab.errors import ConfigError, collect_warnings
from brokerlab.gdpconfig.proposal.planted import TRUTH
from brokerlab.temporary import TemporaryFolder
from brokerlab.worlds import planted as planting
from brokerlab.worlds import slots as slots_
from brokerlab.worlds.assemble import draw, tables_of
from brokerlab.worlds.generate import is_made as made_before
from brokerlab.worlds.generate import make_settings, quotas, write_blocks, write_grid
from brokerlab.worlds.grid import draw_grid
from brokerlab.worlds.life import Life
from brokerlab.worlds.lived import lived_blocks
from brokerlab.worlds.orders import plain
from brokerlab.worlds.queues import draw_world
from brokerlab.worlds.settings import SynthSettings
from brokerlab.worlds.stage import world_of
from brokerlab.worlds.stories import stories
from brokerlab.worlds.work import with_requests, work_of

LEAST_MBPS = 20.0
"""No link carries less [MB/s]."""

QUEUED_SHARE = 0.85
"""Part of the links on which files are queued: outputs come from everywhere."""
NOTE = "lived"
"""The note of such an archive begins so."""
VERSION = 6
"""Raised whenever the same settings would give other bytes."""
LARGEST = 400
"""A task has at most this part of all jobs: a larger one would be the only work of the grid for days."""

Progress = Callable[[str, float], None]
"""Called with what is being done, and the part of it that is done."""


def live(
    into: str | Path,
    *,
    jobs: int,
    days: float,
    seed: int,
    start: str = "2026-03-01",
    planted: str = "wrong",
    progress: Progress | None = None,
    **settings: object,
) -> Manifest:
    """Make an archive of a world that was lived: jobs wait because slots are taken.

    Sites, queues, links, users, tasks, files and what jobs need are drawn as for ``synthesise``; the grid simulator lives
    through them under the rules of the page for production jobs (`document`) and the archive's own gdpconfig. Jobs of users and merge jobs go
    where they are drawn to, and wait there. The same settings give the same bytes.

    Args:
        into: Folder of the archive.
        jobs: Jobs that are drawn [jobs]; about as many rows of ``jobs`` come of them, since failed ones try again and
            tasks that no queue can take never run.
        days: Period [days].
        seed: Seed of every draw.
        start: First instant, naive UTC.
        planted: ``wrong``: settings of `planted.PLANTED` are wrong; ``none``: all are as good as they can be.
        progress: Called now and then.
        **settings: Further fields of ``SynthSettings``.

    Returns:
        The manifest.

    Raises:
        ConfigError: A setting is unknown or impossible.
        DataError: The folder holds a real archive, or the settings make tasks too small.
    """
    plants = planting.checked(planted)
    asked = _settings(plants, jobs=jobs, days=days, seed=seed, start=start, **settings)
    note = _note(asked, plants)
    present = made_before(into, asked, note)
    if present is not None:
        return present
    show = progress or _nothing
    rng = np.random.default_rng(np.random.SeedSequence(asked.seed, spawn_key=(0,)))
    world = draw_world(asked, rng)
    grid = draw_grid(asked, world)
    sizes, lines = quotas(asked), stories(asked, world, grid)
    parts = []
    for index, quota in enumerate(sizes):
        part = draw(
            asked,
            world,
            grid,
            lines,
            index=index,
            n_blocks=len(sizes),
            quota=quota,
            places=world.n,
        )
        parts.append(with_requests(asked, world, plain(part)))
        show("drawn", (index + 1) / len(sizes))
    scripted = slots_.scripted_use(asked, parts)
    there = slots_.slots_of(asked, world, parts, scripted)
    grid = slots_.with_pledges(grid, there)
    capacity = slots_.changes(asked, grid, there)
    about: dict[str, Any] = {
        "config": planting.config(asked, plants),
        "slots": slots_.operators_table(asked, grid, there),
        "least_mbps": LEAST_MBPS,
        "queued_share": QUEUED_SHARE,
    }

    def write(folder: str | Path, blocks: Iterable[dict[str, pl.DataFrame]]) -> Manifest:
        with ArchiveWriter(folder, synthetic=True, note=note, mode="replace") as writer:
            write_grid(writer, asked, grid, **about)
            write_blocks(writer, asked, grid, blocks, workers=slots_.workers(world, there))
            writer.write_truth("capacity", capacity)
            writer.write_truth(TRUTH, planting.truth(plants))
            return writer.commit(sources=[Source(name=NOTE, format="synthetic", notes=(note,))])

    tables = [tables_of(asked, world, grid, part) for part in parts]
    work = work_of(parts, tables, asked.start_us)
    copies = [
        frame["replicas"].filter(~pl.col("datasetname").str.ends_with(".trn_output"))
        for frame in tables
    ]
    free = slots_.left(asked, grid, capacity, scripted)
    delays = slots_.delays(asked, grid)
    with TemporaryFolder() as folder:
        write(folder, tables)
        del tables
        stage = world_of(asked, brokerlab.archive.open(folder), work, free, delays)
    with collect_warnings():  # texts that are damaged were made so
        life = Life(stage, work, world, asked, grid.names)
        lived = life.live(lambda part: show("lived", part))
    blocks = lived_blocks(asked, world, parts, life, lived, copies)
    return write(into, (_written(tables_of(asked, world, grid, part)) for part in blocks))


def _nothing(what: str, part: float) -> None:
    """Show nothing."""


def is_made(into: str | Path, *, planted: str = "wrong", **settings: object) -> Manifest | None:
    """Return the manifest if the folder holds exactly the archive that ``live`` would make, else None.

    Args:
        into: The folder.
        planted: As for ``live``.
        **settings: As for ``live``; jobs, days and seed are needed.

    Raises:
        ConfigError: A setting is unknown or impossible.
        DataError: The folder holds a real archive.
    """
    plants = planting.checked(planted)
    asked = _settings(plants, **settings)
    return made_before(into, asked, _note(asked, plants))


def is_simulated(archive: brokerlab.archive.Archive) -> bool:
    """Return whether the simulator made the archive: a lived world, or the record of a simulation."""
    return archive.manifest.note.startswith((NOTE, RECORDED))


def _settings(plants: planting.Planted, **settings: Any) -> SynthSettings:
    """Build the settings; the largest task is small beside the whole work, memory is asked for as planted."""
    missing = sorted({"jobs", "days", "seed"} - settings.keys())
    if missing:
        raise ConfigError(f"lived archive: {', '.join(missing)} not given")
    settings["days"] = float(settings["days"])
    largest = max(200, min(20_000, int(settings["jobs"]) // LARGEST))
    return make_settings(**{"max_task_jobs": largest, **planting.drawn(plants), **settings})


def _note(settings: SynthSettings, plants: planting.Planted) -> str:
    return f"{NOTE} (version {VERSION}, planted {plants}), {settings.note()}"


def _written(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Leave out the copies of input that no task of the archive reads."""
    names = tables["datasets"].select("datasetname")
    tables["replicas"] = tables["replicas"].join(
        names, on="datasetname", how="semi", maintain_order="left"
    )
    return tables
