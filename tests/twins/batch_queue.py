"""A batch queue in plain Python, with a heap and lists: what the compiled one is held to and measured against.

Literal to workflows.md section 5: every pass looks at everything anew. Any numbers do for times; equal
ones must be equal.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Job:
    submit: float
    hosts: int
    request: float
    run: float
    start: float = math.nan
    end: float = math.nan
    reserved: float = math.nan
    status: str = "future"


@dataclass
class Profile:
    """Free hosts by time, as two lists: ``free[i]`` from ``times[i]`` to the next."""

    times: list[float]
    free: list[int]

    def forget(self, now: float) -> None:
        past = 0
        while past + 1 < len(self.times) and self.times[past + 1] <= now:
            past += 1
        del self.times[:past], self.free[:past]

    def earliest(self, now: float, hosts: int, request: float) -> float:
        since = now
        for step, free in enumerate(self.free):
            until = self.times[step + 1] if step + 1 < len(self.times) else math.inf
            if free < hosts:
                since = until
            elif until - since >= request:
                return since
        raise ValueError("wider than the machine")

    def step(self, at: float) -> int:
        for step, time in enumerate(self.times):
            if time == at:
                return step
            if time > at:
                self.times.insert(step, at)
                self.free.insert(step, self.free[step - 1])
                return step
        self.times.append(at)
        self.free.append(self.free[-1])
        return len(self.times) - 1

    def take(self, since: float, until: float, hosts: int) -> None:
        if until <= since:
            return
        first = self.step(since)
        last = self.step(until)
        for step in range(first, last):
            self.free[step] -= hosts
        for step in (last, first):
            if step and self.free[step] == self.free[step - 1]:
                del self.times[step], self.free[step]


@dataclass
class Queue:
    hosts: int
    policy: str
    background: list[Job]  # by submission
    now: float = -math.inf
    worth: Callable[[int], float] | None = (
        None  # of a job's hosts, as waiting time; None: the order of submission
    )
    free: int = 0
    due: bool = False
    vacated: bool = False
    arrived: int = 0
    ends: list[tuple[float, int, Job]] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    line: list[Job] = field(default_factory=list)
    n_started: int = 0

    def __post_init__(self) -> None:
        self.free = self.hosts
        self.profile = Profile([-math.inf], [self.hosts])

    def next_event(self) -> float:
        if self.due:
            return self.now
        times = [math.inf]
        if self.arrived < len(self.background):
            times.append(self.background[self.arrived].submit)
        if self.ends:
            times.append(self.ends[0][0])
        if self.policy == "conservative":
            times += [job.reserved for job in self.line]
        return max(min(times), self.now)

    def advance(self, until: float) -> None:
        while self.next_event() < until:
            self.come_to(self.next_event())
            self.settle()
        if self.now < until < math.inf:
            self.come_to(until)

    def come_to(self, now: float) -> None:
        self.now = now
        self.profile.forget(now)
        while self.ends and self.ends[0][0] <= now:
            job = heapq.heappop(self.ends)[2]
            if job.status == "running":
                self.vacate(job, "killed" if job.request < job.run else "finished")

    def vacate(self, job: Job, status: str) -> None:
        job.status, job.end = status, self.now
        self.free += job.hosts
        self.running.remove(job)
        self.due = self.vacated = True
        if self.policy == "conservative":
            self.profile.take(self.now, job.start + job.request, -job.hosts)

    def release(self, job: Job) -> None:
        self.vacate(job, "released")  # its entry among the ends is passed over

    def cancel(self, job: Job) -> None:
        job.status, job.end = "cancelled", self.now
        self.line.remove(job)
        self.due = self.vacated = True
        if self.policy == "conservative":
            self.profile.take(job.reserved, job.reserved + job.request, -job.hosts)

    def submit(self, job: Job) -> None:
        job.status = "waiting"
        self.line.append(job)
        self.due = True
        if self.policy == "conservative":
            job.reserved = self.profile.earliest(self.now, job.hosts, job.request)
            self.profile.take(job.reserved, job.reserved + job.request, job.hosts)

    def begin(self, job: Job) -> None:
        job.status, job.start = "running", self.now
        self.free -= job.hosts
        self.n_started += 1
        self.running.append(job)
        heapq.heappush(self.ends, (self.now + min(job.run, job.request), self.n_started, job))

    def arrive(self) -> None:
        if self.vacated and self.policy == "conservative":
            self.compress()
        self.vacated = False
        while self.arrived < len(self.background):
            job = self.background[self.arrived]
            if job.submit > self.now:
                return
            self.arrived += 1
            self.submit(job)

    def compress(self) -> None:
        for job in self.line:
            self.profile.take(job.reserved, job.reserved + job.request, -job.hosts)
            found = self.profile.earliest(self.now, job.hosts, job.request)
            job.reserved = min(job.reserved, found)
            self.profile.take(job.reserved, job.reserved + job.request, job.hosts)

    def settle(self) -> None:
        while True:
            self.arrive()
            self.schedule()
            self.due = False
            self.come_to(self.now)
            if not self.due:
                return

    def schedule(self) -> None:
        if self.policy == "conservative":
            for job in [job for job in self.line if job.reserved <= self.now]:
                if job.hosts <= self.free:
                    self.line.remove(job)
                    self.begin(job)
                elif not job.request:  # a reservation of no length holds nothing
                    job.reserved = self.profile.earliest(self.now, job.hosts, 0)
            return
        if self.worth is not None:
            self.line.sort(key=lambda job: -(self.worth(job.hosts) + self.now - job.submit))
        while self.line and self.line[0].hosts <= self.free:
            self.begin(self.line.pop(0))
        if self.line and self.policy != "fcfs":
            self.backfill(self.line[0])

    def backfill(self, head: Job) -> None:
        limits = sorted((job.start + job.request, job.hosts) for job in self.running)
        free, shadow = self.free, math.inf
        for limit, hosts in limits:
            if limit > shadow:
                break
            free += hosts
            if free >= head.hosts and shadow == math.inf:
                shadow = limit
        extra = free - head.hosts
        for job in self.line[1:]:
            if job.hosts > self.free:
                continue
            in_time = self.now + job.request <= shadow
            if in_time or job.hosts <= extra:
                extra -= 0 if in_time else job.hosts
                self.line.remove(job)
                self.begin(job)

    def estimate_start(self, hosts: int, request: float) -> float:
        """Carry a copy forward, every job lasting its request, until a job at the end of the line starts."""
        if self.policy == "conservative":
            return self.profile.earliest(self.now, hosts, request)
        copy = Queue(self.hosts, self.policy, [], self.now, self.worth)
        for job in self.running:
            left = job.start + job.request - self.now
            copy.begin(Job(self.now, job.hosts, left, left))
        copy.line = [Job(job.submit, job.hosts, job.request, job.request) for job in self.line]
        asked = Job(self.now, hosts, request, request)
        copy.line.append(asked)
        copy.due = True
        while asked.status == "future":
            copy.come_to(copy.next_event())
            copy.settle()
        return asked.start


def run(jobs: list[Job], hosts: int, policy: str) -> list[Job]:
    queue = Queue(hosts, policy, sorted(jobs, key=lambda job: job.submit))
    queue.advance(math.inf)
    return queue.background
