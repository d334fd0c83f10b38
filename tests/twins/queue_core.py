"""The queue core once more, with SimPy: a process per job and per pilot, a clerk per queue, plain Python."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import simpy

from brokerlab.calibrate.simulation import QueueRules
from brokerlab.calibrate.simulation.kernel import MEMORY, STARTUP, uniform

LAST = 2  # SimPy: after URGENT and NORMAL events of the same time
Row = dict[str, Any]


class Queue:
    """Slots, and a clerk who starts jobs after everything else of an instant has happened."""

    def __init__(self, env: simpy.Environment, slots: int, most: int, fit: str):
        self.env, self.slots, self.most, self.fit = env, slots, most, fit
        self.in_use, self.waiting, self.called = 0, [], False
        self.pilots: Counter[int] = Counter()  # that are there, by the cores they ask for

    def call(self) -> None:
        """Ask the clerk to look once at this instant."""
        if not self.called:
            self.called = True
            event = self.env.event()
            event.callbacks.append(self._look)
            event._ok, event._value = True, None
            self.env.schedule(event, priority=LAST)

    def _look(self, _: simpy.Event) -> None:
        self.called = False
        left = []
        for place, (turn, cores, start) in enumerate(self.waiting):
            if not self.pilots[cores]:
                left.append((turn, cores, start))
            elif self.in_use + cores <= self.slots:
                self.in_use += cores
                self.pilots[cores] -= 1
                start.succeed()
            else:
                left.append((turn, cores, start))
                if self.fit == "strict":
                    left += self.waiting[place + 1 :]
                    break
        self.waiting = left

    def line_up(self, turn: tuple[int, int, int], cores: int, delay: int) -> simpy.Event:
        """Wait for one's turn; a pilot comes for whose turn it is then."""
        start = self.env.event()
        bisect.insort(self.waiting, (turn, cores, start), key=lambda entry: entry[0])
        self.env.process(self._send(cores, delay))
        return start

    def _send(self, cores: int, delay: int) -> Iterator[simpy.Event]:
        yield self.env.timeout(delay)
        self.pilots[cores] += 1
        self.call()

    def give_back(self, cores: int) -> None:
        """Return cores."""
        self.in_use -= cores
        self.call()


def us(seconds: float | None) -> float:
    """Return whole microseconds, infinity for no limit."""
    return math.inf if seconds is None else round(seconds * 1e6)


def job_process(
    env: simpy.Environment,
    job: Row,
    place: Row,
    queue: Queue,
    rules: QueueRules,
    seed: int,
    out: list,
) -> Iterator[simpy.Event]:
    """Wait, run, be killed, try again; times in whole microseconds."""
    ready, limit = job["ready_us"], job["memory_limit_mb"] or math.inf
    for attempt in range(1, rules.attempts + 1):
        delays = place["delays_us"]
        drawn = int(uniform(seed, job["pandaid"], attempt, STARTUP) * len(delays))
        yield env.timeout(ready - env.now)
        if job["cores"] > queue.most:
            return
        yield queue.line_up((-job["priority"], ready, job["pandaid"]), job["cores"], delays[drawn])
        start, lasts, outcome = env.now, us(job["walltime_s"]), "finished"
        allowed = min(limit, place["maxrss"] or math.inf)
        if (job["peak_memory_mb"] or 0) > allowed:
            lasts = int(uniform(seed, job["pandaid"], attempt, MEMORY) * lasts)
            outcome = "killed_memory"
        longest = min(us(job["walltime_limit_s"]), us(place["maxtime"] or None))
        if longest < lasts:
            lasts, outcome = longest, "killed_walltime"
        yield env.timeout(lasts)
        queue.give_back(job["cores"])
        out.append((job["pandaid"], attempt, ready, start, env.now, outcome))
        if outcome == "finished":
            return
        if outcome == "killed_memory":
            limit = next((rung for rung in rules.memory_ladder_mb if rung > allowed), limit)
        ready = env.now


def change_process(
    env: simpy.Environment, queue: Queue, changes: list[tuple[int, int]]
) -> Iterator[simpy.Event]:
    """Change the slots over time."""
    for time, slots in changes:
        yield env.timeout(time - env.now)
        queue.slots = slots
        queue.call()


def simulate(jobs: list[Row], queues: list[Row], rules: QueueRules, seed: int) -> list[tuple]:
    """Return (pandaid, attempt, ready, start, end, outcome) of every attempt that ended; times [us].

    Args:
        jobs: As the contract, with ``ready_us``, ``cores`` and ``priority`` set.
        queues: As the contract, with ``delays_us`` (ascending) and ``changes`` (time [us], slots).
        rules: As in the simulator.
        seed: Of the draws.
    """
    first = min(job["ready_us"] for job in jobs)
    env = simpy.Environment(initial_time=first)
    places = {}
    for row in queues:
        held = row["slots"]
        for time, slots in row["changes"]:
            held = slots if time <= first else held
        later = [change for change in row["changes"] if change[0] > first]
        most = max([held, *(slots for _, slots in later)])
        queue = Queue(env, held, most, rules.fit)
        env.process(change_process(env, queue, later))
        places[row["panda_queue"]] = (row, queue)
    out: list[tuple] = []
    for job in jobs:
        env.process(job_process(env, job, *places[job["computingsite"]], rules, seed, out))
    env.run()
    return sorted(out)
