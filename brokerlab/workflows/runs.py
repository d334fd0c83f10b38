"""What happened in a run: its jobs, tasks and decisions as tables, and its metrics."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from brokerlab.workflows.dag import Dag
from brokerlab.workflows.decide import Decision
from brokerlab.workflows.schedule import Key, instant, makespan


class TaskRun(NamedTuple):
    """When a task ran to its end [s], and in which job of the run."""

    job: int
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """A workflow that was run on a queue."""

    dag: Dag  # the workflow
    strategy: str  # how it was submitted
    submit_time: float  # when [s]
    jobs: tuple[Job, ...]  # its jobs, in order of submission
    tasks: Mapping[int, TaskRun]  # task -> when it ran
    decisions: tuple[Decision, ...]  # of grouping, in order; of the other strategies none
    individual: bool  # tasks went one by one at the end
    machine: int  # hosts of the machine

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Every metric by name.

        ``turnaround, dedicated, wait_seen`` [s], ``relative_wait``, ``queue_wait_sum`` [s], ``jobs_submitted``,
        ``jobs_cancelled``, ``expirations``, ``splits``, ``occupied, useful, wasted, requested`` [host s].

        Source: workflows.md 11.
        """
        started = [job for job in self.jobs if not math.isnan(job.start)]
        last = max((task.end for task in self.tasks.values()), default=self.submit_time)
        turnaround, dedicated = last - self.submit_time, self._dedicated
        occupied = sum(job.hosts * (job.end - job.start) for job in started)
        pilots = sum(not job.individual for job in started)
        return {
            "turnaround": turnaround,
            "dedicated": dedicated,
            "wait_seen": turnaround - dedicated,
            "relative_wait": (turnaround - dedicated) / dedicated if dedicated else math.nan,
            "queue_wait_sum": sum(job.start - job.submit for job in started),
            "jobs_submitted": len(self.jobs),
            "jobs_cancelled": sum(job.outcome == "cancelled" for job in self.jobs),
            "expirations": sum(job.outcome == "expired" for job in self.jobs),
            "splits": max(0, pilots - 1),
            "occupied": occupied,
            "useful": self.dag.work,
            "wasted": occupied - self.dag.work,
            "requested": sum(job.hosts * job.request for job in self.jobs),
        }

    @property
    def _dedicated(self) -> float:
        levels = self.dag.levels
        if not levels:
            return 0.0
        return makespan(self.dag, levels, min(self.machine, max(self.dag.widths)))

    @property
    def shape(self) -> str:
        """How the workflow went: ``one job``, ``task by task``, ``pilots`` or ``pilots, then task by task``."""
        pilots = sum(not job.individual and job.outcome != "cancelled" for job in self.jobs)
        if self.individual:
            return "pilots, then task by task" if pilots else "task by task"
        return "one job" if pilots <= 1 else "pilots"

    def jobs_frame(self) -> pl.DataFrame:
        """Return one row per job: ``job, n_tasks, first_level, last_level, hosts, request, submit, start, end`` [s], ``outcome, individual``."""
        rows = [
            {
                "job": f"P{number}",
                "n_tasks": len(job.tasks),
                "first_level": min(self.dag.level[task] for task in job.tasks),
                "last_level": max(self.dag.level[task] for task in job.tasks),
                "hosts": job.hosts,
                "request": float(job.request),
                "submit": job.submit,
                "start": None if math.isnan(job.start) else job.start,
                "end": job.end,
                "outcome": job.outcome,
                "individual": job.individual,
            }
            for number, job in enumerate(self.jobs)
        ]
        return pl.DataFrame(rows, schema=_JOBS)

    def tasks_frame(self) -> pl.DataFrame:
        """Return the timeline, one row per task: ``task_id, level, job, start, end`` [s], by start."""
        rows = [
            {
                "task_id": self.dag.ids[task],
                "level": self.dag.level[task],
                "job": f"P{result.job}",
                "start": result.start,
                "end": result.end,
            }
            for task, result in self.tasks.items()
        ]
        return pl.DataFrame(rows, schema=_TASKS).sort("start", "end", "task_id")

    def decisions_frame(self) -> pl.DataFrame:
        """Return one row per decision: ``time, ear, mode, whole, levels, n_tasks, hosts, exec, request, wait, looked_at``."""
        rows: list[dict[str, Any]] = []
        for decision in self.decisions:
            plain = decision.to_dict(self.dag)
            plain |= {"n_tasks": len(plain.pop("tasks")), "looked_at": len(plain.pop("candidates"))}
            rows.append({name: plain[name] for name in _DECISIONS})
        return pl.DataFrame(rows, schema=_DECISIONS)


_JOBS = {
    "job": pl.String, "n_tasks": pl.Int64, "first_level": pl.Int64, "last_level": pl.Int64, "hosts": pl.Int64,
    "request": pl.Float64, "submit": pl.Float64, "start": pl.Float64, "end": pl.Float64, "outcome": pl.String,
    "individual": pl.Boolean,
}  # fmt: skip
_TASKS = {
    "task_id": pl.String, "level": pl.Int64, "job": pl.String, "start": pl.Float64, "end": pl.Float64,
}  # fmt: skip
_DECISIONS = {
    "time": pl.Float64, "ear": pl.Float64, "mode": pl.String, "whole": pl.Boolean, "levels": pl.Int64,
    "n_tasks": pl.Int64, "hosts": pl.Int64, "exec": pl.Float64, "request": pl.Float64, "wait": pl.Float64,
    "looked_at": pl.Int64,
}  # fmt: skip


@dataclass(eq=False)
class Job:
    """A job that was submitted for tasks of a workflow."""

    number: int  # of the batch queue
    place: int  # among the jobs of the workflow, from 0
    tasks: dict[int, Key]  # what it is to do; key of each: ready ones start in this order
    hosts: int  # that it asks for
    request: float  # its walltime [s]
    submit: float  # when it was submitted [s]
    exec: float  # estimated run time of its tasks [s]
    individual: bool = False  # A single task of its own
    start: float = math.nan  # when it started [s]
    end: float = math.nan  # when it ended [s]
    # ``waiting``, ``running``, ``completed``, ``expired`` or ``cancelled``
    outcome: str = "waiting"
    free: int = 0
    left: set[int] = field(default_factory=set)
    ready: list[tuple[Key, int]] = field(default_factory=list)
    running: dict[int, float] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """When its walltime is over [s]."""
        return instant(self.start + self.request)

    def begin(self, now: float, ready: Collection[int]) -> None:
        """Take over the hosts."""
        self.start, self.outcome, self.free = now, "running", self.hosts
        self.left = set(self.tasks)
        for task in ready:
            self.put(task)

    def put(self, task: int) -> None:
        """Let a task wait for hosts: its parents are all done."""
        heapq.heappush(self.ready, (self.tasks[task], task))

    def start_ready(self, dag: Dag, now: float) -> list[int]:
        """Start the ready tasks that fit, in their order, up to the first that does not."""
        begun = []
        while self.ready and dag.hosts[self.ready[0][1]] <= self.free:
            _, task = heapq.heappop(self.ready)
            self.free -= dag.hosts[task]
            self.running[task] = instant(now + dag.runtime[task])
            begun.append(task)
        return begun

    def finish(self, dag: Dag, task: int) -> None:
        """Take note that a task is done."""
        del self.running[task]
        self.left.discard(task)
        self.free += dag.hosts[task]

    def stop(self, now: float, outcome: str) -> None:
        """End the job."""
        self.end, self.outcome = now, outcome
        self.ready, self.running = [], {}
