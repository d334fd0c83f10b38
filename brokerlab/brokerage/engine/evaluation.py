"""Ask the checks about the pairs, and about each thing that they can tell apart only once.

A check reads a few columns, so most pairs look the same to it: all tasks of eight cores at queues of eight cores.
Checks to which pairs come in few kinds are evaluated on one pair of each kind, and the answers are handed out by
position. The others are evaluated on the pairs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.engine.pairs import Facts, looked_up, matched, positions
from brokerlab.brokerage.engine.plans import run_again
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.numerics import IntArray

FEW_PAIRS = 50_000
"""Up to so many pairs, looking for kinds costs more than it saves."""
PAIRS_PER_KIND = 4
"""Kinds are worth a table of their own where so many pairs, on average, share one."""
BLOCK = 1 << 16
"""Pairs whose answers are handed out at once."""
SmallArray: TypeAlias = npt.NDArray[np.int8]


Together: TypeAlias = tuple[list[tuple[Rule, ...]], list[Rule]]
"""Checks that share few kinds of pairs, and those that tell apart too many."""


def evaluated(
    facts: Facts, checks: Sequence[Rule], kept: list[Together] | None = None
) -> pl.DataFrame:
    """Return which checks skip which pairs: ``t, q, failed``, sorted; bit i of ``failed`` (i64) is set where check i says skip.

    ``kept`` keeps which checks go together from one part of the tasks to the next.
    """
    bits = {check.name: bit for bit, check in enumerate(checks)}
    pairs = matched(facts)
    if pairs.height <= FEW_PAIRS:
        return asked_of(looked_up(facts, pairs, _inputs(checks)), checks, bits)
    kept = [] if kept is None else kept
    if not kept:
        kept.append(_together(facts, checks))
    coarse, fine = kept[0]
    if fine:
        failed = _bits(looked_up(facts, pairs, _inputs(fine)).select(_answers(fine)), bits)
    else:
        failed = np.zeros(pairs.height, dtype=np.int64)
    tables = []
    for rules in coarse:
        # one task and one queue of each kind, numbered
        tasks, of_task = _distinct(facts.tasks.select(_told_apart(facts, rules, "tasks")), "t")
        queues, of_queue = _distinct(facts.queues.select(_told_apart(facts, rules, "queues")), "q")
        kinds = tasks.select("t").join(queues.select("q"), how="cross", maintain_order="left_right")
        known = looked_up(replace(facts, tasks=tasks, queues=queues), kinds, _inputs(rules))
        answers = _bits(known.select(_answers(rules)), bits)
        tables.append((answers, of_task * queues.height, of_queue))
    task = positions(facts.tasks["t"], pairs["t"])
    queue = positions(facts.queues["q"], pairs["q"])
    for block in blocks(pairs.height):
        t, q = task[block].astype(np.int64), queue[block].astype(np.int64)
        for answers, line, column in tables:
            failed[block] |= answers[line[t] + column[q]]
    return pairs.with_columns(failed=pl.Series(failed))


def blocks(number: int) -> Iterator[slice]:
    """Cut rows so that what is made of some of them on the way stays in the cache."""
    return (slice(start, start + BLOCK) for start in range(0, number, BLOCK))


@dataclass(frozen=True)
class Failures:
    """Says which checks skip which pairs in a loop: from ``known`` (loop to ``t, q, failed``, sorted), others asked once."""

    checks: Sequence[Rule]
    known: dict[int, pl.DataFrame] = field(default_factory=dict)

    def __call__(self, facts: Facts, loop: int) -> pl.DataFrame:
        """Return ``t, q, failed`` of the pairs of the tasks of facts, sorted."""
        known = self.known.get(loop)
        if known is None:
            known = evaluated(facts, self.checks)
        elif (lost := facts.tasks.select("t").join(known, on="t", how="anti")).height:
            found = evaluated(facts.of_tasks(lost), self.checks)
            known = pl.concat([known, found]).sort("t", "q")
        self.known[loop] = known
        return known.join(facts.tasks, on="t", how="semi", maintain_order="left")


def _inputs(checks: Iterable[Rule]) -> frozenset[str]:
    return _inputs_of(tuple(checks))


@lru_cache(maxsize=256)  # expressions are slow to ask
def _inputs_of(checks: tuple[Rule, ...]) -> frozenset[str]:
    return frozenset(name for check in checks for name in check.when.meta.root_names())


def _answers(checks: Iterable[Rule]) -> list[pl.Expr]:
    return [pl.col("t"), *(check.when.fill_null(value=False).alias(check.name) for check in checks)]


def _bits(answers: pl.DataFrame, bits: Mapping[str, int]) -> IntArray:
    """Return the bits of the checks that say skip; one sum in Polars, nested per check, takes four times as long."""
    failed = np.zeros(answers.height, dtype=np.int64)
    for answer in answers.iter_columns():
        if answer.name in bits:
            failed |= answer.to_numpy().astype(np.int64) << bits[answer.name]
    return failed


def asked_of(pairs: pl.DataFrame, checks: Sequence[Rule], bits: dict[str, int]) -> pl.DataFrame:
    """Return which checks skip few pairs, ``t, q`` and what they read: ``t, q, failed``, with the bits that belong to the checks."""
    answers = run_again(tuple(checks), pairs, lambda frame: frame.select(_answers(checks)))
    return pairs.select("t", "q", failed=pl.Series(_bits(answers, bits)))


def _told_apart(facts: Facts, checks: Iterable[Rule], which: str) -> tuple[str, ...]:
    """Return what checks see of tasks or of queues: columns, and keys of facts of pairs."""
    wanted = _inputs(checks)
    key = {"tasks": "task_key", "queues": "queue_key"}[which]
    keys = {getattr(side, key) for side in facts.sides if wanted & set(side.missing)}
    frame: pl.DataFrame = getattr(facts, which)
    return tuple(sorted((wanted | keys) & set(frame.columns)))


def _n_kinds(facts: Facts, checks: Iterable[Rule], counts: dict[tuple[str, ...], int]) -> int:
    """Return how many kinds of pairs checks tell apart; ``counts`` keeps how many kinds columns do, as far as they were counted."""
    total = 1
    for which in ("tasks", "queues"):
        columns = _told_apart(facts, checks, which)
        if columns not in counts:
            frame: pl.DataFrame = getattr(facts, which)
            counts[columns] = frame.select(columns).n_unique() if columns else 1
        total *= counts[columns]
    return total


def _distinct(frame: pl.DataFrame, name: str) -> tuple[pl.DataFrame, IntArray]:
    """Return the distinct rows with their numbers, and the number of each row."""
    if not frame.width:
        one = pl.DataFrame({name: [0]}, schema={name: pl.Int64})
        return one, np.zeros(frame.height, np.int64)
    kinds = frame.unique(maintain_order=True).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(name)
    )
    numbers = frame.join(
        kinds, on=frame.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return kinds, numbers[name].to_numpy()


def _together(facts: Facts, checks: Sequence[Rule]) -> Together:
    """Put checks together that share few kinds, and apart those that tell apart too many pairs."""
    most = facts.tasks.height * facts.most_places // PAIRS_PER_KIND
    counts: dict[tuple[str, ...], int] = {}
    sizes = {check.name: _n_kinds(facts, (check,), counts) for check in checks}
    tables: list[tuple[Rule, ...]] = []
    for check in sorted(checks, key=lambda each: sizes[each.name]):
        if sizes[check.name] > most:
            continue
        for number, table in enumerate(tables):
            if _n_kinds(facts, (*table, check), counts) <= most:
                tables[number] = (*table, check)
                break
        else:
            tables.append((check,))
    fine = [check for check in checks if sizes[check.name] > most]
    return tables, fine


def lowest_bit(bits: IntArray, among: int) -> SmallArray:
    """Return the number of the lowest bit of those ``among``, -1 for none."""
    return _exponents(bits, lambda some: (some & among) & -(some & among))


def highest_bit(bits: IntArray, among: int) -> SmallArray:
    """Return the number of the highest bit of those ``among``, -1 for none; exact, as there are fewer than 53."""
    return _exponents(bits, lambda some: some & among)


def _exponents(bits: IntArray, chosen: Callable[[IntArray], IntArray]) -> SmallArray:
    found = np.empty(len(bits), dtype=np.int8)
    for block in blocks(len(bits)):
        exponent = chosen(bits[block]).astype(np.float64).view(np.int64) >> 52  # 1023 more; 0 for 0
        found[block] = np.maximum(exponent - 1023, -1)
    return found
