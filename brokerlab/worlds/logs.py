"""Logs of the status of jobs and tasks, written from their times."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.worlds.block import Block
from brokerlab.worlds.frames_tasks import Totals
from brokerlab.worlds.queues import conform
from brokerlab.worlds.world import World


def job_status_log(world: World, jobs: pl.DataFrame) -> pl.DataFrame:
    """Write ``job_status_log`` of jobs at queues that push: their times, and the states that times do not tell.

    Sorted by job and time: defined, assigned, activated, starting, running, then holding or transferring, then the last one.
    """
    logged = world.queues.filter(pl.col("workflow") == "push")["panda_queue"]
    mine = jobs.filter(pl.col("computingsite").is_in(logged.implode()))
    created, active, begun = pl.col("creationtime"), pl.col("activatedtime"), pl.col("starttime")
    half_wait_s = (begun - active).dt.total_seconds().clip(upper_bound=600) // 2
    brief = pl.duration(seconds=5)
    moments = {
        "defined": created,
        "assigned": pl.min_horizontal(created + brief, active),
        "activated": active,
        "starting": pl.when(_hangs_starting(world))
        .then(active + pl.duration(seconds=60))
        .otherwise(begun - pl.duration(seconds=half_wait_s)),
        "running": begun,
        "after": pl.col("endtime"),
        "last": pl.col("modificationtime"),
    }
    base = ["pandaid", "computingsite", "prodsourcelabel", "jobstatus", "nucleus"]
    sent = (pl.col("jobstatus") == "finished") & pl.col("nucleus").is_not_null()
    status = (
        pl.when(pl.col("step") == "last").then("jobstatus")
        .when(pl.col("step") != "after").then("step")
        .when(sent).then(pl.lit("transferring")).otherwise(pl.lit("holding"))
    )  # fmt: skip
    ordered = _steps(mine, base, moments).with_columns(jobstatus=status).sort("pandaid", "order")
    reached = ordered.drop_nulls("modificationtime")  # not all of them by live jobs
    return conform(
        "job_status_log",
        reached.unique(["pandaid", "jobstatus"], keep="first", maintain_order=True),
    )


def _hangs_starting(world: World) -> pl.Expr:
    """Decide whether a job waits for its queue in ``starting``."""
    second = (pl.col("creationtime").cast(pl.Int64) - world.settings.start_us) // 1_000_000
    hangs = pl.lit(value=False)
    for spell in world.spells:
        if spell.status == "starting":
            there = pl.col("computingsite") == world.names[spell.queue]
            hangs |= there & second.is_between(spell.begin_s, spell.end_s - 900)
    return hangs


def task_status_log(
    world: World, block: Block, totals: Totals, tasks: pl.DataFrame
) -> pl.DataFrame:
    """Write when tasks were registered, assigned to a nucleus (production), scouted, decided, ended, by task and time."""
    first = np.full(block.tasks.n, np.iinfo(np.int64).max)
    np.minimum.at(first, block.row_task, block.created)
    keep = totals.rows > 0
    clock = pl.DataFrame(
        {
            "jeditaskid": block.taskid[keep],
            "scouting": world.times(first[keep]),
            "decided": world.times(np.ceil(block.decided_s[keep]).astype(np.int64)),
        }
    )
    mine = tasks.join(clock, on="jeditaskid")
    made, end = pl.col("creationdate"), pl.col("endtime")
    production = pl.col("prodsourcelabel") == "managed"
    moments = {
        "registered": made,
        "defined": made + pl.duration(seconds=30),
        "assigning": pl.when(production).then(made + pl.duration(seconds=120)),
        "ready": pl.max_horizontal(
            pl.col("scouting") - pl.duration(seconds=60), made + pl.duration(seconds=30)
        ),
        "scouting": pl.col("scouting"),
        "running": pl.when(pl.col("status") != "scouting").then(pl.min_horizontal("decided", pl.coalesce(end, "decided"))),
        "last": end,
    }  # fmt: skip
    long = _steps(mine, ["jeditaskid", "status"], moments).drop_nulls("modificationtime")
    status = pl.when(pl.col("step") == "last").then("status").otherwise("step")
    ordered = long.with_columns(status=status, attemptnr=1).sort("jeditaskid", "order")
    return conform("task_status_log", ordered)


def _steps(rows: pl.DataFrame, base: list[str], moments: dict[str, pl.Expr]) -> pl.DataFrame:
    """Return a row per moment of each row: ``step`` and ``order`` say which, ``modificationtime`` when."""
    long = rows.select(*base, **moments).unpivot(
        list(moments), index=base, variable_name="step", value_name="modificationtime"
    )
    order = {step: place for place, step in enumerate(moments)}
    return long.with_columns(order=pl.col("step").replace_strict(order, return_dtype=pl.Int8))
