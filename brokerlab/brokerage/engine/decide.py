"""From the answers of the checks to reasons, weights and ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.evaluation import (
    SmallArray,
    Together,
    evaluated,
    highest_bit,
    lowest_bit,
)
from brokerlab.brokerage.engine.own import refuse_weights
from brokerlab.brokerage.engine.pairs import Facts, looked_up, run
from brokerlab.brokerage.engine.plans import run_again
from brokerlab.brokerage.engine.steps import names_of, walk
from brokerlab.brokerage.engine.world import Evaluate, Off, Part, World
from brokerlab.numerics import IntArray

PAIRS_AT_ONCE = 2_000_000
"""Pairs held in memory at once."""


def parts(
    world: World,
    evaluate: Evaluate | None = None,
    *,
    off: Off | None = None,
    brief: bool = False,
) -> Iterator[Part]:
    """Decide; tasks that the first loop leaves nothing are decided again, where there is a second one.

    ``evaluate`` asks the checks of single places (null: all of them of all pairs), ``off`` says what if, ``brief`` asks for
    reasons and ranks alone: places that marks remove are then not weighed.
    """
    together: list[Together] = []

    def every(facts: Facts, _: int) -> pl.DataFrame:
        return evaluated(facts, world.checks, together)

    ask, second, facts = evaluate or every, world.second, world.facts
    if second is None:
        yield from parts_of(world, facts, ask, off=off, brief=brief)
        return
    first = facts.tasks.filter(~second.at_once)
    kept = pl.col("check").is_null() | pl.col("check").is_in(second.final)
    left = []
    for part in parts_of(world, world.in_loop(first.select("t"), 1), ask, off=off, brief=brief):
        left.append(part.pairs.filter(kept).select("t").unique())
        yield part
    lost = first.filter(second.may).join(pl.concat(left), on="t", how="anti")
    others = pl.concat([facts.tasks.filter(second.at_once).select("t"), lost.select("t")])
    if others.height:  # most often not
        yield from parts_of(world, world.in_loop(others, 2), ask, loop=2, off=off, brief=brief)


def in_parts(facts: Facts) -> Iterator[Facts]:
    """Cut the tasks so that the pairs of a part fit into memory."""
    step = max(PAIRS_AT_ONCE // max(facts.most_places, 1), 1)
    if facts.tasks.height <= step:
        yield facts
        return
    for start in range(0, facts.tasks.height, step):
        tasks = facts.tasks.slice(start, step)
        yield replace(facts, tasks=tasks, listed=facts.listed.join(tasks, on="t", how="semi"))


def parts_of(
    world: World,
    facts: Facts,
    evaluate: Evaluate,
    *,
    loop: int = 1,
    off: Off | None = None,
    brief: bool = False,
) -> Iterator[Part]:
    """Decide the tasks of facts in one locality loop."""
    for part in in_parts(facts):
        yield settled(world, part, evaluate(part, loop), loop=loop, off=off, brief=brief)


def settled(
    world: World,
    facts: Facts,
    pairs: pl.DataFrame,
    *,
    loop: int = 1,
    off: Off | None = None,
    brief: bool = False,
) -> Part:
    """Turn failed checks into reasons, and weigh and rank what is left of the tasks of ``facts`` in a loop.

    ``pairs``: ``t, q, failed`` of them, sorted; bit i of ``failed`` belongs to check i; perhaps facts of them.
    """
    names, ranks_of = pl.Enum(names_of(world.checks, world.steps)), world.brokerage.ranks
    failed = pairs["failed"].to_numpy()
    reasons = lowest_bit(failed, world.lasting)
    alive = np.flatnonzero(reasons < 0)
    marks = highest_bit(failed[alive], ~world.lasting)
    late = None
    ranks = pl.DataFrame(
        [pl.Series(name, [None], kind).new_from_index(0, pairs.height) for name, kind in ranks_of.items()]
    )  # fmt: skip
    if world.hint:
        reasons[alive] = marks
    else:
        rows = pl.Series(alive.astype(np.uint32))
        late = pairs.drop("failed")[rows].with_columns(mark=named(marks, names))
        for steps, reads in world.stretches if brief else ((world.steps, world.reads),):
            numbers = looked_up(facts, late.select("t", "q"), reads - {*late.columns})
            late = late.hstack(numbers.drop("t", "q"))
            if off:
                late = run(walk(late.lazy(), steps, names, off))
            else:
                late = run_again((steps, names), late, partial(walk, steps=steps, names=names))
            # it has the rows of before, in the same order: by t and q
            reasons[alive] = late["check"].to_physical().cast(pl.Int8).fill_null(-1).to_numpy()
            if brief:
                alive = alive[reasons[alive] < 0]
                late = late.filter(pl.col("check").is_null())
        if world.brokerage.own_weight is not None:
            refuse_weights(world.brokerage.name, late)
        rows = pl.Series(alive.astype(np.uint32))
        ranks = ranks.with_columns(column.scatter(rows, late[column.name]) for column in ranks)
    keys = pairs.select("t", "q", "failed")
    return Part(
        loop, keys.hstack([named(reasons, names).alias("check"), *ranks]), None if brief else late
    )


def named(numbers: IntArray | SmallArray, names: pl.Enum) -> pl.Series:
    """Return the names of numbers; -1: null."""
    codes = pl.Series(numbers.astype(np.uint8))
    return codes.set(pl.Series(numbers < 0), None).cat.to(names)
