"""Run simulations of settings: only what is not kept yet, in several processes where that pays, whatever fails.

A run that fails is missing and the rest goes on; one whose process is killed is tried once more. Results may be kept in a
folder, so that an interrupted study goes on behind the last settings that were simulated together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from brokerlab.calibrate.thresholds.outcomes import Outcome, Period, WhatIf
from brokerlab.errors import BrokerlabError, ConfigError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.values import digest_of
from brokerlab.long_work import Kept, in_processes

PAYS_S = 60.0
"""Work from which it is cut for other processes [s]: one needs seconds to start, and settings side by side cost a part each."""
FAILURES = (BrokerlabError, ArithmeticError, MemoryError)
"""Errors by which a run is missing; any other is a fault of the program and ends the study."""
KILLED = "the process that simulated it was killed twice"
TABLES = ("tasks", "queues")
FORMAT = 5
"""Changes with the columns of the tables: older results are then not found."""


class Missing(NamedTuple):
    """A run that could not be made: digest of the settings, period, and why."""

    config: str
    period: Period
    reason: str


class Block(NamedTuple):
    """A period and the seeds of its simulations."""

    period: Period
    seeds: tuple[int, ...]


class Task(NamedTuple):
    """Runs to make together: settings, with all seeds that are wanting."""

    configs: tuple[Config, ...]
    block: Block


Simulated: TypeAlias = list[dict[int, Outcome]]
"""What every setting led to, by seed."""


@dataclass(frozen=True)
class Store:
    """Results of a simulation that are kept, by the digest of the simulation: archive, rules, options."""

    kept: Kept
    digest: str

    @classmethod
    def at(cls, folder: str | Path | None, what_if: WhatIf) -> Store:
        """Open a folder, or make it; null: nothing is kept. A simulation must say what its results depend on."""
        digest = getattr(what_if, "digest", None)
        if folder is not None and (not isinstance(digest, str) or not digest):
            raise ConfigError(
                "store: the simulation has no attribute `digest`, so that kept results could be of another one; give it one, "
                "or leave store out"
            )
        return cls(Kept(folder), str(digest))

    def key(self, config: Config, seed: int, period: Period) -> str:
        """Return the name of a result."""
        what = [FORMAT, self.digest, config.digest, seed, *(at.isoformat() for at in period)]
        return digest_of(what).removeprefix("sha256:")[:32]

    def get(self, config: Config, seed: int, period: Period) -> Outcome | None:
        """Return a result; null if it is not there, or is damaged."""
        key = self.key(config, seed, period)
        tasks, queues = (self.kept.load(f"{key}.{name}") for name in TABLES)
        return None if tasks is None or queues is None else Outcome(tasks, queues)

    def put(self, config: Config, seed: int, period: Period, outcome: Outcome) -> None:
        """Keep a result."""
        key = self.key(config, seed, period)
        for name in TABLES:
            self.kept.save(f"{key}.{name}", getattr(outcome, name))


@dataclass
class Runs:
    """The simulations of a study, in at most so many processes (``workers``; 1: no others are started); times in seconds."""

    what_if: WhatIf
    store: Store = Store(Kept(None), "")
    workers: int = 1
    missing: list[Missing] = field(default_factory=list)
    n_simulated: int = 0
    n_kept: int = 0
    seconds: float = 0.0
    _memory: dict[tuple[str, int, Period], Outcome] = field(default_factory=dict, repr=False)

    def outcomes(self, config: Config, block: Block) -> list[Outcome]:
        """Return what a setting led to, by replication."""
        self.ensure([config], block)
        if not self.known(config, block):
            why = [one.reason for one in self.missing if one.config == config.digest]
            raise InsufficientDataError(f"a setting could not be simulated: {', '.join(why)}")
        return [self._memory[config.digest, seed, block.period] for seed in block.seeds]

    def known(self, config: Config, block: Block) -> bool:
        """Tell whether all replications of a setting are there; see :meth:`ensure`."""
        return all((config.digest, seed, block.period) in self._memory for seed in block.seeds)

    def ensure(self, configs: Iterable[Config], block: Block) -> None:
        """Run what is not there yet: the first ones here, the rest in other processes if it would take long."""
        period = block.period
        failed = {gone.config for gone in self.missing if gone.period == period}
        alike: dict[tuple[int, ...], list[Config]] = {}
        for config in {config.digest: config for config in configs}.values():
            wanting = tuple(seed for seed in block.seeds if not self._has(config, seed, period))
            if wanting and config.digest not in failed:
                alike.setdefault(wanting, []).append(config)
        before = time.perf_counter()
        for seeds, wanted in alike.items():
            self._simulate(wanted, Block(period, seeds))
        self.seconds += time.perf_counter() - before

    def _simulate(self, configs: Sequence[Config], block: Block) -> None:
        """Simulate settings together here, what is short; else some first, to see whether processes pay for the others."""
        per_run = self.seconds / self.n_simulated if self.n_simulated else math.inf
        short = per_run * len(configs) * len(block.seeds) <= PAYS_S
        first = len(configs) if short else -(-len(configs) // (self.workers + 1))
        before = time.perf_counter()
        self._run([Task(tuple(configs[:first]), block)])
        rest, spent = configs[first:], time.perf_counter() - before
        pays = self.workers > 1 and spent / first * len(rest) > PAYS_S
        size = -(-len(rest) // self.workers) if pays else len(rest)
        parts = [tuple(rest[at:][:size]) for at in range(0, len(rest), size or 1)]
        self._run([Task(part, block) for part in parts], apart=len(parts) > 1)

    def _run(self, tasks: Sequence[Task], *, apart: bool = False) -> None:
        """Make runs, here or ``apart``, in other processes; those of settings that fail together are made again one by one.

        Those of a process that was killed are made again in another one only, as this one might be, too.
        """
        again: list[Task] = []
        killed: list[Task] = []
        if apart:
            there = in_processes(_simulated, self.what_if, tasks, workers=self.workers, tries=2)
            for task, result in there:
                was_killed = isinstance(result, BrokenProcessPool)
                (killed if was_killed else again).extend(self._note(task, result))
        else:
            for task in tasks:
                again += self._note(task, _tried(self.what_if, task))
        if again:
            self._run(again)
        if killed:
            self._run(killed, apart=True)

    def _has(self, config: Config, seed: int, period: Period) -> bool:
        key = (config.digest, seed, period)
        if key in self._memory:
            return True
        kept = self.store.get(config, seed, period)
        if kept is None:
            return False
        self._memory[key] = kept
        self.n_kept += 1
        return True

    def _note(self, task: Task, result: Simulated | Exception) -> list[Task]:
        """Keep what came of runs, or why nothing did; returns those to be made again, alone."""
        period = task.block.period
        if isinstance(result, Exception):
            killed = isinstance(result, BrokenProcessPool)
            if not killed and not isinstance(result, FAILURES):
                raise result
            if len(task.configs) > 1:
                return [Task((config,), task.block) for config in task.configs]
            reason = KILLED if killed else f"{type(result).__name__}: {result}"
            self.missing.append(Missing(task.configs[0].digest, period, reason))
            return []
        for config, outcomes in zip(task.configs, result, strict=True):
            for seed, one in outcomes.items():
                self._memory[config.digest, seed, period] = one
                self.store.put(config, seed, period, one)
                self.n_simulated += 1
        return []


def _tried(what_if: WhatIf, task: Task) -> Simulated | Exception:
    try:
        return _simulated(what_if, task)
    except FAILURES as error:
        return error


def _simulated(what_if: WhatIf, task: Task) -> Simulated:
    seeds, period = task.block.seeds, task.block.period
    return [Outcome.by_seed(one) for one in what_if(task.configs, seeds, period)]
