"""What the pilot-job manager needs of a batch queue, and a queue that is nothing but a function of the request."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from brokerlab.workflows import batch
from brokerlab.workflows.batch import Simulation
from brokerlab.workflows.batch.state import HOSTS
from brokerlab.workflows.decide import Wait
from brokerlab.workflows.schedule import instant


class Queue(Protocol):
    """A batch queue in the middle of its life.

    Inside one instant the manager calls, in this order: `advance` (everything before, and the ends of this instant),
    `cancel` of what ended, `admit` (arrivals of others), `submit` as often as it likes, `settle` (who starts now); then again
    `submit` and `settle` until nothing starts.
    """

    hosts: int

    def advance(self, until: float) -> float:
        """Go on to an instant [s], or to the first one before it in which a job of ours starts.

        The instant reached. Before ``until``: `settle` of that instant is done and `started` tells which jobs started.
        """
        ...

    def started(self) -> list[int]:
        """Return our jobs that started since they were asked for last, in order of submission."""
        ...

    def admit(self) -> None:
        """Let others' jobs of this instant join the line."""
        ...

    def submit(self, hosts: int, request: float) -> int:
        """Put a job in the line that runs until it is cancelled or its request is over; returns its number."""
        ...

    def cancel(self, number: int) -> None:
        """Take a waiting job out of the line, or let a running one give its hosts back."""
        ...

    def settle(self) -> None:
        """Start what can start now."""
        ...

    def wait(self, hosts: int, request: float) -> float:
        """Return the estimated wait [s] of a request made now."""
        ...


class WaitQueue:
    """A queue without a machine: a job submitted at t starts at t + its wait.

    For teaching and for worked examples.
    """

    def __init__(
        self, wait: Wait, *, hosts: int, actual: Mapping[int, float] | None = None, now: float = 0.0
    ) -> None:
        self.hosts = hosts
        self._wait = wait
        self._actual = actual or {}
        self._now = now
        self._start: dict[int, float] = {}
        self._count = 0
        self._started: list[int] = []

    def advance(self, until: float) -> float:
        """See `Queue.advance`."""
        first = min(self._start.values(), default=math.inf)
        self._now = min(first, until)
        if first < until:
            self.settle()
        return self._now

    def started(self) -> list[int]:
        """See `Queue.started`."""
        result, self._started = self._started, []
        return result

    def admit(self) -> None:
        """Do nothing: there are no others."""

    def submit(self, hosts: int, request: float) -> int:
        """See `Queue.submit`."""
        number = self._count
        self._count += 1
        wait = self._actual[number] if number in self._actual else self._wait(hosts, request)
        self._start[number] = instant(self._now + wait)
        return number

    def cancel(self, number: int) -> None:
        """See `Queue.cancel`."""
        self._start.pop(number, None)

    def settle(self) -> None:
        """See `Queue.settle`."""
        for number in sorted(n for n, start in self._start.items() if start <= self._now):
            del self._start[number]
            self._started.append(number)

    def wait(self, hosts: int, request: float) -> float:
        """See `Queue.wait`."""
        return self._wait(hosts, request)


def constant(seconds: float) -> Wait:
    """Return a wait that is the same for every request [s]."""
    return lambda hosts, request: seconds  # noqa: ARG005


class BatchQueue:
    """The batch-queue simulator as the manager sees it.

    While no job of ours waits, none of ours can start: the simulator then stays behind until something is asked of it.
    """

    def __init__(
        self, sim: Simulation, estimate: Callable[[float, int, float], float] | None = None
    ) -> None:
        self.hosts = int(sim.state.counters[HOSTS])
        self._sim, self._estimate = sim, estimate
        self._waiting = 0  # jobs of ours in the line
        self._until: float | None = None  # where the simulator is behind: the present instant
        self._stage: Callable[[Simulation], None] | None = None  # how much of it is over
        batch.changes(sim)

    def advance(self, until: float) -> float:
        """See `Queue.advance`."""
        if self._waiting or until == math.inf:
            self._catch_up()
            return batch.advance(self._sim, None if until == math.inf else until, watch=True)
        self._until, self._stage = until, None
        return until

    def _catch_up(self) -> None:
        if self._until is not None:
            batch.advance(self._sim, self._until)
            if self._stage is not None:
                self._stage(self._sim)
            self._until = None

    def started(self) -> list[int]:
        """See `Queue.started`."""
        if not self._waiting:
            return []
        result = [number for number, what in batch.changes(self._sim) if what == "started"]
        self._waiting -= len(result)
        return result

    def admit(self) -> None:
        """See `Queue.admit`."""
        self._reach(batch.arrive)

    def _reach(self, stage: Callable[[Simulation], None]) -> None:
        if self._until is None:
            stage(self._sim)
        else:
            self._stage = stage

    def submit(self, hosts: int, request: float) -> int:
        """See `Queue.submit`."""
        self._catch_up()
        number = batch.submit(self._sim, hosts, request)
        self._waiting += 1
        return number

    def cancel(self, number: int) -> None:
        """See `Queue.cancel`; a job whose request is over has ended by itself."""
        self._catch_up()
        state = batch.status(self._sim, number)
        if state == "waiting":
            batch.cancel(self._sim, number)
            self._waiting -= 1
        elif state == "running":
            batch.release(self._sim, number)

    def settle(self) -> None:
        """See `Queue.settle`."""
        self._reach(batch.settle)

    def wait(self, hosts: int, request: float) -> float:
        """See `Queue.wait`."""
        self._catch_up()
        if self._estimate is not None:
            return self._estimate(self._sim.now_s, hosts, request)
        return max(0.0, batch.estimate_start(self._sim, hosts, request) - self._sim.now_s)
