"""What makes tasks and edges a workflow: every problem is found and told at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx
import polars as pl

from brokerlab.workflows.errors import CycleError, MissingRuntime, TaskTooWide, WorkflowError

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
