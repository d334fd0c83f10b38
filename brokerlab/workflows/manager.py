"""Run a workflow on a batch queue: the pilot-job manager's event loop.

One instant is handled as the chapter orders it: tasks that end, pilots that are done, pilots whose walltime is over; then the
queue takes arrivals, the decision that is due and single tasks, and starts what can start, until nothing does; then ready
tasks start in the running pilots.

Source: workflows.md 8.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from brokerlab.errors import ConfigError
from brokerlab.workflows.dag import Dag, RunFailed
from brokerlab.workflows.decide import Decision, whole
from brokerlab.workflows.queues import Queue
from brokerlab.workflows.rules import PilotRules
from brokerlab.workflows.runs import Job, Run, TaskRun
from brokerlab.workflows.schedule import Key, instant, keys
from brokerlab.workflows.strategies import Strategy, View, partition

MOST_JOBS, MOST_PER_TASK = 2000, 20
"""Jobs, and more per task, after which a run is given up: without padding a short pilot may expire again and again while a
long predecessor runs."""


def run(
    dag: Dag,
    queue: Queue,
    strategy: Strategy,
    *,
    submit_time: float = 0.0,
    alone: dict[str, Run] | None = None,
) -> Run:
    """Run a workflow on a queue.

    Args:
        dag: The workflow.
        queue: The queue, not later than the submission; it is used up.
        strategy: How the workflow is submitted.
        submit_time: When it is [s].
        alone: Earlier runs of this workflow, from this instant and state of the queue, in which all tasks went one by one, by
            digest of the rules: a run in which they do again is that run, and no other strategy matters. New ones are added.

    Returns:
        What happened.

    Raises:
        ConfigError: The submission is at no instant.
        TaskTooWide: A task needs more hosts than the machine has.
        RunFailed: A task was killed at its walltime too often.

    Source: workflows.md 8, 10.

    Example:
        >>> import polars as pl
        >>> from brokerlab.workflows.dag import workflow
        >>> from brokerlab.workflows.queues import WaitQueue, constant
        >>> from brokerlab.workflows.strategies import strategy
        >>> tasks = pl.DataFrame({"task_id": ["A", "B", "C"], "runtime": [100, 200, 300]})
        >>> dag = workflow(tasks, pl.DataFrame({"parent": ["A", "B"], "child": ["B", "C"]}))
        >>> run(dag, WaitQueue(constant(50), hosts=10), strategy("one_job")).metrics["turnaround"]
        650.0
    """
    if not math.isfinite(submit_time):
        raise ConfigError(f"submit_time={submit_time!r}: a finite number [s] is allowed")
    dag.check_fits(queue.hosts)
    manager = _Manager(dag, queue, strategy, submit_time)
    if manager.undone:
        manager.turn()
    if alone is None or not manager.alone:
        return manager.run()
    digest = strategy.rules.digest
    if digest not in alone:
        alone[digest] = manager.run()
    return replace(alone[digest], strategy=strategy.label, decisions=tuple(manager.decisions))


class _Manager:
    """A run in the making."""

    def __init__(self, dag: Dag, queue: Queue, strategy: Strategy, submit_time: float) -> None:
        self.dag, self.queue, self.strategy = dag, queue, strategy
        self.rules: PilotRules = strategy.rules
        self.now = self.submitted = instant(submit_time)
        self.waits_for = [len(parents) for parents in dag.parents]
        self.free = set(range(len(dag)))  # neither done nor in a job
        self.undone = len(dag)
        self.jobs: list[Job] = []
        self.waiting: dict[int, Job] = {}  # by number of the queue
        self.running: list[Job] = []  # oldest first
        self.some_done = False  # a running job has no task left
        self.holder: dict[int, Job] = {}  # task -> its job, while it has one
        self.ends: list[tuple[float, int, int, Job]] = []  # of tasks: when, which, in which job
        self.limits: list[tuple[float, int, Job]] = []  # of running jobs
        self.done: dict[int, TaskRun] = {}
        self.decisions: list[Decision] = []
        self.estimate: dict[int, float] = {}  # estimates found too short
        self.killed: dict[int, int] = {}
        self.individual = False
        self.due = bool(len(dag))
        self.only: set[int] | None = None  # tasks that the due decision is about
        self.held = -math.inf  # no decision at this instant any more
        self.place: dict[int, Key] = keys(dag, dag.levels)
        self.single: list[tuple[Key, int]] = []  # ready tasks that go one by one

    @property
    def alone(self) -> bool:
        """Whether all tasks go one by one from the first decision to the end."""
        lasting = self.individual and self.rules.individual_permanent
        return lasting and all(job.individual for job in self.jobs)

    def run(self) -> Run:
        while self.undone:
            self.turn()
        return Run(
            dag=self.dag,
            strategy=self.strategy.label,
            submit_time=self.submitted,
            jobs=tuple(self.jobs),
            tasks=self.done,
            decisions=tuple(self.decisions),
            individual=self.individual,
            machine=self.queue.hosts,
        )

    def turn(self) -> None:
        """Go to the next instant and handle it."""
        soon = (self.due and self.held < self.now) or self.single_may_go()
        target = self.now if soon else self.next_own()
        reached = self.queue.advance(target)
        if reached == math.inf:
            raise RunFailed(f"workflow {self.dag.name!r}: nothing runs and nothing waits any more")
        self.now = reached
        if reached < target:
            self.take_over(self.queue.started())
        else:
            self.end_tasks()
            self.expire()
            self.queue.admit()
        self.exchange()
        self.start_tasks()

    def next_own(self) -> float:
        """Return when the next of our tasks or walltimes ends."""
        while self.limits and self.limits[0][2].outcome != "running":
            heapq.heappop(self.limits)
        while self.ends and self.ends[0][3].outcome != "running":
            heapq.heappop(self.ends)
        end = self.ends[0][0] if self.ends else math.inf
        return min(end, self.limits[0][0]) if self.limits else end

    # --- 1 and 2: tasks end, pilots are done -------------------------------------------------------------------------

    def end_tasks(self) -> None:
        while self.ends and self.ends[0][0] <= self.now:
            _, task, _, job = heapq.heappop(self.ends)
            if job.outcome == "running" and task in job.running:
                self.end_task(task, job)
        self.release_done()

    def release_done(self) -> None:
        if self.some_done:
            self.some_done = False
            for job in [job for job in self.running if not job.left]:
                self.release(job, "completed")

    def end_task(self, task: int, job: Job) -> None:
        job.finish(self.dag, task)
        self.some_done = self.some_done or not job.left
        self.undone -= 1
        begun = instant(self.now - self.dag.runtime[task])
        self.done[task] = TaskRun(job=job.place, start=begun, end=self.now)
        for child in self.dag.children[task]:
            self.waits_for[child] -= 1
            if not self.waits_for[child]:
                self.make_ready(child)

    def make_ready(self, task: int) -> None:
        """Let a task start in the running pilot that holds it, or go on its own in individual mode."""
        job = self.holder.get(task)
        if job is not None and job.outcome == "running":
            job.put(task)
        elif self.individual and job is None:
            heapq.heappush(self.single, (self.place[task], task))

    def release(self, job: Job, outcome: str) -> None:
        """Let a running job give its hosts back."""
        self.running.remove(job)
        job.stop(self.now, outcome)
        self.queue.cancel(job.number)
        if self.strategy.again == "end" and outcome == "completed":
            self.due = True
        if job.individual and not self.rules.individual_permanent:
            self.maybe_decide_again()

    def maybe_decide_again(self) -> None:
        """Leave individual mode when the tasks that were ready are done."""
        if not any(job.individual for job in (*self.running, *self.waiting.values())):
            self.individual, self.single, self.due = False, [], True

    # --- 3: walltimes end --------------------------------------------------------------------------------------------

    def expire(self) -> None:
        if not self.limits or self.limits[0][0] > self.now:
            return
        back: set[int] = set()
        ended: list[Job] = []
        while self.limits and self.limits[0][0] <= self.now:
            _, _, job = heapq.heappop(self.limits)
            if job.outcome != "running":
                continue
            self.start(job)  # what takes no time ends at this very instant too
            if job.left:
                self.note_kills(job)
                back |= job.left
                ended.append(job)
            self.release(job, "expired" if job.left else "completed")
        if not back:
            return
        for job in list(self.waiting.values()):
            if not job.individual:
                back |= self.withdraw(job)
        if self.rules.cancel_idle:
            for job in [j for j in self.running if len(j.left) == len(j.tasks) and not j.running]:
                back |= job.left
                self.release(job, "cancelled")
        self.give_back(back, ended)

    def note_kills(self, job: Job) -> None:
        """Raise the estimates of tasks that ran for as long as they were thought to and were killed."""
        for task in job.running:
            begun = job.running[task] - self.dag.runtime[task]
            known = self.estimate.get(task, self.dag.estimate[task])
            if not job.individual and self.now - begun < known:
                continue
            self.killed[task] = self.killed.get(task, 0) + 1
            if self.killed[task] > self.rules.retries:
                raise RunFailed(
                    f"workflow {self.dag.name!r}: task {self.dag.ids[task]} was killed at its walltime "
                    f"{self.killed[task]} times, last after {self.now - begun:g} s; its estimate is {self.dag.estimate[task]:g} s"
                )
            self.estimate[task] = 2 * max(job.request if job.individual else known, 1.0)

    def withdraw(self, job: Job) -> set[int]:
        """Cancel a waiting job."""
        del self.waiting[job.number]
        self.queue.cancel(job.number)
        job.stop(self.now, "cancelled")
        return set(job.tasks)

    def give_back(self, tasks: set[int], ended: list[Job]) -> None:
        """Put tasks back that no job holds any more."""
        self.free |= tasks
        for task in tasks:
            del self.holder[task]
        if self.individual:
            for task in tasks:
                if not self.waits_for[task]:
                    heapq.heappush(self.single, (self.place[task], task))
            return
        self.due = True
        self.only = tasks if self.rules.replan == "expired" else None
        if self.running and all(job.request == 0 for job in ended):
            self.held = (
                self.now
            )  # else the same pilot would start and expire at this instant for ever

    # --- 4 and 5: decide, submit, start ------------------------------------------------------------------------------

    def exchange(self) -> None:
        """Let the queue have what is to be submitted, until nothing more starts and no decision is due."""
        while True:
            self.decide()
            self.submit_singles()
            self.queue.settle()
            started = self.queue.started()
            self.take_over(started)
            if not started and (not self.due or self.held >= self.now):
                return

    def decide(self) -> None:
        if not self.due or self.held >= self.now:
            return
        self.due = False
        if self.individual or self.free_pending():
            return
        tasks = self.free if self.only is None else self.free & self.only
        self.only = None
        if not tasks:
            return
        view = View(
            dag=self.dag, queue=self.queue, tasks=frozenset(tasks), ear=self.ear(), rules=self.rules, now=self.now,
            estimate=self.estimate,
        )  # fmt: skip
        decision = self.strategy.plan(view)
        if self.strategy.records:
            self.decisions.append(decision)
        if decision.mode == "individual":
            self.individual = True
            ready = (task for task in self.free if not self.waits_for[task])
            self.single = sorted((self.place[task], task) for task in ready)
        else:
            key = keys(self.dag, decision.levels, self.estimate)
            self.submit(key, decision.hosts, decision.request, decision.exec)

    def free_pending(self) -> bool:
        """Tell whether a pilot is pending."""
        return any(not job.individual for job in self.waiting.values())

    def ear(self) -> float:
        """Return the time until the running pilots end [s] (row W11)."""
        if not self.running:
            return 0.0
        if self.rules.ear == "run_time":
            return max(self.running, key=lambda job: (job.start, job.number)).exec
        if self.rules.ear == "requested":
            return max(0.0, *(job.request - 60 for job in self.running))
        return max(instant(job.limit - self.now) for job in self.running)

    def single_may_go(self) -> bool:
        """Tell whether a ready task may be submitted on its own now."""
        most = self.rules.max_jobs
        return bool(self.single) and (not most or len(self.waiting) + len(self.running) < most)

    def submit_singles(self) -> None:
        while self.single_may_go():
            key, task = heapq.heappop(self.single)
            known = self.estimate.get(task, self.dag.estimate[task])
            self.submit({task: key}, self.dag.hosts[task], whole(known), known, single=True)

    def submit(
        self, tasks: dict[int, Key], hosts: int, request: float, run: float, *, single: bool = False
    ) -> None:
        if len(self.jobs) > MOST_JOBS + MOST_PER_TASK * len(self.dag):
            raise RunFailed(
                f"workflow {self.dag.name!r}: {len(self.jobs)} jobs and no end in sight"
            )
        number = self.queue.submit(hosts, request)
        job = Job(number, len(self.jobs), tasks, hosts, request, self.now, run, individual=single)
        self.jobs.append(job)
        self.waiting[number] = job
        self.free -= tasks.keys()
        self.holder.update(dict.fromkeys(tasks, job))

    def take_over(self, numbers: Iterable[int]) -> None:
        """Note which of our jobs started at this instant; each makes a decision due."""
        for number in numbers:
            job = self.waiting.pop(number)
            job.begin(self.now, [task for task in job.tasks if not self.waits_for[task]])
            self.running.append(job)
            heapq.heappush(self.limits, (job.limit, job.place, job))
            if not job.individual and self.strategy.again == "start":
                self.due = True

    # --- 6: tasks start ----------------------------------------------------------------------------------------------

    def start_tasks(self) -> None:
        for job in self.running:
            if job.ready:
                self.start(job)
        self.release_done()

    def start(self, job: Job) -> None:
        """Start the ready tasks of a pilot; one that takes no time ends at once, and its children may start."""
        while job.ready and job.free:
            begun = job.start_ready(self.dag, self.now)
            if not begun:
                return
            for task in begun:
                heapq.heappush(self.ends, (job.running[task], task, job.place, job))
            for task in [task for task in begun if job.running[task] <= self.now]:
                self.end_task(task, job)


MOST_LEVELS = 12  # there are 2 to the power of (levels - 1) partitions


def best_partition(
    dag: Dag,
    queue: Callable[[], Queue],
    *,
    submit_time: float = 0.0,
) -> Run:
    """Run every partition of the levels into consecutive pilots, and return the run that ended first.

    Source: workflows.md 10.
    """
    if len(dag.levels) > MOST_LEVELS:
        raise ConfigError(
            f"workflow {dag.name!r}: best_partition tries at most {MOST_LEVELS} levels, this one has {len(dag.levels)}"
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
