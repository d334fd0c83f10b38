"""Small workflows and queues for tests."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from brokerlab.workflows.dag import Dag, workflow
from brokerlab.workflows.queues import WaitQueue, constant

TASKS = {"task_id": pl.String, "runtime": pl.Float64, "estimate": pl.Float64, "hosts": pl.Int64}
EDGES = {"parent": pl.String, "child": pl.String}


def dag(runtimes, edges=(), *, estimates=None, hosts=None, **options) -> Dag:
    """Return a workflow from {task: run time} and pairs of tasks."""
    rows = [
        {
            "task_id": task,
            "runtime": None if run is None else float(run),
            "estimate": (estimates or {}).get(task),
            "hosts": (hosts or {}).get(task),
        }
        for task, run in runtimes.items()
    ]
    pairs = pl.DataFrame(list(edges), schema=EDGES, orient="row")
    return workflow(pl.DataFrame(rows, schema=TASKS), pairs, **options)


def chain(*runtimes: float) -> Dag:
    """Return a chain of tasks A, B, C, ..."""
    names = [chr(ord("A") + place) for place in range(len(runtimes))]
    return dag(dict(zip(names, runtimes, strict=True)), pairwise(names))


def waits(seconds: float = 50, hosts: int = 10) -> WaitQueue:
    """Return a queue where every request waits the same."""
    return WaitQueue(constant(seconds), hosts=hosts)
