"""Document and production rules side by side, and which single difference makes most of what differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import polars as pl

from brokerlab.brokerage.comparison import (
    CHANGED,
    CHANGES,
    N_CHANGED,
    OTHER_BEST,
    OTHER_OUTCOME,
    compare,
)
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import parts
from brokerlab.brokerage.engine.decisions import TASK, PlaceDecisions
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.period import JobDecisions, kind_of
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
    kind, tables = kind_of(decisions), replay.tables_of(brokerage.tables)
    there = brokerage.decide(tables, rules=other_rules(rules), config=replay.config)
    tried = try_switches(brokerage, replay, rules, only=kind.switches, sample=sample, seed=seed)
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
    every = compare(here, there).every
    flags = {"any": CHANGED, "outcome": OTHER_OUTCOME, "best": OTHER_BEST}
    looked_at = every.filter(pl.col("n_pairs") > 0).group_by("jeditaskid")
    return {
        "looked_at": looked_at.agg(
            pl.col(CHANGES).sum(), looked_at=pl.col("n_pairs").sum(), pairs=N_CHANGED.sum()
        ),
        "brokerages": every.select(
            *TASK,
            *(flags[name].cast(pl.Int64).alias(name) for name in DIFFERS),
            brokerages=pl.lit(1),
        ),
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
    brokerage: Brokerage[Any, Any],
    replay: Replay,
    rules: RuleSet,
    *,
    only: Collection[str],
    texts: bool = True,
    sample: int,
    seed: int,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[pl.DataFrame, int, int]:
    """Try switches on which the sets differ alone, with ``texts`` those of the text rules too, on a sample of brokerages.

    ``only``: switches of the rule set that count; ``options`` of the brokerage.

    Returns:
        The switches (`RuleSetComparison.switches`), the brokerages tried and the pairs that differ between the sets there.
    """
    if not sample:
        return pl.DataFrame(schema=SWITCHES), 0, 0
    some = replay.of(draw_brokerages(replay.tasks, sample, seed=seed))
    tables = some.tables_of(brokerage.tables)
    world = brokerage.prepare(tables, rules=rules, config=replay.config, **options)

    @cache
    def decide(one: RuleSet) -> PlaceDecisions:
        pair = (rules, one) if isinstance(one, MatchingRules) else (one, None)
        now = world.with_rules(*pair)
        decisions: PlaceDecisions = brokerage.decisions.of(now, parts(now))
        return decisions

    def checks(one: RuleSet) -> pl.DataFrame:
        pairs = decide(one).pairs
        named = pl.all().exclude(TASK).cast(pl.String)
        return pairs.select(*TASK, named).with_columns(pl.col("check").fill_null(CANDIDATE))

    before, other = decide(rules), other_rules(rules)
    keys, there = [*TASK, before.place], checks(other)
    table = switch_by_switch(checks, rules, other, keys=keys, only=only, there=there)
    alone: dict[str, RuleSet] = {**single_switches(rules, other)}
    if texts:
        ours, theirs = MatchingRules(rules.rules), MatchingRules(other.rules)
        alone |= single_switches(ours, theirs)
        of_texts = switch_by_switch(checks, ours, theirs, keys=keys, there=there)
        table = pl.concat([table, of_texts])
    shifts = [compare(before, decide(alone[name])).weight_shift or 0.0 for name in table["switch"]]
    result = table.with_columns(shift=pl.Series(shifts, dtype=pl.Float64)).sort(
        "explained", "n_changed", "shift", "switch", descending=[True, True, True, False]
    )
    n_pairs = changed_outcomes(checks(rules), there, keys).height
    return result, tables["tasks"].height, n_pairs
