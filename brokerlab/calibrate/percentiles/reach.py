"""Which queues, and which share of the slots, can still take a task that asks for so much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray, IntArray
from brokerlab.slots import Offers, memory_per_core, positive
from brokerlab.units import HOUR_S, KB, MB

QUEUE_COLUMNS: dict[str, pl.DataType] = {
    "panda_queue": pl.String(),
    **dict.fromkeys(["corecount", "maxrss", "memory", "maxtime", "maxwdir"], pl.Int64()),
    "corepower": pl.Float64(),
}


@dataclass(frozen=True)
class Reach:
    """Capacities of the queues and what a task asks of them, as a straight line in its estimate.

    Attributes:
        slope: (n_tasks,) demand per unit of the estimate.
        offset: (n_tasks,) demand besides.
        kind: (n_tasks,) which row of the capacities holds for the task.
        offers: (n_kinds,) what the queues can give.
    """

    slope: FloatArray
    offset: FloatArray
    kind: IntArray
    offers: tuple[Offers, ...]

    def shares(self, estimate: IntArray, tasks: slice) -> tuple[FloatArray, FloatArray]:
        """Return the share of queues and of slots that can take each task: (n_tasks, n_settings) each."""
        demand = estimate * self.slope[tasks][:, None] + self.offset[tasks][:, None]
        queues, slots = np.ones_like(demand), np.ones_like(demand)
        kinds = self.kind[tasks]
        for kind in np.unique(kinds):  # one per distinct base time; one in all for memory and disk
            rows = kinds == kind
            queues[rows], slots[rows] = self.offers[kind].shares(demand[rows])
        return queues, slots


def reach_of(
    jobs: pl.DataFrame,
    queues: pl.DataFrame,
    slots: pl.DataFrame,
    parameter: str,
    *,
    compensation: float,
    default_efficiency_pct: float,
) -> Reach:
    """Describe what the typical job of each task asks of a queue.

    Typical is the median over the task's scored jobs. Memory: request per core against ``maxrss``
    (``memory`` where that is unknown) per core of the queue. Walltime: the limit at the queue's core power
    against ``maxtime``. Output disk: megabytes of the job against ``maxwdir``. Null and 0 are no limit.

    Args:
        jobs: Scored jobs with ``task``, sorted by it, every task present.
        queues: ``panda_queue`` and the capacities.
        slots: ``computingsite, coreh``: core-hours observed, the weight of a queue's slots.
        parameter: Which.
        compensation: Factor on memory requests.
        default_efficiency_pct: For a null ``cpuefficiency``.

    Source: production-jobs.md, checks on memory, walltime and scratch disk.
    """
    queues = _known(queues)
    weights = (
        queues.select("panda_queue")
        .join(slots, left_on="panda_queue", right_on="computingsite", how="left")["coreh"]
        .fill_null(0.0)
        .to_numpy()
    )
    demand = _demand(jobs, parameter, compensation, default_efficiency_pct)
    base, kind = np.unique(demand["base_s"].to_numpy(), return_inverse=True)
    if parameter != "cputime":
        base, kind = np.zeros(1), np.zeros(demand.height, dtype=np.int64)
    return Reach(
        slope=demand["slope"].to_numpy(),
        offset=demand["offset"].to_numpy(),
        kind=np.asarray(kind, dtype=np.int64),
        offers=tuple(Offers.of(_capacity(queues, parameter, float(b)), weights) for b in base),
    )


def _demand(
    jobs: pl.DataFrame, parameter: str, compensation: float, default_pct: float
) -> pl.DataFrame:
    """Return ``slope, offset, base_s`` of the typical job of each task, sorted by task."""
    cores, events = pl.col("cores").median(), pl.max_horizontal("n_events", 1).median()
    share = pl.col("cpuefficiency").first().fill_null(default_pct) / 100
    zero = pl.lit(0.0)
    if parameter == "ramcount":
        per_core = pl.col("ram_per_core").first()
        slope = pl.when(per_core).then(compensation).otherwise(compensation / cores)
        base = pl.col("baseramcount").first().fill_null(0)
        offset = pl.when(per_core).then(base * compensation / cores).otherwise(zero)
    elif parameter == "cputime":  # HS06 s per core; the queue's core power stands on the other side
        slope, offset = (
            (pl.max_horizontal("n_events", 1) / pl.col("cores")).median() / share / 1000,
            zero,
        )
    else:
        size = (
            pl.when(pl.col("outdisk_per_event").first())
            .then(events)
            .otherwise(pl.col("input_mb").median())
        )
        slope, offset = size * KB / MB, zero
    return (
        jobs.group_by("task")
        .agg(
            slope=slope.cast(pl.Float64),
            offset=offset.cast(pl.Float64),
            base_s=pl.col("basewalltime").first().fill_null(0).cast(pl.Float64),
        )
        .sort("task")
    )


def _capacity(queues: pl.DataFrame, parameter: str, base_s: float) -> FloatArray:
    """Return what each queue can give, in the unit of the demand; infinite without a limit."""
    if parameter == "ramcount":
        value = memory_per_core()
    elif parameter == "cputime":
        value = (positive("maxtime") - base_s) * pl.coalesce(positive("corepower"), 10.0)
    else:
        value = positive("maxwdir")
    return queues.select(value.cast(pl.Float64).fill_null(float("inf")))[:, 0].to_numpy()


def slots_by_queue(quantities: pl.DataFrame) -> pl.DataFrame:
    """Sum the core-hours seen at each queue, whoever used them: the size of a queue as the archive knows it."""
    coreh = pl.col("cores") * pl.col("duration_s") / HOUR_S
    return (
        quantities.filter(pl.col("computingsite").is_not_null())
        .group_by("computingsite")
        .agg(coreh=coreh.fill_null(0.0).sum())
        .sort("computingsite")
    )


def total(slots: pl.DataFrame) -> pl.DataFrame:
    """Add up several `slots_by_queue`."""
    return slots.group_by("computingsite").agg(pl.col("coreh").sum()).sort("computingsite")


def unlimited(queues: pl.DataFrame, parameter: str) -> int:
    """Count the queues without a limit to a parameter, see `reach_of`."""
    return int(np.isinf(_capacity(_known(queues), parameter, 0.0)).sum())


def _known(queues: pl.DataFrame) -> pl.DataFrame:
    """Select the columns read, absent ones as null."""
    return queues.select(
        (pl.col(name) if name in queues.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in QUEUE_COLUMNS.items()
    )
