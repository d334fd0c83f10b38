"""Document and production rules side by side, and which single difference accounts for most of what differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.brokerage.comparison import Comparison, compare
from brokerlab.brokerage.replay import Replay
from brokerlab.matching.rules import MatchingRules
from brokerlab.report.replays.kinds import JobDecisions, Kind, kind_of
from brokerlab.report.replays.removal import CANDIDATE, KEYS
from brokerlab.report.replays.shares import shares

TEXT_RULES = "matching"
"""Stands for all switches of the text rules together."""
PAIR = [*KEYS, "panda_queue"]
NOT_LOOKED_AT = "not looked at"
"""What `compare` says of a pair that one side does not have."""


@dataclass(frozen=True, kw_only=True)
class RuleSets:
    """What differs between the rule set of the study and the other one.

    Attributes:
        current: Name of the study's rule set.
        other: Name of the other one.
        comparison: Decisions of both.
        totals: `shares` of pairs that are decided differently (``pairs``), that only the other set passes
            (``gained``), that only this one passes (``lost``), that have another reason (``other_reason``).
        brokerages: `shares` of brokerages with another ``outcome``, another ``best`` queue, anything else (``any``).
        by_check: `shares` of pairs by ``check_a → check_b``, the most frequent first.
        switches: One row per switch tried alone on a sample, the one that explains most first: ``switch``, ``rows``
            (of the chapters), ``n_changed`` [pairs], ``explained``, share of the sample's differences that it makes
            alone, ``shift``, mean share of a task's expected jobs that it alone sends elsewhere.
        n_sample: Brokerages in that sample.
        n_sample_pairs: Pairs that differ between the rule sets there.
    """

    current: str
    other: str
    comparison: Comparison
    totals: pl.DataFrame
    brokerages: pl.DataFrame
    by_check: pl.DataFrame
    switches: pl.DataFrame
    n_sample: int
    n_sample_pairs: int

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the tables by the names under which a report keeps them."""
        return {
            "rule_totals": self.totals,
            "rule_brokerages": self.brokerages,
            "rule_changes": self.by_check,
            "rule_switches": self.switches,
        }

    def numbers(self) -> dict[str, Any]:
        """Return what a report tells of them besides the tables."""
        return {
            "current": self.current,
            "other": self.other,
            "n_changed": self.comparison.n_changed(),
            "n_sample": self.n_sample,
            "n_sample_pairs": self.n_sample_pairs,
        }


def studied(
    replay: Replay, decisions: JobDecisions, *, sample: int, n_boot: int, seed: int
) -> RuleSets:
    """Decide under the other rule set and compare.

    Args:
        replay: What the brokerage saw.
        decisions: Under the rule set of the study.
        sample: Brokerages on which single switches are tried; 0: none are.
        n_boot: Bootstrap replicates.
        seed: Of the sample and of the bootstrap.
    """
    rules = decisions.world.rules
    kind = kind_of(decisions)
    other = kind.rules("production" if rules.rules == "document" else "document")
    found = compare(decisions, kind.decide(kind.tables(replay), rules=other, config=replay.config))
    tried, n_sample, n_pairs = _switches(kind, replay, rules, other, sample=sample, seed=seed)
    return RuleSets(
        current=rules.rules,
        other=other.rules,
        comparison=found,
        totals=totals(found, decisions, n_boot=n_boot, seed=seed),
        brokerages=brokerages(found, decisions, n_boot=n_boot, seed=seed),
        by_check=by_check(found, decisions, n_boot=n_boot, seed=seed),
        switches=tried,
        n_sample=n_sample,
        n_sample_pairs=n_pairs,
    )


def totals(found: Comparison, decisions: JobDecisions, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the shares of pairs decided differently, in all and by kind."""
    kinds = ("gained", "lost", "other_reason")
    counted = found.pairs.group_by("jeditaskid").agg(
        *((pl.col("change") == kind).sum().alias(kind) for kind in kinds), pairs=pl.len()
    )
    return shares(
        _beside(counted, found, decisions), ["pairs", *kinds], "looked_at", n_boot=n_boot, seed=seed
    )


def by_check(
    found: Comparison, decisions: JobDecisions, *, n_boot: int, seed: int, most: int = 10
) -> pl.DataFrame:
    """Return the shares of pairs by what became of what, the most frequent changes first."""
    words = [pl.col(f"check_{side}").fill_null(CANDIDATE) for side in "ab"]
    named = found.pairs.with_columns(move=pl.format("{} → {}", *words))
    moves = (
        named["move"]
        .value_counts()
        .sort("count", "move", descending=[True, False])["move"]
        .head(most)
    )
    counted = named.group_by("jeditaskid").agg(
        (pl.col("move") == move).sum().alias(move) for move in moves
    )
    if moves.is_empty():
        counted = counted.select("jeditaskid")
    return shares(
        _beside(counted, found, decisions), moves.to_list(), "looked_at", n_boot=n_boot, seed=seed
    )


def brokerages(
    found: Comparison, decisions: JobDecisions, *, n_boot: int, seed: int
) -> pl.DataFrame:
    """Return the shares of brokerages that end differently, have another best queue, or differ in anything."""
    some = pl.concat([found.pairs.select(KEYS), found.tasks.select(KEYS)]).unique()
    flags = found.tasks.select(
        *KEYS,
        outcome=pl.col("outcome_a") != pl.col("outcome_b"),
        best=pl.col("best_a").ne_missing(pl.col("best_b")),
    )
    table = (
        decisions.tasks.select(*KEYS, brokerages=pl.lit(1))
        .join(some.with_columns(any=pl.lit(value=True)), on=KEYS, how="left")
        .join(flags, on=KEYS, how="left")
        .with_columns(pl.col("any", "outcome", "best").fill_null(value=False).cast(pl.Int64))
    )
    return shares(table, ["any", "outcome", "best"], "brokerages", n_boot=n_boot, seed=seed)


def _beside(counted: pl.DataFrame, found: Comparison, decisions: JobDecisions) -> pl.DataFrame:
    """Join counts by task to the pairs looked at, under either rule set."""
    only = found.pairs.filter(pl.col("check_a") == NOT_LOOKED_AT).select("jeditaskid")
    looked = pl.concat([decisions.queues.select("jeditaskid"), only]).group_by("jeditaskid")
    pairs = looked.agg(looked_at=pl.len())
    return pairs.join(counted, on="jeditaskid", how="left").fill_null(0)


def _switches(
    kind: Kind, replay: Replay, rules: Any, other: Any, *, sample: int, seed: int
) -> tuple[pl.DataFrame, int, int]:
    """Try every switch on which the sets differ alone."""
    schema = {
        "switch": pl.String,
        "rows": pl.String,
        "n_changed": pl.Int64,
        "explained": pl.Float64,
        "shift": pl.Float64,
    }
    if not sample:
        return pl.DataFrame(schema=schema), 0, 0
    tables = sampled(kind.tables(replay), sample, seed=seed)

    def told(rule_set: Any, matching: str) -> JobDecisions:
        return kind.decide(
            tables, rules=rule_set, matching=MatchingRules(matching), config=replay.config
        )

    before = told(rules, rules.rules)
    after = _moved(before, told(other, other.rules))
    rows = []
    for name, row in kind.switches.items():
        if getattr(rules, name) != getattr(other, name):
            alone = kind.rules(rules.rules, **{name: getattr(other, name)})
            rows.append(_explained(name, row, before, told(alone, rules.rules), after))
    rows.append(_explained(TEXT_RULES, "H", before, told(rules, other.rules), after))
    table = pl.DataFrame(rows, schema=schema, orient="row")
    order = table.sort(
        "explained", "n_changed", "shift", "switch", descending=[True, True, True, False]
    )
    return order, tables["tasks"].height, after.height


def sampled(tables: dict[str, pl.DataFrame], sample: int, *, seed: int) -> dict[str, pl.DataFrame]:
    """Return the tables of a job brokerage for some brokerages, drawn at random, at most one per task.

    Args:
        tables: What the brokerage saw.
        sample: How many at most.
        seed: Of the draw.
    """
    tasks = tables["tasks"].sort(KEYS)
    mixed = tasks.with_columns(draw=pl.Series(np.random.default_rng(seed).random(tasks.height)))
    once = mixed.sort("draw").unique("jeditaskid", keep="first", maintain_order=True).head(sample)
    chosen = once.drop("draw").sort(KEYS)
    instants, ids = chosen["snapshot"].unique().implode(), chosen["jeditaskid"].implode()
    kept: dict[str, pl.DataFrame] = {}
    for name, table in tables.items():
        at = pl.col("snapshot").is_null() | pl.col("snapshot").is_in(instants)
        mine = pl.col("jeditaskid").is_null() | pl.col("jeditaskid").is_in(ids)
        part = table.filter(at) if "snapshot" in table.columns else table
        kept[name] = (
            part.filter(mine) if "jeditaskid" in table.columns and name != "parent_tasks" else part
        )
    return kept | {"tasks": chosen}


def _moved(before: JobDecisions, after: JobDecisions) -> pl.DataFrame:
    """Return the pairs whose check differs, with the new one."""
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    one, other = (
        made.queues.select(*KEYS, pl.col("panda_queue").cast(pl.String), check=check)
        for made in (before, after)
    )
    both = one.join(other, on=PAIR, how="full", coalesce=True, suffix="_b")
    return both.filter(pl.col("check").ne_missing(pl.col("check_b"))).select(*PAIR, "check_b")


def _explained(
    name: str, rows: str, before: JobDecisions, after: JobDecisions, together: pl.DataFrame
) -> tuple[str, str, int, float, float]:
    """Return how much of the difference one switch makes alone."""
    alone = _moved(before, after)
    same = alone.join(together, on=[*PAIR, "check_b"], how="semi", nulls_equal=True).height
    explained = same / together.height if together.height else 0.0
    shift = compare(before, after).weight_shift
    return name, rows, alone.height, explained, shift or 0.0
