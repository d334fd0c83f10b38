"""Decide which queues may receive the jobs of tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.evaluation import evaluated, highest_bit, lowest_bit
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.engine.pairs import Facts, looked_up, run
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import names_of, reads_of, walk
from brokerlab.brokerage.production_jobs.decisions import RANKS, Decisions, Part
from brokerlab.brokerage.production_jobs.facts import World, prepare
from brokerlab.brokerage.production_jobs.ranking import REPORTED
from brokerlab.brokerage.production_jobs.recipe import PRODUCTION, Recipe, held_to_weight
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.numerics import IntArray

PAIRS_AT_ONCE = 2_000_000
"""Pairs held in memory at once."""


def decide(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    hint: bool = False,
    recipe: Recipe = PRODUCTION,
    own: Sequence[Own] = (),
) -> Decisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`brokerlab.brokerage.contracts.TABLES`; frames of any engine.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        hint: Only say which queues could run the tasks (task brokerage); nuclei are not looked at.
        recipe: What an organisation replaced: checks, weight, tables and facts of its own.
        own: Rules that are added, see :class:`~brokerlab.brokerage.engine.own.Own`.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, or a recipe.

    Source:
        production-job-brokerage.md.
    """
    rules = rules or ProductionRules()
    world = prepare(
        prepared(tables, {**TABLES, **recipe.tables}),
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
        hint=hint,
        recipe=recipe,
        own=tuple(own),
    )
    checks = world.checks
    parts = (
        settled(world, evaluated(part, checks), part, checks) for part in in_parts(world.facts)
    )
    return Decisions.of(world, checks, parts)


def hint_queues(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Return the queues that could run each task, for the choice of its nucleus.

    Args:
        tables: See :func:`decide`.
        rules: See :func:`decide`.
        matching: See :func:`decide`.
        config: See :func:`decide`.

    Returns:
        ``jeditaskid, snapshot, panda_queue`` (str).

    Source:
        production-task-brokerage.md 4, row 7.
    """
    decided = decide(tables, rules=rules, matching=matching, config=config, hint=True).queues
    return decided.filter(pl.col("check").is_null()).select(
        "jeditaskid", "snapshot", pl.col("panda_queue").cast(pl.String)
    )


def in_parts(facts: Facts) -> Iterator[Facts]:
    """Cut the tasks so that the pairs of a part fit into memory."""
    per_task = max(facts.queues.filter("q_candidate").height, 1)
    step = max(PAIRS_AT_ONCE // per_task, 1)
    for start in range(0, max(facts.tasks.height, 1), step):
        tasks = facts.tasks.slice(start, step)
        yield replace(facts, tasks=tasks, listed=facts.listed.join(tasks, on="t", how="semi"))


def settled(
    world: World, pairs: pl.DataFrame, facts: Facts, checks: Sequence[Rule],
    *, off: Mapping[str, pl.Expr] | None = None,
) -> Part:  # fmt: skip
    """Turn failed checks into reasons, and weigh and rank what is left.

    Args:
        world: Rules and settings.
        pairs: ``t, q, failed`` of some tasks, sorted; see :func:`~.pairs.evaluated`.
        facts: The facts of these tasks.
        checks: The checks, bit i of ``failed`` belongs to check i.
        off: What if, see :func:`~brokerlab.brokerage.engine.steps.walk`.
    """
    names = pl.Enum(names_of(checks, world.steps))
    first, mark = first_reasons(pairs["failed"].to_numpy(), checks)
    left = pairs.select("t", "q", mark=_named(mark, names)).filter(pl.Series(first < 0))
    if world.hint:
        check = _named(np.where(first < 0, mark, first), names)
        nothing = (pl.lit(None, dtype=kind).alias(name) for name, kind in RANKS.items())
        return Part(pairs.with_columns(check.alias("check"), *nothing), None)
    numbers = looked_up(facts, left.select("t", "q"), {*reads_of(world.steps), *REPORTED})
    late = run(walk(left.hstack(numbers.drop("t", "q")).lazy(), world.steps, names, off))
    held_to_weight(world.recipe, late)
    # `late` has the rows of `left`, in the same order: by t and q
    at = np.full(pairs.height, left.height, dtype=np.uint32)
    at[first < 0] = np.arange(left.height, dtype=np.uint32)
    codes = np.append(late["check"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy(), -1)
    check = _named(np.where(first < 0, codes[at], first), names)
    ranks = pl.concat(
        [late.select(*RANKS), pl.DataFrame({name: [None] for name in RANKS}, schema=RANKS)]
    )
    return Part(pairs.hstack([check.alias("check"), *ranks[pl.Series(at)]]), late)


def first_reasons(failed: IntArray, checks: Sequence[Rule]) -> tuple[IntArray, IntArray]:
    """Return the number of the first persistent check that failed, and of the last temporary one; -1: none."""
    temporary = sum(1 << bit for bit, check in enumerate(checks) if check.kind == "temporary")
    persistent = failed & ~temporary
    return lowest_bit(persistent), highest_bit(failed & temporary)


def _named(numbers: IntArray, names: pl.Enum) -> pl.Series:
    codes = pl.Series(numbers)
    return codes.set(codes < 0, None).cast(pl.UInt8).cat.to(names)
