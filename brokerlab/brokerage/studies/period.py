"""A period of an archive, replayed: what the brokerage saw, and the jobs that really ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.studies.kinds import Kind
from brokerlab.errors import DataError

CYCLE = "1h"
"""Jobs of a task made within one such cycle come from one brokerage."""
RAN = """
select jeditaskid, computingsite, coalesce(resource_type, '') as resource_type, min(creationtime) as made,
    count(*) as n_jobs, sum(epoch_us(starttime) - epoch_us(creationtime)) / 3.6e9 as wait_h,
    sum((epoch_us(coalesce(endtime, starttime)) - epoch_us(starttime))
        * coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1)) / 3.6e9 as core_h
from jobs
where prodsourcelabel = $label and coalesce(processingtype, '') <> 'pmerge' and starttime is not null
    and computingsite is not null and jeditaskid in (select unnest($tasks::bigint[]))
group by jeditaskid, computingsite, resource_type, time_bucket(interval '1 hour', creationtime)
order by all
"""
"""Jobs that really started, by brokerage cycle; merge jobs have brokerages of their own and are left out."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """The brokerages of a period, rebuilt.

    Attributes:
        archive: The archive.
        kind: The job brokerage.
        rules: Its rule set.
        replay: What it saw; of production files are read when they are asked for (`Replay.map`).
        ran: Jobs that really started, see :func:`jobs_that_ran`.
        n_tasks: Tasks brokered in the period, of which the replay may hold a sample.
        every: Grid of the instants; null: each brokerage has its own.
    """

    archive: Archive
    kind: Kind
    rules: Any
    replay: Replay
    ran: pl.DataFrame
    n_tasks: int
    every: str | None

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last brokerage."""
        times = self.replay.tasks["brokerage_time"]
        return times.min(), times.max()  # type: ignore[return-value]

    @property
    def n_replayed(self) -> int:
        """Tasks in the replay."""
        return int(self.replay.tasks["jeditaskid"].n_unique())

    @property
    def is_sample(self) -> bool:
        """Whether the replay holds a part of the tasks only."""
        return self.n_replayed < self.n_tasks


def replay_period(
    archive: Archive,
    kind: Kind,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    rules: str = "document",
    max_tasks: int = 0,
    every: str | None = "1h",
    seed: int = 1,
) -> Period:
    """Rebuild what a job brokerage saw over a period.

    Args:
        archive: The archive.
        kind: The brokerage.
        start: First brokerage, naive UTC; null = no bound.
        end: Brokerages at or after it are left out; null = no bound.
        rules: ``document`` or ``production``: of the brokerage and, for analysis, of the classes of queues and tasks.
        max_tasks: Replay at most so many tasks, drawn at random; 0: all.
        every: Grid to which instants are rounded down; null: none.
        seed: Of the draw.

    Raises:
        ConfigError: An unknown rule set.
        MissingTableError: The archive lacks jobs, tasks or queues.
        EmptyPeriodError: No task is brokered in the period.
    """
    rule_set = kind.brokerage.rule_set(rules)
    tasks, n_tasks = draw_tasks(archive, start, end, label=kind.label, most=max_tasks, seed=seed)
    class_rules = None
    if kind.brokerage.stage == "analysis":
        # its classes rest on the life cycle, which production does not need
        from brokerlab.lifecycle.classification import ClassRules

        class_rules = ClassRules(rules)
    seen = replaying.build_once(
        archive,
        start=start,
        end=end,
        tasks=tasks,
        stage=kind.brokerage.stage,
        every=every,
        rules=None if class_rules else rule_set,
        class_rules=class_rules,
        files=kind.brokerage.stage == "analysis",
    )
    return Period(
        archive=archive,
        kind=kind,
        rules=rule_set,
        replay=seen,
        ran=jobs_that_ran(archive, kind.label, seen.tasks),
        n_tasks=n_tasks or seen.tasks["jeditaskid"].n_unique(),
        every=every,
    )


def replay_nuclei(
    period: Period, *, start: datetime | None = None, end: datetime | None = None
) -> tuple[Replay | None, str]:
    """Rebuild what the choice of the nucleus saw over a period of production; or null and why the archive cannot tell, as a clause."""
    tasks = period.replay.tasks["jeditaskid"].unique().sort().to_list()
    try:
        seen = replaying.build_once(
            period.archive,
            start=start,
            end=end,
            tasks=tasks if period.is_sample else None,
            stage="tasks",
            every=period.every,
            rules=period.rules,
            files=False,
        )
    except DataError as problem:
        return None, str(problem)
    if seen.tables.get("nuclei", pl.DataFrame()).is_empty():
        return None, "the archive knows no nucleus: it has no endpoints of queues"
    return seen, ""


def jobs_that_ran(archive: Archive, label: str, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return where jobs of a label really started, of some tasks.

    Returns:
        ``jeditaskid, computingsite, resource_type``, ``made`` (when the first of them was), ``n_jobs``; ``wait_h``
        (from being made to the start) and ``core_h`` (from start to end), sums over them [h].
    """
    ids = tasks["jeditaskid"].unique().to_list()
    ran: pl.DataFrame = archive.sql(RAN, {"label": label, "tasks": ids}).pl()
    return ran


def draw_tasks(
    archive: Archive,
    start: datetime | None,
    end: datetime | None,
    *,
    label: str,
    most: int,
    seed: int,
) -> tuple[list[int] | None, int]:
    """Draw the tasks to replay, ``most`` of them: null = all of them; and how many there are (0 where it was not asked)."""
    if not most or not archive.has("jobs"):
        return None, 0
    rows = replaying.job_brokerages(archive.jobs, cycle=CYCLE, label=label)
    rows = rows.filter(~pl.col("is_merging"))
    if start is not None:
        rows = rows.filter(pl.col("at") >= start)
    if end is not None:
        rows = rows.filter(pl.col("at") < end)
    ids = rows["jeditaskid"].unique().sort().to_numpy()
    if len(ids) <= most:
        return None, len(ids)
    chosen = np.random.default_rng(seed).choice(ids, size=most, replace=False)
    return sorted(chosen.tolist()), len(ids)
