"""How often the two rule sets time jobs out differently, and by which of their differences."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.lifecycle.timeouts.rules import SWITCHES
from brokerlab.report.waiting_rules.firing import prepared
from brokerlab.report.waiting_rules.inputs import Inputs, flipped
from brokerlab.report.waiting_rules.sums import Draws, summed

KINDS = ("only_current", "only_other", "other_rule", "other_time", "same")
"""How a job fares under both rule sets."""
FATE = ("rule", "action", "fires")


@dataclass(frozen=True, kw_only=True)
class RuleSets:
    """How the rule sets compare.

    Attributes:
        kinds: Jobs by ``kind`` (see `KINDS`), with intervals: ``jobs, jobs_lo, jobs_hi``, ``share`` of the jobs that
            any of the two times out.
        pairs: The same by ``current`` and ``other`` rule (null: none), differing jobs only, most first.
        switches: ``switch``, ``about`` (row of the chapter), ``n_changed`` (jobs that fare otherwise when it alone is
            changed), ``explained`` (share of the differing jobs that then fare as under the other set); largest first.
        by_rule: ``rule``, ``current, other``: jobs timed out by it under either set.
    """

    kinds: pl.DataFrame
    pairs: pl.DataFrame
    switches: pl.DataFrame
    by_rule: pl.DataFrame

    @property
    def n_different(self) -> int:
        """Jobs that fare differently."""
        return int(self.kinds.filter(pl.col("kind") != "same")["jobs"].sum())

    @property
    def n_any(self) -> int:
        """Jobs that any of the two sets times out."""
        return int(self.kinds["jobs"].sum())


def studied(inputs: Inputs, rows: pl.DataFrame, draws: Draws) -> RuleSets:
    """Compare the rule set of the study with the other one, job by job, each by its first rule.

    Args:
        inputs: The histories.
        rows: Firings under the rule set of the study.
        draws: How intervals are made.
    """
    theirs_all = prepared(inputs.read.fired(rules=inputs.other), inputs)
    mine, theirs = _fates(rows), _fates(theirs_all)
    both = compared(mine, theirs)
    counted = both.with_columns(jobs=pl.lit(1), all=pl.lit(1))
    kinds = summed(counted, ["kind"], ["jobs"], draws).table({"jobs": lambda n: n["jobs"]})
    kinds = kinds.with_columns(share=pl.col("jobs") / pl.col("jobs").sum())
    different = counted.filter(pl.col("kind") != "same")
    named = different.rename({"rule": "current", "rule_other": "other"})
    pairs = summed(named, ["current", "other", "kind"], ["jobs"], draws).table({"jobs": lambda n: n["jobs"]})  # fmt: skip
    return RuleSets(
        kinds=kinds,
        pairs=pairs.sort("jobs", "current", "other", descending=[True, False, False]),
        switches=_switches(inputs, mine, theirs, different),
        by_rule=_by_rule(rows, theirs_all),
    )


def compared(mine: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Put two fates of every job side by side.

    Args:
        mine: ``pandaid, unit, rule, action, fires``, one row per job.
        theirs: The same.

    Returns:
        The columns, those of the other side with ``_other``, and ``kind``.
    """
    both = mine.join(theirs, on="pandaid", how="full", suffix="_other", coalesce=True)
    same_rule = (pl.col("rule") == pl.col("rule_other")) & (pl.col("action") == pl.col("action_other"))  # fmt: skip
    kind = (
        pl.when(pl.col("rule_other").is_null()).then(pl.lit("only_current"))
        .when(pl.col("rule").is_null()).then(pl.lit("only_other"))
        .when(~same_rule).then(pl.lit("other_rule"))
        .when(pl.col("fires") != pl.col("fires_other")).then(pl.lit("other_time"))
        .otherwise(pl.lit("same"))
    )  # fmt: skip
    return both.with_columns(kind=kind, unit=pl.coalesce("unit", "unit_other")).sort("pandaid")


def _fates(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter("first").select("pandaid", "unit", *FATE)


def _switches(
    inputs: Inputs, mine: pl.DataFrame, theirs: pl.DataFrame, different: pl.DataFrame
) -> pl.DataFrame:
    """Change every single switch alone."""
    told = []
    for name, rules in flipped(inputs.rules, inputs.other).items():
        flip = _fates(prepared(inputs.read.fired(rules=rules), inputs))
        changed = compared(mine, flip).filter(pl.col("kind") != "same")
        alike = compared(theirs, flip).filter(pl.col("kind") == "same")["pandaid"]
        # a job that neither the other set nor this one times out fares alike as well
        gone = different.filter(pl.col("kind") == "only_current")["pandaid"]
        gone = gone.filter(~gone.is_in(flip["pandaid"].implode()))
        as_there = different["pandaid"].is_in(pl.concat([alike, gone]).implode()).sum()
        share = as_there / different.height if different.height else None
        told.append((name, SWITCHES[name].row, changed.height, share))
    schema = {"switch": pl.String, "about": pl.String, "n_changed": pl.Int64, "explained": pl.Float64}  # fmt: skip
    found = pl.DataFrame(told, schema=schema, orient="row")
    return found.sort("n_changed", "switch", descending=[True, False])


def _by_rule(rows: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    sides = [
        frame.group_by("number", "rule").agg(
            pl.col("pandaid").n_unique().cast(pl.Int64).alias(name)
        )
        for name, frame in (("current", rows), ("other", theirs))
    ]
    both = sides[0].join(sides[1], on=["number", "rule"], how="full", coalesce=True)
    return both.with_columns(pl.col("current", "other").fill_null(0)).sort("number")
