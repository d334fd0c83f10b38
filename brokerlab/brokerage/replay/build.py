"""Make every input table of the production brokerage from an archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.brokerage import contracts as job_contracts
from brokerlab.brokerage.production_tasks import contracts as task_contracts
from brokerlab.brokerage.replay import schedule
from brokerlab.brokerage.replay.clock import instants, rounded
from brokerlab.brokerage.replay.maker import Maker
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.gdpconfig import Config

if TYPE_CHECKING:
    from brokerlab.archive import Archive

STAGES = ("jobs", "tasks")


@dataclass(frozen=True)
class Replay:
    """What the brokerage saw at every instant.

    Attributes:
        tables: The input tables by the chapters' names, ``tasks`` among them; what the archive lacks is not here.
        instants: ``snapshot``, ``at``.
        stage: ``jobs`` or ``tasks``: the brokerage that is replayed.
        config: The configuration at the last instant.
        notes: What was approximated, and what is missing, in sentences.
        archive_digest: Digest of the archive.
        synthetic: The archive was generated.
        open_tasks: Tasks with work left at every instant (``stage="tasks"``), see :func:`work.open_tasks`;
            ``remaining_work`` is made of them.
    """

    tables: Mapping[str, pl.DataFrame]
    instants: pl.DataFrame
    stage: str
    config: Config
    notes: tuple[str, ...]
    archive_digest: str
    synthetic: bool
    open_tasks: pl.DataFrame

    @property
    def tasks(self) -> pl.DataFrame:
        """One row per task and instant."""
        return self.tables["tasks"]

    def for_jobs(self) -> dict[str, pl.DataFrame]:
        """Return the tables of the job brokerage (``brokerage.contracts.TABLES``)."""
        return {name: frame for name, frame in self.tables.items() if name in job_contracts.TABLES}

    def for_tasks(self) -> dict[str, pl.DataFrame]:
        """Return the tables of the task brokerage (``production_tasks.contracts.TABLES``)."""
        return {name: frame for name, frame in self.tables.items() if name in task_contracts.TABLES}

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
    merging: bool = False,
    resource_work_queues: pl.DataFrame | None = None,
    rules: ProductionRules | None = None,
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
        merging: Broker the merge chunks instead of the ordinary ones (tables about a task's input are one or the other).
        resource_work_queues: ``workqueue_id``, ``queue_name`` of work queues that are resource queues.
        rules: Switches ``milli_units_converted`` (``remaining_work``) and, for jobs, ``bare_mode_of`` (``nuclei``);
            everything else is the same for every rule set.

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
    if "is_merging" in planned.columns:
        planned = planned.filter(pl.col("is_merging").fill_null(value=False) == merging)
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
    maker = Maker(
        archive,
        planned,
        numbered,
        stage=stage,
        merging=merging,
        resource_work_queues=resource_work_queues,
        rules=rules or ProductionRules(),
    )
    maker.make()
    return Replay(
        tables=MappingProxyType(maker.tables),
        instants=numbered,
        stage=stage,
        config=_config(archive, numbered["at"].max()),
        notes=tuple(maker.notes),
        archive_digest=archive.digest,
        synthetic=archive.synthetic,
        open_tasks=maker.open_tasks,
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
        kinds: dict[str, Any] = {
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
