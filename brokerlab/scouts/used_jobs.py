"""Which jobs speak for a task, with everything about them that the parameters need, and how many are still to come.

Source: docs/rules/scouts.md 1, 2, 6, 8 and 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from brokerlab.carry import Chunk
from brokerlab.engines import TIME, lazy_of
from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import latest
from brokerlab.gdpconfig import Config
from brokerlab.scouts.benchmarks import bench_corepower
from brokerlab.scouts.parameters import Jobs
from brokerlab.scouts.per_job import cap, jobset_rows, library_mb, rows
from brokerlab.scouts.quantities import EVENT_SERVICE, cputime_eligible, floats, job_quantities_of
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import (
    has_no_job_limits,
    label_settings,
    repeated,
    task_settings,
    uses_scouts,
)
from brokerlab.scouts.tables import DATASET_COLUMNS, INPUT_TYPES, QUEUE_COLUMNS, TASK_COLUMNS, small
from brokerlab.units import MB

INPUT_PER_JOB_MB = 500_000  # after the avalanche
INPUT_PER_SCOUT_MB = 50_000  # while scouting


def file_sums(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum the rows of each task before jobs are capped or replaced.

    Per ``jeditaskid``: ``num_finished_jobs`` (jobs with a finished primary file), ``n_bad``,
    ``plain_bytes``, ``events_all``, ``events_finished``.
    """
    return rows.group_by("jeditaskid").agg(
        num_finished_jobs=((pl.col("n_ok") > 0) & pl.col("pandaid").is_not_null()).sum(),
        n_bad=((pl.col("is_bad") > 0) & pl.col("pandaid").is_not_null()).sum(),
        plain_bytes=pl.col("plain_bytes").sum(),
        events_all=pl.col("events_all").sum(),
        events_finished=pl.col("events_finished").sum(),
    )


def dataset_sums(datasets: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Sum the files of the primary input datasets of each task: all, used, finished.

    Merge jobs have no such datasets and no sums.
    """
    datasets = datasets.clear() if merge else datasets
    primary = datasets.filter(pl.col("type").is_in(INPUT_TYPES) & pl.col("masterid").is_null())
    return primary.group_by("jeditaskid").agg(
        pl.col("nfiles", "nfilesused", "nfilesfinished").sum()
    )


def expected_jobs(tasks: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Extrapolate the number of jobs, in all and still to be made.

    ``expected_jobs, expected_jobs_event, new_jobs`` Int64, one row per task.
    """
    if merge:
        zero = pl.zeros(tasks.height, dtype=pl.Int64, eager=True)
        return pl.select(expected_jobs=zero, expected_jobs_event=zero, new_jobs=zero)
    n, finished = pl.col("num_finished_jobs").cast(pl.Int64), pl.col("nfilesfinished")
    per_finished = pl.when(finished > 0).then(finished)
    with_events = pl.when(pl.col("events_finished") > 0).then(pl.col("events_finished"))
    counts = tasks.select(
        expected_jobs=(pl.col("nfiles") * n // per_finished).fill_null(0),
        new_jobs=((pl.col("nfiles") - pl.col("nfilesused")) * n // per_finished).fill_null(0),
        expected_jobs_event=(pl.col("events_all") * n // with_events).fill_null(0),
        free=has_no_job_limits(),
        free_scouts=has_no_job_limits() & uses_scouts(),
    )
    return _rescale(counts, tasks)


def _rescale(counts: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Allow for the larger input per job after the avalanche where nothing limits it."""
    jobs = floats(tasks, "num_finished_jobs")
    with np.errstate(all="ignore"):
        mean_mb = floats(tasks, "plain_bytes") / MB / np.where(jobs > 0, jobs, np.nan)
    free = counts["free"].to_numpy() & ~np.isnan(mean_mb)
    by_event = counts["free_scouts"].to_numpy()
    columns = {}
    for name in ("expected_jobs", "new_jobs"):
        count = floats(counts, name)
        scaled = np.trunc(count * mean_mb / np.float64(INPUT_PER_JOB_MB))
        columns[name] = np.where(free, scaled, count)
    count = floats(counts, "expected_jobs_event")
    scaled = np.trunc(count * INPUT_PER_SCOUT_MB / np.float64(INPUT_PER_JOB_MB))
    columns["expected_jobs_event"] = np.where(by_event, scaled, count)
    return pl.DataFrame({k: v.astype(np.int64) for k, v in columns.items()})


def success(tasks: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Decide whether the scouts of each task succeeded.

    ``success_rate`` (null unless the task uses scouts or nothing finished) and ``succeeded``.
    """
    ok, bad = pl.col("num_finished_jobs"), pl.col("n_bad")
    formed = uses_scouts() & pl.lit(not merge)
    rate = pl.when(ok == 0).then(0.0).when(formed).then(ok / (ok + bad))
    # x/10 with a literal would be a multiplication; a column divides
    required = pl.col("SS") / pl.col("ten")
    lowered = pl.min_horizontal(required, pl.when(required.is_not_null()).then("min_ok_rate"))
    threshold = lowered.fill_null(0.0)
    return tasks.with_columns(ten=pl.lit(10.0)).select(
        success_rate=rate, succeeded=(ok > 0) & (rate.fill_null(1.0) >= threshold)
    )


SUMMED = ("num_finished_jobs", "n_bad", "plain_bytes", "events_all", "events_finished")
SPENT = (
    "at",
    "bringer",
    "jobstatus",
    "is_finished",
    "jobsetid",
    "n_ok",
    "n_files",
    "is_bad",
    "events_all",
    "events_finished",
)
LABEL_KEYS = {
    "short_exec_time": "SCOUT_SHORT_EXECTIME_<prodsourcelabel>",
    "cpu_efficiency_cap": "SCOUT_LOW_CPU_EFFICIENCY_<prodsourcelabel>",
    "min_ok_rate": "SCOUT_MIN_OK_RATE_EXHAUSTED_<prodsourcelabel>",
}
JOB_SETTINGS = (
    *("base_time_s", "efficiency_pct", "base_ram_mb", "ram_per_core", "ram_fixed"),
    *("outdisk_per_event", "outdisk_fixed", "LI", "IL"),
)


@dataclass(frozen=True)
class UsedJobs:
    """Some tasks with the jobs that speak for them, ready for the parameters."""

    # settings of ``settings.task_settings`` with the sums of its datasets, one row per task
    tasks: pl.DataFrame
    jobs: Jobs  # the used jobs with their quantities


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which jobs of a chunk speak, and what is the same for all of them."""

    rules: ScoutRules  # rule set
    sites: pl.DataFrame  # queues, of `queue_settings`
    # tables of host benchmarks; None: not known
    hosts: tuple[pl.DataFrame, pl.DataFrame] | None = None
    merge: bool = False  # the merge jobs are meant
    seed: int = 0  # draw of the jobs where a task has more than ``max_scouts``
    max_scouts: int | None = None  # most jobs per task; None for no cap

    def of(self, chunk: Chunk) -> UsedJobs:
        """Choose the jobs of a chunk, whose ``tasks`` are of :func:`all_settings`, and derive what each says."""
        own, result = chunk["tasks"], rows(chunk, merge=self.merge)
        if "at" in own.columns:
            result = as_of(result, own.select("jeditaskid", "at"))
            own = _recount(own, result)
        for other in (library_mb(chunk), file_sums(result)):
            own = own.join(other, on="jeditaskid", how="left", maintain_order="left")
        own = own.with_columns(
            pl.col(*SUMMED, "nfiles", "nfilesused", "nfilesfinished").fill_null(0)
        )
        used = _used_jobs(result, chunk["jobs"], self.max_scouts, self.seed)
        return UsedJobs(own, self._with_quantities(used, own))

    def _with_quantities(self, used: pl.DataFrame, tasks: pl.DataFrame) -> Jobs:
        """Derive what each job says of the tasks, in the order in which they are processed."""
        numbers = tasks.select("jeditaskid", task=pl.int_range(pl.len(), dtype=pl.Int64))
        task = _look_up(used, "jeditaskid", numbers, "jeditaskid")["task"]
        if task.null_count():
            used, task = used.filter(task.is_not_null()), task.drop_nulls()
        sites = self.sites.drop("atlas_site").with_row_index("queue")
        queue = _look_up(used, "computingsite", sites, "panda_queue")["queue"]
        # columns are fetched by row number: cheaper than joins of wide tables
        frame = (
            used.drop(SPENT, strict=False)
            .with_columns(
                *(tasks[name].gather(task) for name in JOB_SETTINGS),
                *(sites[name].gather(queue) for name in sites.drop("queue", "panda_queue").columns),
                bench_corepower=bench_corepower(used, self.sites, self.hosts),
            )
            .with_columns(
                copies_to_scratch=_copies_to_scratch(known="maxinputsize" in sites.columns)
            )
        )
        derived = job_quantities_of(frame, self.rules)
        eligible = derived.with_columns(cputime_eligible=cputime_eligible(self.rules))
        return Jobs(eligible, task.to_numpy(), tasks.height)


def _look_up(rows: pl.DataFrame, key: str, table: pl.DataFrame, of: str) -> pl.DataFrame:
    """Look the rows up in a table by one key, in their order; null where the table has no such row."""
    return rows.select(key).join(table, left_on=key, right_on=of, how="left", maintain_order="left")


def refuse_impossible(at: object, max_scouts: int | None) -> None:
    """Raise one error for all arguments that make no sense."""
    problems = []
    if max_scouts is not None and max_scouts < 1:
        problems.append(f"max_scouts={max_scouts}: allowed is at least 1, or None for no cap")
    if isinstance(at, pl.DataFrame):
        if not {"jeditaskid", "at"} <= set(at.columns):
            problems.append(f"at has the columns {at.columns}, needed are jeditaskid, at")
        elif not isinstance(at.schema["at"], pl.Datetime) or at.schema["at"].time_zone:
            problems.append(f"at.at: is {at.schema['at']}, needed are times in UTC without zone")
    elif not isinstance(at, datetime | None):
        problems.append(f"at={at!r}: allowed is a datetime in UTC, or a frame with jeditaskid, at")
    elif at is not None and at.tzinfo is not None:
        problems.append(f"at={at}: it has a zone; UTC without zone is needed")
    if problems:
        raise ConfigError("; ".join(problems))
    if isinstance(at, pl.DataFrame) and at["jeditaskid"].is_duplicated().any():
        raise DataError(
            "at.jeditaskid: a task occurs more than once; allowed is one instant per task: filter to "
            "one trigger, or use scouts.replay for several"
        )


def all_settings(
    tasks: Any,
    datasets: Any,
    config: Config,
    rules: ScoutRules,
    at: datetime | pl.DataFrame | None = None,
    *,
    merge: bool = False,
) -> pl.DataFrame:
    """Join to every task its own settings, its label's and its datasets' counts, sorted; see :func:`estimate` for ``at``."""
    settings = task_settings(small(tasks, "tasks", TASK_COLUMNS), rules, merge=merge)
    if isinstance(at, pl.DataFrame):
        settings = settings.join(
            at.select(pl.col("jeditaskid").cast(pl.Int64), "at"), on="jeditaskid", how="inner"
        )
    elif at is not None:
        settings = settings.with_columns(at=pl.lit(at, dtype=pl.Datetime("us")))
    labels = label_settings(config, settings["prodsourcelabel"], LABEL_KEYS)
    joined = settings.join(labels, on="prodsourcelabel", how="left", nulls_equal=True)
    known = small(datasets, "datasets", DATASET_COLUMNS)
    twice = known.filter(pl.struct("jeditaskid", "datasetid").is_duplicated())["datasetid"]
    if len(twice):
        raise DataError(repeated("datasets.datasetid", twice, "task and dataset"))
    sums = dataset_sums(known, merge=merge)
    return joined.join(sums, on="jeditaskid", how="left").sort("jeditaskid")


def queue_settings(queues: Any) -> pl.DataFrame:
    """Collect the queues, of each its latest row by ``ts``; the access modes are kept only where the table has them."""
    present = lazy_of(queues, "queues").collect_schema().names()
    access = [name for name in ("maxinputsize", "direct_access_lan") if name in present]
    frame = latest(small(queues, "queues", QUEUE_COLUMNS | {"ts": TIME}))
    kept = ["panda_queue", "atlas_site", *(["maxinputsize", "direct_access_lan"] if access else [])]
    return frame.select(*kept, queue_corepower="corepower")


def _copies_to_scratch(*, known: bool) -> pl.Expr:
    """Tell whether copy to scratch is forced at the job's queue, not by the task (8)."""
    if not known:
        return pl.lit(value=False)
    local = (pl.col("LI") != 0).fill_null(value=False)
    lan = pl.col("IL").is_in([1, 2]) & pl.col("direct_access_lan")
    direct = (pl.col("maxinputsize") == -1).fill_null(value=False) | lan.fill_null(value=False)
    return ~local & ~direct


def _used_jobs(
    rows: pl.DataFrame, jobs: pl.DataFrame, max_scouts: int | None, seed: int
) -> pl.DataFrame:
    """Choose the jobs that speak, in their order: finished, capped, event service replaced by its jobset (2)."""
    candidates = rows.filter((pl.col("n_ok") > 0) & pl.col("pandaid").is_not_null())
    finished = cap(candidates, max_scouts, seed).filter("is_finished")
    finished = finished.with_columns(bringer=pl.col("pandaid"), through_jobset=pl.lit(value=False))
    service = (pl.col("eventservice") == EVENT_SERVICE).fill_null(value=False)
    event_service = finished.filter(service)
    if event_service.is_empty():
        return finished
    brought = jobset_rows(jobs, event_service)
    if "at" in brought.columns:
        brought = brought.filter(pl.col("modificationtime") <= pl.col("at"))
    together = pl.concat([finished.filter(~service), brought.select(finished.columns)])
    return together.sort("jeditaskid", "bringer", "pandaid")


def as_of(rows: pl.DataFrame, at: pl.DataFrame) -> pl.DataFrame:
    """Take back what happened after an instant: later jobs have not finished, or do not exist.

    The rows with ``at``; files of jobs that ended later count as unfinished.
    """
    known = rows.join(at, on="jeditaskid", how="inner", maintain_order="left")
    created = pl.coalesce("creationtime", "starttime", "modificationtime") <= pl.col("at")
    ended = (pl.col("modificationtime") <= pl.col("at")).fill_null(value=False)
    sums = ["n_ok", "is_bad", "input_bytes", "plain_bytes", "file_events", "has_pseudo"]
    sums += ["events_finished"]
    return known.with_columns(
        *(pl.when(ended).then(name).otherwise(0).alias(name) for name in sums),
        n_files=pl.when(created.fill_null(value=False)).then("n_files").otherwise(0),
    )


def _recount(tasks: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the datasets' counts of used and finished files by those of the instant."""
    counts = rows.group_by("jeditaskid").agg(
        used=pl.col("n_files").sum(), done=pl.col("n_ok").sum()
    )
    joined = tasks.join(counts, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(nfilesused="used", nfilesfinished="done").drop("used", "done")
