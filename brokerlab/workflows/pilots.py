"""A job of a workflow: a pilot that runs its tasks on its hosts, or a single task."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from dataclasses import dataclass, field

from brokerlab.workflows.dag import Dag
from brokerlab.workflows.schedule import Key, instant


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
