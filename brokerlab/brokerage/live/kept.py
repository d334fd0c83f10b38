"""What stands of the pairs of tasks and queues while counts change: failed checks, and the facts that others read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.again import asked_anew, patched
from brokerlab.brokerage.engine.evaluation import evaluated, lowest_bit
from brokerlab.brokerage.engine.pairs import Facts, counting, looked_up, matched
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.numerics import IntArray

Parts = Callable[[Facts], Iterator[Facts]]
"""Cuts facts into parts whose pairs fit into memory."""


@dataclass(frozen=True)
class Plan:
    """Which checks stand, and what the others and the ranking read.

    Attributes:
        checks: All checks of single queues, in order.
        asked: Numbers of those that read facts made from tables that change.
        lasting: Bits of the checks that remove a queue at once.
        columns: Facts of pairs that stand and are read by the others and the ranking.
    """

    checks: tuple[Rule, ...]
    asked: tuple[int, ...]
    lasting: int
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls, checks: Sequence[Rule], facts: Facts, changing: Collection[str], late: Iterable[str],
        *, lasting: int,
    ) -> Plan:  # fmt: skip
        """Sort checks out.

        Args:
            checks: All checks.
            facts: The facts, with values for what changes too.
            changing: Names of the facts that change.
            late: Facts that the ranking reads.
            lasting: See above.
        """
        changes = set(changing)
        asked = tuple(bit for bit, check in enumerate(checks) if changes & set(check.reads))
        read = {*late, *(name for bit in asked for name in checks[bit].reads)} - changes
        of_pairs = [name for side in facts.sides for name in side.missing]
        columns = tuple(dict.fromkeys(name for name in of_pairs if name in read))
        return cls(tuple(checks), asked, lasting, columns)

    @property
    def standing(self) -> tuple[int, ...]:
        """Numbers of the checks that are not asked again."""
        return tuple(bit for bit in range(len(self.checks)) if bit not in self.asked)

    def closed(self, failed: IntArray) -> IntArray:
        """Return the check that removed a pair whatever the others say; -1: that is open."""
        deciding = failed & self.lasting
        first = lowest_bit(deciding)
        others = [bit for bit in self.asked if self.lasting >> bit & 1]
        limit = min(others, default=len(self.checks))
        return np.where((first >= 0) & (first < limit), first, -1)


@dataclass(frozen=True)
class Kept:
    """What stands of the pairs.

    Attributes:
        plan: Which checks stand.
        failed: Bits of the standing checks that skip each pair, in the order of :func:`~.pairs.matched`, in parts.
        closed: Pairs that each check (column) removed whatever the others say, by task (row).
        start: Place of the first open pair of each task.
        n: Open pairs of each task.
        open: ``q, failed`` of the pairs that are open, and ``plan.columns``.
    """

    plan: Plan
    failed: tuple[IntArray, ...]
    closed: IntArray
    start: IntArray
    n: IntArray
    open: pl.DataFrame

    @classmethod
    def of(cls, plan: Plan, facts: Facts, parts: Parts) -> Kept:
        """Ask the standing checks about every pair."""
        bits = plan.standing
        asked = [plan.checks[bit] for bit in bits]
        failed = []
        for part in parts(facts):
            found = evaluated(part, asked)["failed"].to_numpy() if asked else None
            if found is None:
                found = np.zeros(matched(part).height, dtype=np.int64)
            failed.append(_moved(found, bits))
        return cls.put_together(plan, facts, parts, failed)

    @classmethod
    def put_together(
        cls, plan: Plan, facts: Facts, parts: Parts, failed: Sequence[IntArray]
    ) -> Kept:
        """Keep the pairs that are open, with what is read of them."""
        tasks = facts.tasks["t"].to_numpy()
        closed = np.zeros((len(tasks), len(plan.checks)), dtype=np.int64)
        n = np.zeros(len(tasks), dtype=np.int64)
        kept = []
        for part, bits in zip(parts(facts), failed, strict=True):
            pairs = matched(part).with_columns(failed=pl.Series(bits))
            place = np.searchsorted(tasks, pairs["t"].to_numpy())
            first = plan.closed(bits)
            np.add.at(closed, (place[first >= 0], first[first >= 0]), 1)
            left = pairs.filter(pl.Series(first < 0))
            n += np.bincount(place[first < 0], minlength=len(tasks))
            numbers = looked_up(part, left.select("t", "q"), set(plan.columns))
            kept.append(left.drop("t").hstack(numbers.drop("t", "q")))
        start = np.cumsum(n) - n
        return cls(plan, tuple(failed), closed, start, n, pl.concat(kept, rechunk=True))

    def again(
        self, plan: Plan, facts: Facts, parts: Parts, changed: Mapping[str, pl.Series]
    ) -> Kept:
        """Return what stands under other settings.

        Args:
            plan: The same checks with other limits.
            facts: The facts of the same pairs.
            parts: As before.
            changed: Facts with other values; standing checks that read one of them are asked again.
        """
        bits = [bit for bit in asked_anew(plan.checks, changed) if bit in plan.standing]
        if bits:
            failed = [
                patched(old, part, plan.checks, bits)
                for old, part in zip(self.failed, parts(facts), strict=True)
            ]
            return self.put_together(plan, facts, parts, failed)
        others = set(plan.columns) & changed.keys()
        if not others:
            return replace(self, plan=plan)
        t = np.repeat(facts.tasks["t"].to_numpy(), self.n)
        pairs = pl.DataFrame({"t": t, "q": self.open["q"]})
        new = looked_up(facts, pairs, others).drop("t", "q")
        return replace(self, plan=plan, open=self.open.with_columns(new.get_columns()))

    def pairs(self, rows: IntArray) -> pl.DataFrame:
        """Return the open pairs of some tasks.

        Args:
            rows: Places of the tasks, perhaps the same one several times.

        Returns:
            ``t`` (which of ``rows``), ``q, failed`` and the facts kept.
        """
        n = self.n[rows]
        places = np.repeat(self.start[rows], n) + counting(n)
        of = pl.DataFrame({"t": np.repeat(np.arange(len(rows)), n)})
        return of.hstack(self.open[pl.Series(places)])


def _moved(found: IntArray, bits: Sequence[int]) -> IntArray:
    """Put the bits of some checks, numbered one after the other, to the places of their own."""
    moved = np.zeros(len(found), dtype=np.int64)
    for place, bit in enumerate(bits):
        moved |= (found >> place & 1) << bit
    return moved


def per_instant(tasks: pl.DataFrame, instants: IntArray, keys: Iterable[str]) -> pl.DataFrame:
    """Return the facts of tasks as those who look at what changes want them.

    Args:
        tasks: Facts of the tasks wanted, one row each.
        instants: Instant of each row.
        keys: Numbers of tasks that stand for a state of the grid, too.

    Returns:
        The tasks with ``t`` (number of the row), ``snapshot`` (the instant) and ``keys`` numbered anew.
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
