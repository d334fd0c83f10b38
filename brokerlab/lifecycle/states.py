"""When each job had which status: from its status log, else from its times, and from its row.

The row of a job tells its status from its last change on. Before, the status log tells it, entry by entry. Without a
log, or an entry in it, times tell as much as they can: ``assigned`` until activated, ``activated`` until it started
(``sent`` and ``starting`` cannot be told apart from it), ``running`` until it ended. A table as it stood at an instant
and an archive of finished jobs are read alike: of the first, only the rows speak.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.archive.explore import UNKNOWN
from brokerlab.archive.store import Archive
from brokerlab.engines import FLOAT, INT, TEXT, TIME, Types, narrow, same_engine
from brokerlab.errors import ConfigError, nearest
from brokerlab.times import time_of
from brokerlab.units import HOUR_S

EARLY = ("pending", "waiting", "defined", "assigned", "throttled")
"""Statuses before a job is activated."""
ORDER = (
    *(*EARLY, "activated", "sent", "starting"),
    *("stagein", "running", "merging", "stageout", "holding", "transferring", *OVER),
)
"""Statuses in the order that a job takes them: the order of log entries of one instant."""
COUNT_AS_STARTED = ("running", "holding", "transferring", "finished", "cancelled")
"""A job that has a start counts for to-running rates, of jobs or of slots, while its status is one of these."""


def entries(log: nw.LazyFrame[Any], *keep: str) -> nw.LazyFrame[Any]:
    """Say from when until when each entry holds, those after which nothing happens left out.

    An entry holds until the next one of its job. Entries of one instant come in the order of :data:`ORDER`, so that
    the last of them holds; entries without a time are none.

    ``pandaid``, ``entry`` (its status), ``enter``, ``following`` (time of the next entry; null: the last one), ``keep``.
    """
    rank = nw.lit(len(ORDER))
    for place, status in enumerate(ORDER):
        rank = nw.when(nw.col("jobstatus") == status).then(nw.lit(place)).otherwise(rank)
    following = nw.col("modificationtime").shift(-1)
    return (
        log.filter(~nw.col("modificationtime").is_null())
        .with_columns(rank=rank)
        .with_columns(
            following=following.over("pandaid", order_by=["modificationtime", "rank", "jobstatus"])
        )
        .filter(~nw.col("jobstatus").is_in(OVER))
        .select(
            "pandaid",
            *keep,
            "following",
            entry=nw.col("jobstatus"),
            enter=nw.col("modificationtime"),
        )
    )


JOBS: Types = {
    "pandaid": INT,
    **dict.fromkeys(
        ["computingsite", "prodsourcelabel", "gshare", "processingtype", "produsername"], TEXT
    ),
    **dict.fromkeys(["jobstatus", "vo", "table"], TEXT),
    "corecount": INT,
    "hs06": FLOAT,
    **dict.fromkeys(["creationtime", "modificationtime", "statechangetime", "activatedtime"], TIME),
    **dict.fromkeys(["starttime", "endtime"], TIME),
}
"""Columns of ``jobs`` that the classification reads; ``table`` is ``jobsactive4`` or ``jobsarchived4``."""
LOG: Types = {"pandaid": INT, "jobstatus": TEXT, "modificationtime": TIME}


def read(jobs: Any, status_log: Any) -> tuple[nw.LazyFrame[Any], nw.LazyFrame[Any] | None]:
    """Narrow jobs and log, of any one engine, to what is read."""
    table = narrow(jobs, "jobs", JOBS, ("computingsite", "jobstatus"))
    if status_log is None:
        return table, None
    log = narrow(status_log, "job_status_log", LOG, tuple(LOG))
    same_engine({"jobs": table, "job_status_log": log})
    return table, log


def changed() -> nw.Expr:
    """Return since when a job has the status of its row."""
    return nw.coalesce("statechangetime", "modificationtime")


def status_spans(
    jobs: nw.LazyFrame[Any], log: nw.LazyFrame[Any] | None, keep: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Say when jobs had which status, those after which nothing happens left out.

    ``keep``, ``status``, ``enter`` (null: always), ``leave`` (null: to this day).
    """
    timed = jobs.with_columns(changed=changed())
    never = nw.lit(None).cast(TIME)
    own = timed.filter(~nw.col("jobstatus").is_in(OVER)).select(
        *keep, status=nw.col("jobstatus"), enter=nw.col("changed"), leave=never
    )
    if log is None:
        earlier = _of_times(timed, keep)
    else:
        # a log may cover some queues only
        without = timed.join(log.select("pandaid").unique(), on="pandaid", how="anti")
        earlier = nw.concat([_of_log(timed, log, keep), _of_times(without, keep)])
    return nw.concat([own, earlier.filter(nw.col("leave") > nw.col("enter"))])


def _of_times(jobs: nw.LazyFrame[Any], keep: Sequence[str]) -> nw.LazyFrame[Any]:
    """Return the spans before the last change as the times tell them."""
    known = jobs.filter(~nw.col("changed").is_null())
    active = nw.coalesce("activatedtime", "creationtime")
    reached = ~nw.col("activatedtime").is_null() | ~nw.col("jobstatus").is_in(EARLY)
    before = known.filter(~nw.col("activatedtime").is_null())
    columns = [*keep, "status", "enter", "leave"]
    parts = [
        (before, "assigned", nw.col("creationtime"), _until("activatedtime")),
        (known.filter(reached), "activated", active, _until("starttime")),
        (known, "running", nw.col("starttime"), _until("endtime")),
    ]
    return nw.concat(
        [
            rows.with_columns(status=nw.lit(status), enter=enter, leave=leave).select(columns)
            for rows, status, enter, leave in parts
        ]
    )


def _until(time: str) -> nw.Expr:
    """Return a time, at most that of the last change."""
    end = nw.col("changed")
    return nw.when(nw.col(time) < end).then(nw.col(time)).otherwise(end)


def _of_log(
    jobs: nw.LazyFrame[Any], log: nw.LazyFrame[Any], keep: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Return the spans before the last change as the log tells them, each until the next entry."""
    ids = list(dict.fromkeys(["pandaid", "changed", *keep]))
    joined = jobs.select(ids).join(entries(log), on="pandaid", how="inner")
    end, following = nw.col("changed"), nw.col("following")
    leave = nw.when(following.is_null() | (following > end)).then(end).otherwise(following)
    return joined.with_columns(leave=leave, status=nw.col("entry")).select(
        *keep, "status", "enter", "leave"
    )


def first_seen(log: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return when each job was first seen ``activated`` and ``running``: ``pandaid, activated, running``."""
    seen = nw.col("modificationtime")
    relevant = log.filter(nw.col("jobstatus").is_in(["activated", "running"]))
    return (
        relevant.with_columns(
            activated=nw.when(nw.col("jobstatus") == "activated").then(seen),
            running=nw.when(nw.col("jobstatus") == "running").then(seen),
        )
        .group_by("pandaid")
        .agg(nw.col("activated").min(), nw.col("running").min())
    )


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
    log = archive.joinable_if_there("job_status_log")
    jobs, log = read(archive.joinable("jobs"), log)
    last = jobs.select(nw.col("modificationtime").max()).collect("polars").item()
    first, until = time_of(start, "start"), time_of(end, "end")
    if first is not None:
        jobs = jobs.filter(nw.col("creationtime") >= first)
    if until is not None:
        jobs = jobs.filter(nw.col("creationtime") < until)
    waiting = status_spans(jobs, log, [by, "pandaid"]).filter(
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
