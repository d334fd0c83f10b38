"""When tasks were brokered: from the jobs that were made, or from the tasks themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.engines import collect, microseconds, narrow
from brokerlab.times import duration_us

PRODUCTION_LABEL = "managed"
"""``prodsourcelabel`` of production."""
_JOBS = read_as(
    "jobs",
    *("jeditaskid", "creationtime", "prodsourcelabel", "processingtype", "specialhandling"),
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

    Jobs of a task made in the same cycle of the clock come from one brokerage, one second before the first of them;
    merge jobs from one of their own.

    Args:
        jobs: Table ``jobs`` of any engine.
        cycle: Length of a cycle of the clock.
        label: ``prodsourcelabel`` of the jobs; None takes all.
        tasks: Of these tasks; None takes all.

    Returns:
        ``jeditaskid``, ``at``, ``is_merging`` (key, sorted), ``use_scout`` (some job of it was a scout), ``n_jobs``.

    Raises:
        SchemaError: Columns are missing.
        ConfigError: The cycle is no duration.
    """
    step = duration_us(cycle, "cycle")
    table = narrow(jobs, "jobs", _JOBS, ("jeditaskid", "creationtime"))
    made = table.filter(~nw.col("jeditaskid").is_null() & ~nw.col("creationtime").is_null())
    if label is not None:
        made = made.filter(nw.col("prodsourcelabel") == label)
    if tasks is not None:
        made = made.filter(nw.col("jeditaskid").is_in(list(tasks)))
    merging = nw.coalesce("processingtype", nw.lit("")) == "pmerge"
    marks = nw.coalesce("specialhandling", nw.lit(""))
    scout = marks.str.contains(r"(^|,)sj(,|$)")
    cycles = (
        made.select(
            "jeditaskid",
            "creationtime",
            cycle=microseconds(made, nw.col("creationtime")) // step,
            plain=nw.when(merging).then(nw.lit(0)).otherwise(nw.lit(1)),
            scout=nw.when(scout).then(nw.lit(1)).otherwise(nw.lit(0)),
        )
        .group_by("jeditaskid", "cycle", "plain")
        .agg(
            nw.col("creationtime").min().alias("first"),
            nw.col("scout").max().alias("scout"),
            nw.len().alias("n_jobs"),
        )
    )
    found = collect(cycles)
    return found.select(
        "jeditaskid",
        at=(pl.col("first").cast(pl.Int64) - _BEFORE_US).cast(pl.Datetime("us")),
        is_merging=pl.col("plain") == 0,
        use_scout=pl.col("scout") == 1,
        n_jobs=pl.col("n_jobs").cast(pl.Int64),
    ).sort("jeditaskid", "at", "is_merging")


def task_brokerages(
    tasks: Any, status_log: Any = None, *, label: str | None = PRODUCTION_LABEL
) -> pl.DataFrame:
    """Tell when the nucleus of each task was chosen: at its first ``assigning``, else when it was made.

    Args:
        tasks: Table ``tasks`` of any engine.
        status_log: Table ``task_status_log``; None if there is none.
        label: ``prodsourcelabel`` of the tasks; None takes all.

    Returns:
        ``jeditaskid`` (key, sorted), ``at``.

    Raises:
        SchemaError: Columns are missing.
    """
    table = narrow(tasks, "tasks", _TASKS, ("jeditaskid", "creationdate"))
    if label is not None:
        table = table.filter(nw.col("prodsourcelabel") == label)
    found = collect(table.select("jeditaskid", at=nw.col("creationdate")))
    if status_log is not None:
        log = narrow(status_log, "task_status_log", _LOG, tuple(_LOG))
        first = log.filter(nw.col("status") == "assigning").group_by("jeditaskid")
        begun = collect(first.agg(nw.col("modificationtime").min().alias("begun")))
        found = found.join(begun, on="jeditaskid", how="left").select(
            "jeditaskid", at=pl.coalesce("begun", "at")
        )
    return found.drop_nulls("at").sort("jeditaskid")
