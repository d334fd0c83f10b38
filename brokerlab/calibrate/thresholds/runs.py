"""Run simulations of settings: only what is not kept yet, in several processes where that pays, whatever fails.

A run that fails is missing and the rest goes on; one whose process is killed is tried once more, alone.
"""

from __future__ import annotations

import multiprocessing
import pickle
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field

from brokerlab.calibrate.thresholds.outcomes import Outcome, Period, WhatIf
from brokerlab.calibrate.thresholds.store import Store
from brokerlab.errors import BrokerlabError, InsufficientDataError
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
        period: Period.
        reason: Why.
    """

    config: str
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

    def outcomes(self, config: Config, seeds: Sequence[int], period: Period) -> list[Outcome]:
        """Return what a setting led to, by replication.

        Raises:
            InsufficientDataError: One of them could not be simulated.
        """
        self.ensure([config], seeds, period)
        if not self.known(config, seeds, period):
            why = [one.reason for one in self.missing if one.config == config.digest]
            raise InsufficientDataError(f"a setting could not be simulated: {', '.join(why)}")
        return [self._memory[config.digest, seed, period] for seed in seeds]

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
            self._lose(task, error)

    def _elsewhere(self, tasks: list[Task]) -> None:
        """Run in other processes; what was not over when one was killed is run again, alone."""
        for task in self._pool(tasks, self.workers):
            for gone in self._pool([task], 1):
                self._lose(gone, None)

    def _pool(self, tasks: Sequence[Task], workers: int) -> list[Task]:
        """Run tasks until a process is killed; return those that were not over then."""
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        pool = ProcessPoolExecutor(workers, context, initializer=_hold, initargs=(self.what_if,))
        left = list(tasks)
        with suppress(BrokenProcessPool), pool:
            running = {pool.submit(_run_held, task): task for task in tasks}
            for future in as_completed(running):
                task = running[future]
                try:
                    self._keep(task, future.result())
                except FAILURES as error:
                    self._lose(task, error)
                left.remove(task)
        return left

    def _keep(self, task: Task, outcomes: dict[int, Outcome]) -> None:
        for seed, one in outcomes.items():
            self._memory[task.config.digest, seed, task.period] = one
            if self.store is not None:
                self.store.put(task.config, seed, task.period, one)
            self.n_simulated += 1

    def _lose(self, task: Task, error: BaseException | None) -> None:
        killed = "the process that simulated it was killed twice"
        reason = killed if error is None else f"{type(error).__name__}: {error}"
        self.missing.append(Missing(task.config.digest, task.period, reason))


def _simulated(what_if: WhatIf, task: Task) -> dict[int, Outcome]:
    return Outcome.by_seed(what_if(task.config, task.seeds, task.period))


def _hold(what_if: WhatIf) -> None:
    """Keep the simulation in a worker process."""
    _HELD[:] = [what_if]


def _run_held(task: Task) -> dict[int, Outcome]:
    """Run in a worker process."""
    return _simulated(_HELD[0], task)


def _sendable(what_if: WhatIf) -> bool:
    """Tell whether a simulation can be sent to another process."""
    try:
        pickle.dumps(what_if)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
