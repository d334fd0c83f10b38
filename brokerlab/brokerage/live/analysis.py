"""What of the analysis job brokerage changes from cycle to cycle: counts, and whom the throttle holds back."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.brokerage.analysis_jobs.decisions import PREASSIGNED, outcome
from brokerlab.brokerage.analysis_jobs.throttle import TABLES as THROTTLE_TABLES
from brokerlab.brokerage.analysis_jobs.throttle import ended
from brokerlab.brokerage.analysis_jobs.throttle_rules import incomplete_input
from brokerlab.brokerage.engine.plans import Frames, Lazy, Plans
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.live.ranked import Tally
from brokerlab.brokerage.live.standing import Stage


@dataclass(frozen=True)
class AnalysisStage(Stage):
    """The analysis job brokerage."""

    @property
    def open(self) -> pl.DataFrame:
        """The tasks that no incomplete input holds back, whatever the throttle does."""
        return self.world.tasks.filter(~incomplete_input(self.world.rules).when)

    def ended(
        self,
        rows: pl.DataFrame,
        tasks: pl.DataFrame,
        known: pl.DataFrame,
        tables: Frames,
        plans: Plans,
    ) -> pl.DataFrame:
        """Return ``throttle, outcome``: what held a row back."""
        if not tables.keys() & set(THROTTLE_TABLES):
            return super().ended(rows, tasks, known, tables, plans)

        def make(lazy: Lazy) -> pl.LazyFrame:
            found = ended(lazy["tasks"], self.world.rules)
            return lazy["tasks"].select("t").join(found, on="t", how="left", maintain_order="left")

        return plans.frame("throttle", {"tasks": tasks}, make).select("throttle", "outcome")

    def outcomes(self, tasks: pl.DataFrame, ended: pl.Series, tally: Tally) -> pl.Series:
        """See there."""
        last = names_of(self.world.checks, self.world.steps).index(PREASSIGNED)
        how = pl.DataFrame(
            {
                "outcome": ended,
                "t_preassigned": tasks["t_preassigned"],
                "n_candidates": tally.left,
                "stranger": tally.counts[:, last] > 0,
                "past": tally.counts[:, last + 1 :].any(axis=1),
            }
        )
        return how.select(outcome=outcome(self.world.rules))["outcome"]
