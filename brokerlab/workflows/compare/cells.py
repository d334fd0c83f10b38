"""The runs of one cell: the log is played up to each instant once, then every workflow is run in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import polars as pl

from brokerlab.long_work import Kept, in_processes
from brokerlab.workflows import batch
from brokerlab.workflows.batch import Simulation
from brokerlab.workflows.compare.plan import Cell, Plan
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.errors import WorkflowError
from brokerlab.workflows.manager import run
from brokerlab.workflows.partitions import best_partition
from brokerlab.workflows.queues import BatchQueue
from brokerlab.workflows.runs import Run
from brokerlab.workflows.strategies import Strategy

METRICS = (
    "turnaround", "dedicated", "wait_seen", "relative_wait", "queue_wait_sum", "jobs_submitted", "jobs_cancelled",
    "expirations", "splits", "occupied", "useful", "wasted", "requested",
)  # fmt: skip
SCHEMA: dict[str, pl.DataType] = {
    "system": pl.String(),
    "workflow": pl.String(),
    "strategy": pl.String(),
    "instant": pl.Int64(),
    "submit_time": pl.Float64(),
    **{name: pl.Float64() for name in METRICS},
    "shape": pl.String(),
    "n_decisions": pl.Int64(),
    "first_wait": pl.Float64(),
    "first_exec": pl.Float64(),
    "problem": pl.String(),
}
"""Columns of the runs: the metrics, how the run went, the first decision's estimates [s], why there is no run."""


def run_cell(plan: Plan, cell: Cell) -> pl.DataFrame:
    """Run everything at the instants of a cell."""
    system = plan.systems[cell.system]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    rows: list[dict[str, Any]] = []
    for place, at in enumerate(cell.times):
        batch.advance(sim, at)
        copy: Simulation | None = None
        for workflow, dag in plan.workflows.items():
            alone: dict[str, Run] = {}
            for label, how in plan.strategies.items():
                key = {
                    "system": cell.system,
                    "workflow": workflow,
                    "strategy": label,
                    "instant": cell.first + place,
                    "submit_time": at,
                }
                copy = sim.copy(copy)
                rows.append(key | _told(dag, how, copy, at, plan.partition_levels, alone))
    return pl.DataFrame(rows, schema=SCHEMA)


def _told(
    dag: Dag,
    how: Strategy | None,
    sim: Simulation,
    at: float,
    levels: int,
    alone: dict[str, Run],
) -> dict[str, Any]:
    """Return the metrics of a run, or why there is none."""
    if how is None and len(dag.levels) > levels:
        return {"problem": f"{len(dag.levels)} levels, partitions are tried up to {levels}"}
    try:
        if how is None:
            done = best_partition(dag, lambda: BatchQueue(sim.copy()), submit_time=at)
        else:
            done = run(dag, BatchQueue(sim), how, submit_time=at, alone=alone)
    except WorkflowError as problem:
        return {"problem": str(problem)}
    return {**done.metrics, "shape": done.shape, **dict(_first(done))}


def _first(done: Run) -> Iterator[tuple[str, Any]]:
    yield "n_decisions", len(done.decisions)
    if done.decisions:
        yield "first_wait", done.decisions[0].wait
        yield "first_exec", done.decisions[0].exec


Told = Callable[[Cell], None]


def finish(
    plan: Plan, cells: Sequence[Cell], store: Kept, *, workers: int, message: Told
) -> tuple[list[pl.DataFrame], dict[Cell, str]]:
    """Run cells."""
    results: list[pl.DataFrame] = []
    lost: dict[Cell, str] = {}
    for cell, result in _results(plan, cells, workers):
        if isinstance(result, BrokenProcessPool):
            lost[cell] = "its process was killed"
        elif isinstance(result, Exception):
            lost[cell] = f"{type(result).__name__}: {result}"
        else:
            store.save(plan.key(cell), result)
            results.append(result)
            message(cell)
    return results, lost


def _results(
    plan: Plan, cells: Sequence[Cell], workers: int
) -> Iterator[tuple[Cell, pl.DataFrame | Exception]]:
    if workers > 1:
        return in_processes(run_cell, plan, cells, workers=workers)
    return ((cell, run_cell(plan, cell)) for cell in cells)
