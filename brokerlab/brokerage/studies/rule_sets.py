"""Document and production rules side by side, and which single difference makes most of what differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.comparison import CHANGES, compare
from brokerlab.brokerage.engine.decisions import NOT_LOOKED_AT, TASK
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.period import JobDecisions, Kind, kind_of
from brokerlab.brokerage.studies.removal import CANDIDATE
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
SWITCHES = BY_SWITCH | {"shift": pl.Float64()}
"""Columns of `RuleSetComparison.switches`."""
DIFFERS = ("any", "outcome", "best")
"""In what brokerages differ."""
R = TypeVar("R", bound=RuleSet)


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """What differs between a rule set and the other one.

    Attributes:
        current: Name of the rule set looked at.
        other: Name of the other one.
        totals: See :func:`brokerlab.intervals.shares`, of the pairs: decided differently (``pairs``), candidates under
            the other set only (``gained``), under this one only (``lost``), skipped for another reason
            (``other_reason``).
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
    totals: pl.DataFrame
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
    """Decide under the other rule set and compare; try every difference alone on a ``sample`` of brokerages (0: none)."""
    rules, brokerage = decisions.world.rules, decisions.world.brokerage
    kind = replace(kind_of(decisions), brokerage=brokerage)  # with rules of one's own
    tables = replay.tables_of(kind.brokerage.tables)
    there = kind.brokerage.decide(tables, rules=other_rules(rules), config=replay.config)
    tried = try_switches(kind, replay, rules, sample=sample, seed=seed)
    return sum_up_differences(differences(decisions, there), rules, tried, n_boot=n_boot, seed=seed)


def other_rules(rules: R) -> R:
    """Return the other rule set of a brokerage: production for document."""
    return type(rules)("production" if rules.rules == "document" else "document")


def differences(here: JobDecisions, there: JobDecisions) -> dict[str, pl.DataFrame]:
    """Return what two rule sets decide differently on some tasks, by name.

    Returns:
        ``looked_at``: ``jeditaskid``, ``looked_at`` [pairs], under either rule set, and of these `CHANGES` and in all ``pairs``;
        ``brokerages``: ``jeditaskid, snapshot``, and as 0 or 1 ``any, outcome, best`` (what differs), ``brokerages`` (1).
    """
    comparison = compare(here, there)
    kinds = {kind: (pl.col("change") == kind).sum() for kind in CHANGES}
    counts = comparison.pairs.group_by("jeditaskid").agg(pairs=pl.len(), **kinds)
    only_there = comparison.pairs.filter(pl.col("check_a") == NOT_LOOKED_AT).select("jeditaskid")
    looked_at = pl.concat([here.queues.select("jeditaskid"), only_there])
    looked_at = looked_at.group_by("jeditaskid").agg(looked_at=pl.len())
    changed = pl.concat([comparison.pairs.select(TASK), comparison.tasks.select(TASK)]).unique()
    flags = comparison.tasks.select(
        *TASK,
        outcome=pl.col("outcome_a") != pl.col("outcome_b"),
        best=pl.col("best_a").ne_missing(pl.col("best_b")),
    )
    brokerages = (
        here.tasks.select(*TASK, brokerages=pl.lit(1))
        .join(changed.with_columns(any=pl.lit(value=True)), on=TASK, how="left")
        .join(flags, on=TASK, how="left")
        .with_columns(pl.col(DIFFERS).fill_null(value=False).cast(pl.Int64))
    )
    return {
        "looked_at": looked_at.join(counts, on="jeditaskid", how="left").fill_null(0),
        "brokerages": brokerages,
    }


def sum_up_differences(
    frames: Mapping[str, pl.DataFrame],
    rules: RuleSet,
    tried: tuple[pl.DataFrame, int, int],
    **dice: Any,
) -> RuleSetComparison:
    """Sum up :func:`differences` of all tasks, and what :func:`try_switches` ``tried``."""
    dice |= {"unit": "jeditaskid"}
    switches, n_sample, n_sample_pairs = tried
    return RuleSetComparison(
        current=rules.rules,
        other=other_rules(rules).rules,
        totals=shares(frames["looked_at"], ["pairs", *CHANGES], "looked_at", **dice),
        brokerages=shares(frames["brokerages"], DIFFERS, "brokerages", **dice),
        switches=switches,
        n_sample=n_sample,
        n_sample_pairs=n_sample_pairs,
    )


def draw_brokerages(tasks: pl.DataFrame, sample: int, *, seed: int) -> pl.DataFrame:
    """Draw some brokerages at random, at most one per task: ``jeditaskid, snapshot``."""
    ordered = tasks.select(TASK).sort(TASK)
    mixed = ordered.with_columns(draw=pl.Series(np.random.default_rng(seed).random(tasks.height)))
    once = mixed.sort("draw").unique("jeditaskid", keep="first", maintain_order=True).head(sample)
    return once.drop("draw").sort(TASK)


def try_switches(
    kind: Kind, replay: Replay, rules: RuleSet, *, sample: int, seed: int
) -> tuple[pl.DataFrame, int, int]:
    """Try every switch on which the sets differ alone, those of the text rules that they read too, on a sample of brokerages.

    Returns:
        The switches (`RuleSetComparison.switches`), the brokerages tried and the pairs that differ between the sets there.
    """
    if not sample:
        return pl.DataFrame(schema=SWITCHES), 0, 0
    some = replay.of(draw_brokerages(replay.tasks, sample, seed=seed))
    tables, other = some.tables_of(kind.brokerage.tables), other_rules(rules)

    @cache
    def decide(rule_set: RuleSet, texts: MatchingRules) -> JobDecisions:
        return kind.brokerage.decide(tables, rules=rule_set, matching=texts, config=replay.config)

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
    check = pl.col("check").cast(pl.String).fill_null(CANDIDATE)
    return decisions.queues.select(*TASK, pl.col("panda_queue").cast(pl.String), check=check)
