"""From the answers of the checks to reasons, weights and ranks, and again under other settings or without some checks.

A check reads a few columns, so most pairs look the same to it: all tasks of eight cores at queues of eight cores. Checks to
which pairs come in few kinds are asked about one pair of each kind, and the answers are handed out by position; the others
are asked about the pairs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.own import refuse_weights
from brokerlab.brokerage.engine.pairs import (
    Facts,
    Side,
    looked_up,
    matched,
    positions,
    run_again,
)
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import marks_of, names_of, rules_of, walk
from brokerlab.brokerage.engine.world import Evaluate, Off, Part, World
from brokerlab.brokerage.inputs.frames import run
from brokerlab.gdpconfig import Config
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
        tasks, of_task = _distinct(facts.tasks.select(_columns_seen(facts, rules, "tasks")), "t")
        queues, of_queue = _distinct(
            facts.queues.select(_columns_seen(facts, rules, "queues")), "q"
        )
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
            result = evaluated(facts.of_tasks(lost), self.checks)
            known = pl.concat([known, result]).sort("t", "q")
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
    answers = run(pairs.lazy().select(_answers(checks)))
    return pairs.select("t", "q", failed=pl.Series(_bits(answers, bits)))


def _columns_seen(facts: Facts, checks: Iterable[Rule], which: str) -> tuple[str, ...]:
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
        columns = _columns_seen(facts, checks, which)
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
    result = np.empty(len(bits), dtype=np.int8)
    for block in blocks(len(bits)):
        exponent = chosen(bits[block]).astype(np.float64).view(np.int64) >> 52  # 1023 more; 0 for 0
        result[block] = np.maximum(exponent - 1023, -1)
    return result


PAIRS_AT_ONCE = 2_000_000
"""Pairs held in memory at once."""


def parts(
    world: World, evaluate: Evaluate | None = None, *, off: Off | None = None
) -> Iterator[Part]:
    """Decide; tasks that the first loop leaves nothing are decided again, where there is a second one.

    ``evaluate`` asks the checks of single places (null: all of them of all pairs), ``off`` says what if.
    """
    together: list[Together] = []

    def every(facts: Facts, _: int) -> pl.DataFrame:
        return evaluated(facts, world.checks, together)

    ask, second, facts = evaluate or every, world.second, world.facts

    def of(some: Facts, loop: int) -> Iterator[Part]:
        for part in in_parts(some):
            yield settle(world, part, ask(part, loop), loop=loop, off=off)

    if second is None:
        yield from of(facts, 1)
        return
    first = facts.tasks.filter(~second.at_once)
    kept = pl.col("check").is_null() | pl.col("check").is_in(second.final)
    left = []
    for part in of(world.in_loop(first.select("t"), 1), 1):
        left.append(part.pairs.filter(kept).select("t").unique())
        yield part
    lost = first.filter(second.may).join(pl.concat(left), on="t", how="anti")
    others = pl.concat([facts.tasks.filter(second.at_once).select("t"), lost.select("t")])
    if others.height:  # most often not
        yield from of(world.in_loop(others, 2), 2)


def in_parts(facts: Facts) -> Iterator[Facts]:
    """Cut the tasks so that the pairs of a part fit into memory."""
    if facts.tasks.height * facts.queues.height <= PAIRS_AT_ONCE:
        yield facts
        return
    step = max(PAIRS_AT_ONCE // max(facts.most_places, 1), 1)
    for start in range(0, facts.tasks.height, step):
        tasks = facts.tasks.slice(start, step)
        yield replace(facts, tasks=tasks, listed=facts.listed.join(tasks, on="t", how="semi"))


def settle(
    world: World, facts: Facts, pairs: pl.DataFrame, *, loop: int = 1, off: Off | None = None
) -> Part:
    """Turn failed checks into reasons, and weigh and rank what is left of the tasks of ``facts`` in a loop.

    ``pairs``: ``t, q, failed`` of them, sorted; bit i of ``failed`` belongs to check i; perhaps facts of them.
    """
    names, ranks_of = pl.Enum(names_of(world.checks, world.steps)), world.brokerage.ranks
    failed = pairs["failed"].to_numpy()
    reasons = lowest_bit(failed, world.lasting)
    alive = np.flatnonzero(reasons < 0)
    marks = highest_bit(failed[alive], ~world.lasting)
    rows, late = pl.Series(alive.astype(np.uint32)), None
    ranks = pl.DataFrame(
        [pl.Series(name, [None], kind).new_from_index(0, pairs.height) for name, kind in ranks_of.items()]
    )  # fmt: skip
    if world.hint:
        reasons[alive] = marks
    else:
        left = pairs.drop("failed")[rows].with_columns(mark=named(marks, names))
        numbers = looked_up(facts, left.select("t", "q"), world.reads - {*left.columns})
        left = left.hstack(numbers.drop("t", "q"))
        if off:
            late = run(walk(left.lazy(), world.steps, names, off))
        else:
            late = run_again(
                (world.steps, names), left, lambda frame: walk(frame, world.steps, names)
            )
        if world.brokerage.own_weight is not None:
            refuse_weights(world.brokerage.name, late)
        # `late` has the rows of `left`, in the same order: by t and q
        reasons[alive] = late["check"].to_physical().cast(pl.Int8).fill_null(-1).to_numpy()
        ranks = ranks.with_columns(column.scatter(rows, late[column.name]) for column in ranks)
    keys = pairs.select("t", "q", "failed")
    return Part(loop, keys.hstack([named(reasons, names).alias("check"), *ranks]), late)


def named(numbers: IntArray | SmallArray, names: pl.Enum) -> pl.Series:
    """Return the names of numbers; -1: null."""
    # what lies under a null is written, too
    codes = pl.Series(np.maximum(numbers, 0).astype(np.uint8))
    return codes.set(pl.Series(numbers < 0), None).cat.to(names)


D = TypeVar("D", bound=PlaceDecisions)
EVERYWHERE = pl.lit(value=True)


def changes(old: Facts, new: Facts) -> dict[str, pl.Series]:
    """Return the facts (settings are some) that differ: name to ``t`` of the tasks, of those in both, that see another value."""
    before = old.tasks.join(new.tasks, on="t", how="semi", maintain_order="left")
    now = new.tasks.join(old.tasks, on="t", how="semi", maintain_order="left")
    result = {
        name: now["t"].filter(before[name].ne_missing(now[name]))
        for name in now.columns
        if not before[name].equals(now[name])
    }
    for one, other in zip(old.sides, new.sides, strict=True):
        if one is not other:
            result |= _changes_of_side(one, other, now)
    return result


def _changes_of_side(old: Side, new: Side, tasks: pl.DataFrame) -> dict[str, pl.Series]:
    result = {}
    for name, value in new.missing.items():
        columns = [new.task_key, new.queue_key, name]
        before, now = (side.rows.select(columns) for side in (old, new))
        if value != old.missing[name]:
            result[name] = tasks["t"]
        elif not before.equals(now):
            of_tasks = tasks.join(in_one(before, now), on=new.task_key, how="semi")
            if of_tasks.height:
                result[name] = of_tasks["t"]
    return result


def ask_again(checks: Sequence[Rule], changed: Mapping[str, pl.Series]) -> list[int]:
    """Return the numbers of the checks that read what changed."""
    return [
        bit for bit, check in enumerate(checks) if changed.keys() & {*check.when.meta.root_names()}
    ]


def patch(failed: IntArray, part: Facts, checks: Sequence[Rule], again: Sequence[int]) -> IntArray:
    """Return the failed checks with those numbered in ``again`` evaluated anew."""
    if not again or not len(failed):
        return failed
    result = evaluated(part, [checks[bit] for bit in again])["failed"].to_numpy()
    patched = failed & ~np.int64(sum(1 << bit for bit in again))
    for place, bit in enumerate(again):
        patched |= (result >> place & 1) << bit
    return patched


def redecide(decisions: D, config: Config) -> D:
    """Return the decisions under another configuration of the tasks that it may touch; all others stay as they are.

    Only checks that read a changed fact are asked again, and only tasks of which one turned, or whose weight, caps or
    end before any queue is looked at read a changed fact, are weighed and ranked again.
    """
    old = decisions.world
    new = old.with_config(config)
    if new.tasks.height > old.tasks.height:  # the decisions are on some tasks
        new = new.of_tasks(old.tasks.select("t"))
    changed = changes(old.facts, new.facts)
    again = ask_again(new.checks, changed)
    stays = new.facts.tasks.select("t").join(old.facts.tasks, on="t", how="semi")
    touched = [changed[name].alias("t").to_frame() for name in changed.keys() & new.reads]
    touched.append(in_one(old.outcomes, new.outcomes).select("t"))
    known: dict[int, pl.DataFrame] = {}
    for loop, every in decisions.known.items():
        pairs = every.join(stays, on="t", how="semi", maintain_order="left")
        facts = new.in_loop(pairs.select("t").unique(), loop)
        now = []
        for part in in_parts(facts):
            mine = pairs.join(part.tasks, on="t", how="semi", maintain_order="left")
            now.append(patch(mine["failed"].to_numpy(), part, new.checks, again))
        failed = np.concatenate(now)
        touched.append(pairs.filter(pl.Series(failed) != pl.col("failed")).select("t"))
        known[loop] = pairs.with_columns(failed=pl.Series(failed))
    some = new.of_tasks(new.decided_with(pl.concat(touched).unique()))
    return type(decisions).of(some, parts(some, Failures(new.checks, known)))


def in_one(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that only one of two frames has."""
    pairs = ((one, other), (other, one))
    return pl.concat(a.join(b, on=a.columns, how="anti", nulls_equal=True) for a, b in pairs)


@dataclass(frozen=True)
class Waived:
    """A queue (number ``q``) of a task (``t``), and what it would be if no check skipped it.

    Attributes:
        checks: Every check that skips the place: the reason it was skipped for first, then other checks of single places,
            those that mark last, then rules that look at all places, in their order; marks stand in the place of the
            rule that stands for them. The last one is ``last`` of the brokerage where it would still not be among the best.
        late: The row of the place in the steps without these checks; empty in hint mode.
        late_of_task: The rows of all places of the task then.
        names: Number of a place to its name.
        loop: Locality loop that would decide then.
    """

    t: int
    q: int
    checks: tuple[str, ...]
    late: pl.DataFrame
    late_of_task: pl.DataFrame
    names: dict[int, str]
    loop: int

    @property
    def place(self) -> int | None:
        """Its place among all queues that are ranked, those beyond the best ten included."""
        return self.late["place"].item()  # type: ignore[no-any-return]

    @property
    def ranked(self) -> pl.DataFrame:
        """The rows of the candidates that are ranked, in order."""
        return self.late_of_task.filter(pl.col("rank").is_not_null()).sort("rank")


def trial(decisions: PlaceDecisions, t: int) -> Callable[..., Part]:
    """Return what decides a task of decisions again, without some rules and marks (``names``) at some places (``rows``, over ``q``)."""
    world = decisions.world.of_tasks(pl.DataFrame({"t": [t]}))
    failures, late = (
        Failures(world.checks),
        {rule.name for rule in (*rules_of(world.steps), *marks_of(world.steps))},
    )

    def decide_again(names: frozenset[str] = frozenset(), rows: pl.Expr = EVERYWHERE) -> Part:
        bits = sum(1 << bit for bit, each in enumerate(world.checks) if each.name in names)
        clear = pl.when(rows).then(pl.lit(bits, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
        kept = pl.col("failed") & (pl.lit(-1, pl.Int64) ^ clear)
        *_, last = parts(
            world,
            lambda facts, loop: failures(facts, loop).with_columns(failed=kept),
            off=dict.fromkeys(names & late, rows),
        )
        return last

    return decide_again


def without_checks(decisions: PlaceDecisions, t: int, q: int) -> Waived:
    """Take away, for one place that was looked at for a task, every check that skips it, one after the other."""
    world, decide, here = decisions.world, trial(decisions, t), pl.col("q") == q
    result = decide()
    checks: list[str] = []
    while (last := result.pairs.filter(here)["check"].item()) is not None:
        new = [name for name in _reasons(world, result, here) if name not in checks]
        checks += new
        if last == world.brokerage.last or not new:
            break
        result = decide(frozenset(checks), here)
    late = result.late if result.late is not None else pl.DataFrame(schema={"q": pl.Int64})
    names = dict(world.facts.queues.select("q", world.brokerage.place).iter_rows())
    return Waived(t, q, tuple(checks), late.filter(here), late, names, result.loop)


def _reasons(world: World, part: Part, here: pl.Expr) -> list[str]:
    """Return why a place is skipped, then all single checks that it fails; marks for the rule that stands for them."""
    row = part.pairs.filter(here).row(0, named=True)
    failed = [bit for bit in range(len(world.checks)) if row["failed"] >> bit & 1]
    failed.sort(key=lambda bit: not world.lasting >> bit & 1)
    if row["check"] == world.brokerage.marked and part.late is not None:
        marks = part.late.filter(here).row(0, named=True)
        return [rule.name for rule in marks_of(world.steps) if marks[rule.name]]
    return list(dict.fromkeys([row["check"], *(world.checks[bit].name for bit in failed)]))
