"""The simulator's world of what was drawn: jobs without queues, and the brokerage's tables for every day."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.calibrate.simulation import QueueRules, Transfers, World, of_tables
from brokerlab.calibrate.simulation.archive import data_of, replay_epochs
from brokerlab.gdpconfig import Config
from brokerlab.units import DAY_S
from brokerlab.worlds.chains import MAX_ATTEMPT
from brokerlab.worlds.settings import SynthSettings
from brokerlab.worlds.work import Work

CYCLE = timedelta(hours=1)
"""From one brokerage to the next."""
STATE = timedelta(days=1)
"""How long one state of queues, storage and links holds."""
DAYS_OF_TASK = 14
"""So many days of a task have a state of their own; later ones take its last."""


def world_of(
    settings: SynthSettings, archive: Any, work: Work, capacity: pl.DataFrame, delays: pl.DataFrame
) -> World:
    """Return the world in which the work will live; an archive of what was drawn has everything that is not a job."""
    begin, until = settings.at(0), settings.at(settings.end_s)
    replay, epochs = _states(settings, archive, work)
    known = replay.tasks["jeditaskid"].unique().implode()
    jobs = _jobs(work, until).with_columns(
        brokered=pl.Series(work.brokered) & pl.col("jeditaskid").is_in(known)
    )
    queues = archive.scan("queues").select("panda_queue", "maxtime", "maxrss").collect()
    moving = Transfers()
    here = pl.lit(queues["panda_queue"][0])
    parked = jobs.with_columns(
        computingsite=pl.when(~pl.col("brokered")).then(here),
        readytime=pl.when(~pl.col("brokered")).then(pl.lit(until)),
    )
    world = of_tables(
        parked,
        queues.with_columns(slots=pl.lit(0, pl.Int64)),
        replay.tables_of(plugins.of_stage("jobs").tables),
        epochs,
        start=begin,
        end=until,
        cycle=CYCLE,
        capacity=capacity,
        delays=delays,
        data=data_of(archive, replay, jobs.select(creationtime=pl.lit(until)), moving),
        transfers=moving,
        queueing=QueueRules(attempts=MAX_ATTEMPT),
        config=Config.recorded(archive, begin),
    )
    free = [pl.lit(None, world.jobs.schema[c]).alias(c) for c in ("computingsite", "readytime")]
    return replace(world, jobs=world.jobs.with_columns(free))


def _states(settings: SynthSettings, archive: Any, work: Work) -> tuple[Replay, pl.DataFrame]:
    """Rebuild the brokerage's tables for the middle of every day; tasks have rows from their creation on."""
    n_days = -(-settings.end_s // DAY_S)
    made = pl.DataFrame({"jeditaskid": work.taskid, "second": work.tasks.created_s})
    there = archive.scan("tasks").filter(pl.col("prodsourcelabel") == "managed")
    first = (pl.col("second") // DAY_S).cast(pl.Int64)
    days = pl.int_ranges(first, pl.min_horizontal(first + DAYS_OF_TASK, pl.lit(n_days)))
    rows = made.join(there.select("jeditaskid").collect(), on="jeditaskid")
    rows = rows.select("jeditaskid", epoch=days).explode("epoch")
    begin, end = settings.at(0), settings.at(n_days * DAY_S)
    return replay_epochs(archive, rows, begin, end, STATE, "jobs", "document")


def _jobs(work: Work, until: datetime) -> pl.DataFrame:
    """Return the jobs as the simulator reads them; a job's number is its place in the work."""
    return work.jobs.with_columns(
        pandaid=pl.int_range(pl.len(), dtype=pl.Int64),
        creationtime=pl.lit(until, pl.Datetime("us")),
        walltime_s=pl.lit(0.0),
        input_bytes=pl.Series(work.input_bytes),
        output_bytes=pl.Series(work.output_bytes),
    )
