"""Simulated settings as outcomes of the judge: units are spans of time, and replications say which noise they share.

Tasks of the same hours meet the same queues, so that whole spans of time are the units of chance, each with the mean over its
tasks and over the replications. The same tasks are simulated with the same random numbers under every setting; periods
are simulated apart, with seeds of their own, so that nothing that was chosen on one is scored with the same noise.

What an interval holds: other tasks and other hours of a history like this one, and the noise of the simulation. What it
does not hold: another history (an archive has one, with its load, its sites and its drift), and a simulation that is wrong.

`Runs` makes only what is not kept yet, in several processes where that pays, whatever fails: a run that fails is missing and
the rest goes on; one whose process is killed is tried once more. Results may be kept in a folder, so that an interrupted
study goes on behind the last settings that were simulated together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import (
    Judgement,
    Limit,
    Outcomes,
    Question,
    by_place,
    compare_settings,
    judge,
)
from brokerlab.calibrate.thresholds.outcomes import (
    LIMITS,
    QUANTITIES,
    Limited,
    Outcome,
    Period,
    WhatIf,
    quantity_of,
    same_work,
)
from brokerlab.calibrate.thresholds.settings import NOW, Options, Setting, Space
from brokerlab.errors import BrokerlabError, ConfigError, DataError, InsufficientDataError
from brokerlab.gdpconfig import Config
from brokerlab.long_work import Kept, in_processes
from brokerlab.numerics import FloatArray
from brokerlab.schemas import digest_of

# --- running them -----------------------------------------------------------------------------------------------------


PAYS_S = 60.0
"""Work from which it is cut for other processes [s of the processor]: one needs seconds to start, and settings side by side cost a part each."""
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
    """The simulations of a study, in at most so many processes (``workers``; 1: no others are started).

    Times in seconds; ``per_run`` of the processor, of the last ones made here.
    """

    what_if: WhatIf
    store: Store = Store(Kept(None), "")
    workers: int = 1
    missing: list[Missing] = field(default_factory=list)
    n_simulated: int = 0
    n_kept: int = 0
    seconds: float = 0.0
    per_run: float = math.inf
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
        """Simulate settings together here, what is short; else some first, to see whether processes pay for the others.

        The time is that of the processor: where others use it, too, more processes pay less.
        """
        n_seeds = len(block.seeds)
        short = self.per_run * len(configs) * n_seeds <= PAYS_S
        first = len(configs) if short else min(self._together(block), len(configs))
        before = time.process_time()
        self._run([Task(tuple(configs[:first]), block)])
        self.per_run = (time.process_time() - before) / (first * n_seeds)
        rest = configs[first:]
        pays = self.workers > 1 and self.per_run * len(rest) * n_seeds > PAYS_S
        size = -(-len(rest) // self.workers) if pays else len(rest)
        parts = [tuple(rest[at:][:size]) for at in range(0, len(rest), size or 1)]
        self._run([Task(part, block) for part in parts], apart=len(parts) > 1)

    def _together(self, block: Block) -> int:
        """Return how many settings the simulation does side by side, which cost little more than one alone."""
        together = getattr(self.what_if, "together", None)
        try:
            return 1 if together is None else int(together(len(block.seeds), block.period))
        except FAILURES:  # whoever simulates fails as well, and notes why
            return 1

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


# --- as outcomes of the judge -----------------------------------------------------------------------------------------


LEAST_SPANS = 12
"""Spans of the time in which a period's tasks begin, of a day at most."""
FEWEST = 8
"""Spans from which differences have an interval; a verdict needs more, see the judge."""
PREFIX = "limit_"
"""Begins the names of what is limited: by how much a quantity is above that of the setting before."""
Level = tuple[str, str | None]


Means = dict[str, FloatArray]
"""One setting in one period: quantity to (n_seeds, n_units) means over tasks."""


@dataclass(frozen=True)
class Simulations:
    """Settings simulated in some periods.

    Attributes:
        before: The setting that limits compare with.
        current: The setting that the judge compares with.
        least: Spans of a period at least.
        level: Only tasks with this label, such as ("gshare", "Express"); null: all.
    """

    space: Space
    options: Options
    runs: Runs
    blocks: tuple[Block, ...]
    before: Setting = NOW
    current: Setting = NOW
    least: int = LEAST_SPANS
    level: Level | None = None
    _memo: dict[tuple[Setting, Block], Means] = field(
        default_factory=dict, repr=False, compare=False
    )
    _tasks: dict[Block, pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    def among(self, settings: Iterable[Setting]) -> list[Setting]:
        """Return the current setting and those that could be simulated in all periods, each once."""
        asked = list(dict.fromkeys([self.current, self.before, *settings]))
        for block in self.blocks:
            self.runs.ensure([self.space.configured(one) for one in asked], block)
        known = [
            one
            for one in asked
            if all(self.runs.known(self.space.configured(one), block) for block in self.blocks)
        ]
        if self.current not in known or self.before not in known:
            start, end = self.blocks[0].period.start, self.blocks[-1].period.end
            raise InsufficientDataError(
                f"the settings as they are could not be simulated from {start} to {end}: "
                f"{self.runs.missing[0].reason if self.runs.missing else 'no result'}"
            )
        return known

    def tasks(self, block: Block) -> pl.DataFrame:
        """Return the tasks of a period under the setting before, sorted; those of the level.

        With ``begins``: of the span that each begins in. Spans are equal parts of the time in which all tasks of the period begin, for the last ones are to end in it, and a day at most.
        """
        if block not in self._tasks:
            every = self.simulated(self.before, block)[0].tasks
            start, created = block.period.start, every["created_at"]
            whole = cast("datetime", created.max()) - start
            length = min(timedelta(days=1), whole / self.least + timedelta(microseconds=1))
            since = (created - start).dt.total_microseconds().to_numpy()
            spans = since // (length / timedelta(microseconds=1))
            begins = pl.Series(
                "begins", [start + int(span) * length for span in spans], pl.Datetime("us")
            )
            name, value = self.level or ("", None)
            here = pl.col(name).eq_missing(pl.lit(value)) if name else True
            self._tasks[block] = every.with_columns(begins).filter(here)
        return self._tasks[block]

    def outcomes(self, settings: Sequence[Setting]) -> Outcomes:
        """Return what settings led to, all of them simulated in all periods."""
        units, sides = [], []
        for number, block in enumerate(self.blocks):
            spans = self.tasks(block).group_by(time="begins").agg(weight=pl.len().cast(pl.Float64))
            unit = pl.format("{}:{}", pl.lit(number), "time")
            units.append(
                spans.sort("time").select(unit=unit, time="time", weight="weight", block=number)
            )
            sides.append([self._values(setting, block) for setting in settings])
        simulated = {
            name: np.concatenate(
                [np.stack([one[name] for one in side], axis=2) for side in sides], axis=1
            )
            for name in sides[0][0]
        }
        means = {name: values.mean(axis=0) for name, values in simulated.items()}
        joined = pl.concat(units)
        efforts = tuple(len(self.space.entries(one)) for one in settings)
        return Outcomes(
            units=joined if len(self.blocks) > 1 else joined.drop("block"),
            settings=tuple(settings),
            current=settings.index(self.current),
            values=by_place(means),
            efforts=efforts if self.current == NOW else (),
            replications=by_place(simulated),
        )

    def question(self, settings: Sequence[Setting]) -> Question:
        """Return how settings are judged: by what the simulation knows of all of them."""
        options = self.options
        known = all(
            np.isfinite(self._values(one, block)["unfairness"]).all()
            for one in settings
            for block in self.blocks
        )
        names = [q.name for q in QUANTITIES if known or q.name != "unfairness"]
        if options.objective not in names:
            raise InsufficientDataError(f"the simulation does not know {options.objective}")
        limits = [
            Limit(quantity=f"{PREFIX}{name}", most=most, share=False)
            for name, most in options.allowed.items()
            if LIMITS[name].quantity in names
        ]
        return Question(
            objective=options.objective,
            limits=tuple(limits),
            reported=tuple(name for name in names if name != options.objective),
            relevant=options.relevant,
            confidence=1 - options.alpha,
            n_boot=options.n_boot,
            seed=options.seed,
        )

    def compare(
        self, before: Setting, after: Setting, blocks: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Compare two settings on some periods, null: all; see :attr:`.judge.Judgement.table`."""
        settings = list(dict.fromkeys([self.current, before, after]))
        outcomes, question = self.outcomes(settings), self.question(settings)
        return compare_settings(outcomes, question, before, after, blocks=blocks, fewest=FEWEST)

    def n_tasks(self, blocks: Sequence[int] | None = None) -> int:
        """Return the number of tasks of some periods, null: of all."""
        every = range(len(self.blocks)) if blocks is None else blocks
        return sum(self.tasks(self.blocks[at]).height for at in every)

    def judge(self, settings: Sequence[Setting]) -> Judgement:
        """Ask the judge about the current setting and those of some others that can be simulated."""
        known = self.among(settings)
        return judge(self.outcomes(known), self.question(known))

    def only(self, level: Level) -> Simulations:
        """Return the simulations of the tasks with a label."""
        return replace(self, level=level, _memo={}, _tasks={})

    def simulated(self, setting: Setting, block: Block) -> list[Outcome]:
        """Return what a setting led to in a period, by replication."""
        return self.runs.outcomes(self.space.configured(setting), block)

    def _values(self, setting: Setting, block: Block) -> Means:
        """Return every quantity of a setting, and by how much it is above the setting before where that is limited."""
        key = (setting, block)
        if key in self._memo:
            return self._memo[key]
        parts, before = self._parts(setting, block), self._parts(self.before, block)
        both = list(zip(before, parts, strict=True))
        result = {
            one.name: self._by_unit(block, [part[one.name] for part in parts]) for one in QUANTITIES
        }
        for name, limited in LIMITS.items():
            if limited.of:
                more = self._more_for_same_work(both, block, limited)
            else:
                now = result if setting == self.before else self._values(self.before, block)
                more = result[limited.quantity] - now[limited.quantity]
            result[f"{PREFIX}{name}"] = more
        self._memo[key] = result
        return result

    def _parts(self, setting: Setting, block: Block) -> list[pl.DataFrame]:
        """Return the tasks of every replication, those of the level."""
        ids = self.tasks(block)["jeditaskid"]
        parts = [one.tasks for one in self.simulated(setting, block)]
        if self.level:
            parts = [part.filter(pl.col("jeditaskid").is_in(ids.implode())) for part in parts]
        if any(not part["jeditaskid"].equals(ids) for part in parts):
            raise DataError(
                f"the simulations under two settings cannot be paired: {parts[0].height} and {len(ids)} tasks; simulate "
                "the same tasks with the same seeds"
            )
        return parts

    def _by_unit(self, block: Block, values: Iterable[pl.Series | FloatArray]) -> FloatArray:
        """Return the means over the tasks of every span, (n_seeds, n_units), of a value per task and replication."""
        begins = self.tasks(block)["begins"].to_numpy()
        _, unit, counts = np.unique(begins, return_inverse=True, return_counts=True)
        return np.stack([np.bincount(unit, one) for one in values]) / counts

    def _more_for_same_work(
        self, both: Sequence[tuple[pl.DataFrame, pl.DataFrame]], block: Block, limited: Limited
    ) -> FloatArray:
        """Return by how much a quantity is above that of the setting before, for the same work [% of ``limited.of``]."""
        took = [same_work(*pair, limited.quantity) for pair in both]
        base = float(np.mean([same_work(*pair, limited.of)[0] for pair in both]))
        quantity = quantity_of(limited.quantity)
        least = quantity.least / both[0][0].height if quantity.total else quantity.least
        more = self._by_unit(block, [after - before for before, after in took])
        return 100 * more / max(base, least)  # of almost nothing, almost nothing may be added
