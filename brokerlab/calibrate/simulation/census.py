"""The jobs of all simulated worlds at an instant, and their numbers as the brokerage's tables have them.

A census is a frame of the jobs at queues of all worlds: ``world`` (number), ``job`` (row), ``state``, ``queue`` (row).
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.replaying.work import SMALLEST_SHARE
from brokerlab.calibrate.simulation.state import (
    DISKIO_UNIT,
    DONE,
    NEVER,
    RUNNING,
    WAITING,
    Arrays,
    Records,
)
from brokerlab.compiled import compiled
from brokerlab.numerics import BoolArray, IntArray

ASSIGNED, ACTIVATED, MOVING_OUT, IN_SLOTS = range(4)
"""States of the jobs of a census."""
STATUSES = pl.Series("jobstatus", ["assigned", "activated", "transferring", "running"])
"""By the states of the census."""
OVER = pl.Series("jobstatus", ["finished", "failed"])
"""Of ended attempts; a killed job counts as failed."""


@compiled
def look(
    attempt: Records,
    order: IntArray,
    created: IntArray,
    brokered: BoolArray,
    gone: IntArray,
    first: int,
    last: int,
    now: int,
    until: int,
    found: IntArray,
    due: IntArray,
) -> tuple[int, int, int]:
    """Write down the jobs of an instant that are not over: those at queues, and those that are to get one; times in us.

    ``found``: (3, jobs) filled with rows, states and queues of jobs at queues; ``due``: (2, jobs) filled with rows of jobs
    without a queue, and from when on each may have one, if before ``until``. Before the place ``first`` of the ``order`` of
    making all are over, from ``last`` on none is looked at; ``gone``: when the outputs of jobs that are done have arrived.
    Returns how many are at queues, how many are due, and the next ``first``.
    """
    n, n_due, begin = 0, 0, -1
    for place in range(first, last):
        job = order[place]
        status = attempt["status"][job]
        state = -1
        if status == DONE:
            if gone[job] <= now:
                continue
            state = MOVING_OUT
        elif status == RUNNING:
            state = IN_SLOTS
        elif status == WAITING:
            if created[job] <= now:
                state = ACTIVATED if attempt["ready"][job] <= now else ASSIGNED
        elif brokered[job]:
            ready = attempt["ready"][job]
            if ready == NEVER:
                ready = created[job]
            if ready < until:
                due[0, n_due], due[1, n_due] = job, max(ready, now)
                n_due += 1
        if begin < 0:
            begin = place
        if state >= 0:
            found[0, n], found[1, n], found[2, n] = job, state, attempt["queue"][job]
            n += 1
    return n, n_due, last if begin < 0 else begin


def counted_of(found: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by world, queue, status and every column of the groups; combinations may repeat.

    ``world, computingsite, jobstatus, njobs, ncores``, ``traffic`` per core of those ``measured`` jobs that have one, and
    the columns of the groups.
    """
    diskio = pl.col("diskio")
    jobs = found.with_columns(group=arrays.group[found["job"]], diskio=arrays.diskio[found["job"]])
    codes = ("world", "queue", "group", "state")
    counted = jobs.group_by(codes).agg(
        njobs=pl.len().cast(pl.Int64), traffic=diskio.clip(0).sum(), measured=(diskio >= 0).sum()
    )
    counted = counted.sort(codes)
    return counted.select(
        "world",
        computingsite=arrays.queue_names.gather(counted["queue"]),
        jobstatus=STATUSES.gather(counted["state"]),
        njobs="njobs",
        ncores=counted["njobs"] * arrays.group_cores[counted["group"]],
        traffic="traffic",
        measured="measured",
    ).hstack(arrays.groups[counted["group"]])


def by_share(found: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by queue, share, work queue and status in every world, its ``snapshot``, as fast rebrokerage reads it.

    Jobs without share are left out.
    """
    known = counted_of(found, arrays).drop_nulls("gshare").rename({"world": "snapshot"})
    return known.select("snapshot", "computingsite", "gshare", "workqueue_id", "jobstatus", "njobs")


def disk_traffic(base: pl.DataFrame) -> pl.DataFrame:
    """Return the mean disk traffic per core of running jobs that have one, by queue [kB/s]; ``base``: all jobs, counted."""
    running = base.filter(pl.col("jobstatus") == STATUSES[IN_SLOTS], pl.col("measured") > 0)
    return running.group_by("world", "computingsite").agg(
        diskio_per_core=pl.col("traffic").sum() / pl.col("measured").sum() / DISKIO_UNIT
    )


def tables_of(
    found: pl.DataFrame, arrays: Arrays, wanted: IntArray, resource: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Make the count tables of the brokerage of production from a census; ``task_resource_types`` is of the tasks wanted.

    Source: production-jobs.md.
    """
    base = counted_of(found, arrays)
    site, status = "computingsite", "jobstatus"

    def summed(rows: pl.DataFrame, *by: str, what: str = "njobs") -> pl.DataFrame:
        return rows.group_by("world", *by).agg(pl.col(what).sum())

    names = resource.select(pl.col("workqueue_id").cast(pl.Int64), gshare="queue_name")
    mine = pl.col("workqueue_id").is_in(names["workqueue_id"].implode()).fill_null(value=False)
    own = base.filter(mine)
    rest = base.clear() if names.is_empty() else base.filter(~mine)
    by_share = summed(base, "gshare", site, "resource_type", status)
    by_queue = summed(own, "workqueue_id", site, "resource_type", status)
    by_queue = by_queue.join(names, on="workqueue_id").select(by_share.columns)
    moving = base.filter(pl.col(status) == STATUSES[MOVING_OUT]).drop_nulls("nucleus")
    running = base.filter(pl.col(status) == STATUSES[IN_SLOTS])
    return {
        "job_stats": summed(base, site, "gshare", status),
        "job_stats_rt": pl.concat([by_share, by_queue]),
        "job_stats_workqueue": summed(own, site, "workqueue_id", status),
        "job_stats_gshare_only": summed(rest, site, "gshare", status),
        "transferring_by_nucleus": summed(moving, site, "nucleus"),
        "core_stats": summed(running, site, status, what="ncores"),
        "diskio_usage": disk_traffic(base),
        "task_resource_types": _types_of_tasks(found, arrays, wanted),
    }


def _types_of_tasks(found: pl.DataFrame, arrays: Arrays, wanted: IntArray) -> pl.DataFrame:
    """Return the resource types that hold at least 20 % of a task's jobs at a queue."""
    counted = (
        found.with_columns(task=arrays.task[found["job"]], group=arrays.group[found["job"]])
        .filter(pl.col("task").is_in(pl.Series(wanted).implode()))
        .group_by("world", "task", "queue", "group")
        .len("njobs")
    )
    keys = ["world", "computingsite", "jeditaskid"]
    of_types = counted.select(
        "world",
        computingsite=arrays.queue_names.gather(counted["queue"]),
        jeditaskid=pl.Series(arrays.tasks[counted["task"]], dtype=pl.Int64),
        resource_type=arrays.groups["resource_type"].gather(counted["group"]),
        njobs=pl.col("njobs").cast(pl.Int64),
    )
    summed = of_types.group_by(*keys, "resource_type").agg(pl.col("njobs").sum())
    share = pl.col("njobs") / pl.col("njobs").sum().over(keys)
    return summed.filter(share >= SMALLEST_SHARE).drop("njobs")
