"""Pilots, workers, slots and links at every instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.replaying import states
from brokerlab.brokerage.replaying.changes import by_parent, span_changes
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import TEXT, TIME, collect, narrow

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
    table = narrow(jobs, "jobs", states.JOB_COLUMNS, states.JOB_REQUIRED)
    known = ~nw.col("starttime").is_null() & ~nw.col("computingsite").is_null()
    ran = states.times(states.prepared(table)).filter(known)
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
