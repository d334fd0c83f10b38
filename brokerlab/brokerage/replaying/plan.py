"""What to broker, and when: from the jobs that were made, or from the tasks themselves; the instants of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.replaying.changes import MERGES
from brokerlab.brokerage.replaying.clock import instants
from brokerlab.engines import collect, microseconds, narrow
from brokerlab.errors import ConfigError, EmptyPeriodError
from brokerlab.frames import prepared
from brokerlab.times import duration_us, rounded

if TYPE_CHECKING:
    from brokerlab.archive import Archive


PRODUCTION_LABEL = "managed"
"""``prodsourcelabel`` of production."""
_JOBS = read_as(
    "jobs", *("jeditaskid", "creationtime", "prodsourcelabel", "processingtype", "specialhandling")
)
_TASKS = read_as("tasks", "jeditaskid", "prodsourcelabel", "creationdate")
_LOG = read_as("task_status_log", "jeditaskid", "status", "modificationtime")
_BEFORE_US = 1_000_000
"""Jobs are brokered before they are inserted; PanDA's times have this resolution [us]."""


def job_brokerages(
    jobs: Any,
    *,
    cycle: str = "1h",
    label: str | None = PRODUCTION_LABEL,
    tasks: Sequence[int] | None = None,
) -> pl.DataFrame:
    """Tell from the creation of jobs when the job brokerage ran for each task.

    Jobs of a task made in the same ``cycle`` of the clock come from one brokerage, one second before the first of them;
    merge jobs from one of their own. ``label``, ``tasks``: None takes all.

    Returns:
        ``jeditaskid``, ``at``, ``is_merging`` (key, sorted), ``use_scout`` (some job of it was a scout), ``n_jobs``.
    """
    step = duration_us(cycle, "cycle")
    table = narrow(jobs, "jobs", _JOBS, ("jeditaskid", "creationtime"))
    made = table.filter(~nw.col("jeditaskid").is_null() & ~nw.col("creationtime").is_null())
    if label is not None:
        made = made.filter(nw.col("prodsourcelabel") == label)
    if tasks is not None:
        made = made.filter(nw.col("jeditaskid").is_in(list(tasks)))
    marks = nw.coalesce("specialhandling", nw.lit(""))
    scout = marks.str.contains(r"(^|,)sj(,|$)")
    cycles = (
        made.select(
            "jeditaskid",
            "creationtime",
            cycle=microseconds(made, nw.col("creationtime")) // step,
            plain=nw.when(MERGES).then(nw.lit(0)).otherwise(nw.lit(1)),
            scout=nw.when(scout).then(nw.lit(1)).otherwise(nw.lit(0)),
        )
        .group_by("jeditaskid", "cycle", "plain")
        .agg(
            nw.col("creationtime").min().alias("first"),
            nw.col("scout").max().alias("scout"),
            nw.len().alias("n_jobs"),
        )
    )
    result = collect(cycles)
    return result.select(
        "jeditaskid",
        at=(pl.col("first").cast(pl.Int64) - _BEFORE_US).cast(pl.Datetime("us")),
        is_merging=pl.col("plain") == 0,
        use_scout=pl.col("scout") == 1,
        n_jobs=pl.col("n_jobs").cast(pl.Int64),
    ).sort("jeditaskid", "at", "is_merging")


def task_brokerages(
    tasks: Any, status_log: Any = None, *, label: str | None = PRODUCTION_LABEL
) -> pl.DataFrame:
    """Tell when the nucleus of each task was chosen, ``jeditaskid, at``: at its first ``assigning``, else when it was made."""
    table = narrow(tasks, "tasks", _TASKS, ("jeditaskid", "creationdate"))
    if label is not None:
        table = table.filter(nw.col("prodsourcelabel") == label)
    result = collect(table.select("jeditaskid", at=nw.col("creationdate")))
    if status_log is not None:
        log = narrow(status_log, "task_status_log", _LOG, tuple(_LOG))
        first = log.filter(nw.col("status") == "assigning").group_by("jeditaskid")
        begun = collect(first.agg(nw.col("modificationtime").min().alias("begun")))
        result = result.join(begun, on="jeditaskid", how="left").select(
            "jeditaskid", at=pl.coalesce("begun", "at")
        )
    return result.drop_nulls("at").sort("jeditaskid")


class Wanted(dy.Schema):
    """What may be asked for: tasks, and perhaps the times and kinds of their brokerages."""

    jeditaskid = dy.Int64(nullable=False)
    at = dy.Datetime(nullable=True, time_unit="us")
    is_merging = dy.Bool(nullable=True)
    use_scout = dy.Bool(nullable=True)


def planned(
    archive: Archive,
    *,
    start: datetime | None,
    end: datetime | None,
    at: datetime | None,
    tasks: Any,
    stage: str,
    every: str | None,
    cycle: str,
    label: str | None,
    merging: bool,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Choose the tasks and instants, as :func:`build.build` is asked for them.

    Returns:
        One row per task and instant: ``jeditaskid, snapshot, at`` (the instant), ``brokerage_time`` (when it was),
        perhaps ``is_merging, use_scout, n_jobs``; and the instants, ``snapshot, at``.
    """
    result = _brokerages(archive, tasks, stage=stage, cycle=cycle, label=label)
    if "is_merging" in result.columns:
        result = result.filter(pl.col("is_merging").fill_null(value=False) == merging)
    if at is not None:
        _check_within(archive, pl.Series([at]))
        if tasks is None and stage == "tasks":
            raise ConfigError("at: say which tasks are to get a nucleus then: tasks=[...]")
        result = _all_at(result, at, running=tasks is None)
    if start is not None:
        result = result.filter(pl.col("at") >= start)
    if end is not None:
        result = result.filter(pl.col("at") < end)
    if result.is_empty():
        raise EmptyPeriodError(
            f"no task is brokered in the period; widen it, or name other tasks ({archive.path}, {start=!s}, {end=!s}, "
            f"{at=!s}, {label=!s}, {merging=})"
        )
    grid = None if at is not None else every
    numbered = instants(result, every=grid)
    timed = result.rename({"at": "brokerage_time"}).with_columns(
        at=rounded(pl.col("brokerage_time"), grid)
    )
    placed = timed.join(numbered, on="at").sort("jeditaskid", "brokerage_time")
    once = placed.unique(["jeditaskid", "snapshot"], keep="first", maintain_order=True)
    return once, numbered


def _brokerages(
    archive: Archive, tasks: Any, *, stage: str, cycle: str, label: str | None
) -> pl.DataFrame:
    """Return the brokerages of the tasks asked for: as given, or from the archive."""
    wanted, ids = _wanted(tasks), None
    if wanted is not None:
        timed = wanted.drop_nulls("at")
        if timed.height:
            _check_within(archive, timed["at"])
            return timed.with_columns(pl.col("is_merging", "use_scout").fill_null(value=False))
        ids = wanted["jeditaskid"].to_list()
    if stage != "tasks":
        return job_brokerages(archive.joinable("jobs"), cycle=cycle, label=label, tasks=ids)
    log = archive.joinable_if_there("task_status_log")
    result = task_brokerages(archive.joinable("tasks"), log, label=label)
    return result if ids is None else result.filter(pl.col("jeditaskid").is_in(ids))


def _check_within(archive: Archive, times: pl.Series) -> None:
    """Refuse instants of which the archive tells nothing: before anything was made in it, and after its last change."""
    made = {"jobs": "creationtime", "tasks": "creationdate"}
    spans = [
        archive.scan(table).select(first=pl.col(begin).min(), last=pl.col("modificationtime").max())
        for table, begin in made.items()
    ]
    ends = pl.concat(spans).select(pl.col("first").min(), pl.col("last").max()).collect()
    first, last = ends.row(0)
    for time in times.filter((times < first) | (times > last)).head(1):
        raise EmptyPeriodError(
            f"at={time}: the archive tells of {first} to {last}; name a time in this period ({archive.path})"
        )


def _wanted(tasks: Any) -> pl.DataFrame | None:
    """Return the tasks asked for as a table :class:`Wanted`; null: all."""
    if tasks is None:
        return None
    table = hasattr(tasks, "columns") or isinstance(tasks, Mapping)
    given = {"tasks": tasks if table else {"jeditaskid": [*tasks]}}
    result = prepared(given, {"tasks": Wanted}, exact=True)["tasks"]
    untimed = result.filter(pl.col("at").is_null())
    kinds = untimed.select(pl.col("is_merging", "use_scout").count()).sum_horizontal().item()
    if kinds or 0 < untimed.height < result.height:
        raise ConfigError(
            f"tasks.at: {untimed.height} of {result.height} null: give the time of each brokerage, or of none and then no "
            "is_merging and use_scout, which the archive tells"
        )
    return result


def _all_at(rows: pl.DataFrame, time: datetime, *, running: bool) -> pl.DataFrame:
    """Broker every task once, at the instant, or those with brokerages by then and after; its kind of chunk is that of the last one by then."""
    at = pl.lit(time, pl.Datetime("us"))
    if running:
        first, last = pl.col("at").min().over("jeditaskid"), pl.col("at").max().over("jeditaskid")
        rows = rows.filter((first <= at) & (last >= at))
    # those after the instant come first, so that the last one by then is kept where there is one
    ordered = rows.sort("jeditaskid", pl.col("at") <= at, "at")
    once = ordered.unique("jeditaskid", keep="last", maintain_order=True)
    return once.with_columns(at=at)
