"""How long a group of tasks takes on its own hosts: greedy list scheduling."""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

from brokerlab.errors import ConfigError
from brokerlab.workflows.dag import Dag

Key = tuple[int, float, str]
PLACES = 6  # instants are whole microseconds, as in the batch queue


def instant(seconds: float) -> float:
    """Round an instant [s] to the grid of the batch queue: what ends together is seen to end together.

    Example:
        >>> instant(0.1 + 0.2)
        0.3
    """
    return round(seconds, PLACES)


def keys(
    dag: Dag, levels: Sequence[Sequence[int]], estimate: Mapping[int, float] | None = None
) -> dict[int, Key]:
    """Return the order in which ready tasks start: level, longest estimate first, task id."""
    known = estimate or {}
    return {
        task: (number, -known.get(task, dag.estimate[task]), dag.ids[task])
        for number, tasks in enumerate(levels)
        for task in tasks
    }


def makespan(
    dag: Dag,
    levels: Sequence[Sequence[int]],
    n: int,
    *,
    mode: Literal["list", "barrier"] = "list",
    estimate: Mapping[int, float] | None = None,
) -> float:
    """Return how long the tasks of some levels take on hosts of their own, by estimates.

    A task is ready when its parents in the group are done; ready tasks start in the order of `keys` as hosts get free,
    and one that does not fit holds back those behind it.

    Source: workflows.md 3; row W10.
    """
    if mode == "barrier":
        return sum(makespan(dag, [tasks], n, estimate=estimate) for tasks in levels)
    if estimate:
        return _list(dag, keys(dag, levels, estimate), n)
    group = array("q", chain.from_iterable(levels)).tobytes()
    known = (hashlib.blake2b(group, digest_size=16).digest(), n)
    if known not in dag.memo:
        dag.memo[known] = _list(dag, keys(dag, levels), n)
    return dag.memo[known]


def _list(dag: Dag, key: Mapping[int, Key], n: int) -> float:
    if n < max((dag.hosts[task] for task in key), default=1) or n < 1:
        raise ConfigError(f"hosts={n}: a group needs at least 1, and as many as its widest task")
    waits = {task: sum(parent in key for parent in dag.parents[task]) for task in key}
    ready = [(place, task) for task, place in key.items() if not waits[task]]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now, free = 0.0, n
    while ready or running:
        while ready and dag.hosts[ready[0][1]] <= free:
            place, task = heapq.heappop(ready)
            free -= dag.hosts[task]
            heapq.heappush(running, (instant(now - place[1]), task))
        now = running[0][0]
        while running and running[0][0] == now:
            _, task = heapq.heappop(running)
            free += dag.hosts[task]
            for child in dag.children[task]:
                if child in waits:
                    waits[child] -= 1
                    if not waits[child]:
                        heapq.heappush(ready, (key[child], child))
    return now
