"""Document and production rules side by side, with the columns that the pages of before read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.comparison import Comparison
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.studies.kinds import JobDecisions
from brokerlab.brokerage.studies.rule_sets import compare_rule_sets
from brokerlab.report.replays.shares import as_before


@dataclass(frozen=True, kw_only=True)
class RuleSets:
    """What differs between the rule set of the study and the other one; see `rule_sets.RuleSetComparison`."""

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
    """Decide under the other rule set and compare."""
    result = compare_rule_sets(replay, decisions, sample=sample, n_boot=n_boot, seed=seed)
    return RuleSets(
        current=result.current,
        other=result.other,
        comparison=result.comparison,
        totals=as_before(result.totals),
        brokerages=as_before(result.brokerages),
        by_check=as_before(result.moves),
        switches=result.switches.rename({"row": "rows"}).drop("here", "there"),
        n_sample=result.n_sample,
        n_sample_pairs=result.n_sample_pairs,
    )
