"""Make every input table of the production brokerage from an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage.replay import activity, inputs, places, schedule, taskrows
from brokerlab.brokerage.replay.clock import Clock, instants, rounded
from brokerlab.brokerage.replay.counts import Counts, job_tables
from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive

STAGES = ("jobs", "tasks")


@dataclass(frozen=True)
class Replay:
    """What the brokerage saw at every instant.

    Attributes:
        tables: The input tables by the chapters' names, ``tasks`` among them; absent in the archive = not here.
        instants: ``snapshot``, ``at``.
        stage: ``jobs`` or ``tasks``: the brokerage that is replayed.
        config: The configuration at the last instant.
        notes: What was approximated, and what is missing, in sentences.
        archive_digest: Digest of the archive.
        synthetic: The archive was generated.
    """

    tables: Mapping[str, pl.DataFrame]
    instants: pl.DataFrame
    stage: str
    config: Config
    notes: tuple[str, ...]
    archive_digest: str
    synthetic: bool

    @property
    def tasks(self) -> pl.DataFrame:
        """One row per task and instant."""
        return self.tables["tasks"]

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, notes and provenance."""
        return {
            "stage": self.stage,
            "instants": len(self.instants),
            "rows": {name: frame.height for name, frame in self.tables.items()},
            "notes": list(self.notes),
            "archive": self.archive_digest,
            "config": self.config.digest,
            "synthetic": self.synthetic,
        }


def build(
    archive: Archive,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    at: datetime | None = None,
    tasks: list[int] | pl.DataFrame | None = None,
    stage: str = "jobs",
    every: str | None = "10m",
    cycle: str = "1h",
    label: str | None = schedule.PRODUCTION_LABEL,
    resource_work_queues: pl.DataFrame | None = None,
) -> Replay:
    """Rebuild the brokerage's input tables at every instant at which tasks were brokered.

    Each table is made in one query over the whole period, whatever the number of instants.

    Args:
        archive: An archive, ``brokerlab.archive.open(path)``.
        start: First instant, naive UTC; None = the first brokerage.
        end: Instants before this one; None = the last brokerage.
        at: One instant for all tasks, instead of their own (``tasks`` says which; else those brokered by then and
            not ended).
        tasks: Ids of tasks, or a table ``jeditaskid``, perhaps ``at``, ``is_merging``, ``use_scout``: what to broker;
            None takes every task of the label.
        stage: ``jobs``: where jobs go; ``tasks``: the choice of the nucleus.
        every: Grid to which instants are rounded down, so that tasks share them; None keeps each.
        cycle: Jobs of a task made in one such cycle of the clock come from one brokerage (``stage="jobs"``).
        label: ``prodsourcelabel``; None takes all.
        resource_work_queues: ``workqueue_id``, ``queue_name`` of work queues that are resource queues.

    Returns:
        The replay.

    Raises:
        ConfigError: An argument that cannot be.
        DataError: The archive lacks ``jobs``, ``tasks`` or ``queues``, or no task is brokered in the period.

    Source:
        production-job-brokerage.md section 1; production-task-brokerage.md section 1.
    """
    _check(archive, stage)
    planned = _planned(archive, stage, tasks, cycle, label)
    if at is not None:
        planned = planned.with_columns(at=pl.lit(at, pl.Datetime("us"))).unique(
            "jeditaskid", keep="last", maintain_order=True
        )
    inside = pl.lit(value=True)
    inside &= pl.lit(value=True) if start is None else pl.col("at") >= start
    inside &= pl.lit(value=True) if end is None else pl.col("at") < end
    planned = planned.filter(inside)
    if planned.is_empty():
        raise DataError(
            f"{archive.path}: no task is brokered between {start} and {end}; widen the period"
        )
    grid = None if at is not None else every
    numbered = instants(planned, every=grid)
    planned = (
        planned.rename({"at": "brokerage_time"})
        .with_columns(at=rounded(pl.col("brokerage_time"), grid))
        .join(numbered, on="at")
        .unique(["jeditaskid", "snapshot"], keep="first", maintain_order=True)
    )
    maker = _Maker(archive, planned, numbered, stage, resource_work_queues)
    maker.make()
    return Replay(
        tables=MappingProxyType(maker.tables),
        instants=numbered,
        stage=stage,
        config=_config(archive, numbered["at"].max()),
        notes=tuple(maker.notes),
        archive_digest=archive.digest,
        synthetic=archive.synthetic,
    )


def _check(archive: Archive, stage: str) -> None:
    if stage not in STAGES:
        raise ConfigError(f"stage={stage!r}: {nearest(stage, STAGES)}")
    missing = [name for name in ("jobs", "tasks", "queues") if not archive.has(name)]
    if missing:
        raise DataError(
            f"{archive.path}: a replay needs {', '.join(missing)}; ingest a source that holds them"
        )


def _planned(
    archive: Archive,
    stage: str,
    tasks: list[int] | pl.DataFrame | None,
    cycle: str,
    label: str | None,
) -> pl.DataFrame:
    """Return what to broker: ``jeditaskid``, ``at`` and, for jobs, the kind of chunk."""
    if isinstance(tasks, pl.DataFrame) and "at" in tasks.columns:
        kinds = {
            "jeditaskid": pl.Int64,
            "at": pl.Datetime("us"),
            "is_merging": pl.Boolean,
            "use_scout": pl.Boolean,
        }
        known = [pl.col(name).cast(kind) for name, kind in kinds.items() if name in tasks.columns]
        return tasks.select(known).drop_nulls(["jeditaskid", "at"]).sort("jeditaskid", "at")
    if stage == "jobs":
        found = schedule.job_brokerages(archive.jobs, cycle=cycle, label=label)
    else:
        log = archive.task_status_log if archive.has("task_status_log") else None
        found = schedule.task_brokerages(archive.tasks, log, label=label)
    if tasks is None:
        return found
    ids = tasks["jeditaskid"].to_list() if isinstance(tasks, pl.DataFrame) else tasks
    return found.filter(pl.col("jeditaskid").is_in(ids))


def _config(archive: Archive, moment: Any) -> Config:
    if not archive.has("gdpconfig"):
        return Config.empty()
    return Config.from_frame(archive.scan("gdpconfig").collect()).at(moment)


class _Maker:
    """Makes the tables one after the other, and notes what it had to do without."""

    def __init__(
        self,
        archive: Archive,
        planned: pl.DataFrame,
        numbered: pl.DataFrame,
        stage: str,
        resource_work_queues: pl.DataFrame | None,
    ) -> None:
        self.archive = archive
        self.planned = planned
        self.clock = Clock.of(numbered)
        self.numbered = numbered
        self.stage = stage
        empty = pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})
        self.resource_work_queues = empty if resource_work_queues is None else resource_work_queues
        self.tables: dict[str, pl.DataFrame] = {}
        self.notes: list[str] = []

    def make(self) -> None:
        """Make every table that the archive allows."""
        self.tasks()
        self.places()
        self.counts()
        self.activity()
        self.data()

    def tasks(self) -> None:
        chosen = self.planned["jeditaskid"].unique().to_list()
        self.task_table = taskrows.read_tasks(self.archive.tasks, chosen)
        known = self.planned.join(self.task_table, on="jeditaskid", how="semi")
        lost = self.planned["jeditaskid"].n_unique() - known["jeditaskid"].n_unique()
        if lost:
            self.notes.append(
                f"{lost:,} tasks with jobs are not in the table tasks and are left out"
            )
        self.tables["tasks"] = taskrows.task_rows(known, self.task_table, stage=self.stage)
        self.tables["resource_work_queues"] = self.resource_work_queues

    def places(self) -> None:
        types = self._small("resource_types")
        if types is not None:
            self.tables["resource_types"] = types
        self.tables["queues"] = places.queues(self.archive.queues, types, self.clock)
        parents = self.tables["queues"].select("panda_queue", "unified_name").unique("panda_queue")
        self.parents = dict(parents.drop_nulls().iter_rows())
        if endpoints := self._table("ddm_endpoints"):
            self.tables["storage_endpoints"] = places.storage_endpoints(endpoints, self.clock)
        links = places.queue_endpoints(found) if (found := self._table("queue_endpoints")) else None
        if links is not None:
            self.tables["queue_endpoints"] = links
            self.tables["nuclei"] = places.nuclei(self.tables["queues"], links)

    def counts(self) -> None:
        log = self._table("job_status_log", "jobs are counted by their times")
        counts = Counts.of(self.archive.jobs, log, self.numbered, parents=self.parents)
        self.notes += counts.notes
        self.tables |= job_tables(counts, self.resource_work_queues)

    def activity(self) -> None:
        found = self._table("site_data", "the pilots' activity is estimated from the jobs that ran")
        if found is not None:
            self.tables["site_activity"] = activity.site_activity_of_data(found, self.clock)
        else:
            self.tables["site_activity"] = activity.site_activity_of_jobs(
                self.archive.jobs, self.clock, parents=self.parents
            )
        makers: dict[str, Callable[[Any, Clock], pl.DataFrame]] = {
            "worker_stats": activity.worker_stats,
            "slots": activity.slots,
            "network_matrix": activity.network_matrix,
        }
        for name, make in makers.items():
            if (table := self._table(name)) is not None:
                self.tables[name] = make(table, self.clock)

    def data(self) -> None:
        if (table := self._table("datasets")) is None:
            return
        chosen = self.task_table["jeditaskid"].to_list()
        every = inputs.read_datasets(table, chosen)
        own = inputs.input_datasets(every)
        self.tables["datasets"] = own
        self.tables["output_datasets"] = inputs.output_datasets(every)
        self.tables["tasks"] = self.tables["tasks"].join(
            inputs.master_times(every), on="jeditaskid", how="left", maintain_order="left"
        )
        if (files := self._table("files")) is not None:
            self.tables["files"] = inputs.input_files(files, own)

    def _table(self, name: str, instead: str = "") -> Any:
        """Return a lazy table of the archive; note where there is none."""
        if self.archive.has(name):
            return self.archive.relation(name)
        self.notes.append(f"the archive has no {name}" + (f": {instead}" if instead else ""))
        return None

    def _small(self, name: str) -> pl.DataFrame | None:
        """Return a whole table of the archive; null where there is none."""
        return self.archive.scan(name).collect() if self.archive.has(name) else None
