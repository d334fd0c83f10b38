"""A workflow: tasks, what they wait for, levels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import networkx as nx
import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.frames import prepared
from brokerlab.workflows.checks import check, check_width
from brokerlab.workflows.contracts import TABLES


@dataclass(frozen=True, eq=False)
class Dag:
    """A checked workflow; a task is the number of its row."""

    name: str  # of the workflow
    ids: tuple[str, ...]  # task ids
    runtime: tuple[float, ...]  # real run times [s]
    estimate: tuple[float, ...]  # run times known to the scheduler [s]
    hosts: tuple[int, ...]  # hosts of the tasks
    parents: tuple[tuple[int, ...], ...]  # tasks that each waits for, in order
    children: tuple[tuple[int, ...], ...]  # tasks that wait for each, in order
    order: tuple[int, ...]  # tasks, parents before children
    # what was odd about the source and was read all the same, in words
    findings: tuple[str, ...] = ()
    memo: dict[Any, float] = field(default_factory=dict, repr=False)
    """Makespans known already, by `schedule.makespan`."""

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was computed behind: other processes compute it again."""
        kept = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**kept, "memo": {}}

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The tasks of each level of the whole workflow."""
        return self._levels_of(set(range(len(self))))

    @cached_property
    def level(self) -> tuple[int, ...]:
        """The level of each task: the longest path from an entry."""
        result = [0] * len(self)
        for number, tasks in enumerate(self.levels):
            for task in tasks:
                result[task] = number
        return tuple(result)

    def levels_of(self, tasks: Collection[int]) -> tuple[tuple[int, ...], ...]:
        """Return the levels of some tasks: parents outside of them are left out (workflows.md 2)."""
        considered = set(tasks)
        return self.levels if len(considered) == len(self) else self._levels_of(considered)

    def _levels_of(self, considered: set[int]) -> tuple[tuple[int, ...], ...]:
        level: dict[int, int] = {}
        result: list[list[int]] = []
        for task in self.order:
            if task not in considered:
                continue
            place = 1 + max([level.get(parent, -1) for parent in self.parents[task]], default=-1)
            level[task] = place
            if place == len(result):
                result.append([])
            result[place].append(task)
        return tuple(tuple(sorted(members)) for members in result)

    def width(self, tasks: Sequence[int]) -> int:
        """Return the hosts [hosts] that tasks need side by side."""
        return sum(self.hosts[task] for task in tasks)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Hosts that each level needs, its tasks side by side [hosts]."""
        return tuple(self.width(tasks) for tasks in self.levels)

    @cached_property
    def work(self) -> float:
        """Hosts x run time over all tasks [host s]."""
        return sum(n * run for n, run in zip(self.hosts, self.runtime, strict=True))

    @cached_property
    def longest_path(self) -> float:
        """Run time of the longest chain of tasks [s]."""
        end = [0.0] * len(self)
        for task in self.order:
            ready = max((end[parent] for parent in self.parents[task]), default=0.0)
            end[task] = ready + self.runtime[task]
        return max(end, default=0.0)

    @cached_property
    def digest(self) -> str:
        """A digest of tasks, numbers and edges."""
        text = repr((self.ids, self.runtime, self.estimate, self.hosts, self.parents))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def check_fits(self, machine: int) -> None:
        """Refuse to run on a machine that is narrower than a task."""
        check_width(self.name, self.ids, self.hosts, machine)

    def tasks_frame(self) -> pl.DataFrame:
        """Return one row per task: ``task_id, level, runtime [s], estimate [s], hosts``."""
        return pl.DataFrame(
            {
                "task_id": self.ids,
                "level": self.level,
                "runtime": self.runtime,
                "estimate": self.estimate,
                "hosts": self.hosts,
            },
            schema={
                "task_id": pl.String,
                "level": pl.Int64,
                "runtime": pl.Float64,
                "estimate": pl.Float64,
                "hosts": pl.Int64,
            },
        )


def workflow(
    tasks: Any,
    edges: Any,
    *,
    name: str = "workflow",
    default_runtime: float | None = None,
    stretch: float = 1.0,
    findings: Sequence[str] = (),
) -> Dag:
    """Check tasks and edges and return the workflow they are (workflows.md 1.1)."""
    if not (math.isfinite(stretch) and stretch > 0):
        raise ConfigError(f"workflow {name!r}: stretch={stretch!r}: a number above 0 is allowed")
    tables = prepared({"tasks": tasks, "edges": edges}, TABLES)
    rows = tables["tasks"].with_columns(
        pl.col("runtime").fill_null(pl.lit(default_runtime, dtype=pl.Float64)),
        pl.col("hosts").fill_null(1),
    )
    rows = rows.with_columns(pl.col("estimate").fill_null(pl.col("runtime")))
    pairs = tables["edges"].unique(maintain_order=True)
    check(name, rows, pairs)
    return _dag(name, rows, pairs, stretch, tuple(findings))


def _dag(
    name: str, rows: pl.DataFrame, pairs: pl.DataFrame, stretch: float, findings: tuple[str, ...]
) -> Dag:
    ids = rows["task_id"].to_list()
    number = {task: place for place, task in enumerate(ids)}
    parents: list[list[int]] = [[] for _ in ids]
    children: list[list[int]] = [[] for _ in ids]
    for parent, child in pairs.iter_rows():
        parents[number[child]].append(number[parent])
        children[number[parent]].append(number[child])
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(ids)))
    graph.add_edges_from((p, c) for p, below in enumerate(children) for c in below)
    return Dag(
        name=name,
        ids=tuple(ids),
        runtime=tuple(value * stretch for value in rows["runtime"]),
        estimate=tuple(value * stretch for value in rows["estimate"]),
        hosts=tuple(rows["hosts"]),
        parents=tuple(tuple(sorted(result)) for result in parents),
        children=tuple(tuple(sorted(result)) for result in children),
        order=tuple(nx.topological_sort(graph)),
        findings=findings,
    )
