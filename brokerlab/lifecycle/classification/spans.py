"""When each job had which status: from its status log, else from its times, and from its row.

The row of a job tells its status from its last change on. Before, the status log tells it, entry by entry. Without a
log, or an entry in it, times tell as much as they can: ``assigned`` until activated, ``activated`` until it started
(``sent`` and ``starting`` cannot be told apart from it), ``running`` until it ended. A table as it stood at an instant
and an archive of finished jobs are read alike: of the first, only the rows speak.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.engines import FLOAT, INT, TEXT, TIME, Types, narrow, same_engine
from brokerlab.lifecycle.status_log import EARLY, entries

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
