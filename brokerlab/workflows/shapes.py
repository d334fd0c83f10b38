"""Workflows of the published shapes, generated: for comparisons where no recorded one has the shape.

Source: P = Zhang, Koelbel, Cooper, Cluster 2009, figure 7 (workflows.md 12.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.workflows.dag import Dag, workflow


def fork_join(width: int, *, runtime: float, rounds: int = 2) -> Dag:
    """Return 1-n-1-n-1: a task, then as many side by side, joined, and again (EMAN)."""
    _at_least_one(width=width, rounds=rounds)
    edges: list[tuple[str, str]] = []
    for turn in range(rounds):
        for place in range(width):
            edges += [(f"join{turn}", f"t{turn}.{place}"), (f"t{turn}.{place}", f"join{turn + 1}")]
    return _even(f"fork-join {width}", edges, runtime)


def pipelines(width: int, length: int, *, runtime: float) -> Dag:
    """Return a split, parallel pipelines, a merge (BLAST)."""
    _at_least_one(width=width, length=length)
    edges: list[tuple[str, str]] = []
    for place in range(width):
        names = ["split", *(f"p{place}.{step}" for step in range(length)), "merge"]
        edges += pairwise(names)
    return _even(f"pipelines {width} x {length}", edges, runtime)


def gaussian(n: int, *, runtime: float) -> Dag:
    """Return Gaussian elimination of n columns: a triangle of 2 (n - 1) levels, at most n - 1 wide."""
    if n < 2:
        raise ConfigError(f"n={n}: must be at least 2")
    edges: list[tuple[str, str]] = []
    for step in range(n - 1):
        for column in range(step + 1, n):
            edges.append((f"pivot{step}", f"t{step}.{column}"))
            if step:
                edges.append((f"t{step - 1}.{column}", f"t{step}.{column}"))
        if step:
            edges.append((f"t{step - 1}.{step}", f"pivot{step}"))
    return _even(f"Gaussian elimination {n}", edges, runtime)


def usual(stretch: float = 1.0) -> dict[str, Dag]:
    """Return workflows by name for where no recorded ones are at hand."""
    made = (
        fork_join(40, runtime=900 * stretch),
        pipelines(20, 3, runtime=1200 * stretch),
        gaussian(10, runtime=600 * stretch),
    )
    return {dag.name: dag for dag in made}


def _even(name: str, edges: Iterable[tuple[str, str]], runtime: float) -> Dag:
    pairs = list(edges)
    ids = list(dict.fromkeys(name for pair in pairs for name in pair))
    tasks = pl.DataFrame({"task_id": ids, "runtime": [float(runtime)] * len(ids)})
    return workflow(tasks, pl.DataFrame(pairs, schema=["parent", "child"], orient="row"), name=name)


def _at_least_one(**numbers: int) -> None:
    wrong = [f"{name}={n}: must be at least 1" for name, n in numbers.items() if n < 1]
    if wrong:
        raise ConfigError("; ".join(wrong))
