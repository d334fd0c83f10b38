"""Decide again what other settings or facts change, found by comparing facts, or what would be if checks were not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.decide import in_parts, parts
from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.evaluation import Failures, evaluated
from brokerlab.brokerage.engine.pairs import Facts, Side
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import marks_of, rules_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.gdpconfig import Config
from brokerlab.numerics import IntArray

D = TypeVar("D", bound=PlaceDecisions)
EVERYWHERE = pl.lit(value=True)


def changes(old: Facts, new: Facts) -> dict[str, pl.Series]:
    """Return the facts (settings are some) that differ: name to ``t`` of the tasks, of those in both, that see another value."""
    before = old.tasks.join(new.tasks, on="t", how="semi", maintain_order="left")
    now = new.tasks.join(old.tasks, on="t", how="semi", maintain_order="left")
    found = {
        name: now["t"].filter(before[name].ne_missing(now[name]))
        for name in now.columns
        if not before[name].equals(now[name])
    }
    for one, other in zip(old.sides, new.sides, strict=True):
        if one is not other:
            found |= _changes_of_side(one, other, now)
    return found


def _changes_of_side(old: Side, new: Side, tasks: pl.DataFrame) -> dict[str, pl.Series]:
    found = {}
    for name, value in new.missing.items():
        columns = [new.task_key, new.queue_key, name]
        before, now = (side.rows.select(columns) for side in (old, new))
        if value != old.missing[name]:
            found[name] = tasks["t"]
        elif not before.equals(now):
            of_tasks = tasks.join(in_one(before, now), on=new.task_key, how="semi")
            if of_tasks.height:
                found[name] = of_tasks["t"]
    return found


def asked_anew(checks: Sequence[Rule], changed: Mapping[str, pl.Series]) -> list[int]:
    """Return the numbers of the checks that read what changed."""
    return [
        bit for bit, check in enumerate(checks) if changed.keys() & {*check.when.meta.root_names()}
    ]


def patched(
    failed: IntArray, part: Facts, checks: Sequence[Rule], again: Sequence[int]
) -> IntArray:
    """Return the failed checks with those numbered in ``again`` evaluated anew."""
    if not again or not len(failed):
        return failed
    found = evaluated(part, [checks[bit] for bit in again])["failed"].to_numpy()
    patched = failed & ~np.int64(sum(1 << bit for bit in again))
    for place, bit in enumerate(again):
        patched |= (found >> place & 1) << bit
    return patched


def redecided(decisions: D, config: Config) -> D:
    """Return the decisions under another configuration of the tasks that it may touch; all others stay as they are.

    Only checks that read a changed fact are asked again, and only tasks of which one turned, or whose weight, caps or
    end before any queue is looked at read a changed fact, are weighed and ranked again.
    """
    old = decisions.world
    new = old.with_config(config)
    if new.tasks.height > old.tasks.height:  # the decisions are on some tasks
        new = new.of_tasks(old.tasks.select("t"))
    changed = changes(old.facts, new.facts)
    again = asked_anew(new.checks, changed)
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
            now.append(patched(mine["failed"].to_numpy(), part, new.checks, again))
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
    def n_ranked(self) -> int:
        """Queues that are ranked, those beyond the best ten included."""
        return self.late_of_task["place"].count()

    @property
    def weight(self) -> float:
        """Its weight."""
        return float(self.late["weight"].item())


def trial(decisions: PlaceDecisions, t: int) -> Callable[..., Part]:
    """Return what decides a task of decisions again, without some rules and marks (``names``) at some places (``rows``, over ``q``)."""
    world = decisions.world.of_tasks(pl.DataFrame({"t": [t]}))
    failures, late = (
        Failures(world.checks),
        {rule.name for rule in (*rules_of(world.steps), *marks_of(world.steps))},
    )

    def settled(names: frozenset[str] = frozenset(), rows: pl.Expr = EVERYWHERE) -> Part:
        bits = sum(1 << bit for bit, each in enumerate(world.checks) if each.name in names)
        clear = pl.when(rows).then(pl.lit(bits, pl.Int64)).otherwise(pl.lit(0, pl.Int64))
        kept = pl.col("failed") & (pl.lit(-1, pl.Int64) ^ clear)
        *_, last = parts(
            world,
            lambda facts, loop: failures(facts, loop).with_columns(failed=kept),
            off=dict.fromkeys(names & late, rows),
        )
        return last

    return settled


def peeled(decisions: PlaceDecisions, t: int, q: int) -> Waived:
    """Take away, for one place that was looked at for a task, every check that skips it, one after the other."""
    world, decide, here = decisions.world, trial(decisions, t), pl.col("q") == q
    found = decide()
    checks: list[str] = []
    while (last := found.pairs.filter(here)["check"].item()) is not None:
        new = [name for name in _reasons(world, found, here) if name not in checks]
        checks += new
        if last == world.brokerage.last or not new:
            break
        found = decide(frozenset(checks), here)
    late = found.late if found.late is not None else pl.DataFrame(schema={"q": pl.Int64})
    names = dict(world.facts.queues.select("q", world.brokerage.place).iter_rows())
    return Waived(t, q, tuple(checks), late.filter(here), late, names, found.loop)


def _reasons(world: World, found: Part, here: pl.Expr) -> list[str]:
    """Return why a place is skipped, then all single checks that it fails; marks for the rule that stands for them."""
    row = found.pairs.filter(here).row(0, named=True)
    failed = [bit for bit in range(len(world.checks)) if row["failed"] >> bit & 1]
    failed.sort(key=lambda bit: not world.lasting >> bit & 1)
    if row["check"] == world.brokerage.marked and found.late is not None:
        marks = found.late.filter(here).row(0, named=True)
        return [rule.name for rule in marks_of(world.steps) if marks[rule.name]]
    return list(dict.fromkeys([row["check"], *(world.checks[bit].name for bit in failed)]))
