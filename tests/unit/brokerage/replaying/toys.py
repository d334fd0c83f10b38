"""Small tables to replay, and the loops that say what should come out."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab.archive.contracts.jobs import OVER
from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import changes
from brokerlab.lifecycle.states import ORDER

T0 = datetime(2026, 3, 1, 12)
KEYS = (*changes.GROUP, "jobstatus")
TIMES = (
    *("creationtime", "activatedtime", "starttime", "endtime"),
    "statechangetime",
    "modificationtime",
)
SCHEMA = (
    dict.fromkeys(["pandaid", "jeditaskid", "workqueue_id", "corecount", "diskio"], pl.Int64)
    | dict.fromkeys(["jobstatus", "computingsite", "gshare", "resource_type", "nucleus"], pl.String)
    | dict.fromkeys(TIMES, pl.Datetime("us"))
)
LOG = {
    "pandaid": pl.Int64,
    "jobstatus": pl.String,
    "modificationtime": pl.Datetime("us"),
    "computingsite": pl.String,
}


def at(minute: float) -> datetime:
    return T0 + timedelta(minutes=minute)


def job(number: int = 1, *minutes: float | None, **columns: Any) -> dict[str, Any]:
    """Make a job from the minutes of its creation, activation, start, end, change."""
    values = [None if m is None else at(m) for m in minutes]
    known = dict(zip((*TIMES[:4], "modificationtime"), values, strict=False))
    return (
        {"pandaid": number, "jobstatus": "finished", "computingsite": "Q", "gshare": "A"}
        | known
        | columns
    )


def jobs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA)


def log_of(*rows: tuple[int, str, float]) -> pl.DataFrame:
    return pl.DataFrame([(n, s, at(m), None) for n, s, m in rows], schema=LOG, orient="row")


def instants_of(*minutes: float) -> pl.DataFrame:
    return replaying.instants(pl.DataFrame({"at": [at(m) for m in minutes]}), every=None)


def status_by_times(row: dict[str, Any], t: datetime) -> str | None:
    """Say a job's status from the docstring of ``states``, for a job whose times make sense or not."""
    last = row["statechangetime"] or row["modificationtime"] or row["endtime"] or row["starttime"]
    created, start, end = row["creationtime"], row["starttime"], row["endtime"]
    if created is None or last is None:
        return None
    over = row["jobstatus"] in OVER
    started = last if start is None else min(start, last)
    created = min(created, started)
    if start is None:
        activated = row["activatedtime"] or last
    else:
        activated = row["activatedtime"] or row["creationtime"]
    released = max(min(activated, started), created)
    stopped = max(min(end or last, last), started)
    if t < created:
        return None
    if t >= last:
        return None if over else row["jobstatus"]
    if t >= stopped:
        moving = row["jobstatus"] in ("finished", "transferring") and row["nucleus"] is not None
        return "transferring" if moving else "holding"
    if t >= started:
        return "running"
    return "activated" if t >= released else "assigned"


def status_by_log(
    entries: list[dict[str, Any]], row: dict[str, Any], t: datetime
) -> tuple[Any, Any]:
    """Say a job's status and queue from the last entry at or before an instant."""
    order = {status: place for place, status in enumerate(ORDER)}
    entries = sorted(entries, key=lambda e: (e["modificationtime"], order[e["jobstatus"]]))
    seen = [e for e in entries if e["modificationtime"] <= t]
    if not seen or seen[-1]["jobstatus"] in OVER:
        return None, None
    last = row["statechangetime"] or row["modificationtime"] or row["endtime"] or row["starttime"]
    if seen[-1] is entries[-1] and row["jobstatus"] in OVER and last is not None and last <= t:
        return None, None
    return seen[-1]["jobstatus"], seen[-1]["computingsite"] or row["computingsite"]


def counted(
    jobs: pl.DataFrame, log: pl.DataFrame | None, instants: pl.DataFrame
) -> list[tuple[Any, ...]]:
    """Count with a loop over instants and jobs."""
    logs: dict[int, list[dict[str, Any]]] = {}
    for entry in [] if log is None else log.iter_rows(named=True):
        logs.setdefault(entry["pandaid"], []).append(entry)
    found: Counter[tuple[Any, ...]] = Counter()
    for snapshot, t in instants.iter_rows():
        for row in jobs.iter_rows(named=True):
            queue = row["computingsite"]
            if row["pandaid"] in logs:
                status, queue = status_by_log(logs[row["pandaid"]], row, t)
            else:
                status = status_by_times(row, t)
            if status is not None:
                found[(snapshot, queue, *(row[name] for name in changes.GROUP[1:]), status)] += 1
    return sorted(((*key, n) for key, n in found.items()), key=str)


def said(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=str)
