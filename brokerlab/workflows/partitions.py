"""The best that pilots of whole levels could have done: every partition of the levels, tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from brokerlab.errors import ConfigError
from brokerlab.workflows.dag import Dag
from brokerlab.workflows.manager import run
from brokerlab.workflows.queues import Queue
from brokerlab.workflows.runs import Run
from brokerlab.workflows.strategies import partition

MOST_LEVELS = 12  # there are 2 to the power of (levels - 1) partitions


def best_partition(
    dag: Dag,
    queue: Callable[[], Queue],
    *,
    submit_time: float = 0.0,
    most_levels: int = MOST_LEVELS,
) -> Run:
    """Run every partition of the levels into consecutive pilots, and return the run that ended first.

    Source: workflows.md 10.
    """
    if len(dag.levels) > min(most_levels, MOST_LEVELS):
        raise ConfigError(
            f"workflow {dag.name!r}: best_partition tries at most {min(most_levels, MOST_LEVELS)} levels, "
            f"this one has {len(dag.levels)}"
        )
    runs = (
        run(dag, queue(), partition(groups), submit_time=submit_time)
        for groups in sorted(partitions(len(dag.levels)), key=len)
    )
    return min(runs, key=lambda done: done.metrics["turnaround"])


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Return the ways to cut n levels into consecutive groups.

    Example:
        >>> sorted(partitions(3))
        [(1, 1, 1), (1, 2), (2, 1), (3,)]
    """
    if n <= 0:
        yield ()
    for size in range(1, n + 1):
        for rest in partitions(n - size):
            yield (size, *rest)
