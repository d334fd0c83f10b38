"""What is compared, cut into cells that can be run, stored and repeated one by one, and the runs of a cell."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from brokerlab import __version__
from brokerlab.errors import ConfigError
from brokerlab.long_work import Kept, in_processes
from brokerlab.workflows import batch
from brokerlab.workflows.batch import Simulation
from brokerlab.workflows.dag import Dag, WorkflowError
from brokerlab.workflows.load import check_jobs
from brokerlab.workflows.manager import best_partition, run
from brokerlab.workflows.queues import BatchQueue
from brokerlab.workflows.runs import Run
from brokerlab.workflows.strategies import Strategy, strategy

BEST = "best_partition"  # A search over runs, not a strategy of its own
BESIDE = ("pilot_levels:notes", "pilot_levels:paper")
"""Where one is compared, so is the other (workflows.md 0)."""


@dataclass(frozen=True, eq=False)
class BatchSystem:
    """A machine with its scheduler and its background load."""

    background: pl.DataFrame  # jobs as `brokerlab.workflows.load.BatchJobs`
    hosts: int  # of the machine [hosts]
    policy: str = "easy"  # ``fcfs``, ``easy`` or ``conservative``
    cluster: str = ""  # name shared by the same machine under several policies

    @cached_property
    def digest(self) -> str:
        """A digest of load, machine and policy."""
        buffer = io.BytesIO()
        check_jobs(self.background, self.hosts).write_ipc(buffer)
        digest = hashlib.blake2b(buffer.getvalue(), digest_size=8)
        digest.update(f"{self.hosts} {self.policy}".encode())
        return digest.hexdigest()

    @cached_property
    def span(self) -> tuple[float, float]:
        """First and last submission of the background [s]."""
        times = self.background["submit_s"]
        return (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)  # type: ignore[arg-type]

    @cached_property
    def load(self) -> float:
        """Host time that the background uses over host time there is, from first to last submission."""
        return self._share("run_s")

    @cached_property
    def requested_load(self) -> float:
        """Host time that the background asks for over host time there is."""
        return self._share("requested_s")

    def _share(self, column: str) -> float:
        first, last = self.span
        used = float((self.background["hosts"] * self.background[column]).sum())
        return used / (self.hosts * (last - first)) if last > first else 0.0


def instants(system: BatchSystem, n: int, *, seed: int, edge: float = 0.1) -> tuple[float, ...]:
    """Draw instants at which a workflow is submitted, in order."""
    first, last = system.span
    margin = edge * (last - first)
    drawn = np.random.default_rng(seed).uniform(first + margin, last - margin, n)
    return tuple(sorted(float(np.floor(value)) for value in drawn))


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Workflows x strategies x instants x machines."""

    workflows: Mapping[str, Dag]  # by name
    systems: Mapping[str, BatchSystem]  # by name
    # by label; None stands for the search for the best partition
    strategies: Mapping[str, Strategy | None]
    times: Mapping[str, tuple[float, ...]]  # instants by machine [s]
    partition_levels: int = 5  # levels of a workflow whose partitions are tried at most

    def cells(self, size: int) -> tuple[Cell, ...]:
        """Cut the instants of each machine into cells of so many."""
        return tuple(
            Cell(system=name, first=first, times=times[first : first + size])
            for name, times in self.times.items()
            for first in range(0, len(times), size)
        )

    def key(self, cell: Cell) -> str:
        """Return what tells a cell of this plan from any other."""
        known = [
            (
                name,
                "" if how is None else how.rules.digest + repr(getattr(how.plan, "keywords", "")),
            )
            for name, how in self.strategies.items()
        ]
        flows = [(name, dag.digest) for name, dag in self.workflows.items()]
        text = repr((__version__, cell.times, cell.first, cell.system, self.systems[cell.system].digest, flows, known, self.partition_levels))  # fmt: skip
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs at some instants of one machine."""

    system: str  # name of the machine
    first: int  # number of its first instant
    times: tuple[float, ...] = field(repr=False)  # the instants [s]

    @property
    def label(self) -> str:
        """The cell in words."""
        return f"{self.system}, instants {self.first + 1} to {self.first + len(self.times)}"


def chosen(strategies: Sequence[str | Strategy]) -> dict[str, Strategy | None]:
    """Return the strategies of a comparison by label; the rule sets ``notes`` and ``paper`` come together."""
    result: list[tuple[str, Strategy | None]] = []
    for item in strategies:
        if item == BEST:
            result.append((BEST, None))
        else:
            how = strategy(item) if isinstance(item, str) else item
            result.append((how.label, how))
    labels = [label for label, _ in result]
    if len(set(labels)) < len(labels):
        raise ConfigError(f"strategies: each once, these are {', '.join(labels)}")
    if any(label.startswith("pilot_levels") for label in labels):
        result += [(name, strategy(name)) for name in BESIDE if name not in labels]
    return dict(result)


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
                rows.append(key | _run_metrics(dag, how, copy, at, plan.partition_levels, alone))
    return pl.DataFrame(rows, schema=SCHEMA)


def _run_metrics(
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


Advance = Callable[[Cell], None]


def finish(
    plan: Plan, cells: Sequence[Cell], store: Kept, *, workers: int, advance: Advance
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
            advance(cell)
    return results, lost


def _results(
    plan: Plan, cells: Sequence[Cell], workers: int
) -> Iterator[tuple[Cell, pl.DataFrame | Exception]]:
    if workers > 1:
        return in_processes(run_cell, plan, cells, workers=workers)
    return ((cell, run_cell(plan, cell)) for cell in cells)
