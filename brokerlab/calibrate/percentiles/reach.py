"""Which queues, and which share of the slots, can still take a task that asks for so much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.parameters import Parameter
from brokerlab.calibrate.percentiles.requests import Line
from brokerlab.frames import columns_of
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.slots import Offers
from brokerlab.units import HOUR_S

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
        return self.of_demand(demand, tasks)

    def of_demand(
        self, demand: FloatArray, tasks: slice = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Return the same for what each task asks of a queue, (n_tasks, ...)."""
        queues, slots = np.ones_like(demand), np.ones_like(demand)
        kinds = self.kind[tasks]
        for kind in np.unique(kinds):  # one per distinct base time; one in all for memory and disk
            rows = kinds == kind
            queues[rows], slots[rows] = self.offers[kind].shares(demand[rows])
        return queues, slots


def reach_of(
    task: pl.Series, line: Line, queues: pl.DataFrame, slots: pl.DataFrame, parameter: Parameter
) -> Reach:
    """Describe what the typical job of each task, the median over its scored jobs, asks of a queue.

    Args:
        task: Number of the task of each job, ascending, every task present.
        line: What the jobs ask for.
        queues: ``panda_queue`` and the capacities; null and 0 are no limit.
        slots: ``computingsite, coreh``: core-hours observed, the weight of a queue's slots.
        parameter: Which.
    """
    sizes = queues.select("panda_queue").join(
        slots, left_on="panda_queue", right_on="computingsite", how="left", maintain_order="left"
    )
    weights = sizes["coreh"].fill_null(0.0).to_numpy()
    demand = (
        pl.DataFrame({"task": task, "a": line.demand, "b": line.demand_besides, "c": line.base_s})
        .group_by("task")
        .agg(pl.col("a", "b").median(), pl.col("c").first())
        .sort("task")
    )
    base, kind = np.unique(demand["c"].to_numpy(), return_inverse=True)
    return Reach(
        slope=demand["a"].to_numpy(),
        offset=demand["b"].to_numpy(),
        kind=np.asarray(kind, dtype=np.int64),
        offers=tuple(Offers.of(_offered(queues, parameter, float(b)), weights) for b in base),
    )


def _offered(queues: pl.DataFrame, parameter: Parameter, base_s: float) -> FloatArray:
    """Return what each queue can give, in the unit of the demand; infinite without a limit."""
    value = parameter.offered(base_s).cast(pl.Float64).fill_null(float("inf"))
    return columns_of(queues, QUEUE_COLUMNS).select(offered=value)["offered"].to_numpy()


def slots_by_queue(quantities: pl.DataFrame) -> pl.DataFrame:
    """Sum the core-hours seen at each queue, whoever used them: the size of a queue as the archive knows it."""
    coreh = pl.col("cores") * pl.col("duration_s") / HOUR_S
    known = quantities.filter(pl.col("computingsite").is_not_null())
    return total([known.select("computingsite", coreh=coreh.fill_null(0.0))])


def total(slots: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Add up core-hours by ``computingsite``, in one order: the same bits whatever order, threads or engine rows came from."""
    rows = pl.concat(slots).sort("computingsite", "coreh")
    return rows.group_by("computingsite", maintain_order=True).agg(pl.col("coreh").sum())


def unlimited(queues: pl.DataFrame, parameter: Parameter) -> int:
    """Count the queues without a limit to a parameter."""
    return int(np.isinf(_offered(queues, parameter, 0.0)).sum())
