"""Write what a simulation did as an archive: its truth is the simulator itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.manifest import Manifest
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.calibrate.simulate.loop import Copy, Loop
from brokerlab.calibrate.simulate.outcome import attempts_of
from brokerlab.calibrate.simulate.state import CLOCK, DONE, WAITING, instants
from brokerlab.calibrate.simulate.world import World
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config

NOTE = "simulated by brokerlab"
"""The note of such an archive begins so."""
REPLACED = ("jobs", "gdpconfig")
"""Tables that the simulation writes anew."""
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
        DataError: The world was read from another archive, or the folder holds a real one.
        ConfigError: As ``run``.
    """
    if world.archive_digest != archive.digest:
        raise DataError(
            f"the world was read from archive {world.archive_digest[:12] or 'none'}, the base is {archive.digest[:12]}: "
            "give the one that it was read from"
        )
    loop = Loop(world, config, (seed,))
    loop.run()
    settings = loop.config
    note = f"{NOTE} from archive {archive.digest} with seed {seed}, settings {settings.digest}"
    with ArchiveWriter(into, synthetic=True, note=note, mode="replace") as writer:
        for name in archive.tables:
            if name not in REPLACED + GONE:
                writer.write(name, archive.scan(name).collect(), trusted=True)
        writer.write("jobs", jobs_of(world, archive, loop.copies[0]))
        writer.write("gdpconfig", settings.to_frame())
        writer.write_truth("capacity", world.capacity)
        writer.write_truth("settings", settings.to_frame())
        return writer.commit(sources=["simulation"])


def jobs_of(world: World, archive: Any, copy: Copy) -> pl.DataFrame:
    """Return the table of jobs that a world makes.

    Args:
        world: What was simulated.
        archive: Says everything about the jobs that the simulation does not.
        copy: The world at its end.
    """
    base = archive.scan("jobs").filter(pl.col("pandaid").is_in(world.jobs["pandaid"].implode()))
    rows = _attempts(world, copy)
    mine = rows.join(base.collect(), left_on="root", right_on="pandaid", how="inner")
    killed = pl.col("outcome").str.starts_with("killed")
    moving = (pl.col("outcome") == "finished") & pl.col("gone").is_null()
    status = (
        pl.when(killed)
        .then(pl.lit("failed"))
        .when(moving)
        .then(pl.lit("transferring"))
        .otherwise(pl.col("outcome").replace("waiting", "activated"))
    )
    last = pl.coalesce("gone", "end", "start", "ready", "made")
    found = mine.with_columns(
        jobstatus=status,
        computingsite="queue",
        creationtime="made",
        activatedtime="ready",
        starttime="start",
        endtime="end",
        statechangetime=last,
        modificationtime=last,
        parentid="parent",
        attemptnr="attempt",
    )
    kinds = polars_schema("jobs")
    return found.select(
        pl.col(name).cast(kind) for name, kind in kinds.items() if name in found.columns
    ).sort("pandaid")


def _attempts(world: World, copy: Copy) -> pl.DataFrame:
    """Return every attempt, and those whose inputs still travel, as jobs.

    Returns:
        ``root`` (the job in the world), ``pandaid`` (of later attempts: above all others), ``parent``, ``attempt, queue,
        made, ready, start, end, gone`` (outputs have arrived), ``outcome``.
    """
    state, until = copy.state, copy.state.events.counters[CLOCK]
    begun = attempts_of(world, copy).select(
        "attempt", "outcome", root="pandaid", queue="computingsite", ready="readytime", start="starttime",
        end="endtime",
    )  # fmt: skip
    status = state.attempt["status"]
    travels = (status == WAITING) & (state.attempt["ready"] > until)
    row = np.flatnonzero(travels & (world.created < until))
    waiting = pl.DataFrame(
        {
            "attempt": state.attempt["number"][row],
            "root": state.work["pandaid"][row],
            "queue": world.queues["panda_queue"].gather(state.attempt["queue"][row]),
            "outcome": pl.Series(["assigned"] * len(row), dtype=pl.String),
        }
    )
    over = np.flatnonzero((status == DONE) & (copy.gone <= until))
    gone = pl.DataFrame(
        {
            "root": state.work["pandaid"][over],
            "attempt": state.attempt["number"][over],
            "gone": instants(copy.gone[over]),
        }
    )
    return _numbered(pl.concat([begun, waiting], how="diagonal"), world, gone)


def _numbered(rows: pl.DataFrame, world: World, gone: pl.DataFrame) -> pl.DataFrame:
    """Give later attempts ids of their own, and say when each was made."""
    made = world.jobs.select("creationtime", root="pandaid")
    above = int(world.jobs["pandaid"].max())  # type: ignore[arg-type]
    ordered = rows.join(made, on="root").join(gone, on=["root", "attempt"], how="left")
    later = pl.col("attempt") > 1
    numbered = ordered.sort("root", "attempt").with_columns(
        pandaid=pl.when(later).then(above + later.cum_sum()).otherwise("root"),
        made=pl.when(later).then(pl.col("end").shift()).otherwise("creationtime"),
    )
    return numbered.with_columns(parent=pl.when(later).then(pl.col("pandaid").shift())).drop(
        "creationtime"
    )
