"""Run simulations of settings: only what is not kept yet, in several processes where that pays, whatever fails.

A run that fails is missing and the rest goes on; one whose process is killed is tried once more, alone.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field

from brokerlab.calibrate.thresholds.outcomes import Outcome, Period, WhatIf
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.errors import BrokerlabError
from brokerlab.gdpconfig import Config

PAYS_S = 20.0
"""Work left from which other processes are started [s]; one needs some seconds to start."""
FAILURES = (BrokerlabError, ArithmeticError, MemoryError)
"""Errors by which a run is missing; any other is a fault of the program and ends the study."""

_HELD: list[WhatIf] = []
"""The simulation of a worker process: sent once, not with every run."""


@dataclass(frozen=True)
class Missing:
    """A run that could not be made.

    Attributes:
        config: Digest of the settings.
        seeds: Seeds.
        period: Period.
        reason: Why.
    """

    config: str
    seeds: tuple[int, ...]
    period: Period
    reason: str


@dataclass(frozen=True)
class Task:
    """One run to make: a setting, with all seeds that are wanting, so that they can be simulated together."""

    config: Config
    seeds: tuple[int, ...]
    period: Period


@dataclass
class Runs:
    """The simulations of a study.

    Attributes:
        what_if: The simulation.
        store: Where results are kept; null: in memory only.
        workers: Processes at most; 1: no others are started.
        missing: What could not be run.
        n_simulated: Replications simulated by this study.
        n_kept: Replications found in the store.
        seconds: Time spent simulating [s].
    """

    what_if: WhatIf
    store: Store | None = None
    workers: int = 1
    missing: list[Missing] = field(default_factory=list)
    n_simulated: int = 0
    n_kept: int = 0
    seconds: float = 0.0
    _memory: dict[tuple[str, int, Period], Outcome] = field(default_factory=dict, repr=False)

    def outcome(self, config: Config, seeds: Sequence[int], period: Period) -> Outcome | None:
        """Return what a setting led to; null if any of its replications is missing."""
        self.ensure([config], seeds, period)
        parts = [self._memory.get((config.digest, seed, period)) for seed in seeds]
        known = [part for part in parts if part is not None]
        return Outcome.joined(known) if len(known) == len(seeds) else None

    def known(self, config: Config, seeds: Sequence[int], period: Period) -> bool:
        """Tell whether all replications of a setting are there; see :meth:`ensure`."""
        return all((config.digest, seed, period) in self._memory for seed in seeds)

    def ensure(self, configs: Iterable[Config], seeds: Sequence[int], period: Period) -> None:
        """Run what is not there yet."""
        failed = {(gone.config, gone.period) for gone in self.missing}
        tasks = []
        for config in {config.digest: config for config in configs}.values():
            wanting = tuple(seed for seed in seeds if not self._has(config, seed, period))
            if wanting and (config.digest, period) not in failed:
                tasks.append(Task(config, wanting, period))
        if tasks:
            self._make(tasks)

    def _has(self, config: Config, seed: int, period: Period) -> bool:
        key = (config.digest, seed, period)
        if key in self._memory:
            return True
        kept = None if self.store is None else self.store.get(config, seed, period)
        if kept is None:
            return False
        self._memory[key] = kept
        self.n_kept += 1
        return True

    def _make(self, tasks: list[Task]) -> None:
        """Run the first one here; start other processes if the rest would take long."""
        before = time.perf_counter()
        self._here(tasks[0])
        each = time.perf_counter() - before
        rest = tasks[1:]
        if self.workers > 1 and len(rest) > 1 and each * len(rest) > PAYS_S and _sendable(self.what_if):  # fmt: skip
            self._elsewhere(rest)
        else:
            for task in rest:
                self._here(task)
        self.seconds += time.perf_counter() - before

    def _here(self, task: Task) -> None:
        try:
            self._keep(task, _simulated(self.what_if, task))
        except FAILURES as error:
            self._lost(task, _told(error))

    def _elsewhere(self, tasks: list[Task]) -> None:
        """Run in other processes; what was running when one was killed is run again, alone."""
        waiting, suspects = deque(tasks), list[Task]()
        while waiting:
            suspects += self._pool(waiting, self.workers)
        for task in suspects:
            for gone in self._pool(deque([task]), 1):
                self._lost(gone, "the process that simulated it was killed twice")

    def _pool(self, waiting: deque[Task], workers: int) -> list[Task]:
        """Run what waits until nothing does or a process is killed; return what was running then."""
        context = multiprocessing.get_context(
            "spawn"
        )  # threads of polars and numba do not survive a fork
        suspects: list[Task] = []
        with ProcessPoolExecutor(
            min(workers, len(waiting)), context, initializer=_hold, initargs=(self.what_if,)
        ) as pool:
            running: dict[Future[Outcome], Task] = {}
            while (waiting and not suspects) or running:
                while waiting and not suspects and len(running) < workers:
                    try:
                        running[pool.submit(_run_held, waiting[0])] = waiting[0]
                    except BrokenProcessPool:
                        suspects.append(waiting[0])
                    waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        self._keep(task, future.result())
                    except BrokenProcessPool:
                        suspects.append(task)
                    except FAILURES as error:
                        self._lost(task, _told(error))
        return suspects

    def _keep(self, task: Task, outcome: Outcome) -> None:
        for seed in task.seeds:
            one = outcome.of_seed(seed)
            self._memory[task.config.digest, seed, task.period] = one
            if self.store is not None:
                self.store.put(task.config, seed, task.period, one)
            self.n_simulated += 1

    def _lost(self, task: Task, reason: str) -> None:
        self.missing.append(Missing(task.config.digest, task.seeds, task.period, reason))


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _simulated(what_if: WhatIf, task: Task) -> Outcome:
    return Outcome.of(what_if(task.config, task.seeds, task.period))


def _hold(what_if: WhatIf) -> None:
    """Keep the simulation in a worker process."""
    _HELD[:] = [what_if]


def _run_held(task: Task) -> Outcome:
    """Run in a worker process."""
    return _simulated(_HELD[0], task)


def _sendable(what_if: WhatIf) -> bool:
    """Tell whether a simulation can be sent to another process."""
    try:
        pickle.dumps(what_if)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
