"""Document and production rules side by side, and which single difference makes most of what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.comparison import CHANGES, Comparison, compare
from brokerlab.brokerage.engine.own import Own
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.kinds import JobDecisions, Kind, kind_of
from brokerlab.brokerage.studies.removal import CANDIDATE
from brokerlab.brokerage.view import NOT_LOOKED_AT, TASK
from brokerlab.intervals import N_BOOT, shares
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import (
    BY_SWITCH,
    RuleSet,
    changed_outcomes,
    single_switches,
    switch_by_switch,
)

PAIR = [*TASK, "panda_queue"]
MOST_MOVES = 10
"""Changes of one check into another that are counted apart."""
SWITCHES = BY_SWITCH | {"shift": pl.Float64()}
"""Columns of `RuleSetComparison.switches`."""


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """What differs between a rule set and the other one.

    Attributes:
        current: Name of the rule set looked at.
        other: Name of the other one.
        comparison: Decisions of both.
        totals: See :func:`brokerlab.intervals.shares`, of the pairs: decided differently (``pairs``), candidates under
            the other set only (``gained``), under this one only (``lost``), skipped for another reason
            (``other_reason``).
        moves: The same of the most frequent changes ``check → check``, the most frequent first.
        brokerages: The same of brokerages that differ in anything (``any``), in their ``outcome``, in their ``best``
            queue.
        switches: Of every switch tried alone on a sample, those of the text rules too: see
            :func:`brokerlab.rulesets.switch_by_switch`, rows are pairs, with ``shift`` [1] (mean share of a task's expected
            jobs that it alone sends elsewhere).
        n_sample: Brokerages in that sample.
        n_sample_pairs: Pairs that differ between the rule sets there.
    """

    current: str
    other: str
    comparison: Comparison
    totals: pl.DataFrame
    moves: pl.DataFrame
    brokerages: pl.DataFrame
    switches: pl.DataFrame
    n_sample: int
    n_sample_pairs: int


def compare_rule_sets(
    replay: Replay,
    decisions: JobDecisions,
    *,
    sample: int = 60,
    n_boot: int = N_BOOT,
    seed: int = 1,
) -> RuleSetComparison:
    """Decide under the other rule set and compare; try every difference alone on a sample.

    Args:
        replay: What the brokerage saw.
        decisions: Under the rule set looked at.
        sample: Brokerages on which single switches are tried; 0: none are.
        n_boot: Replicates over tasks.
        seed: Of the sample and of the replicates.
    """
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    kind = kind_of(decisions)
    rules = decisions.world.rules
    other = kind.rules("production" if rules.rules == "document" else "document")
    own = decisions.world.own
    there = kind.decide(kind.tables(replay), rules=other, config=replay.config, own=own)
    comparison = compare(decisions, there)
    switches, n_sample, n_sample_pairs = _try_switches(
        kind, replay, rules, other, own, sample=sample, seed=seed
    )
    return RuleSetComparison(
        current=rules.rules,
        other=other.rules,
        comparison=comparison,
        totals=_totals(comparison, decisions, **dice),
        moves=_moves(comparison, decisions, **dice),
        brokerages=_brokerages(comparison, decisions, **dice),
        switches=switches,
        n_sample=n_sample,
        n_sample_pairs=n_sample_pairs,
    )


def sample_brokerages(
    tables: Mapping[str, pl.DataFrame], sample: int, *, seed: int
) -> dict[str, pl.DataFrame]:
    """Return the tables of a job brokerage for some brokerages, drawn at random, at most one per task.

    Args:
        tables: What the brokerage saw.
        sample: How many at most.
        seed: Of the draw.
    """
    tasks = tables["tasks"].sort(TASK)
    mixed = tasks.with_columns(draw=pl.Series(np.random.default_rng(seed).random(tasks.height)))
    once = mixed.sort("draw").unique("jeditaskid", keep="first", maintain_order=True).head(sample)
    chosen = once.drop("draw").sort(TASK)
    instants, ids = chosen["snapshot"].unique().implode(), chosen["jeditaskid"].implode()
    at_instant = pl.col("snapshot").is_null() | pl.col("snapshot").is_in(instants)
    of_task = pl.col("jeditaskid").is_null() | pl.col("jeditaskid").is_in(ids)
    result = {}
    for name, table in tables.items():
        part = table.filter(at_instant) if "snapshot" in table.columns else table
        by_task = "jeditaskid" in table.columns and name != "parent_tasks"
        result[name] = part.filter(of_task) if by_task else part
    return result | {"tasks": chosen}


def _totals(comparison: Comparison, decisions: JobDecisions, **dice: Any) -> pl.DataFrame:
    """Return the shares of pairs decided differently, in all and by kind of change."""
    kinds = [(pl.col("change") == change).sum().alias(change) for change in CHANGES]
    counts = comparison.pairs.group_by("jeditaskid").agg(*kinds, pairs=pl.len())
    table = _beside_pairs(counts, comparison, decisions)
    parts = ["pairs", *CHANGES]
    return shares(table, parts, "looked_at", unit="jeditaskid", **dice)


def _moves(comparison: Comparison, decisions: JobDecisions, **dice: Any) -> pl.DataFrame:
    """Return the shares of pairs by what became of what, the most frequent changes first."""
    checks = [pl.col(f"check_{side}").fill_null(CANDIDATE) for side in "ab"]
    named = comparison.pairs.with_columns(move=pl.format("{} → {}", *checks))
    frequent = named["move"].value_counts().sort("count", "move", descending=[True, False])
    moves = frequent["move"].head(MOST_MOVES).to_list()
    counts = named.group_by("jeditaskid").agg(
        *((pl.col("move") == move).sum().alias(move) for move in moves), n=pl.len()
    )
    table = _beside_pairs(counts, comparison, decisions)
    return shares(table, moves, "looked_at", unit="jeditaskid", **dice)


def _brokerages(comparison: Comparison, decisions: JobDecisions, **dice: Any) -> pl.DataFrame:
    """Return the shares of brokerages that end differently, have another best queue, or differ in anything."""
    changed = pl.concat([comparison.pairs.select(TASK), comparison.tasks.select(TASK)]).unique()
    flags = comparison.tasks.select(
        *TASK,
        outcome=pl.col("outcome_a") != pl.col("outcome_b"),
        best=pl.col("best_a").ne_missing(pl.col("best_b")),
    )
    parts = ["any", "outcome", "best"]
    table = (
        decisions.tasks.select(*TASK, brokerages=pl.lit(1))
        .join(changed.with_columns(any=pl.lit(value=True)), on=TASK, how="left")
        .join(flags, on=TASK, how="left")
        .with_columns(pl.col(parts).fill_null(value=False).cast(pl.Int64))
    )
    return shares(table, parts, "brokerages", unit="jeditaskid", **dice)


def _beside_pairs(
    counts: pl.DataFrame, comparison: Comparison, decisions: JobDecisions
) -> pl.DataFrame:
    """Join counts by task to the pairs looked at, under either rule set."""
    only_there = comparison.pairs.filter(pl.col("check_a") == NOT_LOOKED_AT).select("jeditaskid")
    looked_at = pl.concat([decisions.queues.select("jeditaskid"), only_there])
    pairs = looked_at.group_by("jeditaskid").agg(looked_at=pl.len())
    return pairs.join(counts, on="jeditaskid", how="left").fill_null(0)


def _try_switches(
    kind: Kind,
    replay: Replay,
    rules: RuleSet,
    other: RuleSet,
    own: Sequence[Own],
    *,
    sample: int,
    seed: int,
) -> tuple[pl.DataFrame, int, int]:
    """Try every switch on which the sets differ alone, those of the text rules that they read too.

    Returns:
        The switches, the brokerages tried and the pairs that differ between the sets there.
    """
    if not sample:
        return pl.DataFrame(schema=SWITCHES), 0, 0
    tables = sample_brokerages(kind.tables(replay), sample, seed=seed)

    @cache
    def decide(rule_set: RuleSet, texts: MatchingRules) -> JobDecisions:
        return kind.decide(tables, rules=rule_set, matching=texts, config=replay.config, own=own)

    texts, other_texts = MatchingRules(rules.rules), MatchingRules(other.rules)
    before = decide(rules, texts)
    there = _checks(decide(other, other_texts))
    asked: dict[str, Any] = {"keys": PAIR, "there": there}
    alone = {name: (one, texts) for name, one in single_switches(rules, other).items()}
    alone |= {name: (rules, one) for name, one in single_switches(texts, other_texts).items()}
    of_rules = switch_by_switch(
        lambda one: _checks(decide(one, texts)), rules, other, only=kind.switches, **asked
    )
    of_texts = switch_by_switch(
        lambda one: _checks(decide(rules, one)), texts, other_texts, **asked
    )
    table = pl.concat([of_rules, of_texts])
    shifts = [compare(before, decide(*alone[name])).weight_shift or 0.0 for name in table["switch"]]
    result = table.with_columns(shift=pl.Series(shifts, dtype=pl.Float64)).sort(
        "explained", "n_changed", "shift", "switch", descending=[True, True, True, False]
    )
    n_pairs = changed_outcomes(_checks(before), there, PAIR).height
    return result, tables["tasks"].height, n_pairs


def _checks(decisions: JobDecisions) -> pl.DataFrame:
    """Return the check of every pair, as text."""
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    return decisions.queues.select(*TASK, pl.col("panda_queue").cast(pl.String), check=check)
