"""A workflow: tasks, what they wait for, levels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import prepared
from brokerlab.lazy import Later

nx = Later("networkx")


class WorkflowError(DataError):
    """Raised when tasks and edges are no workflow; says everything that is wrong with them."""


class CycleError(WorkflowError):
    """Raised when tasks wait for each other in a circle; names one such circle."""


class MissingRuntime(WorkflowError):  # noqa: N818 - the chapter's name
    """Raised when tasks have no run time and no default is given."""


class TaskTooWide(WorkflowError):  # noqa: N818 - the chapter's name
    """Raised when a task needs more hosts than the machine has."""


class RunFailed(WorkflowError):  # noqa: N818 - a run that came to no end is no broken workflow
    """Raised when a task is killed at its walltime again and again."""


class Tasks(dy.Schema):
    """One row per task (workflows.md 1.1)."""

    task_id = dy.String(nullable=False, metadata={"meaning": "unique in the workflow"})
    runtime = dy.Float64(
        nullable=True,
        metadata={"unit": "s", "meaning": "real run time on its hosts; null: not known"},
    )
    estimate = dy.Float64(
        nullable=True,
        metadata={"unit": "s", "meaning": "run time known to the scheduler; null: as runtime"},
    )
    hosts = dy.Int64(
        nullable=True, metadata={"unit": "hosts", "meaning": "hosts it takes; null: 1"}
    )
    name = dy.String(nullable=True, metadata={"meaning": "label"})
    type = dy.String(nullable=True, metadata={"meaning": "kind of task"})


class Edges(dy.Schema):
    """One row per dependency: the child starts when the parent is done."""

    parent = dy.String(nullable=False, metadata={"meaning": "task_id"})
    child = dy.String(nullable=False, metadata={"meaning": "task_id"})


TABLES: dict[str, type[dy.Schema]] = {"tasks": Tasks, "edges": Edges}


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
        first = min(map(self.level.__getitem__, considered), default=0)
        last = self.levels[first:]  # these remain where whole levels went before
        is_all = sum(map(len, last)) == len(considered)
        return last if is_all else self._levels_of(considered)

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


SHOWN = 5
MISSING_SHOWN = 10  # tasks named that lack a run time (workflows.md 14)
Problem = tuple[type[WorkflowError], str]


def check(name: str, tasks: pl.DataFrame, edges: pl.DataFrame) -> None:
    """Refuse tasks and edges, defaults filled in, that are no workflow; the error is of the first kind of what is wrong, and tells all of that kind.

    Source: workflows.md 1.1, 14.
    """
    problems = [*_ids(tasks, edges), *_numbers(tasks), *_cycle(edges), *_missing(tasks)]
    if problems:
        raise problems[0][0](f"workflow {name!r}: " + "; ".join(text for _, text in problems))


def check_width(name: str, ids: Sequence[str], hosts: Sequence[int], machine: int) -> None:
    """Refuse tasks that are wider than the machine."""
    wide = [f"{task} ({n})" for task, n in zip(ids, hosts, strict=True) if n > machine]
    if wide:
        raise TaskTooWide(
            f"workflow {name!r}: {len(wide)} tasks need more hosts than the machine's {machine}: {named(wide)}; "
            "run it on a larger machine"
        )


def named(items: Iterable[str], most: int = SHOWN) -> str:
    """List the first few.

    Example:
        >>> named("abcdefgh", 3)
        'a, b, c and 5 more'
    """
    every = list(items)
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")


def _ids(tasks: pl.DataFrame, edges: pl.DataFrame) -> list[Problem]:
    ids = tasks["task_id"]
    result = []
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if twice.len():
        result.append(f"tasks.task_id: {twice.len()} ids stand more than once: {named(twice)}")
    for column in ("parent", "child"):
        unknown = edges.filter(~pl.col(column).is_in(ids.implode()))[column].unique(
            maintain_order=True
        )
        if unknown.len():
            result.append(f"edges.{column}: {unknown.len()} unknown task ids: {named(unknown)}")
    selves = edges.filter(pl.col("parent") == pl.col("child"))["parent"]
    if selves.len():
        result.append(f"edges: {selves.len()} tasks wait for themselves: {named(selves)}")
    return [(WorkflowError, text) for text in result]


def _numbers(tasks: pl.DataFrame) -> list[Problem]:
    result = []
    for column in ("runtime", "estimate"):
        value = pl.col(column)
        wrong = tasks.filter(value.is_not_null() & ~(value.is_finite() & (value >= 0)))
        if wrong.height:
            words = [f"{row['task_id']} ({row[column]})" for row in wrong.to_dicts()]
            result.append(
                f"tasks.{column}: {wrong.height} values, a number of at least 0 [s] is allowed: {named(words)}"
            )
    narrow = tasks.filter(pl.col("hosts") < 1)
    if narrow.height:
        words = [f"{row['task_id']} ({row['hosts']})" for row in narrow.to_dicts()]
        result.append(f"tasks.hosts: {narrow.height} values below 1: {named(words)}")
    return [(WorkflowError, text) for text in result]


def _missing(tasks: pl.DataFrame) -> list[Problem]:
    missing = tasks.filter(pl.col("runtime").is_null())["task_id"]
    if missing.is_empty():
        return []
    message = f"{missing.len()} of {tasks.height} tasks have none: {named(missing, MISSING_SHOWN)}"
    return [(MissingRuntime, f"tasks.runtime: {message}; give default_runtime")]


def _cycle(edges: pl.DataFrame) -> list[Problem]:
    graph = nx.DiGraph(edges.filter(pl.col("parent") != pl.col("child")).rows())
    if nx.is_directed_acyclic_graph(graph):
        return []
    circle = [parent for parent, _ in nx.find_cycle(graph)]
    path = " -> ".join(named_path([*circle, circle[0]]))
    return [(CycleError, f"edges: {len(circle)} tasks wait for each other in a circle: {path}")]


def named_path(path: list[str], most: int = 20) -> list[str]:
    """Leave out the middle of a long path.

    Example:
        >>> named_path(list("abcdef"), 4)
        ['a', 'b', '...', 'e', 'f']
    """
    half = most // 2
    return path if len(path) <= most else [*path[:half], "...", *path[-half:]]
