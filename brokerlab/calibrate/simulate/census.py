"""The jobs of all simulated worlds at an instant, and their numbers as the brokerage's tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.brokerage.replay.work import SMALLEST_SHARE
from brokerlab.calibrate.simulate.arrays import DISKIO_UNIT, Arrays
from brokerlab.calibrate.simulate.state import DONE, RUNNING, WAITING, Records
from brokerlab.compiled import compiled
from brokerlab.numerics import BoolArray, IntArray

ASSIGNED, ACTIVATED, MOVING_OUT, IN_SLOTS, UNBROKERED = range(5)
"""States of the jobs of a census."""
STATUSES = pl.Series("jobstatus", ["assigned", "activated", "transferring", "running"])
"""By the states of the census."""


@dataclass(frozen=True)
class Census:
    """The jobs at queues of all worlds at an instant; equal lengths.

    Attributes:
        world: Number of the world.
        job: Row of the job.
        state: Of the states above.
        queue: Row of the queue.
    """

    world: IntArray
    job: IntArray
    state: IntArray
    queue: IntArray


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
    jobs: IntArray,
    states: IntArray,
) -> tuple[int, int]:
    """Write down the jobs of an instant that are not over, and their state.

    Args:
        attempt: Of the event loop.
        order: Rows in the order of making.
        created: When each was made [us].
        brokered: Whether the brokerage places it.
        gone: When its outputs have arrived, for jobs that are done [us].
        first: Place in the order before which all are over.
        last: Place in the order from which on none is looked at.
        now: The instant [us].
        jobs: Filled with rows.
        states: Filled with their states.

    Returns:
        How many were written, and the next ``first``.
    """
    n, begin = 0, -1
    for place in range(first, last):
        job = order[place]
        status = attempt["status"][job]
        if status == DONE:
            if gone[job] <= now:
                continue
            state = MOVING_OUT
        elif status == RUNNING:
            state = IN_SLOTS
        elif status == WAITING:
            if created[job] > now:
                state = -1
            else:
                state = ACTIVATED if attempt["ready"][job] <= now else ASSIGNED
        else:
            state = UNBROKERED if brokered[job] else -1
        if begin < 0:
            begin = place
        if state >= 0:
            jobs[n], states[n] = job, state
            n += 1
    return n, last if begin < 0 else begin


@dataclass(frozen=True)
class Counted:
    """Numbers by combinations of codes: columns of equal length, each combination once."""

    codes: dict[str, IntArray]
    n: IntArray

    @classmethod
    def of(
        cls, codes: dict[str, IntArray], sizes: Sequence[int], weight: IntArray | None = None
    ) -> Counted:
        """Add up by all codes.

        Args:
            codes: Columns of codes, from 0.
            sizes: Above the largest code of each.
            weight: What is added up; None: rows.
        """
        place = np.ravel_multi_index(tuple(codes.values()), tuple(sizes))
        found, inverse = np.unique(place, return_inverse=True)
        n = np.zeros(len(found), np.int64)
        np.add.at(n, inverse, 1 if weight is None else weight)
        columns = np.unravel_index(found, tuple(sizes))
        return cls(dict(zip(codes, columns, strict=True)), n)


def by_share(found: Census, arrays: Arrays, n_worlds: int) -> pl.DataFrame:
    """Count jobs by queue, share, work queue and status in every world, as fast rebrokerage reads it.

    Returns:
        ``snapshot`` (the world), ``computingsite, gshare, workqueue_id, jobstatus, njobs``; jobs without share are left out.
    """
    base = counted_of(found, arrays, n_worlds)
    known = base.filter(pl.col("gshare").is_not_null()).rename({"world": "snapshot"})
    return known.select("snapshot", "computingsite", "gshare", "workqueue_id", "jobstatus", "njobs")


def tables_of(
    found: Census, arrays: Arrays, n_worlds: int, wanted: IntArray, resource: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Make the count tables of the brokerage of production.

    Args:
        found: The jobs.
        arrays: Codes of jobs and queues.
        n_worlds: Number of worlds.
        wanted: Rows of the tasks that will be brokered; ``task_resource_types`` is of these.
        resource: ``workqueue_id``, ``queue_name`` of work queues that are resource queues.

    Returns:
        ``job_stats``, ``job_stats_rt``, ``job_stats_workqueue``, ``job_stats_gshare_only``, ``transferring_by_nucleus``,
        ``core_stats``, ``diskio_usage``, ``task_resource_types``, each with ``world``.

    Source: production-job-brokerage.md section 1.6.
    """
    base = counted_of(found, arrays, n_worlds)
    return {
        **_job_stats(base, resource),
        **_running(found, arrays, n_worlds),
        "task_resource_types": _types_of_tasks(found, arrays, n_worlds, wanted),
    }


def counted_of(found: Census, arrays: Arrays, n_worlds: int) -> pl.DataFrame:
    """Count jobs by world, queue, status and every column of the groups.

    Returns:
        ``world, computingsite, jobstatus, njobs, ncores`` and the columns of the groups; combinations may repeat.
    """
    n_queues = len(arrays.queue_names)
    counted = Counted.of(
        {
            "world": found.world,
            "queue": found.queue,
            "group": arrays.group[found.job],
            "state": found.state,
        },
        (n_worlds, n_queues, arrays.groups.height, len(STATUSES)),
    )
    return pl.DataFrame(
        {
            "world": counted.codes["world"],
            "computingsite": arrays.queue_names.gather(counted.codes["queue"]),
            "jobstatus": STATUSES.gather(counted.codes["state"]),
            "njobs": counted.n,
            "ncores": counted.n * arrays.group_cores[counted.codes["group"]],
        }
    ).hstack(arrays.groups[pl.Series(counted.codes["group"])])


def _summed(base: pl.DataFrame, *by: str) -> pl.DataFrame:
    return base.group_by("world", *by).agg(pl.col("njobs").sum())


def _job_stats(base: pl.DataFrame, resource: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the numbers by share, type, work queue and nucleus."""
    site, status = "computingsite", "jobstatus"
    everything = _summed(base, site, "gshare", status)
    by_type = _summed(base, "gshare", site, "resource_type", status)
    own = base.clear()
    if not resource.is_empty():
        own = base.filter(pl.col("workqueue_id").is_in(resource["workqueue_id"].implode()))
        names = resource.select(pl.col("workqueue_id").cast(pl.Int64), gshare="queue_name")
        queued = _summed(own, "workqueue_id", site, "resource_type", status)
        by_type = pl.concat(
            [by_type, queued.join(names, on="workqueue_id").select(by_type.columns)]
        )
    rest = base.join(own.select("workqueue_id").unique(), on="workqueue_id", how="anti")
    moving = base.filter((pl.col(status) == STATUSES[MOVING_OUT]) & pl.col("nucleus").is_not_null())
    return {
        "job_stats": everything,
        "job_stats_rt": by_type,
        "job_stats_workqueue": _summed(own, site, "workqueue_id", status),
        "job_stats_gshare_only": _summed(rest, site, "gshare", status)
        if not resource.is_empty()
        else everything.clear(),
        "transferring_by_nucleus": _summed(moving, site, "nucleus"),
    }


def _running(found: Census, arrays: Arrays, n_worlds: int) -> dict[str, pl.DataFrame]:
    """Return cores in use and the mean disk traffic of running jobs, by queue."""
    run = found.state == IN_SLOTS
    job = found.job[run]
    codes = {"world": found.world[run], "queue": found.queue[run]}
    sizes = (n_worlds, len(arrays.queue_names))
    cores = Counted.of(codes, sizes, arrays.cores[job])
    return {
        "core_stats": _by_queue(cores, arrays).with_columns(
            jobstatus=pl.lit("running"), ncores=pl.Series(cores.n)
        ),
        "diskio_usage": disk_traffic(found, arrays, n_worlds),
    }


def disk_traffic(found: Census, arrays: Arrays, n_worlds: int) -> pl.DataFrame:
    """Return the mean disk traffic per core of running jobs that have one, by queue [kB/s]."""
    run = found.state == IN_SLOTS
    job = found.job[run]
    codes = {"world": found.world[run], "queue": found.queue[run]}
    sizes = (n_worlds, len(arrays.queue_names))
    known = arrays.diskio[job] >= 0
    measured = {name: code[known] for name, code in codes.items()}
    traffic = Counted.of(measured, sizes, arrays.diskio[job][known])
    jobs = Counted.of(measured, sizes)
    return _by_queue(traffic, arrays).with_columns(
        diskio_per_core=pl.Series(traffic.n / jobs.n / DISKIO_UNIT, dtype=pl.Float64)
    )


def _by_queue(counted: Counted, arrays: Arrays) -> pl.DataFrame:
    names = arrays.queue_names.gather(counted.codes["queue"])
    return pl.DataFrame({"world": counted.codes["world"], "computingsite": names})


def _types_of_tasks(found: Census, arrays: Arrays, n_worlds: int, wanted: IntArray) -> pl.DataFrame:
    """Return the resource types that hold at least 20 % of a task's jobs at a queue."""
    asked = np.zeros(len(arrays.tasks) + 1, np.bool_)
    asked[wanted] = True
    own = asked[arrays.task[found.job]]
    job = found.job[own]
    types = arrays.groups["resource_type"].rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    counted = Counted.of(
        {
            "world": found.world[own],
            "task": arrays.task[job],
            "queue": found.queue[own],
            "type": types[arrays.group[job]],
        },
        (n_worlds, len(arrays.tasks), len(arrays.queue_names), int(types.max(initial=0)) + 1),
    )
    names = arrays.groups["resource_type"].unique().sort().drop_nulls()
    labels = pl.concat([pl.Series([None], dtype=pl.String), names.cast(pl.String)])
    frame = _by_queue(counted, arrays).select(
        "world",
        "computingsite",
        jeditaskid=pl.Series(arrays.tasks[counted.codes["task"]], dtype=pl.Int64),
        resource_type=labels.gather(counted.codes["type"]),
        njobs=pl.Series(counted.n),
    )
    share = pl.col("njobs") / pl.col("njobs").sum().over("world", "jeditaskid", "computingsite")
    return frame.filter(share >= SMALLEST_SHARE).drop("njobs")
