"""Decide which queues may receive the jobs of user tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.decisions import (
    AnalysisDecisions,
    Loop,
    put_together,
)
from brokerlab.brokerage.analysis_jobs.facts import World, in_loop, prepare
from brokerlab.brokerage.analysis_jobs.ranking import final_of
from brokerlab.brokerage.analysis_jobs.rules import AnalysisRules
from brokerlab.brokerage.engine.evaluation import evaluated, lowest_bit
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.pairs import Facts, looked_up, run
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import names_of, reads_of, walk
from brokerlab.brokerage.production_jobs.decide import in_parts
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules

Evaluate = Callable[[Facts, int], pl.DataFrame]
"""Says which checks skip which pairs in a locality loop: ``t, q, failed``, sorted."""


def decide(
    tables: Mapping[str, Any],
    *,
    rules: AnalysisRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    own: Sequence[Own] = (),
) -> AnalysisDecisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`~.contracts.TABLES`; frames of any engine.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables, values of another type.

    Source:
        analysis-job-brokerage.md.
    """
    rules = rules or AnalysisRules()
    world = prepare(
        prepared(tables, TABLES),
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
        own=tuple(own),
    )
    checks = world.checks

    def evaluate(facts: Facts, loop: int) -> pl.DataFrame:  # noqa: ARG001
        return evaluated(facts, checks)

    return decided(world, checks, evaluate)


def decided(world: World, checks: tuple[Rule, ...], evaluate: Evaluate) -> AnalysisDecisions:
    """Decide on tables that are prepared.

    Args:
        world: What is decided on.
        checks: The checks of single queues, in order.
        evaluate: Asks them.
    """
    return put_together(world, checks, *loops(world, checks, evaluate))


def loops(
    world: World,
    checks: Sequence[Rule],
    evaluate: Evaluate,
    *,
    off: Mapping[str, pl.Expr] | None = None,
) -> tuple[Loop, Loop]:
    """Decide the loop that asks for input at the queue, then the other one, of tasks that it leaves nothing.

    Args:
        world: What is decided on.
        checks: The checks of single queues, in order.
        evaluate: Asks them.
        off: What if, see :func:`~brokerlab.brokerage.engine.steps.walk`.
    """

    def loop(number: int, tasks: pl.DataFrame) -> Loop:
        facts = in_loop(world.facts, tasks, local=number == 1)
        parts = [
            settled(world, checks, part, evaluate(part, number), off=off)
            for part in in_parts(facts)
        ]
        pairs, late = (pl.concat(each) for each in zip(*parts, strict=True))
        return Loop(number, pairs, late)

    tasks = world.facts.tasks
    suppressed = pl.lit(value=False)
    if world.rules.locality_mode == "suppress":
        suppressed = pl.col("t_relaxed").is_not_null() & pl.col("t_second")
    first = loop(1, tasks.filter(~suppressed).select("t"))
    lost = tasks.filter(~suppressed & pl.col("t_second")).join(
        first.left(final_of(world.steps)), on="t", how="anti"
    )
    others = pl.concat([tasks.filter(suppressed).select("t"), lost.select("t")])
    if not others.height:  # most often
        return first, Loop(2, first.pairs.clear(), first.late.clear())
    return first, loop(2, others)


def settled(
    world: World, checks: Sequence[Rule], facts: Facts, pairs: pl.DataFrame,
    *, off: Mapping[str, pl.Expr] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:  # fmt: skip
    """Turn failed checks into reasons, and weigh and rank what is left: ``pairs`` and ``late`` of a loop.

    Args:
        world: Rules and settings.
        checks: The checks, bit i of ``failed`` belongs to check i.
        facts: The facts of the tasks in their loop.
        pairs: ``t, q, failed`` of them, sorted.
        off: What if, see :func:`~brokerlab.brokerage.engine.steps.walk`.
    """
    first = lowest_bit(pairs["failed"].to_numpy())
    left = pairs.select("t", "q").filter(pl.Series(first < 0))
    names = pl.Enum(names_of(checks, world.steps))
    survivors = looked_up(facts, left, {*reads_of(world.steps)}).lazy().sort("t", "q")
    late = run(walk(survivors, world.steps, names, off))
    codes = first.copy()  # `late` has the rows of `left`, in the same order: by t and q
    codes[first < 0] = late["check"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    numbered = pl.Series(codes)
    check = numbered.set(numbered < 0, None).cast(pl.UInt8).cat.to(names)
    return pairs.with_columns(check=check), late
