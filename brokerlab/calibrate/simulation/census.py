"""The jobs of all simulated worlds at an instant, and their numbers as the brokerage's tables have them.

A census is a frame of the jobs at queues of all worlds, :data:`CENSUS`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.replaying.task_tables import SMALLEST_SHARE
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
CENSUS = ("world", "job", "state", "queue", "since")
"""Number, row, state, row, and when the job came into the state [us]; outputs under way since the start of the job."""
STATUSES = pl.Series("jobstatus", ["assigned", "activated", "transferring", "running"])
"""By the states of the census."""
OVER = pl.Series("jobstatus", ["finished", "failed"])
"""Of ended attempts; a killed job counts as failed."""


@compiled
def look(
    world: int,
    attempt: Records,
    order: IntArray,
    created: IntArray,
    brokered: BoolArray,
    placed: IntArray,
    gone: IntArray,
    last_start: IntArray,
    live: IntArray,
    now: int,
    until: int,
    n: int,
    places: IntArray,
    due: IntArray,
) -> tuple[int, int, int]:
    """Write down the jobs of a world that are at queues at an instant, and take out of ``live`` who is none of these; times in us.

    ``live``: places in the ``order`` of making of jobs that may be at queues, or get one. Those that are over, whose outputs have
    arrived too (``gone``), are taken out; so are those that may have a queue before ``until``: ``due`` is filled with them.
    ``found``: columns of the census, filled from place ``n`` on. ``last_start`` of queues is brought up to date. Returns up to
    where ``found``, ``due`` and ``live`` are filled.
    """
    n_due, n_live = 0, 0
    for place in live:
        job = order[place]
        status = attempt["status"][job]
        state, since = -1, 0
        if status == DONE:
            if gone[job] <= now:
                continue
            state, since = MOVING_OUT, attempt["start"][job]
        elif status == RUNNING:
            state, since = IN_SLOTS, attempt["start"][job]
            queue = attempt["queue"][job]
            last_start[queue] = max(last_start[queue], since)
        elif status == WAITING:
            if created[job] <= now:
                state, since = ASSIGNED, placed[job]
                if attempt["ready"][job] <= now:
                    state, since = ACTIVATED, attempt["ready"][job]
        elif brokered[job] and (attempt["ready"][job] < until or attempt["ready"][job] == NEVER):
            due[n_due] = job
            n_due += 1
            continue
        live[n_live] = place
        n_live += 1
        if state >= 0:
            places[0, n], places[1, n], places[2, n] = world, job, state
            places[3, n], places[4, n] = attempt["queue"][job], since
            n += 1
    return n, n_due, n_live


class _Kinds:
    """Rows told apart by several whole numbers from 0 on, as one number: grouping by one column takes half as long."""

    def __init__(self, columns: Sequence[npt.ArrayLike]) -> None:
        """Number the rows; kinds ascend as the columns do, one after the other."""
        arrays = [np.asarray(column) for column in columns]
        self.most = [int(column.max(initial=0)) + 1 for column in arrays]
        self.numbers: IntArray = np.ravel_multi_index(arrays, self.most)

    def values(self, numbers: pl.Series) -> tuple[IntArray, ...]:
        """Return the values of the columns in kinds."""
        return np.unravel_index(numbers.to_numpy(), self.most)


def counted_of(rows: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by world, queue, status and every column of the groups; combinations may repeat.

    ``world, computingsite, jobstatus, njobs, ncores``, ``traffic`` per core of those ``measured`` jobs that have one, and
    the columns of the groups.
    """
    diskio, job = pl.col("diskio"), rows["job"]
    kinds = _Kinds((rows["world"], rows["queue"], arrays.group[job], rows["state"]))
    jobs = pl.DataFrame({"kind": kinds.numbers, "diskio": arrays.diskio[job]})
    counted = jobs.group_by("kind").agg(
        njobs=pl.len().cast(pl.Int64), traffic=diskio.clip(0).sum(), measured=(diskio >= 0).sum()
    )
    counted = counted.sort("kind")
    world, queue, group, state = kinds.values(counted["kind"])
    return counted.select(
        world=pl.Series(world),
        computingsite=arrays.queue_names.gather(queue),
        jobstatus=STATUSES.gather(state),
        njobs="njobs",
        ncores=counted["njobs"] * arrays.group_cores[group],
        traffic="traffic",
        measured="measured",
    ).hstack(arrays.groups[pl.Series(group)])


def by_share(rows: pl.DataFrame, arrays: Arrays) -> pl.DataFrame:
    """Count jobs by queue, share, work queue and status in every world, its ``snapshot``, as fast rebrokerage reads it.

    Jobs without share are left out.
    """
    known = counted_of(rows, arrays).drop_nulls("gshare").rename({"world": "snapshot"})
    return known.select("snapshot", "computingsite", "gshare", "workqueue_id", "jobstatus", "njobs")


def disk_traffic(base: pl.DataFrame) -> pl.DataFrame:
    """Return the mean disk traffic per core of running jobs that have one, by queue [kB/s]; ``base``: all jobs, counted."""
    running = base.filter(pl.col("jobstatus") == STATUSES[IN_SLOTS], pl.col("measured") > 0)
    return running.group_by("world", "computingsite").agg(
        diskio_per_core=pl.col("traffic").sum() / pl.col("measured").sum() / DISKIO_UNIT
    )


def tables_of(
    counted: pl.DataFrame, arrays: Arrays, wanted: IntArray, resource: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Make the count tables of the brokerage of production from a census; ``task_resource_types`` is of the tasks wanted.

    Source: production-jobs.md.
    """
    base = counted_of(counted, arrays)
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
        "task_resource_types": _types_of_tasks(counted, arrays, wanted),
    }


def _types_of_tasks(found: pl.DataFrame, arrays: Arrays, wanted: IntArray) -> pl.DataFrame:
    """Return the resource types that hold at least 20 % of a task's jobs at a queue."""
    asked = np.zeros(len(arrays.tasks) + 1, np.bool_)  # the last one stands for jobs of no task
    asked[wanted] = True
    rows = np.flatnonzero(asked[arrays.task[found["job"]]])
    job = found["job"].to_numpy()[rows]
    where = (found[name].to_numpy()[rows] for name in ("world", "queue"))
    kinds = _Kinds((*where, arrays.task[job], arrays.group[job]))
    counted = pl.DataFrame({"kind": kinds.numbers}).group_by("kind").len("njobs")
    world, queue, task, group = kinds.values(counted["kind"])
    keys = ["world", "computingsite", "jeditaskid"]
    of_types = counted.select(
        world=pl.Series(world),
        computingsite=arrays.queue_names.gather(queue),
        jeditaskid=pl.Series(arrays.tasks[task], dtype=pl.Int64),
        resource_type=arrays.groups["resource_type"].gather(group),
        njobs=pl.col("njobs").cast(pl.Int64),
    )
    summed = of_types.group_by(*keys, "resource_type").agg(pl.col("njobs").sum())
    share = pl.col("njobs") / pl.col("njobs").sum().over(keys)
    return summed.filter(share >= SMALLEST_SHARE).drop("njobs")
