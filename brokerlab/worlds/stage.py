"""The simulator's world of what was drawn: jobs without queues, slots and what an operator writes down of them, tables for every day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage import plugins
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.calibrate.simulation import QueueRules, Transfers, World, of_tables
from brokerlab.calibrate.simulation.archive import data_of, replay_epochs
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.units import DAY_S
from brokerlab.worlds.assemble import Drawn
from brokerlab.worlds.chains import MAX_ATTEMPT
from brokerlab.worlds.queues import conform
from brokerlab.worlds.settings import SynthSettings
from brokerlab.worlds.small_jobs import LIGHT
from brokerlab.worlds.work import Work
from brokerlab.worlds.world import World as DrawnWorld

LOAD = 0.6
"""Part of the slots that the work of the whole period needs."""
FEWEST = 4
"""Jobs of its own size that a queue has room for at least."""
UNWRITTEN = 0.1
"""Part of the queues with a pledge whose slots nobody has set: the pledge is what is known."""
STARTUP_S, STARTUP_SPREAD, STARTUP_LN_SD, DRAWS = 150.0, 0.4, 0.35, 40
"""Median start-up delay [s], how it differs between queues and inside one, and how many of each queue are drawn."""


def slots_of(world: DrawnWorld, parts: Sequence[Drawn], scripted: pl.DataFrame) -> IntArray:
    """Return the slots of every queue: as many as its part of the drawn work needs, and some more.

    Half of a queue's part is that of the jobs which were drawn to it, half that of its size. What is scripted to run there
    leaves room for a job. Queues of a special kind, to which no work is drawn, have room for a few: they are online.
    """
    used: FloatArray = np.zeros(world.n)
    for part in parts:
        rows, slots = part.block.rows, part.block.tasks.slots
        queue = slots.queue[part.block.row_task, rows.slot]
        np.add.at(used, queue, rows.wall_s * rows.cores)
    size = np.where(world.usable, world.size**0.6, 0.0)
    part_of_queue = 0.5 * used / used.sum() + 0.5 * size / size.sum()
    cores = used.sum() / world.settings.submit_s / LOAD * part_of_queue
    jobs = np.maximum(np.ceil(cores / world.cores), FEWEST)
    most: IntArray = np.zeros(world.n, np.int64)
    np.maximum.at(most, scripted["queue"].to_numpy(), scripted["cores"].to_numpy())
    jobs = np.maximum(jobs, np.where(most > 0, np.ceil(most / world.cores) + 1, 0))
    there = world.usable.copy()
    there[list(world.special.values())] = True
    return np.where(there, jobs.astype(np.int64) * world.cores, 0)


def scripted_use(world: DrawnWorld, parts: Sequence[Drawn]) -> pl.DataFrame:
    """Return the cores that jobs which are laid out one by one hold: ``queue`` (its number), ``second``, ``cores`` from then on."""
    end = world.settings.end_s
    rows = []
    for story in (s for part in parts for s in part.stories if s.name != LIGHT):
        for path in story.paths:
            start, stop = path.first("running"), path.ended_s
            if start is not None:
                rows += [(path.queue, start, story.cores), (path.queue, stop or end, -story.cores)]
    frame = pl.DataFrame(rows, schema=["queue", "second", "cores"], orient="row")
    steps = frame.cast(pl.Int64).group_by("queue", "second").agg(pl.col("cores").sum())
    return steps.sort("queue", "second").with_columns(pl.col("cores").cum_sum().over("queue"))


def slot_changes(world: DrawnWorld, slots: IntArray) -> pl.DataFrame:
    """Return when the queues have how many slots: none while they start nothing (a contract of the simulator)."""
    rows = [(name, 0, int(n)) for name, n in zip(world.names, slots, strict=True)]
    for spell in world.spells:
        for second in (spell.begin_s, spell.end_s):
            hangs = any(other.holds(spell.queue, second) for other in world.spells)
            rows.append((world.names[spell.queue], second, 0 if hangs else int(slots[spell.queue])))
    frame = pl.DataFrame(rows, schema=["panda_queue", "second", "slots"], orient="row")
    return frame.select("panda_queue", ts=world.times(frame["second"].to_numpy()), slots="slots")


def slots_left(world: DrawnWorld, capacity: pl.DataFrame, scripted: pl.DataFrame) -> pl.DataFrame:
    """Return the slots that what is scripted leaves to the others, over time (a contract of the simulator)."""
    named = scripted.select(
        panda_queue=pl.Series(world.names).gather(scripted["queue"]),
        ts=world.times(scripted["second"].to_numpy()),
        held="cores",
    )
    keys = ["panda_queue", "ts"]
    both = capacity.join(named, on=keys, how="full", coalesce=True).sort(keys)
    held = pl.col("held").forward_fill().over("panda_queue").fill_null(0)
    there = pl.col("slots").forward_fill().over("panda_queue")
    return both.select(*keys, slots=(there - held).clip(0))


def draw_delays(world: DrawnWorld) -> pl.DataFrame:
    """Draw the start-up delays of every queue [whole s]."""
    rng, n = world.generator(121), len(world.names)
    median = STARTUP_S * np.exp(STARTUP_SPREAD * rng.standard_normal(n))
    drawn = median[:, None] * np.exp(STARTUP_LN_SD * rng.standard_normal((n, DRAWS)))
    return pl.DataFrame(
        {"panda_queue": np.repeat(world.names, DRAWS), "delay_s": np.round(drawn).ravel()}
    ).with_columns(own=pl.lit(value=True))


def usual_workers(world: DrawnWorld, slots: IntArray) -> IntArray:
    """Return the batch workers that usually run at each queue: its slots follow from contracts, not from its jobs."""
    return np.asarray(np.round(LOAD * slots / world.cores), dtype=np.int64)


def operators_table(world: DrawnWorld, slots: IntArray) -> pl.DataFrame:
    """Return the table ``slots`` as an operator has it: what was set, which is what is there but in times of trouble.

    Slots of a queue that pledges nothing are always set: nothing else says how many there are.
    """
    rng, names = world.generator(122), np.array(world.names)
    pledged = (world.queues["pledgedcpu"] > 0).fill_null(value=False).to_numpy()
    known = (slots > 0) & ((rng.random(len(names)) >= UNWRITTEN) | ~pledged)
    at = world.times(np.zeros(int(known.sum()), np.int64))
    return conform(
        "slots",
        pl.DataFrame(
            {
                "pandaqueuename": names[known],
                "numslots": slots[known],
                "modificationtime": at,
                "ts": at,
            }
        ),
    )


def with_pledges(world: DrawnWorld, slots: IntArray) -> DrawnWorld:
    """Return the world whose queues pledge what they have; opportunistic ones pledge nothing."""
    pledge = pl.when(pl.col("pledgedcpu") > 0).then(pl.Series(slots)).otherwise("pledgedcpu")
    queues = world.queues.with_columns(pledgedcpu=pledge.cast(world.queues.schema["pledgedcpu"]))
    return replace(world, queues=queues)


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
