"""Load what the replay of a period needs: the states that both brokerages saw, and what really ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage import replay
from brokerlab.brokerage.replay import Replay
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import DataError
from brokerlab.report.replays.period import CYCLE, drawn, ran


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study.

    Attributes:
        archive: The archive.
        jobs: What the job brokerage saw.
        nuclei: What the choice of the nucleus saw; None where the archive cannot tell, `no_nuclei` says why.
        ran: Jobs that really started, see `period.ran`.
        rules: Rule set of the study.
        n_tasks: Tasks brokered in the period, of which the replay may hold a sample.
        every: Grid of the instants; empty: each brokerage has its own.
    """

    archive: Archive
    jobs: Replay
    nuclei: Replay | None
    no_nuclei: str
    ran: pl.DataFrame
    rules: ProductionRules
    n_tasks: int
    every: str

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last brokerage."""
        times = self.jobs.tasks["brokerage_time"]
        return times.min(), times.max()  # type: ignore[return-value]

    @property
    def sampled(self) -> bool:
        """Whether the replay holds a part of the tasks only."""
        return self.jobs.tasks["jeditaskid"].n_unique() < self.n_tasks


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
    """Rebuild what the brokerages of a period saw.

    Args:
        archive: Archive folder.
        start: First brokerage, ISO 8601, UTC; empty: no bound.
        end: Brokerages at or after it are left out; empty: no bound.
        rules: ``document`` or ``production``.
        max_tasks: Replay at most so many tasks, drawn at random; 0: all.
        every: Grid to which instants are rounded down; empty: none.
        seed: Of the draw.

    Raises:
        ConfigError: A time that is not ISO 8601, or an unknown rule set.
        DataError: The archive cannot be read, lacks a table, or no task is brokered in the period.
    """
    first, last = time_of(start or None, "start"), time_of(end or None, "end")
    rule_set = ProductionRules(rules)
    opened = open_archive(archive)
    label = replay.schedule.PRODUCTION_LABEL
    tasks, n_tasks = drawn(opened, first, last, label=label, most=max_tasks, seed=seed)
    grid = every or None
    jobs = replay.build(
        opened, start=first, end=last, tasks=tasks, every=grid, cycle=CYCLE, rules=rule_set
    )
    nuclei, why = None, ""
    try:
        nuclei = replay.build(
            opened, start=first, end=last, tasks=tasks, stage="tasks", every=grid, rules=rule_set
        )
    except DataError as problem:
        why = str(problem)
    if nuclei is not None and nuclei.tables.get("nuclei", pl.DataFrame()).is_empty():
        nuclei, why = None, "the archive knows no nucleus: it has no endpoints of queues"
    return Inputs(
        archive=opened,
        jobs=jobs,
        nuclei=nuclei,
        no_nuclei=why,
        ran=ran(opened, label, jobs.tasks),
        rules=rule_set,
        n_tasks=n_tasks or jobs.tasks["jeditaskid"].n_unique(),
        every=every,
    )
