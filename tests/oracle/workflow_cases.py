"""The worked examples of workflows on batch queues: how they are read, and what they are asked of."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
import pytest

from brokerlab.workflows import batch
from brokerlab.workflows.dag import Dag, workflow
from brokerlab.workflows.queues import BatchQueue, Queue, WaitQueue
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.runs import Run
from brokerlab.workflows.strategies import Strategy, strategy
from tests.oracle import vectors
from tests.wait_functions import linear, stepped

STRATEGIES = {
    **{name: f"pilot_levels:{name}" for name in ("paper", "paper_idle", "notes", "peer")},
    "giant": "one_job",
    "individual": "one_job_per_task",
}
METRICS = {f"{name}_node_seconds": name for name in ("occupied", "useful", "wasted")}
TASKS = {"task_id": pl.String, "runtime": pl.Float64, "estimate": pl.Float64, "hosts": pl.Int64}
EDGES = {"parent": pl.String, "child": pl.String}


def examples(*kinds: str) -> list[dict[str, Any]]:
    paths = [path for path in vectors.files("workflow_examples") if path.suffix == ".json"]
    if not paths:
        pytest.skip(f"no worked examples in {vectors.folder()}")
    found = [case for path in paths for case in json.loads(path.read_text())["examples"]]
    return [case for case in found if case["kind"] in kinds]


def dag_of(given: dict[str, Any]) -> Dag:
    real = given.get("actual_runtimes") or {}
    rows = [
        {
            "task_id": task["id"],
            "runtime": float(real.get(task["id"], task["runtime"])),
            "estimate": float(task["runtime"]),
            "hosts": task.get("hosts", 1),
        }
        for task in given["tasks"]
    ]
    edges = pl.DataFrame(given["edges"], schema=EDGES, orient="row")
    return workflow(pl.DataFrame(rows, schema=TASKS), edges)


def queue_of(given: dict[str, Any]) -> Queue:
    if given["wait"] is None:
        sim = batch.start(
            jobs_of(given["background"]), hosts=given["hosts"], policy=given["policy"]
        )
        batch.advance(sim, given["submit_time"])
        return BatchQueue(sim)
    wait = dict(given["wait"])
    kind = wait.pop("kind")
    if kind == "linear":
        estimate = linear(**wait)
    else:
        steps = next(iter(wait.values()))
        steps = {math.inf if limit is None else float(limit): value for limit, value in steps}
        of = {"by_walltime": lambda n, w: w, "by_hosts": lambda n, w: n}[kind]  # noqa: ARG005
        estimate = stepped(steps, of=of)
    actual = {int(number): value for number, value in (given["actual_waits"] or {}).items()}
    return WaitQueue(estimate, hosts=given["hosts"], actual=actual, now=given["submit_time"])


def jobs_of(jobs: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "job_id": job["id"],
                "submit_s": float(job["submit"]),
                "run_s": float(job["run"]),
                "requested_s": float(job["request"]),
                "hosts": job["hosts"],
            }
            for job in jobs
        ]
    )


def strategy_of(name: str) -> Strategy:
    if name == "peer_global":
        return strategy("pilot_levels", rules=PilotRules("peer", search="global"))
    return strategy(STRATEGIES.get(name, name))


def told(run: Run) -> dict[str, Any]:
    """Return a run as the worked examples write it down."""
    ids = run.dag.ids
    return {
        **run.metrics,
        **{theirs: run.metrics[ours] for theirs, ours in METRICS.items()},
        "individual": run.individual,
        "jobs": [
            {
                "id": f"P{place}",
                "tasks": sorted(ids[task] for task in job.tasks),
                **{name: getattr(job, name) for name in ("hosts", "request", "submit", "start", "end", "outcome")},
            }
            for place, job in enumerate(run.jobs)
        ],
        "tasks": {
            ids[task]: {"job": f"P{found.job}", "start": found.start, "end": found.end}
            for task, found in run.tasks.items()
        },
        "decisions": [decision.to_dict(run.dag) for decision in run.decisions],
    }  # fmt: skip


def differences(got: Any, wanted: Any, where: str = "") -> list[str]:
    """List where a result differs from what is expected of it; times agree to a microsecond."""
    if isinstance(wanted, dict):
        return [d for key in wanted for d in differences(got[key], wanted[key], f"{where}.{key}")]
    if isinstance(wanted, list):
        if len(got) != len(wanted):
            return [f"{where}: {got!r} is not {wanted!r}"]
        pairs = enumerate(zip(got, wanted, strict=True))
        return [d for i, (one, other) in pairs for d in differences(one, other, f"{where}[{i}]")]
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        same = abs(got - wanted) <= 1e-6
    else:
        same = got == wanted
    return [] if same else [f"{where}: {got!r} is not {wanted!r}"]
