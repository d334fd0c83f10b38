"""Make a synthetic archive: draw a world, live through it where that is asked for, write what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import brokerlab.archive
from brokerlab.archive import manifest as manifests
from brokerlab.archive.manifest import Manifest
from brokerlab.errors import ConfigError, DataError, collect_warnings, nearest
from brokerlab.gdpconfig.proposal.planted import TRUTH
from brokerlab.temporary import TemporaryFolder
from brokerlab.worlds import planted as planting
from brokerlab.worlds.assemble import Drawn, draw, tables_of
from brokerlab.worlds.settings import LIVED, SynthSettings
from brokerlab.worlds.stories import stories
from brokerlab.worlds.world import World, draw_world
from brokerlab.worlds.writing import write_archive

BLOCK_JOBS = 50_000
"""Jobs of one block; fixed, since another size gives another archive."""

Progress = Callable[[str, float], None]
"""Called with what is being done, and the part of it that is done."""


def synthesise(
    into: str | Path,
    *,
    jobs: int,
    days: float,
    seed: int,
    progress: Progress | None = None,
    **settings: object,
) -> Manifest:
    """Make a synthetic archive with its truth beside it.

    Sites, queues, links, users, tasks, files and what jobs need are drawn. How long jobs wait is drawn too, or, of a *lived*
    world, comes of slots that are taken: the grid simulator lives through it under the rules of the page for production
    jobs (`document`) and the archive's own gdpconfig, while jobs of users and merge jobs go where they are drawn to, and
    wait there. The same settings give the same bytes. A folder that already holds exactly this archive is left as it
    is; another synthetic archive is replaced; a real one is never touched.

    Args:
        into: Folder of the archive.
        jobs: Rows of ``jobs``, met exactly [jobs]; in a lived world jobs that are drawn, of which about as many rows come, since
            failed ones try again and tasks that no queue can take never run.
        days: Period over which work is submitted [days].
        seed: Seed of every draw.
        progress: Called now and then.
        **settings: Further fields of ``SynthSettings``, such as ``start``, ``queues``, ``lived`` and ``planted``.

    Returns:
        The manifest; ``is_made`` tells beforehand whether there is anything to do.

    Raises:
        ConfigError: A setting is unknown or impossible.
        DataError: The folder holds a real archive, or the settings make tasks too small or leave the brokerage nothing to place.

    Source:
        Data statistics, sections 3, 4, 5, 8 and 10; scouts.md sections 5 and 7.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = synthesise(folder, jobs=500, days=2, seed=1)
        ...     made.counts["jobs"], made.synthetic
        (500, True)
    """
    asked = make_settings(jobs=jobs, days=days, seed=seed, **settings)
    present = _present(into, asked)
    if present is not None:
        return present
    make = _live if asked.lived else _draw
    return make(into, draw_world(asked), progress or (lambda *_: None))


def make_settings(**settings: Any) -> SynthSettings:
    """Build the settings; unknown names are refused with the nearest valid one.

    In a lived world memory is asked for as it is planted.

    Raises:
        ConfigError: A setting is unknown, missing or impossible.
    """
    valid = {f.name for f in fields(SynthSettings)}
    unknown = sorted(set(settings) - valid)
    if unknown:
        hints = "; ".join(f"unknown setting '{u}': {nearest(u, valid)}" for u in unknown)
        raise ConfigError(f"synthetic archive: {hints}")
    missing = sorted({"jobs", "days", "seed"} - settings.keys())
    if missing:
        raise ConfigError(f"synthetic archive: {', '.join(missing)} not given")
    planted = settings.get("planted", SynthSettings.planted)
    usual = planting.drawn(planted) if settings.get("lived") else {}
    return SynthSettings(**{**usual, **settings})


def is_made(into: str | Path, **settings: object) -> Manifest | None:
    """Return the manifest if the folder holds exactly the archive that ``synthesise`` would make, else None.

    Args:
        into: The folder.
        **settings: As for ``synthesise``; jobs, days and seed are needed.

    Raises:
        ConfigError: A setting is unknown, missing or impossible.
        DataError: The folder holds a real archive.
    """
    return _present(into, make_settings(**settings))


def is_simulated(archive: brokerlab.archive.Archive) -> bool:
    """Return whether the simulator made the archive."""
    return archive.manifest.note.startswith(LIVED)


def _present(into: str | Path, settings: SynthSettings) -> Manifest | None:
    """Return the manifest if the folder holds exactly this archive, else None."""
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
    return present if whole and present.note == settings.note() else None


def _drawn(world: World) -> Iterator[Drawn]:
    """Draw block after block."""
    every_story, sizes = stories(world), quotas(world.settings)
    for index, quota in enumerate(sizes):
        yield draw(world, every_story, index=index, n_blocks=len(sizes), quota=quota)


def quotas(settings: SynthSettings) -> list[int]:
    """Return the jobs of every block."""
    n_blocks = -(-settings.jobs // BLOCK_JOBS)
    edges = np.linspace(0, settings.jobs, n_blocks + 1).astype(np.int64)
    return [int(n) for n in np.diff(edges)]


def _draw(into: str | Path, world: World, show: Progress) -> Manifest:
    """Write an archive whose waits are drawn."""
    blocks = (tables_of(world, part) for part in _drawn(world))
    return write_archive(
        into, world, blocks,
        n_blocks=len(quotas(world.settings)), progress=lambda part: show("drawn", part),
    )  # fmt: skip


def _live(into: str | Path, world: World, show: Progress) -> Manifest:
    """Write an archive whose jobs wait because slots are taken."""
    # the simulator is loaded for those alone who ask for it
    from brokerlab.worlds.life import Life
    from brokerlab.worlds.lived import lived_blocks
    from brokerlab.worlds.stage import (
        draw_delays,
        operators_table,
        scripted_use,
        slot_changes,
        slots_left,
        slots_of,
        usual_workers,
        with_pledges,
        world_of,
    )
    from brokerlab.worlds.work import plain, seen, with_requests, work_of

    parts = []
    for part in _drawn(world):
        parts.append(with_requests(world, plain(part)))
        show("drawn", len(parts) / part.n_blocks)
    scripted = scripted_use(world, parts)
    there = slots_of(world, parts, scripted)
    world = with_pledges(world, there)
    capacity = slot_changes(world, there)
    about: dict[str, Any] = {
        "n_blocks": len(parts),
        "slots": operators_table(world, there),
        "workers": usual_workers(world, there),
        "truth": {"capacity": capacity, TRUTH: planting.truth(world.settings.planted)},
    }
    kept: list[dict[str, pl.DataFrame]] = []

    def drawn() -> Iterator[dict[str, pl.DataFrame]]:
        for part in parts:
            tables = tables_of(world, part, truth=False)
            kept.append(seen(tables))
            del tables["job_status_log"]
            tables["jobs"] = tables["jobs"].head(1)  # a replay wants some; the life counts its own
            yield tables

    with TemporaryFolder() as folder:
        write_archive(folder, world, drawn(), **about)
        work = work_of(parts, kept, world.settings.start_us)
        copies = [tables["replicas"] for tables in kept]
        kept.clear()
        free = slots_left(world, capacity, scripted)
        stage = world_of(
            world.settings, brokerlab.archive.open(folder), work, free, draw_delays(world)
        )
    if not stage.brokered:
        raise DataError(
            f"synthetic archive: the brokerage would place none of the {work.n} jobs drawn, "
            "as no task of production has more jobs than scouts; raise jobs"
        )
    with collect_warnings():  # texts that are damaged were made so
        lived = Life(stage, work, world).live(lambda part: show("lived", part))
    del stage, work  # the archive is written with less in memory
    blocks = lived_blocks(world, parts, lived, copies)
    return write_archive(into, world, (_read(tables_of(world, part)) for part in blocks), **about)


def _read(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Leave out the copies of input that no task of the archive reads."""
    names = tables["datasets"].select("datasetname")
    tables["replicas"] = tables["replicas"].join(
        names, on="datasetname", how="semi", maintain_order="left"
    )
    return tables
