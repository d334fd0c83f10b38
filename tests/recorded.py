"""Write what a simulation did as an archive: its truth is the simulator itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.manifest import Manifest
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.calibrate.simulation.loop import Copy, Loop
from brokerlab.calibrate.simulation.world import World
from brokerlab.gdpconfig import Config
from brokerlab.worlds.settings import LIVED
from tests.queue_toys import attempts_of

REPLACED = ("jobs", "gdpconfig")
"""Tables that the simulation writes anew."""
STATUS = {
    "killed_walltime": "failed",
    "killed_memory": "failed",
    "waiting": "activated",
    "travelling": "assigned",
}
"""Status of a job by the outcome of its attempt, where they have other names; finished jobs may still be transferring."""
GONE = ("job_status_log", "job_stats", "jobs_files", "quarantine")
"""Tables that tell of jobs as they were; none can be made of a simulation."""


def record(
    world: World,
    archive: Any,
    into: str | Path,
    *,
    config: Config | None = None,
    seed: int = 1,
) -> Manifest:
    """Simulate a world and write what happened as an archive, to be read as any other.

    Jobs have the queues and times of the simulation, a retry is a job of its own with ``parentid``. Jobs that never
    had a place are not there, as the system makes jobs when it has one for them. Settings are those that ruled in the simulation, everything else is the base archive's: tasks,
    queues, data, links, pilots. Its truth holds ``capacity``, the slots that the simulation had, and ``settings``.

    Args:
        world: Read from the base archive; all its jobs are written, from its beginning to its end.
        archive: The base archive.
        into: Folder of the new archive; another synthetic one there is replaced.
        config: The settings; None: those that ruled in the world.
        seed: Of the simulation.

    Returns:
        The manifest of the new archive, which is synthetic.

    Raises:
        DataError: The folder holds a real archive.
        ConfigError: As ``run``.
    """
    loop = Loop(world, [config], [seed])
    loop.run()
    settings = loop.configs[0]
    note = (
        f"{LIVED} again from archive {archive.digest} with seed {seed}, settings {settings.digest}"
    )
    with ArchiveWriter(into, synthetic=True, note=note, mode="replace") as writer:
        for name in archive.tables:
            if name not in REPLACED + GONE:
                writer.write(name, archive.scan(name).collect(), trusted=True)
        writer.write("jobs", jobs_of(world, archive, loop.copies[0]))
        writer.write("gdpconfig", settings.frame())
        writer.write_truth("capacity", world.capacity)
        writer.write_truth("settings", settings.frame())
        return writer.commit(sources=["simulation"])


def jobs_of(world: World, archive: Any, copy: Copy) -> pl.DataFrame:
    """Return the table of jobs that a world makes; ids of later attempts are above all others.

    Args:
        world: What was simulated.
        archive: Says everything about the jobs that the simulation does not.
        copy: The world at its end.
    """
    later, above = pl.col("attempt") > 1, int(world.jobs["pandaid"].max())  # type: ignore[arg-type]
    over = (pl.col("outcome") != "finished") | pl.col("overtime").is_not_null()
    last = pl.coalesce("overtime", "endtime", "starttime", "readytime", "creationtime")
    made = world.jobs.select("creationtime", root="pandaid")
    attempts = (
        attempts_of(world, copy)
        .rename({"pandaid": "root"})
        .join(made, on="root", maintain_order="left")
        .with_columns(
            pandaid=pl.when(later).then(above + later.cum_sum()).otherwise("root"),
            creationtime=pl.when(later).then(pl.col("endtime").shift()).otherwise("creationtime"),
            jobstatus=pl.when(over)
            .then(pl.col("outcome").replace(STATUS))
            .otherwise(pl.lit("transferring")),
        )
        .with_columns(
            parentid=pl.when(later).then(pl.col("pandaid").shift()),
            activatedtime="readytime",
            statechangetime=last,
            modificationtime=last,
            attemptnr="attempt",
        )
        .drop("corecount")
    )
    base = archive.scan("jobs").rename({"pandaid": "root"}).collect()
    others = base.drop(set(attempts.columns) - {"root"}, strict=False)
    found = attempts.join(others, on="root")
    kinds = polars_schema("jobs")
    return found.select(
        pl.col(name).cast(kind) for name, kind in kinds.items() if name in found.columns
    ).sort("pandaid")
