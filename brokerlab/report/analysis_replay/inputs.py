"""Load what the replay of user tasks over a period needs: the state that their brokerage saw, and what really ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage import replay
from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.lifecycle.classes import ClassRules
from brokerlab.report.replays.period import CYCLE, drawn, ran

LABEL = "user"
"""``prodsourcelabel`` of user analysis."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study.

    Attributes:
        archive: The archive.
        replay: What the analysis brokerage saw.
        ran: Jobs that really started, see `period.ran`.
        rules: Rule set of the study.
        n_tasks: Tasks brokered in the period, of which the replay may hold a sample.
        every: Grid of the instants; empty: each brokerage has its own.
    """

    archive: Archive
    replay: Replay
    ran: pl.DataFrame
    rules: AnalysisRules
    n_tasks: int
    every: str

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last brokerage."""
        times = self.replay.tasks["brokerage_time"]
        return times.min(), times.max()  # type: ignore[return-value]

    @property
    def sampled(self) -> bool:
        """Whether the replay holds a part of the tasks only."""
        return self.replay.tasks["jeditaskid"].n_unique() < self.n_tasks


def load(
    archive: str | Path,
    *,
    start: str = "",
    end: str = "",
    rules: str = "document",
    max_tasks: int = 0,
    every: str = "1h",
    seed: int = 1,
) -> Inputs:
    """Rebuild what the brokerage of user tasks saw over a period.

    Args:
        archive: Archive folder.
        start: First brokerage, ISO 8601, UTC; empty: no bound.
        end: Brokerages at or after it are left out; empty: no bound.
        rules: ``document`` or ``production``, of the brokerage and of the classes of queues and tasks.
        max_tasks: Replay at most so many tasks, drawn at random; 0: all.
        every: Grid to which instants are rounded down; empty: none.
        seed: Of the draw.

    Raises:
        ConfigError: A time that is not ISO 8601, or an unknown rule set.
        DataError: The archive cannot be read, lacks a table, or no user task is brokered in the period.
    """
    first, last = time_of(start or None, "start"), time_of(end or None, "end")
    rule_set = AnalysisRules(rules)
    opened = open_archive(archive)
    tasks, n_tasks = drawn(opened, first, last, label=LABEL, most=max_tasks, seed=seed)
    seen = replay.build(
        opened, stage="analysis", start=first, end=last, tasks=tasks, every=every or None,
        cycle=CYCLE, class_rules=ClassRules(rules),
    )  # fmt: skip
    return Inputs(
        archive=opened,
        replay=seen,
        ran=ran(opened, LABEL, seen.tasks),
        rules=rule_set,
        n_tasks=n_tasks or seen.tasks["jeditaskid"].n_unique(),
        every=every,
    )
