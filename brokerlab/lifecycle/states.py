"""In which states jobs waited before they ran, and where: the sum of `spans.status_spans` over all jobs."""

from __future__ import annotations

from datetime import datetime

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.explore import UNKNOWN
from brokerlab.archive.store import Archive
from brokerlab.errors import ConfigError, nearest
from brokerlab.lifecycle.classification import spans
from brokerlab.lifecycle.status_log import EARLY
from brokerlab.times import time_of
from brokerlab.units import HOUR_S

BY = ("computingsite", "gshare", "prodsourcelabel", "processingtype", "produsername")
WAITING = (*EARLY, "activated", "sent", "starting")  # states before a job runs, in order


def waiting_states(
    archive: Archive,
    by: str = "computingsite",
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
) -> pl.DataFrame:
    """Say how long jobs were in which state before they ran.

    The status log tells it; jobs without entries are ``assigned`` until ``activatedtime`` and ``activated`` until they
    started. Who still waits does so until the last change of any job.

    Args:
        archive: With ``jobs``; ``job_status_log`` is read where it is there.
        by: Column of the jobs, of `BY`.
        start: Only jobs created from this instant on [UTC]; null: all.
        end: Only jobs created before this instant [UTC].

    Returns:
        ``level`` (of ``by``), ``state`` (of `WAITING`), ``jobs``, ``hours`` of all of them together [h]:
        the level with most waiting first, states in their order.

    Raises:
        MissingTableError: The archive has no jobs.
        ConfigError: Another column, or a time that is none.
    """
    if by not in BY:
        raise ConfigError(f"by={by!r}: {nearest(by, BY)}")
    log = archive.job_status_log if archive.has("job_status_log") else None
    jobs, log = spans.read(archive.jobs, log)
    last = jobs.select(nw.col("modificationtime").max()).collect("polars").item()
    first, until = time_of(start, "start"), time_of(end, "end")
    if first is not None:
        jobs = jobs.filter(nw.col("creationtime") >= first)
    if until is not None:
        jobs = jobs.filter(nw.col("creationtime") < until)
    waiting = spans.status_spans(jobs, log, [by, "pandaid"]).filter(
        nw.col("status").is_in(WAITING), ~nw.col("enter").is_null()
    )
    leave = nw.when(nw.col("leave").is_null()).then(nw.lit(last)).otherwise(nw.col("leave"))
    summed: pl.DataFrame = (
        waiting.with_columns(spent=(leave - nw.col("enter")).dt.total_seconds())
        .group_by(by, "status")
        .agg(jobs=nw.col("pandaid").n_unique(), seconds=nw.col("spent").sum())
        .collect("polars")
        .to_native()
    )
    order = {state: place for place, state in enumerate(WAITING)}
    hours = pl.col("seconds").cast(pl.Float64) / HOUR_S
    return (
        summed.select(
            level=pl.col(by).fill_null(UNKNOWN),
            state="status",
            jobs=pl.col("jobs").cast(pl.Int64),
            hours=hours,
            _all=hours.sum().over(by),
            _place=pl.col("status").replace_strict(order, return_dtype=pl.Int64),
        )
        .sort("_all", "level", "_place", descending=[True, False, False])
        .drop("_all", "_place")
    )
