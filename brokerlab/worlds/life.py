"""A world lives: its jobs come when what they wait for is there, go where the rules send them, and run where slots are free.

The grid simulator lets queues and links run and asks the brokerage; here is what happens beside that: a build lets the
scouts of its task come, these decide what the other jobs ask for once all of them are over, a failed job is tried again, and
what a group of jobs has made is merged. A job needs at a queue what it needs there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brokerlab.calibrate.simulation.loop import Copy, Loop
from brokerlab.calibrate.simulation.state import (
    DONE,
    KILLED_MEMORY,
    KILLED_WALLTIME,
    LOG,
    NEVER,
    RUNS,
    Records,
)
from brokerlab.calibrate.simulation.state import FINISHED as ENDED_WELL
from brokerlab.calibrate.simulation.world import World
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.units import SECOND_US
from brokerlab.worlds.block import Requests, decide, limits_of
from brokerlab.worlds.chains import (
    BUILD,
    BULK,
    FINISHED,
    MEMORY_KILL,
    RAISE_RAM,
    RAISE_WALL,
    SCOUT,
    WALL_KILL,
    draw_slot,
    finished,
    no_limits,
    payloads,
    take,
    where,
)
from brokerlab.worlds.queues import generator
from brokerlab.worlds.work import Work
from brokerlab.worlds.world import World as DrawnWorld

OWN = 10
"""Outcomes that are not the simulator's are those of `chains`, moved up by this."""
LOOK_S = 60
"""A task whose scouts ended so long before a brokerage is decided there [s]."""
OPEN_RUNS, OPEN_WAITS = -1, -2
"""Outcomes of attempts that are not over."""
Progress = Callable[[float], None]
"""Called with the part of the period that is over."""


@dataclass(frozen=True)
class Lived:
    """What came of the work: all attempts, one entry each, times in whole seconds from the first instant.

    ``job`` counts through the work; ``outcome`` is one of `chains`, or says that the attempt is open.
    """

    work: Work  # tasks and jobs
    requests: Requests  # what tasks ask for since they were decided ...
    decided_s: FloatArray  # ... then [s]; infinite: never
    place: npt.NDArray[np.int16]  # (tasks, queues) place of the queue in the task's slots
    unfinished: BoolArray  # (jobs) it was to come and is not over
    job: IntArray
    attempt: IntArray
    queue: IntArray
    created_s: IntArray
    ready_s: IntArray
    start_s: IntArray
    end_s: IntArray
    gone_s: IntArray
    outcome: IntArray
    cores: IntArray
    mem_mb: FloatArray
    eff: FloatArray
    ram_scale: FloatArray
    wall_scale: FloatArray
    last: BoolArray


class Life(Loop):
    """One world, from its first to its last instant."""

    def __init__(self, world: World, work: Work, drawn: DrawnWorld) -> None:
        """Set up a world in which nothing has been made yet; the simulator's jobs are those of the work, in their order."""
        super().__init__(world, seeds=[drawn.settings.seed])
        n = work.n
        self.work, self.drawn = work, drawn
        self.rng = generator(drawn.settings, 4)
        self.copy = self.copies[0]
        self.zero = drawn.settings.start_us
        self.created = np.full(n, NEVER)
        self.order, self.turn = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.made, self.n_made = np.full(n, NEVER), 0
        self._widen()
        place = {name: row for row, name in enumerate(drawn.names)}
        self.number = np.array([place[name] for name in world.queues["panda_queue"]])
        self.row = np.argsort(self.number)  # of the simulator, by number of the queue
        slots = work.tasks.slots
        self.place = np.argsort(slots.queue, axis=1, kind="stable").astype(np.int16)
        self._set_single(place)
        self.due = np.full(n, np.inf)
        self.due[work.n_roots :] = work.single["created_s"].to_numpy()
        self._begin_tasks()
        self.ram_scale, self.wall_scale = np.ones(n), np.ones(n)
        self.begun = np.full(n, np.int64(0))  # when the present attempt was made [us]
        self.limits = no_limits(work.n_roots)
        self.cores, self.slot = np.ones(n, np.int64), np.zeros(n, np.int64)
        self.mem, self.eff = np.zeros(n), np.zeros(n)
        self.wall = np.zeros(n, np.int64)
        self.over, self.done = np.zeros(n, np.bool_), np.full(n, np.inf)
        self.good = np.zeros(n, np.bool_)
        self.first_placed, self.placed_attempt = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.read = 0
        self.waiting: list[IntArray] = []
        self.records: list[tuple[Any, ...]] = []

    def _widen(self) -> None:
        """Let jobs have any of the core counts that a queue gives them."""
        state = self.copy.state
        widths = np.unique(np.append(self.drawn.cores, self.work.jobs["corecount"].to_numpy()))
        waiting = np.full(self.world.queues.height * len(widths), -1, np.int64)
        none = np.zeros_like(waiting)
        places = state.places._replace(widths=widths, waiting=waiting, pilots=none)
        self.copy.state = state._replace(places=places)

    def _set_single(self, place: dict[str, int]) -> None:
        """Let single jobs need what they need."""
        first, single = self.work.n_roots, self.work.single
        own = np.array([place[name] for name in single["queue"]], dtype=np.int64)
        self.at = np.zeros(self.work.n, np.int64)
        self.at[first:] = own
        state = self.copy.state
        state.work["wall"][first:] = single["wall_s"].to_numpy() * SECOND_US
        state.work["width"] = np.searchsorted(state.places.widths, state.work["cores"])

    def _begin_tasks(self) -> None:
        """Say what comes by itself: builds, and the scouts of tasks without one."""
        work, roots = self.work, self.work.roots
        t, phase = roots.task, roots.phase
        scout = phase == SCOUT
        build = phase == BUILD
        n = work.tasks.n
        self.due[: work.n_roots][build] = roots.created_s[build]
        free = scout & ~work.has_build[t]
        self.due[: work.n_roots][free] = roots.created_s[free]
        self.n_scouts = np.bincount(t[scout], minlength=n)
        self.scouts_over, self.latest = np.zeros(n, np.int64), np.zeros(n)
        self.decided_s = np.full(n, np.inf)
        self.of_task = _group(t, n)
        members = work.group[work.group >= 0]
        self.left = np.bincount(members, minlength=len(work.merge))
        self.some = np.zeros(len(work.merge), np.bool_)
        self.merge_at = np.zeros(len(work.merge))
        whole = np.full(n, -1, np.int64)
        none = np.zeros(n, np.bool_)
        self.requests = Requests(whole, whole, none, whole, whole, whole, whole, whole)

    def live(self, progress: Progress | None = None) -> Lived:
        """Live from the first to the last instant."""
        now = self.begin
        while now < self.until:
            self.copy.advance(now)
            self._learn(now)
            self._make(now)
            self._broker(now)
            now += self.step
            if progress is not None:
                progress((min(now, self.until) - self.begin) / (self.until - self.begin))
        self.copy.advance(self.until)
        self._learn(self.until)
        return self._record()

    def _seconds(self, micro: IntArray) -> IntArray:
        return (micro - self.zero) // SECOND_US

    def _made(self, job: IntArray) -> IntArray:
        """Return when the present attempts were made [s]: those that the brokerage places, once it has a place for them.

        One that is taken back and placed elsewhere is still the same.
        """
        placed = np.where(self.work.brokered[job], self.first_placed[job], 0)
        return self._seconds(np.maximum(self.begun[job], placed))

    def _send(self, copy: Copy, job: IntArray, queue: IntArray, asked: IntArray) -> None:
        number = copy.state.attempt["number"][job]
        new = self.placed_attempt[job] < number
        self.first_placed[job[new]], self.placed_attempt[job] = asked[new], number
        super()._send(copy, job, queue, asked)

    def _learn(self, now: int) -> None:
        """Look at the attempts that ended, and say what comes of it."""
        log = self.copy.state.log[self.read : int(self.copy.state.events.counters[LOG])]
        self.read += len(log)
        if len(log):
            self._end(log.copy())
        self._decide_tasks(now)

    def _end(self, log: Records) -> None:
        job, attempt = log["job"], self.copy.state.attempt
        outcome = log["outcome"].copy()
        own = outcome >= OWN
        outcome[own] -= OWN
        outcome[~own & (log["outcome"] == KILLED_WALLTIME)] = WALL_KILL
        outcome[~own & (log["outcome"] == KILLED_MEMORY)] = MEMORY_KILL
        over = (attempt["status"][job] == DONE) & (attempt["number"][job] == log["number"])
        gone = np.where(over, np.minimum(self.copy.gone[job], NEVER - 1), log["end"])
        gone_s = np.maximum(-(-(gone - self.zero) // SECOND_US), self._seconds(log["end"]))
        gone_s += self.rng.integers(3, 25, len(job))
        self._keep(log, outcome, gone_s, over)
        again = job[~over]
        self.ram_scale[job] *= np.where(outcome == MEMORY_KILL, RAISE_RAM, 1.0)
        self.wall_scale[job] *= np.where(outcome == WALL_KILL, RAISE_WALL, 1.0)
        self.begun[again] = log["end"][~over] // SECOND_US * SECOND_US
        self.waiting.append(again[~self.work.brokered[again]])
        self._finish(job[over], outcome[over] == FINISHED, gone_s[over].astype(np.float64))

    def _keep(self, log: Records, outcome: IntArray, gone_s: IntArray, over: BoolArray) -> None:
        job = log["job"]
        self.records.append(
            (
                job,
                log["number"],
                self.number[log["queue"]],
                self._made(job),
                self._seconds(log["ready"]),
                self._seconds(log["start"]),
                self._seconds(log["end"]),
                gone_s,
                outcome,
                self.cores[job],
                self.mem[job],
                self.eff[job],
                self.ram_scale[job],
                self.wall_scale[job],
                over,
            )
        )

    def _finish(self, job: IntArray, good: BoolArray, done: FloatArray) -> None:
        """Let what waits for jobs that are over come."""
        self.over[job], self.done[job], self.good[job] = True, done, good
        own = job < self.work.n_roots
        job, good, done = job[own], good[own], done[own]
        roots = self.work.roots
        t, phase = roots.task[job], roots.phase[job]
        scout = phase == SCOUT
        np.add.at(self.scouts_over, t[scout], 1)
        np.maximum.at(self.latest, t[scout], done[scout])
        built = phase == BUILD
        for task, at in zip(t[built].tolist(), done[built].tolist(), strict=True):
            mine = self.of_task[task]
            mine = mine[roots.phase[mine] == SCOUT]
            apart = roots.created_s[mine] - roots.created_s[mine].min(initial=np.inf)
            self.due[mine] = at + 20 + apart
        self._release(job, good, done)

    def _release(self, job: IntArray, good: BoolArray, done: FloatArray) -> None:
        """Count what merges wait for; one that has all of it comes."""
        group = self.work.group[job]
        some = group >= 0
        good, done, group = good[some], done[some], group[some]
        if not len(group):
            return
        np.subtract.at(self.left, group, 1)
        self.some[group[good]] = True
        np.maximum.at(self.merge_at, group[good], done[good])
        ready = np.unique(group)
        ready = ready[(self.left[ready] == 0) & self.some[ready]]
        wait = self.rng.uniform(60, 600, len(ready))
        self.due[self.work.merge[ready]] = self.merge_at[ready] + wait

    def _decide_tasks(self, now: int) -> None:
        """Let tasks whose scouts are all over ask for what these used."""
        now_s = (now - self.zero) // SECOND_US
        asked = now_s - LOOK_S
        open_ = ~np.isfinite(self.decided_s) & (self.n_scouts > 0)
        task = np.flatnonzero(open_ & (self.scouts_over >= self.n_scouts) & (self.latest <= asked))
        if not len(task):
            return
        self.decided_s[task] = asked + self.rng.uniform(0, LOOK_S - 5, len(task))
        roots, decided = self.work.roots, np.zeros(self.work.tasks.n, np.bool_)
        decided[task] = True
        mine = np.concatenate([self.of_task[t] for t in task])
        scouts = mine[roots.phase[mine] == SCOUT]
        known = scouts[self.good[scouts]]
        self._ask(decided, known)
        broken = np.ones(self.work.tasks.n, np.bool_)
        broken[roots.task[known]] = False
        bulk = mine[roots.phase[mine] == BULK]
        never = bulk[broken[roots.task[bulk]]]
        self._release(never, np.zeros(len(never), np.bool_), np.zeros(len(never)))
        bulk = bulk[~broken[roots.task[bulk]]]
        wait, length = (self.rng.uniform(*most, len(task)) for most in ((60, 600), (120, 900)))
        rate = np.maximum(self.work.tasks.n_jobs[task], 60) / length
        place = np.searchsorted(task, roots.task[bulk])
        begun = self.decided_s[task] + wait
        self.due[bulk] = begun[place] + roots.seq[bulk] / rate[place]
        limits = limits_of(self.work.tasks, self.requests, take(roots, bulk))
        for name, values in vars(limits).items():
            getattr(self.limits, name)[bulk] = values

    def _ask(self, decided: BoolArray, known: IntArray) -> None:
        """Apply the rule of the scouts to those that are known."""
        rows = finished(
            known, self.slot[known], self.wall[known], self.cores[known], self.mem[known],
            self.eff[known],
        )  # fmt: skip
        result = decide(self.drawn, self.work.tasks, self.work.roots, rows)
        self.requests = where(decided, result, self.requests)

    def _make(self, now: int) -> None:
        """Make the jobs that are due before the next brokerage; send those that it does not place."""
        edge = (now + self.step - self.zero) / SECOND_US
        job = np.flatnonzero((self.due < edge) & (self.created == NEVER))
        earliest = (now - self.zero) // SECOND_US
        second = np.maximum(np.floor(self.due[job]).astype(np.int64), earliest)
        second = np.where(
            self.work.brokered[job], earliest, second
        )  # made as the brokerage places them
        order = np.lexsort((job, second))
        job, second = job[order], second[order]
        at = self.zero + second * SECOND_US
        self.created[job] = self.begun[job] = self.copy.placed[job] = at
        last = self.n_made + len(job)
        self.order[self.n_made : last], self.made[self.n_made : last] = job, at
        self.turn[job] = np.arange(self.n_made, last)
        self.n_made = last
        own = ~self.work.brokered[job]
        again = np.concatenate([*self.waiting, np.empty(0, np.int64)]).astype(np.int64)
        self.waiting = []
        wait = self.rng.integers(60, 900, len(again)) * SECOND_US
        self._send_alone(np.concatenate([job[own], again]), np.concatenate([at[own], now + wait]))

    def _send_alone(self, job: IntArray, at: IntArray) -> None:
        """Send jobs where their task is drawn to, single ones to their queue."""
        if not len(job):
            return
        tasked = np.flatnonzero(job < self.work.n_roots)
        root = job[tasked]
        roots, slots = self.work.roots, self.work.tasks.slots
        t, number = roots.task[root], self.copy.state.attempt["number"][root]
        fresh = (number > 1) & (roots.phase[root] == BULK)
        drawn = draw_slot(self.work.tasks, t, self.rng.random(len(root)))
        slot = np.where(fresh, drawn, roots.slot[root])
        self.at[root] = slots.queue[t, slot]
        self._send(self.copy, job, self.row[self.at[job]], at)

    def _arrive(self, copy: Copy, job: IntArray, queue: IntArray, asked: IntArray) -> IntArray:
        """Let jobs need what they need at their queue; their inputs are there at a whole second."""
        self._fit(job, self.number[queue])
        there = super()._arrive(copy, job, queue, asked)
        return self.zero + -(-(there - self.zero) // SECOND_US) * SECOND_US

    def _fit(self, job: IntArray, number: IntArray) -> None:
        own = job < self.work.n_roots
        job, number = job[own], number[own]
        roots, state = take(self.work.roots, job), self.copy.state.work
        slot = self.place[roots.task, number].astype(np.int64)
        ran = payloads(
            self.work.tasks, self.drawn, self.rng, roots, take(self.limits, job), slot,
            self.ram_scale[job], self.wall_scale[job],
        )  # fmt: skip
        state["wall"][job] = np.maximum(ran.wall_s, 1) * SECOND_US
        state["cores"][job] = ran.cores
        state["width"][job] = np.searchsorted(self.copy.state.places.widths, ran.cores)
        state["peak_mb"][job] = ran.mem_mb
        state["fate"][job] = np.where(ran.outcome == FINISHED, ENDED_WELL, OWN + ran.outcome)
        self.slot[job], self.cores[job], self.wall[job] = slot, ran.cores, ran.wall_s
        self.mem[job], self.eff[job] = ran.mem_mb, ran.eff

    def _record(self) -> Lived:
        """Return all attempts, those that are open too."""
        still = self.copy.attempts[self.read :]
        still = still[(still["queue"] >= 0) & (self.created[still["job"]] < self.until)]
        for name in ("ready", "start", "end"):
            still[name] = np.minimum(still[name], self.until)
        code = np.where(still["outcome"] == RUNS, OPEN_RUNS, OPEN_WAITS)
        self._keep(still, code, self._seconds(still["end"]), np.zeros(len(still), np.bool_))
        attempts = (np.concatenate(column) for column in zip(*self.records, strict=True))
        unfinished = ~self.over & np.isfinite(self.due)
        return Lived(self.work, self.requests, self.decided_s, self.place, unfinished, *attempts)


def _group(group: IntArray, n: int) -> list[IntArray]:
    """Return the places of every group."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.searchsorted(group[order], np.arange(1, n)))
