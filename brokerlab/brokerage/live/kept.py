"""What stands of the pairs of tasks and queues while counts change: failed checks, and the facts that others read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.again import asked_anew, patched
from brokerlab.brokerage.engine.decide import in_parts
from brokerlab.brokerage.engine.evaluation import lowest_bit
from brokerlab.brokerage.engine.pairs import Facts, looked_up, matched
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.world import World
from brokerlab.numerics import BoolArray, IntArray, repeated


@dataclass(frozen=True)
class Plan:
    """Which checks stand, and what the others and the ranking read.

    Attributes:
        checks: All checks of single queues, in order.
        asked: Numbers of those that read facts that change.
        lasting: Bits of the checks that remove a queue at once.
        columns: Facts of pairs that stand and are read by the others and the ranking.
    """

    checks: tuple[Rule, ...]
    asked: tuple[int, ...]
    lasting: int
    columns: frozenset[str]

    @classmethod
    def of(cls, world: World, changing: Collection[str]) -> Plan:
        """Sort the checks out by the names of the facts that change."""
        checks = world.checks
        asked = tuple(bit for bit, check in enumerate(checks) if {*changing} & {*check.reads})
        read = {*world.step_reads, *(name for bit in asked for name in checks[bit].reads)}
        of_pairs = {name for side in world.facts.sides for name in side.missing}
        return cls(checks, asked, world.lasting, frozenset(of_pairs & read - {*changing}))

    def closed(self, failed: IntArray) -> IntArray:
        """Return the check that removed a pair whatever the others say; -1: that is open."""
        first = lowest_bit(failed, self.lasting)
        others = [bit for bit in self.asked if self.lasting >> bit & 1]
        limit = min(others, default=len(self.checks))
        return np.where((first >= 0) & (first < limit), first, -1)


@dataclass(frozen=True, eq=False)
class Kept:
    """What stands of the pairs.

    Attributes:
        tasks: Numbers of the tasks, sorted.
        closed: Pairs that each check (column) removed whatever the others say, by task (row).
        start: Place of the first open pair of each task.
        n: Open pairs of each task.
        open: ``q, failed`` (by the checks that stand) of the pairs that are open, and the plan's columns.
        failed: Bits of the standing checks that skip each pair, in the order of :func:`~.pairs.matched`, in parts.
    """

    tasks: IntArray
    closed: IntArray
    start: IntArray
    n: IntArray
    open: pl.DataFrame
    failed: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls, plan: Plan, facts: Facts, before: Kept | None, changed: Mapping[str, pl.Series]
    ) -> Kept:
        """Ask the checks that stand about every pair.

        ``before``: what stands of the same pairs under other settings; only what reads a fact that is ``changed`` is then
        worked out again.
        """
        again = [bit for bit in range(len(plan.checks)) if bit not in plan.asked]
        if before is not None:
            anew = asked_anew(plan.checks, changed)
            again = [bit for bit in again if bit in anew]
            if not again and not plan.columns & changed.keys():
                return before
        tasks = facts.tasks["t"].to_numpy()
        closed = np.zeros((len(tasks), len(plan.checks)), dtype=np.int64)
        n = np.zeros(len(tasks), dtype=np.int64)
        kept, failed = [], []
        for number, part in enumerate(in_parts(facts)):
            pairs = matched(part)
            old = np.zeros(pairs.height, np.int64) if before is None else before.failed[number]
            bits = patched(old, part, plan.checks, again)
            failed.append(bits)
            place, first = np.searchsorted(tasks, pairs["t"].to_numpy()), plan.closed(bits)
            np.add.at(closed, (place[first >= 0], first[first >= 0]), 1)
            n += np.bincount(place[first < 0], minlength=len(tasks))
            left = pairs.with_columns(failed=pl.Series(bits)).filter(pl.Series(first < 0))
            numbers = looked_up(part, left.select("t", "q"), {*plan.columns})
            kept.append(left.drop("t").hstack(numbers.drop("t", "q")))
        start = np.cumsum(n) - n
        return cls(tasks, closed, start, n, pl.concat(kept, rechunk=True), tuple(failed))

    @classmethod
    def stacked(cls, parts: Sequence[Kept], n_tasks: int) -> Kept:
        """Put what stands under several settings together: tasks of the i-th ones are numbered from ``i * n_tasks`` on."""
        if len(parts) == 1:
            return parts[0]
        distinct = list(dict.fromkeys(parts))
        heights = np.cumsum([0, *(part.open.height for part in distinct)])
        first = [heights[distinct.index(part)] for part in parts]
        return cls(
            np.concatenate([part.tasks + i * n_tasks for i, part in enumerate(parts)]),
            np.concatenate([part.closed for part in parts]),
            np.concatenate([part.start + at for part, at in zip(parts, first, strict=True)]),
            np.concatenate([part.n for part in parts]),
            pl.concat([part.open for part in distinct], rechunk=True),
        )

    @cached_property
    def hopeful(self) -> BoolArray:
        """Tasks with a pair that passes every check that stands; what fails one is removed, at once or as marked."""
        passes = np.append(0, np.cumsum(self.open["failed"].to_numpy() == 0))
        found: BoolArray = passes[self.start + self.n] > passes[self.start]
        return found

    def places(self, numbers: pl.Series) -> IntArray:
        """Return at which place each number of a task stands; -1: it may go nowhere."""
        wanted = numbers.to_numpy()
        place = np.searchsorted(self.tasks, wanted)
        there = np.append(self.tasks, -1)[place] == wanted
        return np.where(there, place, -1)

    def pairs(self, rows: IntArray, places: IntArray) -> pl.DataFrame:
        """Return the open pairs of tasks, which may come several times: ``t`` (of ``rows``), ``q, failed`` and the facts kept."""
        row, of = repeated(self.start[places], self.n[places])
        return pl.DataFrame({"t": rows[row]}).hstack(self.open[pl.Series(of)])


def per_instant(tasks: pl.DataFrame, instants: IntArray, keys: Collection[str]) -> pl.DataFrame:
    """Return the facts of tasks, one row each, as those who look at what changes want them.

    They have ``t`` (number of the row), ``snapshot`` (the instant) and ``keys`` numbered anew, which stand for a state of the
    grid, too.
    """
    names, number = np.unique(instants, return_inverse=True)
    own = {
        key: np.unique(tasks[key].to_numpy() * len(names) + number, return_inverse=True)[1]
        for key in keys
    }
    return tasks.with_columns(
        t=pl.Series(np.arange(len(instants))),
        snapshot=pl.Series(instants),
        **{key: pl.Series(values, dtype=pl.Int64) for key, values in own.items()},
    )
