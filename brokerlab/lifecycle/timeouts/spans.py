"""The history of jobs as spans of one status each, with what the rules read at that time.

A span has the job's columns as its row has them, but the status and the times that held then: ``modificationtime``
and ``statechangetime`` are its beginning. Jobs with entries in the status log are read from it, the others from their
times, which tell less (:mod:`brokerlab.lifecycle.classification.spans`). Heartbeats divide a span; without them nobody knows
when a job that is over last gave a sign, so its ``modificationtime`` is null where heartbeats count. That of a live
job is the one of its row.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw

from brokerlab.engines import INT, TEXT, TIME, Types, microseconds, narrow, same_engine
from brokerlab.lifecycle.classification.spans import changed, status_spans
from brokerlab.lifecycle.timeouts.rule import TIMES

JOBS: Types = {
    **dict.fromkeys(["pandaid", "jeditaskid"], INT),
    "jobstatus": TEXT,
    **dict.fromkeys(["creationtime", "activatedtime", "modificationtime"], TIME),
    **dict.fromkeys(["statechangetime", "starttime", "endtime"], TIME),
    **dict.fromkeys(["currentpriority", "relocationflag", "eventservice"], INT),
    **dict.fromkeys(["prodsourcelabel", "processingtype", "gshare", "computingsite"], TEXT),
    **dict.fromkeys(["lockedby", "jobsubstatus", "transformation"], TEXT),
}
"""Columns of ``jobs`` that are read."""
REQUIRED = ("pandaid", "jobstatus", "creationtime", "modificationtime")
SIGNS: Types = {"pandaid": INT, "modificationtime": TIME}
LOG: Types = {"pandaid": INT, "jobstatus": TEXT, "modificationtime": TIME}
BEATING = ("running", "starting", "stagein", "stageout", "transferring")
"""Statuses in which jobs give signs of life."""
KEEP = (
    *(name for name in JOBS if name not in ("jobstatus", "activatedtime", "statechangetime")),
    *("final", "over"),
)
"""Columns that a span has of its job; ``final`` and ``over`` are the status of the row, and since when."""

Lazy = nw.LazyFrame[Any]


def read(jobs: Any, status_log: Any, heartbeats: Any) -> tuple[Lazy, Lazy | None, Lazy | None]:
    """Narrow the tables, of any one engine, to what is read."""
    tables = {"jobs": narrow(jobs, "jobs", JOBS, REQUIRED)}
    if status_log is not None:
        tables["job_status_log"] = narrow(status_log, "job_status_log", LOG, tuple(LOG))
    if heartbeats is not None:
        tables["heartbeats"] = narrow(heartbeats, "heartbeats", SIGNS, tuple(SIGNS))
    same_engine(tables)
    own = tables["jobs"].with_columns(final=nw.col("jobstatus"), over=changed())
    return own, tables.get("job_status_log"), tables.get("heartbeats")


def spans(jobs: Lazy, log: Lazy | None, signs: Lazy | None, until: datetime) -> Lazy:
    """Return the spans up to an instant.

    The columns of jobs as they were, ``live`` (the status of the row), ``enter_us, leave_us`` of the status,
    ``from_us, to_us`` of the part of it without a sign of life [us since 1970], ``<time>_us``, and of the row
    ``final``, its status, ``over_us``, since when.
    """
    result = status_spans(jobs, log, KEEP).with_columns(live=nw.col("leave").is_null())
    end = nw.when(nw.col("live")).then(nw.lit(until)).otherwise(nw.col("leave"))
    dated = result.with_columns(
        leave=nw.min_horizontal(end.cast(TIME), nw.lit(until).cast(TIME)),
        enter=nw.coalesce("enter", "creationtime"),
    ).filter(nw.col("enter") < nw.col("leave"))
    beats = nw.col("status").is_in(BEATING)
    if signs is not None:
        divided = _divide(dated.filter(beats), signs)
        enter, leave = nw.col("enter"), nw.col("leave")
        whole = dated.filter(~beats).with_columns(sign=enter, begin=enter, end=leave)
        dated = nw.concat([whole, divided])
    else:
        own = nw.when(nw.col("live")).then(nw.col("modificationtime"))
        sign = nw.when(beats).then(own).otherwise(nw.col("enter"))
        dated = dated.with_columns(sign=sign, begin=nw.col("enter"), end=nw.col("leave"))
    return _as_jobs(dated)


def _divide(beating: Lazy, signs: Lazy) -> Lazy:
    """Divide spans at signs of life: ``sign`` and ``begin`` are the last one, ``end`` the next."""
    columns = beating.collect_schema().names()
    sign = signs.select("pandaid", sign=nw.col("modificationtime"))
    inside = beating.join(sign, on="pandaid", how="inner")
    inside = inside.filter((nw.col("sign") > nw.col("enter")) & (nw.col("sign") < nw.col("leave")))
    first = beating.with_columns(sign=nw.col("enter")).select(*columns, "sign")
    events = nw.concat([first, inside.select(*columns, "sign")]).unique()
    following = nw.col("sign").shift(-1).over("pandaid", "enter", order_by="sign")
    ended = events.with_columns(following=following)
    end = nw.coalesce("following", "leave")
    return ended.with_columns(begin=nw.col("sign"), end=end).select(
        *columns, "sign", "begin", "end"
    )


def _as_jobs(dated: Lazy) -> Lazy:
    """Give spans the columns of jobs."""
    jobs = dated.with_columns(
        jobstatus=nw.col("status"),
        statechangetime=nw.col("enter"),
        modificationtime=nw.col("sign"),
        is_build=nw.col("transformation").str.contains("build", literal=True),
    )
    return jobs.with_columns(
        *(microseconds(jobs, nw.col(name)).alias(f"{name}_us") for name in TIMES),
        enter_us=microseconds(jobs, nw.col("enter")),
        leave_us=microseconds(jobs, nw.col("leave")),
        from_us=microseconds(jobs, nw.col("begin")),
        to_us=microseconds(jobs, nw.col("end")),
        over_us=microseconds(jobs, nw.col("over")),
    ).drop("sign", "begin", "end", "enter", "leave", "over", "status")
