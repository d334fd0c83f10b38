"""How often the two rule sets time jobs out differently, and by which of their differences."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.intervals import clustered
from brokerlab.lifecycle.timeouts import TimeoutRules
from brokerlab.lifecycle.waits.period import Waiting
from brokerlab.rulesets import switch_by_switch

KINDS = ("same", "other_time", "other_rule", "only_current", "only_other")
"""How a job fares under both rule sets."""
FATE = ("rule", "action", "fires")  # what a rule set does to a job, by its first rule


@dataclass(frozen=True, kw_only=True)
class RuleSetComparison:
    """How the rule sets compare."""

    # jobs by ``kind`` (of `KINDS`): ``jobs, jobs_lo, jobs_hi``, ``share`` of the jobs that any of the two times
    # out
    kinds: pl.DataFrame
    # the same by ``current`` and ``other`` rule (null: none) and ``kind``, differing jobs only, most first
    pairs: pl.DataFrame
    switches: pl.DataFrame  # see `brokerlab.rulesets.switch_by_switch`; rows are jobs
    # ``number, rule``, ``current, other``: jobs that it times out under either set
    by_rule: pl.DataFrame

    @property
    def n_any(self) -> int:
        """Jobs that any of the two sets times out."""
        return int(self.kinds["jobs"].sum())

    @property
    def n_different(self) -> int:
        """Jobs that fare differently."""
        return int(self.kinds.filter(pl.col("kind") != "same")["jobs"].sum())


def compare_rule_sets(
    waiting: Waiting, firings: pl.DataFrame, *, n_boot: int = 0, seed: int = 1
) -> RuleSetComparison:
    """Compare the rule set of a period with the other one, job by job, each by its first rule."""
    others = waiting.firings(rules=waiting.other)
    counted = pair_fates(_fates(firings), _fates(others)).with_columns(jobs=pl.lit(1))
    different = counted.filter(pl.col("kind") != "same").rename({"rule": "current", "rule_other": "other"})  # fmt: skip

    def count(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
        units = waiting.units["unit"]
        return clustered(rows, {"jobs": "jobs"}, unit="unit", by=by, units=units, n_boot=n_boot, seed=seed)  # fmt: skip

    def outcomes(rules: TimeoutRules) -> pl.DataFrame:
        return _fates(waiting.firings(rules=rules)).select("pandaid", *FATE)

    kinds = count(counted, "kind").with_columns(share=pl.col("jobs") / pl.col("jobs").sum())
    pairs = count(different, "current", "other", "kind")
    order = pl.col("kind").cast(pl.Enum(KINDS))
    return RuleSetComparison(
        kinds=kinds.sort(order),
        pairs=pairs.sort("jobs", "current", "other", descending=[True, False, False]),
        switches=switch_by_switch(outcomes, waiting.rules, waiting.other, keys=["pandaid"]),
        by_rule=_by_rule(firings, others),
    )


def pair_fates(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Put what two rule sets do to every job side by side.

    The columns, those of the other set with ``_other``, and ``kind``, of `KINDS`; sorted by job.
    """
    both = here.join(there, on="pandaid", how="full", suffix="_other", coalesce=True)
    rule, other = pl.struct("rule", "action"), pl.struct(rule="rule_other", action="action_other")
    kind = (
        pl.when(pl.col("rule_other").is_null())
        .then(pl.lit("only_current"))
        .when(pl.col("rule").is_null())
        .then(pl.lit("only_other"))
        .when(rule != other)
        .then(pl.lit("other_rule"))
        .when(pl.col("fires") != pl.col("fires_other"))
        .then(pl.lit("other_time"))
        .otherwise(pl.lit("same"))
    )
    return both.with_columns(kind=kind, unit=pl.coalesce("unit", "unit_other")).sort("pandaid")


def _fates(firings: pl.DataFrame) -> pl.DataFrame:
    return firings.filter("first").select("pandaid", "unit", *FATE)


def _by_rule(here: pl.DataFrame, there: pl.DataFrame) -> pl.DataFrame:
    """Count the jobs of each rule under both sets."""
    sides = [
        firings.group_by("number", "rule").agg(pl.col("pandaid").n_unique().cast(pl.Int64).alias(name))
        for name, firings in (("current", here), ("other", there))
    ]  # fmt: skip
    both = sides[0].join(sides[1], on=["number", "rule"], how="full", coalesce=True)
    return both.with_columns(pl.col("current", "other").fill_null(0)).sort("number", "rule")
