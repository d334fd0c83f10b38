"""Which jobs speak for a task, with everything about them that the parameters need (scouts.md 1, 2, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, DataError
from brokerlab.gdpconfig import Config
from brokerlab.scouts import expected, gather
from brokerlab.scouts.benchmarks import bench_corepower
from brokerlab.scouts.parameters import Jobs
from brokerlab.scouts.quantities import EVENT_SERVICE, cputime_eligible, job_quantities_of
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import label_settings, task_settings

SUMMED = ("num_finished_jobs", "n_bad", "plain_bytes", "events_all", "events_finished")
SPENT = (
    "at",
    "bringer",
    "jobstatus",
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
class Chunk:
    """A run of tasks with their jobs, ready for the parameters.

    Attributes:
        tasks: Settings of ``settings.task_settings`` with the sums of ``expected``, one row per task.
        jobs: The used jobs with their quantities.
    """

    tasks: pl.DataFrame
    jobs: Jobs


def chunks_of(
    frames: tuple[Any, Any, Any, Any, Any],
    *,
    hosts: tuple[Any, Any] | None,
    rules: ScoutRules,
    config: Config,
    at: datetime | pl.DataFrame | None,
    merge: bool,
    seed: int,
    max_scouts: int | None,
    history: bool = False,
) -> Iterator[Chunk]:
    """Cut the archive into runs of tasks and derive every job's quantities.

    ``history`` asks for the columns of the jobs' course too; ``at`` implies it.
    """
    jobs, files, tasks, datasets, queues = frames
    refuse_impossible(at, max_scouts, hosts)
    history = history or at is not None
    tables = gather.Tables.of(
        jobs, files, datasets, merge=merge, hosts=hosts is not None, history=history
    )
    settings = _all_settings(tasks, tables, config, rules, at, merge=merge)
    sites = _queue_settings(queues)
    for span in gather.task_ranges(tables.files, gather.CHUNK_FILES):
        part = gather.within(tables, span)
        own = settings if span is None else settings.filter(pl.col("jeditaskid").is_between(*span))
        found = gather.rows(part)
        if at is not None:
            found = as_of(found, own.select("jeditaskid", "at"))
            own = _recount(own, found)
        sums = expected.file_sums(found)
        own = own.join(sums, on="jeditaskid", how="left", maintain_order="left").with_columns(
            pl.col(*SUMMED, "nfiles", "nfilesused", "nfilesfinished").fill_null(0)
        )
        used = _used_jobs(found, part, max_scouts, seed)
        yield Chunk(own, _with_quantities(used, own, sites, hosts, rules))


def refuse_impossible(at: object, max_scouts: int | None, hosts: tuple[Any, Any] | None) -> None:
    """Raise one error for all arguments that make no sense.

    Raises:
        ConfigError: An argument is of the wrong kind or out of range.
        DataError: Two instants of one task.
    """
    problems = []
    if max_scouts is not None and max_scouts < 1:
        problems.append(f"max_scouts={max_scouts}: allowed is at least 1, or None for no cap")
    if hosts is not None and any(table is None for table in hosts):
        problems.append("worker_nodes and cpu_benchmarks: give both, or neither")
    if isinstance(at, pl.DataFrame):
        if not {"jeditaskid", "at"} <= set(at.columns):
            problems.append(f"at has the columns {at.columns}, needed are jeditaskid, at")
    elif not isinstance(at, datetime | None):
        problems.append(f"at={at!r}: allowed is a datetime in UTC, or a frame with jeditaskid, at")
    if problems:
        raise ConfigError("; ".join(problems))
    if isinstance(at, pl.DataFrame) and at["jeditaskid"].is_duplicated().any():
        raise DataError(
            "at.jeditaskid: a task occurs more than once; allowed is one instant per task: filter to "
            "one trigger, or use scouts.replay for several"
        )


def _with_quantities(
    used: pl.DataFrame,
    tasks: pl.DataFrame,
    sites: pl.DataFrame,
    hosts: tuple[Any, Any] | None,
    rules: ScoutRules,
) -> Jobs:
    """Put the jobs in the order in which they are processed and derive what each says."""
    ids, own = tasks["jeditaskid"].to_numpy(), used["jeditaskid"].to_numpy()
    place = np.searchsorted(ids, own)
    order = np.lexsort((used["pandaid"], used["bringer"], own))
    order = order[np.isin(own, ids)[order]]
    ordered, task = used.drop(SPENT, strict=False)[order], place[order]
    queue = ordered.select("computingsite").join(
        sites.with_row_index("queue"),
        left_on="computingsite",
        right_on="panda_queue",
        how="left",
        maintain_order="left",
    )["queue"]
    # columns are fetched by row number: cheaper than joins of wide tables
    frame = ordered.with_columns(
        *(tasks[name].gather(task) for name in JOB_SETTINGS),
        *(sites[name].gather(queue) for name in sites.columns if name != "panda_queue"),
        bench_corepower=bench_corepower(ordered, sites, hosts),
    ).with_columns(copies_to_scratch=_copies_to_scratch(known="maxinputsize" in sites.columns))
    derived = job_quantities_of(frame, rules).with_columns(cputime_eligible=cputime_eligible(rules))
    return Jobs(derived, task.astype(np.int64), tasks.height)


def _all_settings(
    tasks: Any,
    tables: gather.Tables,
    config: Config,
    rules: ScoutRules,
    at: datetime | pl.DataFrame | None,
    *,
    merge: bool,
) -> pl.DataFrame:
    """Join to every task its own settings, its label's, its datasets' counts and its library."""
    settings = task_settings(gather.small(tasks, "tasks", gather.TASK_COLUMNS), rules, merge=merge)
    if isinstance(at, pl.DataFrame):
        settings = settings.join(at.select("jeditaskid", "at"), on="jeditaskid", how="inner")
    elif at is not None:
        settings = settings.with_columns(at=pl.lit(at, dtype=pl.Datetime("us")))
    datasets = tables.datasets.collect("polars").to_native()
    labels = label_settings(config, settings["prodsourcelabel"], LABEL_KEYS)
    joined = settings.join(labels, on="prodsourcelabel", how="left", nulls_equal=True)
    for other in (expected.dataset_sums(datasets, merge=merge), gather.library_mb(tables)):
        joined = joined.join(other, on="jeditaskid", how="left")
    return joined.sort("jeditaskid")


def _queue_settings(queues: Any) -> pl.DataFrame:
    """Collect the queues; the access modes are kept only where the table has them."""
    present = nw.from_native(queues).lazy().collect_schema().names()
    access = [name for name in ("maxinputsize", "direct_access_lan") if name in present]
    frame = gather.small(queues, "queues", gather.QUEUE_COLUMNS)
    kept = ["panda_queue", "atlas_site", *(["maxinputsize", "direct_access_lan"] if access else [])]
    return frame.select(*kept, queue_corepower="corepower").unique("panda_queue", keep="last")


def _copies_to_scratch(*, known: bool) -> pl.Expr:
    """Tell whether copy to scratch is forced at the job's queue, not by the task (8)."""
    if not known:
        return pl.lit(value=False)
    local = (pl.col("LI") != 0).fill_null(value=False)
    lan = pl.col("IL").is_in([1, 2]) & pl.col("direct_access_lan")
    direct = (pl.col("maxinputsize") == -1).fill_null(value=False) | lan.fill_null(value=False)
    return ~local & ~direct


def _used_jobs(
    found: pl.DataFrame, tables: gather.Tables, max_scouts: int | None, seed: int
) -> pl.DataFrame:
    """Choose the jobs that speak: finished, capped, event service replaced by its jobset (2)."""
    candidates = found.filter((pl.col("n_ok") > 0) & pl.col("pandaid").is_not_null())
    finished = gather.cap(candidates, max_scouts, seed).filter(pl.col("jobstatus") == "finished")
    service = (pl.col("eventservice") == EVENT_SERVICE).fill_null(value=False)
    own = finished.filter(~service).with_columns(
        bringer=pl.col("pandaid"), through_jobset=pl.lit(value=False)
    )
    event_service = finished.filter(service)
    if event_service.is_empty():
        return own
    brought = gather.jobset_rows(tables, event_service)
    if "at" in brought.columns:
        brought = brought.filter(pl.col("modificationtime") <= pl.col("at"))
    return pl.concat([own, brought.select(own.columns)])


def as_of(found: pl.DataFrame, at: pl.DataFrame) -> pl.DataFrame:
    """Take back what happened after an instant: later jobs have not finished, or do not exist.

    Args:
        found: Output of ``gather.rows``.
        at: ``jeditaskid, at`` [UTC].

    Returns:
        The rows with ``at``; files of jobs that ended later count as unfinished.
    """
    known = found.join(at, on="jeditaskid", how="inner")
    created = pl.coalesce("creationtime", "starttime", "modificationtime") <= pl.col("at")
    ended = (pl.col("modificationtime") <= pl.col("at")).fill_null(value=False)
    sums = ["n_ok", "is_bad", "input_bytes", "plain_bytes", "file_events", "has_pseudo"]
    sums += ["events_finished"]
    return known.with_columns(
        *(pl.when(ended).then(name).otherwise(0).alias(name) for name in sums),
        n_files=pl.when(created.fill_null(value=False)).then("n_files").otherwise(0),
    )


def _recount(tasks: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Replace the datasets' counts of used and finished files by those of the instant."""
    counts = found.group_by("jeditaskid").agg(
        used=pl.col("n_files").sum(), done=pl.col("n_ok").sum()
    )
    joined = tasks.join(counts, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(nfilesused="used", nfilesfinished="done").drop("used", "done")
