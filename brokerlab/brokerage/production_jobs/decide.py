"""Decide which queues may receive the jobs of tasks: one task or a month of them, the same way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.check import Check
from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.production_jobs import ranking
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.facts import World, prepare
from brokerlab.brokerage.production_jobs.pairs import Facts, ToEngine, evaluated, in_polars, paired
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.tables import prepared
from brokerlab.gdpconfig import Config
from brokerlab.matching.rules import MatchingRules
from brokerlab.numerics import IntArray

PAIRS_AT_ONCE = 1_000_000
"""Pairs held in memory at once."""


def decide(
    tables: Mapping[str, Any],
    *,
    rules: ProductionRules | None = None,
    matching: MatchingRules | None = None,
    config: Config | None = None,
    hint: bool = False,
    into: ToEngine = in_polars,
) -> Decisions:
    """Decide for every task and every candidate queue.

    Args:
        tables: Input tables by name, see :data:`brokerlab.brokerage.contracts.TABLES`; frames of any engine.
        rules: Rule set; null = ``document``.
        matching: Rule set of the text rules; null = the set of the same name.
        config: Settings; null = defaults.
        hint: Only say which queues could run the tasks (task brokerage); nuclei are not looked at.
        into: Engine in which the checks run: a function that takes a Polars frame and returns what narwhals
            accepts. The decisions are the same in every engine.

    Returns:
        The decisions.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with.

    Source:
        production-job-brokerage.md.
    """
    rules = rules or ProductionRules()
    world = prepare(
        prepared(tables, TABLES),
        rules=rules,
        matching=matching or MatchingRules(rules.rules),
        config=config or Config.empty(),
        hint=hint,
    )
    checks = queue_checks(rules, world.settings)
    parts = [
        _decided(world, part, checks, into, hint=hint) for part in _in_parts(world.facts)
    ]
    return Decisions.of(world, checks, parts, hint=hint)


def _in_parts(facts: Facts) -> Iterator[Facts]:
    """Cut the tasks so that the pairs of a part fit into memory."""
    per_task = max(facts.queues.filter("q_candidate").height, 1)
    step = max(PAIRS_AT_ONCE // per_task, 1)
    for start in range(0, max(facts.tasks.height, 1), step):
        tasks = facts.tasks.slice(start, step)
        yield replace(facts, tasks=tasks, listed=facts.listed.join(tasks, on="t", how="semi"))


def _decided(
    world: World, facts: Facts, checks: Sequence[Check], into: ToEngine, *, hint: bool
) -> pl.DataFrame:
    """Return the pairs of some tasks with what became of them."""
    pairs = first_reasons(evaluated(facts, checks, into), checks)
    left = pairs.filter(pl.col("check").is_null())
    if hint:
        return pairs.with_columns(check=pl.coalesce("check", "mark")).drop("mark")
    few = replace(
        facts, tasks=facts.tasks.join(left, on="t", how="semi"), listed=left.select("t", "q")
    )
    numbers = paired(few, ranking.INPUTS).collect("polars").to_native()
    late = ranking.ranked(
        left.select("t", "q", "mark").join(numbers, on=["t", "q"]),
        rules=world.rules,
        settings=world.settings,
    ).select("t", "q", *ranking.RESULTS)
    return pairs.drop("mark").join(late, on=["t", "q"], how="left", suffix="_late").with_columns(
        check=pl.coalesce("check", "check_late")
    ).drop("check_late")


def first_reasons(pairs: pl.DataFrame, checks: Sequence[Check]) -> pl.DataFrame:
    """Add the first persistent check that failed, and the last temporary one.

    Args:
        pairs: With ``failed``, one bit per check.
        checks: The checks, in order of the bits.

    Returns:
        The pairs with ``check`` and ``mark`` (Enum of names, null: none).
    """
    temporary = sum(1 << bit for bit, check in enumerate(checks) if check.kind == "temporary")
    failed = pairs["failed"].to_numpy()
    persistent, marks = failed & ~temporary, failed & temporary
    return pairs.with_columns(
        check=_named(_lowest(persistent), checks), mark=_named(_highest(marks), checks)
    )


def _lowest(bits: IntArray) -> IntArray:
    return _highest(bits & -bits)


def _highest(bits: IntArray) -> IntArray:
    """Return the number of the highest bit, -1 for none; exact, there are fewer than 62."""
    _, exponent = np.frexp(bits.astype(np.float64))
    return np.asarray(exponent, dtype=np.int64) - 1


def _named(numbers: IntArray, checks: Sequence[Check]) -> pl.Series:
    names = pl.Series([check.name for check in checks])
    return names.gather(pl.Series(numbers).replace(-1, None), null_on_oob=True)
