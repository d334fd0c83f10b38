"""What of the analysis job brokerage changes from cycle to cycle: counts, and whom the throttle holds back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.analysis_jobs.decisions import PREASSIGNED, outcome
from brokerlab.brokerage.analysis_jobs.facts import ended
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.settings import of_throttle
from brokerlab.brokerage.analysis_jobs.throttle import STATE_TABLES as THROTTLE_TABLES
from brokerlab.brokerage.analysis_jobs.throttle import planned
from brokerlab.brokerage.analysis_jobs.throttle_rules import incomplete_input
from brokerlab.brokerage.engine.plans import Frames, Lazy, Plans
from brokerlab.brokerage.engine.settings import settings_read, with_settings
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.live.ranked import Tally
from brokerlab.brokerage.live.standing import Stage


@dataclass(frozen=True)
class AnalysisStage(Stage):
    """The analysis job brokerage."""

    ENDS: ClassVar = THROTTLE_TABLES

    @property
    def reads(self) -> set[str]:
        """See :class:`~.standing.Stage`, like all others."""
        return super().reads | {"t_incomplete", "t_incomplete_allowed"}

    @property
    def open(self) -> pl.DataFrame:
        """The tasks that no incomplete input holds back, whatever the throttle does."""
        return self.world.tasks.filter(~incomplete_input(self.world.rules).when)

    def ended(
        self, rows: pl.DataFrame, tasks: pl.DataFrame, tables: Frames, plans: Plans
    ) -> pl.DataFrame:
        """Return ``throttle, outcome``: what held a row back."""
        world = self.world
        if not tables.keys() & set(THROTTLE_TABLES):
            return super().ended(rows, tasks, tables, plans)
        raw = world.tables["tasks"][rows["t"]].with_columns(
            snapshot=rows["instant"], at=tasks["at"]
        )
        raw = with_settings(raw, settings_read(of_throttle()), world.config, place_of)

        def make(lazy: Lazy) -> pl.LazyFrame:
            held = planned(lazy["raw"], lazy, rules=world.rules)
            found = ended(lazy["tasks"], held, world.rules)
            return lazy["tasks"].select("t").join(found, on="t", how="left", maintain_order="left")

        read = {name: tables[name] for name in THROTTLE_TABLES}
        found = plans.frame("throttle", {"raw": raw, "tasks": tasks, **read}, make)
        return found.select("throttle", "outcome")

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
