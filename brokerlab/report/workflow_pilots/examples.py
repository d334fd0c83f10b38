"""One instant at which every strategy is looked at closely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from brokerlab.workflows import batch
from brokerlab.workflows.compare import Comparison
from brokerlab.workflows.compare.plan import BESIDE
from brokerlab.workflows.manager import run
from brokerlab.workflows.queues import BatchQueue
from brokerlab.workflows.runs import Run

MOST_LEVELS = 12
"""Levels of a workflow whose runs can be drawn line by line."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """Every strategy at one instant.

    Attributes:
        system: Name of the machine.
        workflow: Name of the workflow.
        submit_time: The instant [s].
        runs: By strategy.
    """

    system: str
    workflow: str
    submit_time: float
    runs: Mapping[str, Run]


def example(comparison: Comparison) -> Example | None:
    """Look closely at the run with most pilots under the rules of the paper: there the strategies differ in what they do.

    Returns:
        The earliest of those; none where there is no run of a workflow that can be drawn.
    """
    plan = comparison.plan
    low = [name for name, dag in plan.workflows.items() if len(dag.levels) <= MOST_LEVELS]
    seen = comparison.done.filter(
        pl.col("strategy") == BESIDE[1], pl.col("workflow").is_in(low or list(plan.workflows))
    )
    if seen.is_empty():
        return None
    order = ["splits", "jobs_submitted", "system", "workflow", "instant"]
    chosen = seen.sort(order, descending=[True, True, False, False, False]).row(0, named=True)
    system = plan.systems[chosen["system"]]
    sim = batch.start(system.background, hosts=system.hosts, policy=system.policy)
    batch.advance(sim, chosen["submit_time"])
    runs = {
        label: run(plan.workflows[chosen["workflow"]], BatchQueue(sim.copy()), how, submit_time=chosen["submit_time"])
        for label, how in plan.strategies.items()
        if how is not None
    }  # fmt: skip
    return Example(
        system=chosen["system"],
        workflow=chosen["workflow"],
        submit_time=chosen["submit_time"],
        runs=runs,
    )


def bars(done: Run) -> pl.DataFrame:
    """Return when the jobs of a run waited and ran, a line per pilot and a line per level of single tasks.

    Returns:
        ``line, phase`` (waits, runs, expires, cancelled), ``begin_s, end_s`` [s since the submission], ``jobs``; by line.
    """
    jobs = done.jobs_frame().with_columns(pl.col("submit", "start", "end") - done.submit_time)
    pilots = jobs.filter(~pl.col("individual"))
    rows = []
    for job in pilots.iter_rows(named=True):
        first, last = job["first_level"] + 1, job["last_level"] + 1
        levels = f"level {first}" if first == last else f"levels {first} to {last}"
        line = f"{job['job']}: {levels}, {job['hosts']} host{'s' if job['hosts'] > 1 else ''}"
        rows += _phases(
            line, job["submit"], job["start"], job["end"], 1, expired=job["outcome"] == "expired"
        )
    single = jobs.filter(pl.col("individual")).group_by("first_level").agg(
        pl.col("submit", "start").min(), pl.col("end").max(), n=pl.len()
    )  # fmt: skip
    for level in single.sort("first_level").iter_rows(named=True):
        line = f"level {level['first_level'] + 1}: {level['n']} single task{'s' if level['n'] > 1 else ''}"
        rows += _phases(line, level["submit"], level["start"], level["end"], level["n"])
    schema = {"line": pl.String, "phase": pl.String, "begin_s": pl.Float64, "end_s": pl.Float64, "jobs": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _phases(
    line: str, submit: float, start: float | None, end: float, n: int, *, expired: bool = False
) -> list[tuple[str, str, float, float, int]]:
    if start is None:
        return [(line, "cancelled", submit, end, n)]
    return [
        (line, "waits", submit, start, n),
        (line, "expires" if expired else "runs", start, end, n),
    ]
