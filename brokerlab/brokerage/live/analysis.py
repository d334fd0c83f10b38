"""What of the analysis job brokerage changes from cycle to cycle: counts, and whom the throttle holds back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs import changing
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.decisions import PREASSIGNED, outcome
from brokerlab.brokerage.analysis_jobs.endpoints import endpoint_facts
from brokerlab.brokerage.analysis_jobs.facts import AnalysisWorld, ended
from brokerlab.brokerage.analysis_jobs.keys import place_of
from brokerlab.brokerage.analysis_jobs.ranking import final_of
from brokerlab.brokerage.analysis_jobs.settings import of_throttle
from brokerlab.brokerage.analysis_jobs.throttle import STATE_TABLES as THROTTLE_TABLES
from brokerlab.brokerage.analysis_jobs.throttle import planned
from brokerlab.brokerage.analysis_jobs.throttle_rules import incomplete_input
from brokerlab.brokerage.engine.plans import Frames, Lazy
from brokerlab.brokerage.engine.settings import settings_read, with_settings
from brokerlab.brokerage.engine.steps import names_of
from brokerlab.brokerage.live.ranked import Tally
from brokerlab.brokerage.live.sides import SidePlans
from brokerlab.brokerage.live.standing import Stage
from brokerlab.brokerage.production_jobs.changing import LazySide


@dataclass(frozen=True)
class AnalysisStage(Stage[AnalysisWorld]):
    """The analysis job brokerage."""

    TABLES: ClassVar = TABLES
    STATE: ClassVar = tuple(dict.fromkeys([*changing.TABLES, *THROTTLE_TABLES]))
    TOGETHER: ClassVar = (changing.ENDED_TABLES, THROTTLE_TABLES)
    NUMBERS: ClassVar = ("t_state", "t_share", "t_types", "t_mine")
    READS: ClassVar = (
        "t_gshare", "t_resource_type", "t_user", "t_unit", "t_incomplete", "t_incomplete_allowed",
    )  # fmt: skip
    LOOPS: ClassVar = (1, 2)
    OF_TASKS: ClassVar = {
        "job_stats": ("t_grand", changing.with_grand),
        "task_class": ("t_class", changing.with_class),
    }

    @property
    def open(self) -> pl.DataFrame:
        """The tasks that no incomplete input holds back, whatever the throttle does."""
        return self.world.tasks.filter(~incomplete_input(self.world.rules).when)

    def facts_of(self, tables: Collection[str]) -> set[str]:
        """See :class:`~.standing.Stage`, like all others."""
        return changing.facts_of(tables)

    @cached_property
    def _defaults(self) -> pl.DataFrame:
        """``parent, e_out_name``: default output endpoints."""
        tables = self.world.tables
        snapshots = self.world.tasks.select("snapshot").unique()
        places = endpoint_facts(
            tables["queue_endpoints"],
            tables["storage_endpoints"],
            snapshots,
            rules=self.world.rules,
        )
        return places.select("parent", "e_out_name").unique()

    def sides(self, lazy: Lazy, tables: Collection[str]) -> Sequence[LazySide]:
        """See there."""
        made = [name for name in changing.TABLES if name in tables]
        return changing.changing(lazy["tasks"], lazy, self.world.ids, self._defaults, made)

    def at(self, tasks: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
        """See there."""
        return tasks.with_columns(at=pl.coalesce(at, "at"))

    def ended(
        self, rows: pl.DataFrame, tasks: pl.DataFrame, tables: Frames, plans: SidePlans
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

    def second(self, tasks: pl.DataFrame) -> tuple[Any, Any]:
        """See there."""
        may = tasks["t_second"].to_numpy()
        if self.world.rules.locality_mode != "suppress":
            return np.zeros(tasks.height, dtype=bool), may
        return may & tasks["t_relaxed"].is_not_null().to_numpy(), may

    def final(self) -> list[str]:
        """See there."""
        return final_of(self.world.steps, self.world.rules)

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
