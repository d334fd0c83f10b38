"""Work that tasks have left at every instant, and the resource types that a task's jobs have."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.production_tasks import storage as chapter
from brokerlab.brokerage.replaying import states
from brokerlab.brokerage.replaying.changes import Changes, happened, span_changes
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.inputs import INPUTS
from brokerlab.brokerage.replaying.plan import PRODUCTION_LABEL
from brokerlab.engines import collect, narrow

OPEN = ("ready", "scouting", "running", "pending")
"""Statuses of tasks whose work counts (production-tasks.md 1, ``remaining_work``)."""
OVER = ("done", "finished", "failed", "broken", "aborted", "exhausted", "passed")
"""Statuses in which a task has no work left for its nucleus."""
SMALLEST_SHARE = 0.2
"""Least share of a task's jobs at a queue that a resource type needs (production-jobs.md)."""
_TASKS = read_as(
    "tasks",
    *("jeditaskid", "currentpriority", "cputime", "prodsourcelabel", "nucleus", "gshare"),
    *("status", "cputimeunit", "creationdate", "endtime", "modificationtime"),
)
_DATASETS = read_as(
    "datasets", *("jeditaskid", "datasetid", "masterid", "nevents", "neventstobeused", "type")
)
_LOG = read_as("task_status_log", "jeditaskid", "status", "modificationtime")
_DONE = read_as(
    "jobs",
    *("pandaid", "jeditaskid", "nevents", "jobstatus", "processingtype", "statechangetime"),
    *("modificationtime", "endtime", "starttime"),
)


def open_tasks(
    tasks: Any,
    datasets: Any,
    jobs: Any,
    instants: pl.DataFrame,
    *,
    status_log: Any = None,
    label: str | None = PRODUCTION_LABEL,
) -> pl.DataFrame:
    """Return the tasks with work left at every instant, and how many of their events were used by then.

    The archive keeps the last counters only. So ``neventsused`` is the sum of ``nevents`` of the jobs that had finished
    by the instant, merge jobs aside, and never more than the events of the master input. With a status log a task is
    open while its last entry is one of ``OPEN``; without, from after it was made until it ended.

    Returns:
        ``snapshot, jeditaskid, nucleus, workqueue_name`` (the gshare), ``currentpriority, nevents, neventsused, cputime,
        cputimeunit``, sorted; tasks without nucleus or events left are not in it.
    """
    clock = Clock.of(instants)
    lazy = narrow(tasks, "tasks", _TASKS, ("jeditaskid", "status", "creationdate"))
    if label is not None:
        lazy = lazy.filter(nw.col("prodsourcelabel") == label)
    known = collect(lazy.filter(~nw.col("nucleus").is_null())).sort("jeditaskid")
    known = known.join(master_events(datasets), on="jeditaskid")
    spans = _spans_of_times(known)
    if status_log is not None:
        logged = _spans_of_log(status_log)
        spans = pl.concat([spans.join(logged, on="jeditaskid", how="anti"), logged])
    # one that ends before it begins would count the other way round
    spans = spans.drop_nulls("enter").filter(
        pl.col("leave").is_null() | (pl.col("leave") > pl.col("enter"))
    )
    keys = ["snapshot", "jeditaskid"]
    there = span_changes(nw.from_native(spans.lazy()), clock, keys[1:])
    pairs = there.at_instants(keys[1:], ["njobs"]).select(keys)
    used = used_events(jobs, clock).at_instants(keys[1:], ["neventsused"], only=pairs)
    full = (
        pairs.join(known, on="jeditaskid", maintain_order="left")
        .join(used, on=keys, how="left", maintain_order="left")
        .with_columns(
            neventsused=pl.min_horizontal(pl.col("neventsused").fill_null(0), "nevents"),
            workqueue_name="gshare",
        )
    )
    names = ["nucleus", "workqueue_name", "currentpriority", "nevents", "neventsused", "cputime"]
    left = full.filter(pl.col("neventsused") < pl.col("nevents"))
    return left.select(*keys, *names, "cputimeunit").sort(keys)


def used_events(jobs: Any, clock: Clock) -> Changes:
    """Add up in the engine the events of finished jobs, ``neventsused``, by task; merge jobs use none."""
    table = narrow(jobs, "jobs", _DONE, ("pandaid", "jeditaskid", "jobstatus"))
    finished = table.filter(
        (nw.col("jobstatus") == "finished") & ~states.MERGES & (nw.col("nevents") > 0)
    )
    timed = finished.filter(~nw.col("jeditaskid").is_null())
    rows = timed.select("jeditaskid", neventsused=nw.col("nevents"), time=states.LAST)
    return happened(rows, clock, ["jeditaskid"], ["neventsused"])


def task_resource_types(
    jobs: Any, pairs: pl.DataFrame, instants: pl.DataFrame, *, parents: dict[str, str] | None = None
) -> pl.DataFrame:
    """Return the resource types that hold at least 20 % of a task's jobs at a queue (contract ``TaskResourceTypes``).

    Jobs that are not over count, by their times.
    """
    names = ["snapshot", "jeditaskid", "computingsite", "resource_type"]
    clock = Clock.of(instants)
    table = narrow(jobs, "jobs", states.JOB_COLUMNS, (*states.JOB_REQUIRED, "jeditaskid"))
    own = table.filter(nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list()))
    timed = states.times(states.prepared(own))
    spans = timed.with_columns(enter=nw.col("created"), leave=nw.col("over_at"))
    changes = span_changes(spans, clock, names[1:]).by_parent(parents)
    counted = changes.at_instants(names[1:], ["njobs"], only=pairs.select("snapshot", "jeditaskid"))
    return large_types(counted, "snapshot")


def large_types(counted: pl.DataFrame, instant: str) -> pl.DataFrame:
    """Keep the resource types that hold at least 20 % of a task's jobs at a queue; each combination comes once."""
    names = [instant, "jeditaskid", "computingsite", "resource_type"]
    share = pl.col("njobs") / pl.col("njobs").sum().over(names[:3])
    return counted.filter(share >= SMALLEST_SHARE).select(names).sort(names)


def with_task_work(rows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Add ``task_rw`` [HS06 s]: the work of a task of which nothing is used yet (production-tasks.md 1)."""
    joined = rows.join(events, on="jeditaskid", how="left", maintain_order="left")
    whole = joined.with_columns(neventsused=pl.lit(0, pl.Int64))
    return whole.with_columns(task_rw=chapter.work_left()).drop("nevents", "neventsused")


def master_events(datasets: Any) -> pl.DataFrame:
    """Return the events of the master inputs of each task, where there are any: ``jeditaskid``, ``nevents``."""
    lazy = narrow(datasets, "datasets", _DATASETS, ("jeditaskid", "type"))
    master = lazy.filter(nw.col("masterid").is_null() & nw.col("type").is_in(INPUTS))
    events = nw.coalesce("nevents", "neventstobeused")
    summed = master.select("jeditaskid", n=events).group_by("jeditaskid")
    result = collect(summed.agg(nw.col("n").sum().cast(nw.Int64).alias("nevents")))
    return result.filter(pl.col("nevents") > 0)


def _spans_of_times(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return when tasks are open by their times: ``jeditaskid``, ``enter``, ``leave`` (null: to this day)."""
    ended = pl.when(pl.col("status").is_in(OVER)).then(pl.coalesce("endtime", "modificationtime"))
    # strictly after it was made: it has no nucleus at the instant of its own brokerage
    made = pl.col("creationdate") + pl.duration(microseconds=1)
    return tasks.select("jeditaskid", enter=made, leave=ended)


def _spans_of_log(status_log: Any) -> pl.DataFrame:
    """Return when tasks are open by their status log."""
    log = collect(narrow(status_log, "task_status_log", _LOG, tuple(_LOG))).drop_nulls()
    # of entries of one time the one furthest on holds: an open status before an end
    rank = pl.col("status").is_in(OVER).cast(pl.Int8) - pl.col("status").is_in(OPEN).cast(pl.Int8)
    ordered = log.with_columns(rank=rank).sort("jeditaskid", "modificationtime", "rank", "status")
    following = pl.col("modificationtime").shift(-1).over("jeditaskid")
    spans = ordered.with_columns(leave=following).filter(pl.col("status").is_in(OPEN))
    return spans.select("jeditaskid", pl.col("modificationtime").alias("enter"), "leave")
