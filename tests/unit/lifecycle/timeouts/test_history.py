"""When rules would have fired, over histories of jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.errors import ConfigError, DataError, SchemaError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, histories, would_fire

DAY_0 = datetime(2026, 3, 1)
END = DAY_0 + timedelta(days=40)
TIMES = ("creationtime", "activatedtime", "starttime", "endtime", "statechangetime", "modificationtime")  # fmt: skip
SCHEMA: dict[str, Any] = {
    **dict.fromkeys(["pandaid", "jeditaskid", "currentpriority", "relocationflag"], pl.Int64),
    **dict.fromkeys(["jobstatus", "prodsourcelabel", "processingtype", "gshare"], pl.String),
    **dict.fromkeys(["computingsite", "lockedby", "jobsubstatus"], pl.String),
    **dict.fromkeys(TIMES, pl.Datetime("us")),
}


def at(hours: float | None) -> datetime | None:
    return None if hours is None else DAY_0 + timedelta(hours=hours)


def job(pandaid: int = 1, status: str = "finished", **columns: Any) -> dict[str, Any]:
    """Return a job; times are hours after the first day."""
    plain = {
        "pandaid": pandaid,
        "jobstatus": status,
        "computingsite": "Q",
        "prodsourcelabel": "managed",
        "lockedby": "jedi",
        "processingtype": "simul",
    }
    row = {**plain, **columns}
    row.setdefault("creationtime", 0)
    return row | {name: at(row.get(name)) for name in TIMES}


def fires(
    jobs: list[dict[str, Any]],
    log: list[tuple[int, str, float]] | None = None,
    beats: list[tuple[int, float]] | None = None,
    rules: str = "document",
    **context: Any,
) -> list[tuple[int, str, float]]:
    """Return (job, rule, hours)."""
    rows = [{name: row.get(name) for name in SCHEMA} for row in jobs]
    entries = None if log is None else pl.DataFrame(
        [(n, status, at(h)) for n, status, h in log], orient="row",
        schema={"pandaid": pl.Int64, "jobstatus": pl.String, "modificationtime": pl.Datetime("us")},
    )  # fmt: skip
    signs = None if beats is None else pl.DataFrame(
        [(n, at(h)) for n, h in beats], orient="row",
        schema={"pandaid": pl.Int64, "modificationtime": pl.Datetime("us")},
    )  # fmt: skip
    found = would_fire(
        pl.DataFrame(rows, schema=SCHEMA), entries, heartbeats=signs,
        rules=TimeoutRules(rules), **{"at": END, **context},
    )  # fmt: skip
    hours = (found["fires"] - DAY_0).dt.total_seconds() / 3600
    return list(zip(found["pandaid"], found["rule"], hours, strict=True))


def test_times_tell_of_assigned_activated_and_running() -> None:
    done = job(activatedtime=20, starttime=70, endtime=90, modificationtime=91)
    assert fires([done]) == [(1, "assigned", 12), (1, "activated", 68)]
    just = job(activatedtime=12, starttime=60, endtime=90, modificationtime=91)
    assert fires([just]) == []
    long = job(activatedtime=1, starttime=2, endtime=2 + 21 * 24 + 1, modificationtime=600)
    assert fires([long]) == [(1, "running", 2 + 21 * 24)]


def test_the_log_tells_of_every_status() -> None:
    log = [(1, "pending", 0), (1, "defined", 2), (1, "assigned", 10), (1, "activated", 30),
           (1, "sent", 40), (1, "starting", 41), (1, "running", 100), (1, "holding", 120),
           (1, "transferring", 180), (1, "finished", 900)]  # fmt: skip
    row = job(starttime=100, endtime=119, modificationtime=900, currentpriority=100)
    expected = [(1, "pending", 1), (1, "defined", 6), (1, "assigned", 22), (1, "starting", 89),
                (1, "sent", 40.5), (1, "holding_lo", 167), (1, "transferring_lo", 119 + 144)]  # fmt: skip
    assert fires([row], log) == expected
    urgent = {**row, "currentpriority": 800}
    found = dict(row[1:] for row in fires([urgent], log))
    assert (found["holding_hi"], found["transferring_hi"]) == (
        122,
        180,
    )  # at once: 48 h after the end


def test_jobs_without_entries_are_read_from_their_times() -> None:
    done = job(activatedtime=0, starttime=70, endtime=90, modificationtime=91)
    other = {**done, "pandaid": 2}
    log = [(2, "activated", 50), (2, "running", 70)]
    assert fires([done, other], log) == [(1, "activated", 48)]


def test_live_jobs_wait_until_the_end_of_the_history() -> None:
    waiting = job(status="activated", activatedtime=5, statechangetime=5, modificationtime=5)
    assert fires([waiting], at=at(53)) == []
    assert fires([waiting], at=at(53.5)) == [(1, "activated", 53)]
    table = pl.DataFrame([{name: waiting.get(name) for name in SCHEMA}], schema=SCHEMA)
    (row,) = would_fire(table, at=at(60)).to_dicts()
    assert (row["entered"], row["left"], row["waited_h"], row["spared_h"]) == (at(5), None, 48, 7)
    assert (row["since"], row["limit_h"], row["jobstatus"]) == (at(5), 48, "activated")


def test_the_first_of_several_times_counts() -> None:
    log = [(1, "activated", 0), (1, "starting", 50), (1, "activated", 60), (1, "running", 200)]
    row = job(starttime=200, endtime=201, modificationtime=201)
    assert fires([row], log) == [(1, "activated", 48)]


def test_heartbeats_are_known_of_live_jobs_and_where_they_are_given() -> None:
    done = job(activatedtime=0, starttime=1, endtime=50, modificationtime=50)
    assert fires([done]) == []
    live = job(
        status="running", activatedtime=0, starttime=1, statechangetime=1, modificationtime=9
    )
    assert fires([live], at=at(11)) == []
    assert fires([live], at=at(11.5)) == [(1, "heartbeat", 11)]
    regular = [(1, float(hour)) for hour in range(2, 50)]
    assert fires([done], beats=regular) == []
    gap = [(1, hour) for hour in (2.0, 4.0, 5.0, 7.5, 10.0)]
    assert fires([done], beats=gap) == [(1, "heartbeat", 7)]
    assert fires([done], beats=[]) == [(1, "heartbeat", 3)]
    queues = pl.DataFrame({"panda_queue": ["Q"], "workflow": ["push"]})
    config = Config.empty().with_values({"HEARTBEAT_TIMEOUT_push": 6})
    assert fires([done], beats=gap, queues=queues, config=config) == [(1, "heartbeat", 16)]


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8),  # idle 2 h after the last start
        ([1.0], 4),  # idle long before
        ([1.0, 3.5, 5.0, 7.5], 7),  # a gap of more than two hours from 5 to 7.5
        ([1.0, 2.0, 4.0, 6.0, 8.0], 10),  # two hours exactly are none
        ([], None),  # nobody knows when jobs started last
    ],
)
def test_urgent_jobs_at_a_queue_that_starts_nothing(
    starts: list[float], expected: float | None
) -> None:
    waiting = job(currentpriority=900, activatedtime=0, modificationtime=40)
    others = [
        job(2 + i, activatedtime=h, starttime=h, endtime=h, modificationtime=h)
        for i, h in enumerate(starts)
    ]
    elsewhere = job(99, computingsite="P", activatedtime=0, starttime=0, modificationtime=1)
    found = fires([waiting, *others, elsewhere])
    assert found == ([] if expected is None else [(1, "inactive_queue", expected)])
    down = pl.DataFrame({"panda_queue": ["Q"], "status": ["offline"]})
    assert fires([waiting, *others], queues=down) == [(1, "inactive_queue", 4)]


def test_exempt_queues_and_the_latest_row_of_a_queue() -> None:
    done = job(activatedtime=0, starttime=70, endtime=90, modificationtime=91)
    paused = pl.DataFrame(
        {"panda_queue": ["Q", "Q"], "status": ["online", "paused"], "ts": [DAY_0, END]}
    )
    assert fires([done], queues=paused) == []
    assert fires([done], queues=paused, rules="production") == [(1, "activated", 48)]
    back = paused.with_columns(status=pl.col("status").reverse())
    assert fires([done], queues=back) == [(1, "activated", 48)]
    stays = pl.DataFrame({"panda_queue": ["Q"], "catchall": ["disableReassign"]})
    assert fires([done], queues=stays, rules="production") == []  # fmt: skip


def test_labels_of_the_code_and_an_empty_history() -> None:
    test = job(
        activatedtime=0, starttime=70, endtime=90, modificationtime=91, prodsourcelabel="test"
    )
    assert fires([test]) == [(1, "activated", 48)]
    assert fires([test], rules="production") == []
    empty = would_fire(pl.DataFrame(schema=SCHEMA), at=END)
    full = would_fire(pl.DataFrame([{n: test.get(n) for n in SCHEMA}], schema=SCHEMA), at=END)
    assert empty.is_empty()
    assert empty.schema == full.schema


def test_bad_input_is_refused() -> None:
    rows = pl.DataFrame([{name: job().get(name) for name in SCHEMA}], schema=SCHEMA)
    with pytest.raises(SchemaError, match=r"jobs\.creationtime"):
        would_fire(rows.drop("creationtime"), at=END)
    with pytest.raises(ConfigError, match="zone"):
        would_fire(rows, at=END.astimezone())
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(DataError, match="one engine"):
        would_fire(rows, duckdb.sql("select 1 as pandaid, 'x' as jobstatus, now() as modificationtime"), at=END)  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_with_a_zone_in_a_session_of_another_are_refused_not_shifted(zone: str) -> None:
    day = datetime(2026, 3, 1)
    times = {name: [day] for name in ("creationtime", "activatedtime", "modificationtime")}
    jobs = pl.DataFrame({"pandaid": [1], "jobstatus": ["activated"], **times})
    zoned = jobs.with_columns(pl.col(pl.Datetime).dt.replace_time_zone("UTC"))
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone}'")
    table = connection.from_arrow(zoned.to_arrow())
    if zone != "UTC":
        with pytest.raises(
            SchemaError, match=r"jobs\.creationtime: the session's zone is America/New_"
        ):
            would_fire(table, at=datetime(2026, 4, 1))
        return
    found = would_fire(table, at=datetime(2026, 4, 1))
    assert found.equals(would_fire(jobs, at=datetime(2026, 4, 1)))
    assert found.filter(rule="activated")["fires"].to_list() == [datetime(2026, 3, 3)]


def table() -> pl.DataFrame:
    """Return jobs that were activated for 10, 30, 49 and 100 hours, and one that still is."""
    ended = [
        job(n, activatedtime=0, starttime=h, endtime=h + 1, modificationtime=h + 1)
        for n, h in enumerate((10, 30, 49, 100))
    ]
    live = job(9, status="activated", activatedtime=0, statechangetime=0, modificationtime=0)
    rows = [*ended, {**live, "computingsite": "P"}]
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def outcomes(jobs: list[dict[str, object]], **context: object) -> list[tuple[object, ...]]:
    """Return (job, outcome, hours after the rule fires) of rule ``activated`` or the one named."""
    table = pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in jobs], schema=SCHEMA)
    rule = context.pop("rule", "activated")
    found = would_fire(table, at=END, **context).filter(rule=rule)  # type: ignore[arg-type]
    return found.select("pandaid", "outcome", "spared_h").rows()


def test_what_became_of_a_wait() -> None:
    plain = {"activatedtime": 0}
    killed = {"statechangetime": 49, "modificationtime": 49, **plain}
    ran = {"starttime": 60, "endtime": 70, "modificationtime": 71, **plain}
    jobs = [
        job(1, "closed", **killed),  # ended by whatever closed it, not by itself
        job(2, "finished", **ran),
        job(3, "failed", **ran),  # it did start: the wait went on, the payload failed
        job(4, "activated", activatedtime=0, statechangetime=0, modificationtime=0),
    ]
    assert outcomes(jobs) == [
        (1, "came_to_nothing", 1), (2, "went_on", 12), (3, "went_on", 12), (4, "waiting", 912)
    ]  # fmt: skip
    long = {"activatedtime": 0, "starttime": 1, "endtime": 521, "modificationtime": 522}
    both = [job(1, "failed", **long), job(2, "finished", **long)]
    told = [(1, "came_to_nothing", 16), (2, "went_on", 16)]
    assert outcomes(both, rule="running") == told


def test_silence_ends_with_the_next_sign_of_life() -> None:
    done = job(1, activatedtime=0, starttime=1, endtime=50, modificationtime=50)
    signs = pl.DataFrame({"pandaid": [1, 1], "modificationtime": [at(2), at(6)]})
    silent = outcomes([done], rule="heartbeat", heartbeats=signs)
    assert silent == [(1, "went_on", 2)]  # from 4 to 6, though it ran for 44 hours more


def test_histories_are_asked_for_other_rule_sets_and_without_exemptions() -> None:
    places = pl.DataFrame({"panda_queue": ["Q"], "status": ["paused"]})
    production = TimeoutRules("production")
    read = histories(table(), at=END, queues=places, also=[production])
    assert read.fired()["pandaid"].to_list() == [9]  # queue P is not known, hence not exempt
    assert_frame_equal(
        read.fired(rules=production), would_fire(table(), at=END, queues=places, rules=production)
    )
    assert_frame_equal(read.fired(exempt=False), would_fire(table(), at=END))
