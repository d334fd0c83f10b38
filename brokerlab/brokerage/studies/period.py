"""The job brokerages that can be replayed, and a period of an archive, replayed: what was seen, and the jobs that really ran."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.brokerage import replaying
from brokerlab.brokerage.analysis_jobs import brokerage as analysis_jobs
from brokerlab.brokerage.analysis_jobs.ranking import AnalysisDecisions
from brokerlab.brokerage.analysis_jobs.settings import TABLE_KEYS, AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.production_jobs import brokerage as production_jobs
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.production_jobs.settings import MIN_WEIGHT_KEY
from brokerlab.brokerage.replaying import Replay
from brokerlab.brokerage.replaying.build import LABELS
from brokerlab.brokerage.replaying.changes import by_parent
from brokerlab.brokerage.replaying.places import parents
from brokerlab.brokerage.rules import JobRules, ProductionRules
from brokerlab.errors import DataError

JobDecisions: TypeAlias = Decisions | AnalysisDecisions
"""What a job brokerage decided."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the job brokerages.

    Attributes:
        label: ``prodsourcelabel`` of its jobs.
        switches: Switches that it can see.
        components: Components of gdpconfig whose keys it reads, those of its own first.
        borrowed: Keys of other components that it reads too, as the catalogue writes them.
        table_keys: Keys on which its tables depend, so that a replay makes them again.
        stuck: Outcomes of brokerages that leave their task without a queue.
        usual_keys: Keys of which a report tries other values where none is named.
    """

    name: str
    brokerage: Brokerage[Any, Decisions] | Brokerage[Any, AnalysisDecisions]
    label: str
    switches: tuple[str, ...]
    components: tuple[str, ...]
    stuck: tuple[str, ...]
    usual_keys: tuple[str, ...]
    borrowed: frozenset[str] = frozenset()
    table_keys: frozenset[str] = frozenset()


PRODUCTION = Kind(
    name="production",
    brokerage=production_jobs.BROKERAGE,
    label=LABELS["jobs"],
    switches=tuple(JobRules.SWITCHES),
    components=("jobbroker", "taskbrokerage", "core"),
    stuck=("no_candidates", "input_incomplete", "unknown_nucleus"),
    usual_keys=(
        *("NQUEUED_SAT_CAP", "NQUEUED_NUC_CAP_FOR_JOBS"),
        *("IO_INTENSITY_CUTOFF", "SIZE_CUTOFF_TO_MOVE_INPUT", "STORAGE_MIN_FREE_SIZE"),
        *("MAX_DISKIO_DEFAULT", "NW_QUEUE_IMPORTANCE", "MIN_WEIGHT_managed"),
        *("DISK_THRESHOLD", "INPUT_SIZE_FRACTION"),
    ),
)
ANALYSIS = Kind(
    name="analysis",
    brokerage=analysis_jobs.BROKERAGE,
    label=LABELS["analysis"],
    switches=tuple(AnalysisRules.SWITCHES),
    components=("anal_jobbroker", "prio_mgr", "analy_eval"),
    borrowed=frozenset({"STORAGE_MIN_FREE_SIZE", "MAX_DISKIO_DEFAULT", MIN_WEIGHT_KEY}),
    table_keys=frozenset(TABLE_KEYS),
    stuck=("throttled_waiting", "temporary_error", "fatal"),
    usual_keys=(
        *("CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES"),
        *("BASE_QUEUE_LENGTH_PER_PQ", "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER"),
        *("STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR"),
        *("BASE_EXPECTED_WAIT_HOUR_ON_PQ", "MIN_BAD_JOBS_TO_SKIP_PQ"),
        *("IO_INTENSITY_CUTOFF_USER", "OVERLOAD_RATIO_OFFSET"),
    ),
)


def kind_of(decisions: JobDecisions) -> Kind:
    """Return the brokerage that decided."""
    return ANALYSIS if isinstance(decisions, AnalysisDecisions) else PRODUCTION


CYCLE = "1h"
"""Jobs of a task made within one such cycle come from one brokerage."""
RAN = """
select jeditaskid, computingsite, coalesce(resource_type, '') as resource_type, min(creationtime) as made,
    count(*) as n_jobs, sum((epoch_us(coalesce(endtime, starttime)) - epoch_us(starttime))
        * coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1)) / 3.6e9 as core_h
from jobs
where prodsourcelabel = $label and coalesce(processingtype, '') <> 'pmerge' and starttime is not null
    and computingsite is not null and jeditaskid in (select unnest($tasks::bigint[]))
    and creationtime < coalesce($end::timestamp, 'infinity')
group by jeditaskid, computingsite, resource_type, time_bucket(interval '1 hour', creationtime)
order by all
"""
"""Jobs that really started, by brokerage cycle; merge jobs have brokerages of their own and are left out."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """The brokerages of a period, rebuilt.

    Attributes:
        replay: What it saw; of production files are read when they are asked for (`Replay.map`).
        ran: Jobs of the period that really started, see :func:`jobs_that_ran`, by the parents of pseudo-queues.
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

    ``rules`` are those of the brokerage and, for analysis, of the classes of queues and tasks; ``max_tasks`` are drawn at random
    (0: all); instants are rounded down to ``every``.
    """
    rule_set = kind.brokerage.rule_set(rules)
    tasks, n_tasks = draw_tasks(archive, start, end, label=kind.label, most=max_tasks, seed=seed)
    seen = replaying.build_once(
        archive,
        start=start,
        end=end,
        tasks=tasks,
        stage=kind.brokerage.stage,
        every=every,
        rules=ProductionRules(rules),
        files=kind.brokerage.stage == "analysis",
    )
    return Period(
        archive=archive,
        kind=kind,
        rules=rule_set,
        replay=seen,
        ran=by_parent(
            jobs_that_ran(archive, kind.label, seen.tasks, end=end), parents(seen.tables["queues"])
        ),
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


def jobs_that_ran(
    archive: Archive, label: str, tasks: pl.DataFrame, *, end: datetime | None = None
) -> pl.DataFrame:
    """Return where jobs of a label really started, of some tasks: ``jeditaskid, computingsite, resource_type``.

    ``made`` (when the first of them was), ``n_jobs``; ``core_h`` (from start to end), a sum over them [h]. Jobs made from
    ``end`` on come from brokerages that a period until then does not have, and are left out.
    """
    ids = tasks["jeditaskid"].unique().to_list()
    ran: pl.DataFrame = archive.sql(RAN, {"label": label, "tasks": ids, "end": end}).pl()
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
    rows = replaying.job_brokerages(archive.joinable("jobs"), cycle=CYCLE, label=label)
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
