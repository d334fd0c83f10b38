"""Numbers of jobs at instants against a loop over every job and instant."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.brokerage import replay
from brokerlab.brokerage.replay import states

T0 = datetime(2026, 3, 1, 12)
KEYS = (*states.GROUP, "jobstatus")
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
    return replay.instants(pl.DataFrame({"at": [at(m) for m in minutes]}), every=None)


def status_by_times(row: dict[str, Any], t: datetime) -> str | None:
    """Say a job's status from the docstring of ``states``, for a job whose times make sense or not."""
    last = row["statechangetime"] or row["modificationtime"] or row["endtime"] or row["starttime"]
    created, start, end = row["creationtime"], row["starttime"], row["endtime"]
    if created is None or last is None:
        return None
    over = row["jobstatus"] in states.OVER
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
    order = {status: place for place, status in enumerate(states.ORDER)}
    entries = sorted(entries, key=lambda e: (e["modificationtime"], order[e["jobstatus"]]))
    seen = [e for e in entries if e["modificationtime"] <= t]
    if not seen or seen[-1]["jobstatus"] in states.OVER:
        return None, None
    last = row["statechangetime"] or row["modificationtime"] or row["endtime"] or row["starttime"]
    if (
        seen[-1] is entries[-1]
        and row["jobstatus"] in states.OVER
        and last is not None
        and last <= t
    ):
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
                found[(snapshot, queue, *(row[name] for name in states.GROUP[1:]), status)] += 1
    return sorted(((*key, n) for key, n in found.items()), key=str)


def said(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=str)


minutes = st.one_of(st.none(), st.integers(-30, 120))
statuses = st.sampled_from([*states.OVER, "activated", "running", "transferring"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame]:
    """Draw jobs, perhaps with logs, and instants on and off the minute."""
    rows = []
    for number in range(draw(st.integers(0, 8))):
        times = {name: m if (m := draw(minutes)) is None else at(m) for name in TIMES}
        texts = {
            name: draw(st.sampled_from([None, "A", "B"]))
            for name in ("gshare", "resource_type", "nucleus")
        }
        queue = draw(st.sampled_from(["Q", "R"]))
        rows.append(
            times | texts | {"pandaid": number, "jobstatus": draw(statuses), "computingsite": queue}
        )
        rows[-1] |= {"workqueue_id": draw(st.sampled_from([None, 1]))}
    entry = st.tuples(
        st.integers(0, 9),
        st.sampled_from(states.ORDER),
        st.integers(-30, 120),
        st.sampled_from([None, "R", "S"]),
    )
    log = None
    if draw(st.booleans()):
        drawn = draw(st.lists(entry, max_size=12, unique_by=lambda e: e[:3]))
        log = pl.DataFrame([(n, s, at(m), q) for n, s, m, q in drawn], schema=LOG, orient="row")
    grid = draw(st.sampled_from([1, 0.25, 10, 7]))
    ticks = draw(st.lists(st.integers(-3, 15), min_size=1, max_size=6))
    return pl.DataFrame(rows, schema=SCHEMA), log, instants_of(*(tick * grid for tick in ticks))


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_against_the_loop(world: tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame]) -> None:
    jobs, log, instants = world
    found = replay.job_counts(jobs, log, instants)
    assert said(found) == counted(jobs, log, instants)
    assert found.equals(found.sort("snapshot", *KEYS))


@settings(max_examples=8, deadline=None)
@given(worlds())
def test_duckdb_says_the_same(
    world: tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame],
) -> None:
    jobs, log, instants = world
    session = duckdb.connect()
    relations = [None if t is None else session.from_arrow(t.to_arrow()) for t in (jobs, log)]
    found = replay.job_counts(*relations, instants)
    assert found.equals(replay.job_counts(jobs, log, instants))
