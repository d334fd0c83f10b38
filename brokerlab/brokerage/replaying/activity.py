"""Pilots, workers, slots and links at every instant; starts at queues, how the jobs of a task ended lately, and where it has been."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.replaying import changes
from brokerlab.brokerage.replaying.changes import LAST, by_parent, span_changes
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import TEXT, TIME, collect, narrow
from brokerlab.units import HOUR_S

WINDOW_S = 3 * 3600
"""Window of the pilots' activity [s] (production-jobs.md)."""
LINK_AGE_S = 3600
"""Links count while they are younger [s] (network-weight.md 2)."""
_DATA = read_as("site_data", "site", "flag", "hours", "getjob", "updatejob", "laststart", "lastmod")
_WORKERS = read_as(
    "worker_stats",
    *("computingsite", "resourcetype", "status", "n_workers"),
    *("harvester_id", "jobtype", "lastupdate"),
)
_SLOTS = read_as("slots", "pandaqueuename", "gshare", "resourcetype", "numslots", "expirationtime")
_LINKS = read_as("network_matrix", "src", "dst", "key", "value")
QUEUED = "Production Output_queued"
"""Key of the files that wait on a link."""
_ANALYSIS_QUEUE = "ANALY_"


def site_activity_of_data(site_data: Any, clock: Clock) -> pl.DataFrame:
    """Return what the pilots of each queue did in the last three hours, from the snapshots of the system.

    Rows of flag ``analysis`` count for queues named ``ANALY_...`` only, rows of another window than 3 h not at all.
    Where the last row is 3 h old or older no pilot has been seen; its last start stands. Of
    rows without ``ts`` those changed last count.

    Returns:
        ``snapshot`` (if there is a history), ``computingsite``, ``getjob``, ``updatejob``, ``laststart``, sorted.
    """
    hours = nw.coalesce("hours", nw.lit(3)) == 3
    flag = nw.coalesce("flag", nw.lit("production"))
    analysis = nw.col("site").str.starts_with(_ANALYSIS_QUEUE)
    meant = (analysis & (flag == "analysis")) | (~analysis & (flag == "production"))
    held = as_of(site_data, "site_data", _DATA, clock, entity=["site"], where=hours & meant)
    held = _silenced(_last_told(held, "lastmod", "getjob", "updatejob", "laststart"), clock)
    keys = [name for name in ("snapshot",) if name in held.columns]
    return held.group_by(*keys, computingsite="site", maintain_order=True).agg(
        pl.col("getjob", "updatejob").sum(), pl.col("laststart").max()
    )


def _last_told(held: pl.DataFrame, changed: str, *rows: str) -> pl.DataFrame:
    """Keep of rows without ``ts``, several exports, those ``changed`` last; those of one time hold together, as of harvesters without name."""
    same = [name for name in held.columns if name not in (changed, *rows)]
    last = pl.col(changed).eq_missing(pl.col(changed).max().over(same))
    return held.filter(pl.col("ts").is_not_null() | last)


def _silenced(held: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Count no pilots where a queue's last row is too old to tell of the last three hours; its last start stands."""
    at = clock.instants
    oldest, latest = held["ts"].min(), at["at"].max()
    window = timedelta(seconds=WINDOW_S)
    if not isinstance(oldest, datetime) or not isinstance(latest, datetime):
        return held
    if oldest > latest - window:
        return held
    if "snapshot" not in held.columns:
        held = at.select("snapshot").join(held, how="cross")
    silent = (pl.col("ts") <= pl.col("at") - window).fill_null(value=False)
    pilots = [
        pl.when(silent).then(0).otherwise(name).alias(name) for name in ("getjob", "updatejob")
    ]
    return held.join(at, on="snapshot", maintain_order="left").with_columns(pilots)


def site_activity_of_jobs(
    jobs: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Estimate what the pilots of each queue did in the last three hours from the jobs that ran.

    ``getjob`` counts the jobs started in ``(t - 3 h, t]``, ``updatejob`` those that ran in it: a pilot that found no
    job is not seen.

    Returns:
        ``snapshot, computingsite, getjob, updatejob`` (jobs), ``laststart`` (last start at or before the instant), for
        queues with a start by then; sorted.
    """
    names = ["snapshot", "computingsite", "getjob", "updatejob", "laststart"]
    table = narrow(jobs, "jobs", changes.JOB_COLUMNS, changes.JOB_REQUIRED)
    known = ~nw.col("starttime").is_null() & ~nw.col("computingsite").is_null()
    ran = changes.times(changes.prepared(table)).filter(known)
    by, keys, window = ["computingsite"], names[:2], nw.lit(timedelta(seconds=WINDOW_S))
    starts = clock.moments(ran.select(*by, time=nw.col("started"))).group_by(*by, "moment")
    started = collect(starts.agg(nw.col("time").max()))
    last = as_of(started, "jobs", {"computingsite": TEXT}, clock, entity=by, time="time", each=True)
    result = by_parent(last, parents).group_by(keys).agg(laststart=pl.col("time").max())
    for name, end in (("getjob", "started"), ("updatejob", "stopped")):
        spans = ran.select(*by, enter=nw.col("started"), leave=nw.col(end) + window)
        seen = span_changes(spans, clock, by).by_parent(parents).at_instants(by, ["njobs"])
        counted = seen.rename({"njobs": name})
        result = result.join(counted, on=keys, how="left").with_columns(pl.col(name).fill_null(0))
    return result.select(names).sort(keys)


def worker_stats(frame: Any, clock: Clock, *, seen_within_s: int | None = None) -> pl.DataFrame:
    """Return batch workers by queue, resource type and status at every instant (contract ``WorkerStats``).

    Of rows without ``ts`` those updated last count. Rows whose ``lastupdate`` was ``seen_within_s`` [s] old when they were recorded do not count.
    """
    held = as_of(frame, "worker_stats", _WORKERS, clock, entity=["computingsite"])
    held = _last_told(held, "lastupdate", "n_workers")
    # afterwards: what was recorded last holds, though it be too old to count
    if seen_within_s is not None:
        late = pl.col("lastupdate") + timedelta(seconds=seen_within_s) <= pl.col("ts")
        held = held.filter(~late.fill_null(value=False))
    keys = [name for name in ("snapshot",) if name in held.columns]
    named = held.rename({"computingsite": "panda_queue", "resourcetype": "resource_type"})
    keys += ["panda_queue", "resource_type", "status"]  # in which order they come
    return named.group_by(keys, maintain_order=True).agg(pl.col("n_workers").sum())


def slots(frame: Any, clock: Clock) -> pl.DataFrame:
    """Return the slots set for queues at every instant: valid ones that are not negative (contract ``Slots``).

    A row without ``ts`` holds from its ``modificationtime``.
    """
    entity = ["pandaqueuename", "gshare", "resourcetype"]
    held = as_of(_timed_slots(frame), "slots", _SLOTS, clock, entity=entity, each=True)
    expiry = pl.col("expirationtime")
    valid = held.join(clock.instants, on="snapshot").filter(
        (expiry.is_null() | (expiry > pl.col("at"))) & (pl.col("numslots") >= 0)
    )
    keys = ["snapshot", "panda_queue", "gshare", "resourcetype"]
    return valid.rename({"pandaqueuename": "panda_queue"}).select(*keys, "numslots").sort(keys)


def first_slots(frame: Any, until: datetime) -> datetime | None:
    """Return when slots were first set for any queue, as :func:`slots` reads them; null: none ``until`` then, or without a time."""
    set_ = (nw.col("numslots") >= 0) & (nw.col("ts") <= until)
    result: datetime | None = collect(
        _timed_slots(frame).filter(set_).select(nw.col("ts").min())
    ).item()
    return result


def _timed_slots(frame: Any) -> nw.LazyFrame[Any]:
    """Return the rows of the table ``slots`` with the time from which they hold."""
    kinds = {**_SLOTS, "ts": TIME, "modificationtime": TIME}
    lazy = narrow(frame, "slots", kinds, ("pandaqueuename",))
    return lazy.with_columns(ts=nw.coalesce("ts", "modificationtime"))


def network_matrix(frame: Any, clock: Clock, *, only: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the links measured in the hour before every instant (contract ``NetworkMatrix``).

    ``only``: ``snapshot``, ``dst`` and perhaps ``key``: what is wanted; None takes all.
    """
    held = as_of(
        frame,
        "network_matrix",
        _LINKS,
        clock,
        entity=["src", "dst", "key"],
        max_age_s=LINK_AGE_S,
        only=only,
    )
    return held.filter(pl.col("ts").is_not_null())


RATE_STATUSES = ("running", "holding", "transferring", "finished", "cancelled")
"""Jobs that started and are in one of these count as started."""
RATE_WINDOW_S, RATE_DELAY_S = 6 * HOUR_S, 300
"""Starts count from six hours to five minutes before the instant [s]."""
NOT_FAILED = 3
"""Value of ``relocationflag`` with which a closed job is nobody's failure."""
_US = timedelta(microseconds=1)
_TIMES = ("starttime", "endtime", "statechangetime", "modificationtime")
_STARTS = read_as("jobs", "computingsite", "jobstatus", *_TIMES)
_ENDS = read_as(
    "jobs",
    *("jeditaskid", "computingsite", "jobstatus", "jobsubstatus", "piloterrorcode"),
    *("relocationflag", *_TIMES),
)
_USED = read_as("jobs", "jeditaskid", "computingsite", "creationtime")


def to_run_rate(
    jobs: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return how many jobs per hour started at each queue: starts in ``[t - 6 h, t - 300 s)`` over that time.

    Jobs of all labels, shares and tables count, running or ended, but those that had failed or were closed by then.
    No row where nothing started (contract ``ToRunRate``).

    Source: analysis-jobs.md 1 (D7).
    """
    table = narrow(jobs, "jobs", _STARTS, ("computingsite", "jobstatus", "starttime"))
    began = nw.col("starttime")
    # a span begins when it is seen and ends when it is seen no more: after t - 300 s, up to t - 6 h, to the microsecond
    seen = began + nw.lit(timedelta(seconds=RATE_DELAY_S) + _US)
    past = began + nw.lit(timedelta(seconds=RATE_WINDOW_S) + _US)
    lost = nw.when(~nw.col("jobstatus").is_in(RATE_STATUSES)).then(LAST)
    spans = (
        table.filter(~began.is_null() & ~nw.col("computingsite").is_null())
        .with_columns(enter=seen, past=past, lost=lost)
        .with_columns(leave=nw.min_horizontal("past", "lost"))
        .filter(nw.col("enter") < nw.col("leave"))
        .select("computingsite", "enter", "leave")
    )
    changes = span_changes(spans, clock, ["computingsite"]).by_parent(parents)
    result = changes.at_instants(["computingsite"], ["njobs"])
    rate = result["njobs"].to_numpy() / ((RATE_WINDOW_S - RATE_DELAY_S) / HOUR_S)
    return result.drop("njobs").with_columns(jobs_per_hour=pl.Series(rate, dtype=pl.Float64))


def failure_counts(
    jobs: Any,
    pairs: pl.DataFrame,
    clock: Clock,
    *,
    hours: float,
    parents: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Count the jobs of tasks that ended in the hours before each instant, by queue (contract ``FailureCounts``).

    Finished ones; failed ones with an error of the pilot; closed ones that were to be assigned anew, by force
    (``relocationflag`` is neither null nor 3). The window is ``(t - hours, t]``, ``hours`` TW_DONE_JOB_STAT.

    Source: analysis-jobs.md 1.
    """
    table = narrow(jobs, "jobs", _ENDS, ("jeditaskid", "computingsite", "jobstatus"))
    status = nw.col("jobstatus")
    pilot = (nw.coalesce("piloterrorcode", nw.lit(0)) != 0) & (status == "failed")
    again = nw.coalesce("jobsubstatus", nw.lit("")) == "toreassign"
    forced = nw.coalesce("relocationflag", nw.lit(NOT_FAILED)) != NOT_FAILED
    counted = (status == "finished") | pilot | ((status == "closed") & again & forced)
    known = ~nw.col("computingsite").is_null()
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    spans = table.filter(mine & known & counted).with_columns(enter=LAST)
    window = nw.lit(timedelta(hours=hours))
    by = ["jeditaskid", "computingsite", "jobstatus"]
    timed = spans.with_columns(leave=nw.col("enter") + window).select(*by, "enter", "leave")
    changes = span_changes(timed, clock, by).by_parent(parents)
    return changes.at_instants(by, ["njobs"], only=pairs.select("snapshot", "jeditaskid"))


def sites_used(
    jobs: Any, pairs: pl.DataFrame, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return the queues at which a task had jobs by each instant: there its outputs have datasets (contract ``SitesUsed``).

    The archive knows of one queue per job, the last one.

    Source:
        analysis-jobs.md 1 and 8.
    """
    table = narrow(jobs, "jobs", _USED, tuple(_USED))
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    first = (
        table.filter(mine & ~nw.col("computingsite").is_null())
        .group_by("jeditaskid", "computingsite")
        .agg(nw.col("creationtime").min().alias("since"))
    )
    keys = ["snapshot", "jeditaskid", "computingsite"]
    asked = pairs.select("jeditaskid", "snapshot").unique().join(clock.instants, on="snapshot")
    joined = asked.join(collect(first), on="jeditaskid").filter(pl.col("since") <= pl.col("at"))
    return by_parent(joined, parents).select(keys).unique().sort(keys)
