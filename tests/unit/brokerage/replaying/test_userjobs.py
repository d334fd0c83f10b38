"""Jobs of users, counted by hand; edges at the instant."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from brokerlab.brokerage.replaying import counts
from brokerlab.brokerage.replaying.changes import Changes
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.errors import DataError
from tests.unit.brokerage.replaying.toys import SCHEMA, instants_of, job, log_of

USER = {"prodsourcelabel": "user", "produsername": "ann", "gshare": "U", "workinggroup": None}
MORE = dict.fromkeys(
    ["prodsourcelabel", "processingtype", "produsername", "workinggroup"], pl.String
)


def jobs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([USER | row for row in rows], schema={**SCHEMA, **MORE})


def mine(number: int, *minutes: float | None, **columns: Any) -> dict[str, Any]:
    """Make a job of a user; what is not said is as in ``USER``."""
    return job(number, *minutes, **{"gshare": "U", **columns})


def counted(jobs: pl.DataFrame, *minutes: float, log: pl.DataFrame | None = None) -> Changes:
    return counts.user_changes(jobs, log, Clock.of(instants_of(*minutes)), parents={"P/S": "P"})


def by_user(changes: Changes) -> list[tuple[Any, ...]]:
    shares = pl.DataFrame({"snapshot": changes.clock.snapshots}).with_columns(gshare=pl.lit("U"))
    return counts.user_job_stats(changes, shares).rows()


def totals(changes: Changes, **unit: str | None) -> list[tuple[Any, ...]]:
    names = ("username", "origusername", "workinggroup")
    units = pl.DataFrame({"snapshot": changes.clock.snapshots}).with_columns(
        pl.lit(unit.get(name), pl.String).alias(name) for name in names
    )
    return counts.user_totals(changes, units).rows()


def test_a_job_is_queued_from_its_creation_and_running_from_its_start() -> None:
    # created 0, activated 10, started 20, ended 30, changed 40
    changes = counted(jobs_of(mine(1, 0, 10, 20, 30, 40)), -1, 0, 19, 20, 29, 30, 40)
    queued, running, other = (1, 0), (0, 1), (0, 0)
    # from 30 on it is holding: the user has a row, with neither queued nor running jobs; from 40 on it is over
    expected = {1: queued, 2: queued, 3: running, 4: running, 5: other}
    assert by_user(changes) == [(n, "Q", "U", "ann", *state) for n, state in expected.items()]


def test_users_queues_and_shares_are_counted_apart() -> None:
    changes = counted(
        jobs_of(
            mine(1, 0, 0, None, None, 9, jobstatus="activated"),
            mine(2, 0, 0, None, None, 9, jobstatus="activated"),
            mine(3, 0, 0, None, None, 9, jobstatus="activated", produsername="bob"),
            mine(4, 0, 0, 1, None, 9, jobstatus="running", computingsite="P/S"),
            mine(5, 0, 0, 1, None, 9, jobstatus="running", computingsite="P"),
            mine(6, 0, 0, 1, None, 9, jobstatus="running", gshare="other"),
            mine(7, 0, 0, 1, None, 9, jobstatus="running", processingtype="pmerge"),
            mine(8, 0, 0, 1, None, 9, jobstatus="running", prodsourcelabel="managed"),
            mine(9, 0, 0, 1, None, 9, jobstatus="running", produsername=None),
        ),
        10,
    )
    assert by_user(changes) == [
        (0, "P", "U", "ann", 0, 2),
        (0, "Q", "U", "ann", 2, 0),
        (0, "Q", "U", "bob", 1, 0),
    ]


@pytest.mark.parametrize(
    ("status", "row"),
    [
        ("defined", (1, 0)),
        ("assigned", (1, 0)),
        ("activated", (1, 0)),
        ("starting", (1, 0)),
        ("sent", (0, 0)),
        ("throttled", (0, 0)),
        ("running", (0, 1)),
        ("transferring", (0, 0)),
        ("pending", None),
        ("waiting", None),
        ("finished", None),
    ],
)
def test_what_a_status_counts_as(status: str, row: tuple[int, int] | None) -> None:
    log = log_of((1, status, 5))
    changes = counted(jobs_of(mine(1, 0, 0, None, None, 5, jobstatus=status)), 5, log=log)
    assert by_user(changes) == ([] if row is None else [(0, "Q", "U", "ann", *row)])


def test_totals_add_up_queues_shares_and_merge_jobs() -> None:
    live = {"jobstatus": "running"}
    changes = counted(
        jobs_of(
            mine(1, 0, 0, 1, None, 9, corecount=8, **live),
            mine(2, 0, 0, 1, None, 9, corecount=None, gshare="other", **live),
            mine(3, 0, 0, 1, None, 9, corecount=0, processingtype="pmerge", **live),
            mine(4, 0, 0, None, None, 9, corecount=4, jobstatus="activated"),
            mine(5, 0, 0, 1, None, 9, corecount=2, workinggroup="G", **live),
            mine(6, 0, 0, 1, None, 9, corecount=2, workinggroup="G", produsername="bob", **live),
        ),
        9,
    )
    # 8 + 1 + 1 cores run, 4 wait; jobs for a group are the group's
    assert totals(changes, username="ann") == [(0, "ann", None, 3, 1, 10, 4)]
    assert totals(changes, username="ann", origusername="A. Nn") == [
        (0, "A. Nn", None, 3, 1, 10, 4)
    ]
    assert totals(changes, username="ann", workinggroup="G") == [(0, None, "G", 2, 0, 4, 0)]
    assert totals(changes, username="eve") == [(0, "eve", None, 0, 0, 0, 0)]
    assert totals(changes) == []


def test_throttled_jobs_are_queued_in_the_totals() -> None:
    log = log_of((1, "throttled", 3))
    changes = counted(jobs_of(mine(1, 0, 0, None, None, 3, jobstatus="throttled")), 2, 3, log=log)
    assert totals(changes, username="ann")[1] == (1, "ann", None, 0, 1, 0, 1)


def test_duckdb_counts_the_same() -> None:
    rows = jobs_of(mine(1, 0, 10, 20, 30, 40), mine(2, 5, 10, 25, 30, 40, produsername="bob"))
    clock = Clock.of(instants_of(6, 21, 30))
    with duckdb.connect() as con:
        con.execute("set timezone = 'UTC'")
        found = counts.user_changes(con.from_arrow(rows.to_arrow()), None, clock)
        assert by_user(found) == by_user(counted(rows, 6, 21, 30))
    assert len(by_user(found)) == 6


def test_tables_of_two_engines_are_refused() -> None:
    log, clock = log_of((1, "running", 1)), Clock.of(instants_of(1))
    with duckdb.connect() as con:
        jobs = con.from_arrow(jobs_of(mine(1, 0)).to_arrow())
        with pytest.raises(DataError, match="one engine"):
            counts.user_changes(jobs, log, clock)
