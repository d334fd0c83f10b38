"""What of the production job brokerage changes from cycle to cycle."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import polars as pl

from brokerlab.brokerage.contracts import TABLES
from brokerlab.brokerage.engine.plans import Frames, Lazy
from brokerlab.brokerage.live.asked import at_instants
from brokerlab.brokerage.live.standing import Stage
from brokerlab.brokerage.production_jobs import changing
from brokerlab.brokerage.production_jobs.facts import JobWorld
from brokerlab.brokerage.production_jobs.nucleus import unwritable


@dataclass(frozen=True)
class JobStage(Stage[JobWorld]):
    """The production job brokerage."""

    TABLES: ClassVar = TABLES
    STATE: ClassVar = changing.TABLES
    TOGETHER: ClassVar = (changing.COUNT_TABLES, changing.RT_TABLES)
    NUMBERS: ClassVar = ("t_state", "t_counted", "t_slots")
    READS: ClassVar = (
        "t_tag", "t_gshare", "t_counts_share_only", "t_queue_name", "t_resource_type", "t_at_s",
    )  # fmt: skip

    @property
    def open(self) -> pl.DataFrame:
        """See :class:`~.standing.Stage`, like all others."""
        return self.world.facts.tasks

    def facts_of(self, tables: Collection[str]) -> set[str]:
        """See there."""
        return changing.facts_of(tables)

    @cached_property
    def _lost(self) -> pl.DataFrame:
        """``snapshot, nucleus`` of nuclei that cannot be written."""
        return unwritable(
            self.world.tables | self.world.lasting_facts.endpoints, rules=self.world.rules
        )

    def frames(self, rows: pl.DataFrame) -> Frames:
        """See there."""
        return {"lost": at_instants(self._lost, rows, "snapshot")}

    def sides(self, lazy: Lazy, tables: Collection[str]) -> Sequence[changing.LazySide]:
        """See there."""
        queues, ids = self.world.facts.queues.lazy(), self.world.ids
        rules = self.world.rules
        return changing.changing(
            lazy["tasks"], queues, lazy, ids, lazy["lost"], rules=rules, tables=tables
        )

    def at(self, tasks: pl.DataFrame, at: pl.Series) -> pl.DataFrame:
        """See there."""
        return tasks.with_columns(t_at_s=pl.coalesce(at.dt.epoch("s"), "t_at_s"))
