"""Starts and ends of the last hours, counted by hand; edges at the instant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import places
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.errors import SchemaError
from tests.unit.brokerage.replaying.toys import SCHEMA, T0, at, job

HOURS = (6 * 3600 - 300) / 3600
MORE = {"jobsubstatus": pl.String, "piloterrorcode": pl.Int64, "relocationflag": pl.Int64}
PAIRS = pl.DataFrame({"jeditaskid": [1], "snapshot": [0]})


def jobs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={**SCHEMA, **MORE})


def clock_of(*seconds: float) -> Clock:
    times = [T0 + timedelta(seconds=s) for s in seconds]
    return Clock.of(replaying.instants(pl.DataFrame({"at": times}), every=None))


def started(second: float, **columns: Any) -> dict[str, Any]:
    """Make a job that started so many seconds after T0 and ended a day later."""
    return job(
        1, 0, 0, None, 1440, 1440, **{"starttime": T0 + timedelta(seconds=second), **columns}
    )


@pytest.mark.parametrize(
    ("second", "counts"),
    [
        (300, 0),  # the start is not before t - 300 s
        (300.000001, 1),
        (301, 1),
        (6 * 3600, 1),  # the start is at t - 6 h
        (6 * 3600 + 0.000001, 0),
    ],
)
def test_a_start_counts_from_five_minutes_to_six_hours_after(second: float, counts: int) -> None:
    found = places.to_run_rate(jobs_of(started(0)), clock_of(second))
    assert found["jobs_per_hour"].to_list() == [1 / HOURS] * counts


def test_a_rate_counts_all_jobs_of_a_queue_that_did_not_fail_by_then() -> None:
    rows = jobs_of(
        started(0, gshare="X"),
        started(0, jobstatus="running"),
        started(0, jobstatus="cancelled", computingsite="Q/S"),
        started(0, jobstatus="failed"),  # fails at T0 + 1440 min: it runs at the instant
        started(0, jobstatus="failed", modificationtime=at(20)),  # failed before
        started(0, jobstatus="closed", modificationtime=at(30)),  # at the instant
        started(0, jobstatus="holding", modificationtime=at(30)),
        started(0, computingsite="R"),
        started(0, computingsite=None),
        job(9, 0, 0, None, None, 30, jobstatus="activated"),
    )
    found = places.to_run_rate(rows, clock_of(30 * 60), parents={"Q/S": "Q"})
    assert found.rows() == [(0, "Q", 5 / HOURS), (0, "R", 1 / HOURS)]


def ended(status: str, minute: float = 0, **columns: Any) -> dict[str, Any]:
    return job(
        1, -60, -50, -40, minute, minute, **{"jobstatus": status, "jeditaskid": 1, **columns}
    )


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (ended("finished"), True),
        (ended("failed", piloterrorcode=1099), True),
        (ended("failed", piloterrorcode=0), False),
        (ended("failed"), False),
        (ended("closed", jobsubstatus="toreassign", relocationflag=2), True),
        (ended("closed", jobsubstatus="toreassign", relocationflag=0), True),
        (ended("closed", jobsubstatus="toreassign", relocationflag=3), False),
        (ended("closed", jobsubstatus="toreassign"), False),
        (ended("closed", relocationflag=2), False),
        (ended("cancelled", piloterrorcode=1099), False),
        (ended("running"), False),
        (ended("finished", jeditaskid=2), False),
        (ended("finished", computingsite=None), False),
    ],
)
def test_which_ends_count(row: dict[str, Any], counts: bool) -> None:
    found = places.failure_counts(jobs_of(row), PAIRS, clock_of(60), hours=6)
    assert found.rows() == ([(0, 1, "Q", row["jobstatus"], 1)] if counts else [])


@pytest.mark.parametrize(("second", "counts"), [(-1, 0), (0, 1), (2 * 3600 - 1, 1), (2 * 3600, 0)])
def test_an_end_counts_for_the_hours_of_the_window(second: float, counts: int) -> None:
    found = places.failure_counts(jobs_of(ended("finished")), PAIRS, clock_of(second), hours=2)
    assert found.height == counts


def test_ends_are_counted_by_queue_and_status_at_the_instants_of_the_task() -> None:
    rows = jobs_of(
        ended("finished"),
        ended("finished", 1, computingsite="Q/S"),
        ended("failed", 1, piloterrorcode=5, computingsite="R"),
        ended("finished", 1, jeditaskid=2),
    )
    pairs = pl.DataFrame({"jeditaskid": [1, 2, 1], "snapshot": [0, 1, 1]})
    found = places.failure_counts(rows, pairs, clock_of(0, 60), hours=6, parents={"Q/S": "Q"})
    assert found.rows() == [
        (0, 1, "Q", "finished", 1),
        (1, 1, "Q", "finished", 2),
        (1, 1, "R", "failed", 1),
        (1, 2, "Q", "finished", 1),
    ]


def test_a_queue_is_used_from_the_first_job_on() -> None:
    rows = jobs_of(
        job(1, 10, jeditaskid=1, jobstatus="failed"),
        job(2, 0, jeditaskid=1, computingsite="R/S"),
        job(3, 0, jeditaskid=2, computingsite="S"),
        job(4, 0, jeditaskid=1, computingsite=None),
    )
    pairs = pl.DataFrame({"jeditaskid": [1, 1, 1], "snapshot": [0, 1, 2]})
    clock = clock_of(-1, 0, 600)
    found = places.sites_used(rows, pairs, clock, parents={"R/S": "R"})
    assert found.rows() == [(1, 1, "R"), (2, 1, "Q"), (2, 1, "R")]


def test_duckdb_counts_the_same() -> None:
    rows = jobs_of(
        started(0),
        started(60, jobstatus="failed", modificationtime=at(30)),
        ended("failed", 5, piloterrorcode=3),
        ended("finished", 20, computingsite="R"),
    )
    clock = clock_of(100, 400, 1800, 7200)
    pairs = pl.DataFrame({"jeditaskid": [1] * 4, "snapshot": range(4)})
    with duckdb.connect() as con:
        con.execute("set timezone = 'UTC'")
        table = con.from_arrow(rows.to_arrow())
        for own, other in (
            (places.to_run_rate(rows, clock), places.to_run_rate(table, clock)),
            (
                places.failure_counts(rows, pairs, clock, hours=1),
                places.failure_counts(table, pairs, clock, hours=1),
            ),
            (places.sites_used(rows, pairs, clock), places.sites_used(table, pairs, clock)),
        ):
            assert own.height
            assert own.equals(other)


def test_columns_that_lack_are_named() -> None:
    with pytest.raises(SchemaError, match=r"jobs\.starttime"):
        places.to_run_rate(jobs_of().drop("starttime"), clock_of(0))
