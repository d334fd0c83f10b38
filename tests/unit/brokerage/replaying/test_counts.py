"""Numbers of jobs at instants against a loop over every job and instant."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.brokerage.replaying.changes import Changes
from brokerlab.brokerage.replaying.counts import Counts, job_tables, recorded_counts
from brokerlab.errors import DataError, SchemaError
from brokerlab.lifecycle import states
from tests.examples import examples
from tests.one_value import job_counts
from tests.unit.brokerage.replaying.toys import (
    KEYS,
    LOG,
    SCHEMA,
    T0,
    TIMES,
    at,
    counted,
    instants_of,
    job,
    jobs_of,
    log_of,
    said,
    status_by_times,
)

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


@settings(max_examples=examples(40), deadline=None)
@given(worlds())
def test_against_the_loop(world: tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame]) -> None:
    jobs, log, instants = world
    found = job_counts(jobs, log, instants)
    assert said(found) == counted(jobs, log, instants)
    assert found.equals(found.sort("snapshot", *KEYS))


@settings(max_examples=examples(8), deadline=None)
@given(worlds())
def test_duckdb_says_the_same(
    world: tuple[pl.DataFrame, pl.DataFrame | None, pl.DataFrame],
) -> None:
    jobs, log, instants = world
    session = duckdb.connect()
    relations = [None if t is None else session.from_arrow(t.to_arrow()) for t in (jobs, log)]
    found = job_counts(*relations, instants)
    assert found.equals(job_counts(jobs, log, instants))


def statuses_at(row: dict[str, object], *minutes: float) -> list[str | None]:
    instants = instants_of(*minutes)
    found = job_counts(jobs_of(row), None, instants)
    status = dict(found.select("snapshot", "jobstatus").iter_rows())
    expected = [status_by_times(jobs_of(row).row(0, named=True), t) for t in instants["at"]]
    assert [status.get(n) for n in range(len(minutes))] == expected
    return expected


def test_intervals_are_closed_on_the_left_and_open_on_the_right() -> None:
    row = job(1, 0, 10, 20, 30, 40, nucleus="N")
    assert statuses_at(row, -1, 0, 9, 10, 19, 20, 29, 30, 39, 40, 50) == [
        *(None, "assigned", "assigned", "activated", "activated", "running", "running"),
        *("transferring", "transferring", None, None),
    ]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (job(1, 0, None, 20, 30, 40), [None, "activated", "running", "holding", None]),
        (job(1, 0, None, None, None, 40, jobstatus="closed"), [None, *["assigned"] * 3, None]),
        (job(1, 0, 5, None, None, 40, jobstatus="cancelled"), [None, *["activated"] * 3, None]),
        (job(1, 0, 5, 20, None, 40, jobstatus="failed"), [None, "activated", "running", "running", None]),
        (job(1, 0, 5, 20, None, 20, jobstatus="running"), [None, "activated", *["running"] * 3]),
        (job(1, 0, 5, None, None, 5, jobstatus="starting"), [None, *["starting"] * 4]),
        (job(1, None, 5, 20, 30, 40), [None] * 5),
        (job(1, 0, 5, 20, 30, 40, statechangetime=at(32)), [None, "activated", "running", "holding", None]),
        (job(1, 0, 5, 20, 10, 40), [None, "activated", *["holding"] * 2, None]),  # ends before it starts
    ],
)  # fmt: skip
def test_jobs_with_parts_missing(row: dict[str, object], expected: list[str | None]) -> None:
    assert statuses_at(row, -10, 15, 25, 31, 45) == expected


def test_the_log_decides_where_there_is_one() -> None:
    rows = jobs_of(job(1, 0, 10, 20, 30, 40), job(2, 0, 10, 20, 30, 40))
    log = log_of((1, "defined", 0), (1, "assigned", 0), (1, "sent", 20), (1, "finished", 26))
    found = job_counts(rows, log, instants_of(0, 21, 27))
    seen = found.select("snapshot", "jobstatus", "njobs").rows()
    assert seen == [(0, "assigned", 2), (1, "running", 1), (1, "sent", 1), (2, "running", 1)]


def test_the_queue_is_that_of_the_log() -> None:
    log = log_of((1, "activated", 0), (1, "activated", 5)).with_columns(
        computingsite=pl.Series(["OLD", None])
    )
    found = job_counts(jobs_of(job(1, 0, 0, 1, 2, 9)), log, instants_of(1, 6))
    assert found["computingsite"].to_list() == ["OLD", "Q"]


def test_a_log_that_stops_early_ends_with_the_job() -> None:
    log = log_of((1, "running", 5))
    found = job_counts(jobs_of(job(1, 0, 1, 5, 30, 40)), log, instants_of(10, 39, 40))
    assert found["snapshot"].to_list() == [0, 1]


@pytest.mark.parametrize("log", [None, log_of()])
def test_nothing(log: pl.DataFrame | None) -> None:
    instants = instants_of(0, 1)
    names = ["snapshot", *KEYS, "njobs"]
    empty = job_counts(jobs_of(), log, instants)
    assert empty.columns == names
    assert empty.is_empty()
    none = job_counts(jobs_of(job(1, 0, 1, 2, 3, 4)), log, instants.clear())
    assert none.columns == names
    assert none.is_empty()
    assert job_counts(jobs_of(job(1, 0, 1, 2, 3, 4)), log, instants_of(99)).is_empty()


def test_instants_keep_their_numbers_and_may_share_a_time() -> None:
    instants = pl.DataFrame({"snapshot": [70, 5, 6], "at": [at(1), at(0), at(1)]})
    found = job_counts(jobs_of(job(1, 0, None, 0, 9, 9)), None, instants)
    assert found["snapshot"].to_list() == [5, 6, 70]


@pytest.mark.parametrize(
    ("instants", "said"),
    [
        (pl.DataFrame({"at": [T0]}), "instants.snapshot: missing"),
        (pl.DataFrame({"snapshot": [1, None], "at": [T0, None]}), "snapshot: 1 null"),
        (pl.DataFrame({"snapshot": [1, 1], "at": [T0, at(1)]}), "2 rows share"),
    ],
)
def test_unusable_instants(instants: pl.DataFrame, said: str) -> None:
    with pytest.raises(DataError, match=said):
        job_counts(jobs_of(), None, instants)


def test_missing_columns_are_named_at_once() -> None:
    bare = jobs_of().drop("creationtime", "jobstatus")
    with pytest.raises(SchemaError, match=r"jobs\.jobstatus.*jobs\.creationtime"):
        job_counts(bare, None, instants_of(0))


def test_tables_of_two_engines_are_refused() -> None:
    log = duckdb.connect().from_arrow(log_of().to_arrow())
    with pytest.raises(DataError, match="one engine"):
        job_counts(jobs_of(), log, instants_of(0))


def some_counts() -> Counts:
    running = {"jobstatus": "running", "corecount": 8}
    rows = [
        job(1, 0, 0, 0, None, 0, **running, diskio=80, resource_type="MCORE", workqueue_id=7),
        job(2, 0, 0, 0, None, 0, **running, diskio=None, resource_type="MCORE"),
        job(3, 0, 0, 0, None, 0, **running | {"corecount": None}, diskio=20, resource_type="SCORE", gshare="B"),
        job(4, 0, 0, 0, 5, 99, nucleus="N", corecount=8, diskio=10**6),
        job(5, 0, 0, 0, None, 0, **running, diskio=1, computingsite="Q/SCORE"),
    ]  # fmt: skip
    return Counts.of(jobs_of(*rows), None, instants_of(0, 10), parents={"R": "P"})


def test_tables_of_the_brokerage() -> None:
    resource = pl.DataFrame({"workqueue_id": [7], "queue_name": ["wq"]})
    tables = job_tables(some_counts(), resource)
    at_10 = {
        name: frame.filter(pl.col("snapshot") == 1).drop("snapshot").rows()
        for name, frame in tables.items()
    }
    assert at_10["job_stats"] == [
        ("Q", "A", "running", 3), ("Q", "A", "transferring", 1), ("Q", "B", "running", 1)
    ]  # fmt: skip
    assert at_10["job_stats_workqueue"] == [("Q", 7, "running", 1)]
    assert at_10["job_stats_gshare_only"] == [
        ("Q", "A", "running", 2), ("Q", "A", "transferring", 1), ("Q", "B", "running", 1)
    ]  # fmt: skip
    assert ("wq", "Q", "MCORE", "running", 1) in at_10["job_stats_rt"]
    assert at_10["transferring_by_nucleus"] == [("Q", "N", 1)]
    assert at_10["core_stats"] == [("Q", "running", 8 + 8 + 1 + 8)]
    assert at_10["diskio_usage"] == [("Q", pytest.approx((10 + 20 + 0.125) / 3))]


def test_resource_types_are_kept_for_the_shares_asked_for() -> None:
    counts = some_counts()
    everything = job_tables(counts, _no_queues())["job_stats_rt"]
    asked = pl.DataFrame({"snapshot": [0, 1, 1], "gshare": ["A", "B", None]})
    kept = job_tables(counts, _no_queues(), shares=asked)["job_stats_rt"]
    assert kept.equals(
        everything.join(asked, on=["snapshot", "gshare"], nulls_equal=True, how="semi")
    )
    assert 0 < kept.height < everything.height


def _no_queues() -> pl.DataFrame:
    return pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})


def test_notes_say_how_many_jobs_have_no_log_or_no_times() -> None:
    rows = jobs_of(job(1, 0), job(2, None, 3), job(3, 0, 1, 2, 3, 4))
    counts = Counts.of(rows, log_of((3, "running", 2)), instants_of(0))
    assert "2 of 3 jobs have no status log" in counts.notes[0]
    assert counts.notes[1].startswith("2 jobs without time")


def test_pairs_are_the_instants_asked_for() -> None:
    counts = some_counts()
    by = ["gshare", "jobstatus"]
    whole = counts.changes.at_instants(by, ["njobs"])
    pairs = pl.DataFrame({"snapshot": [1, 0], "gshare": ["A", "B"]})
    assert counts.changes.at_instants(by, ["njobs"], only=pairs).equals(
        whole.join(pairs, on=["snapshot", "gshare"], how="semi")
    )
    assert isinstance(counts.changes, Changes)


def test_recorded_numbers_hold_for_an_hour_and_as_a_whole() -> None:
    kinds = dict.fromkeys(
        ["computingsite", "gshare", "resource_type", "nucleus", "jobstatus"], pl.String
    )
    rows = [
        ("Q", "A", None, "N", "running", 7, 3.5, at(0)),
        ("Q/X", "A", None, "N", "running", 1, None, at(0)),
        ("R", "A", None, "N", "transferring", 2, None, at(0)),
        ("Q", "A", None, "N", "running", 9, 1.25, at(30)),
    ]
    stats = pl.DataFrame(
        rows, schema={**kinds, "njobs": pl.Int64, "prorated_diskio_avg": pl.Float64, "ts": pl.Datetime("us")}, orient="row"
    )  # fmt: skip
    counts = recorded_counts(stats, instants_of(-1, 0, 29, 30, 89, 90))
    assert counts.changes.clock.snapshots.tolist() == [1, 2, 3, 4]
    tables = job_tables(counts, _no_queues())
    assert tables["job_stats"].select("snapshot", "computingsite", "njobs").rows() == [
        (1, "Q", 8), (1, "R", 2), (2, "Q", 8), (2, "R", 2), (3, "Q", 9), (4, "Q", 9)
    ]  # fmt: skip
    assert tables["transferring_by_nucleus"].rows() == [(1, "R", "N", 2), (2, "R", "N", 2)]
    assert tables["diskio_usage"]["diskio_per_core"].to_list() == [3.5, 3.5, 1.25, 1.25]
    assert recorded_counts(stats, instants_of(-1)).table("computingsite").is_empty()


def test_the_two_tables_of_the_system_are_not_of_one_time() -> None:
    """JOBS_SHARE_STATS and JOBSDEFINED_SHARE_STATS are written one after the other: the later one does not end the other."""
    rows = [("running", 5, 0), ("assigned", 2, 1), ("running", 6, 30), ("assigned", 3, 31)]
    stats = pl.DataFrame(
        [(at(minute), "Q", "A", status, n) for status, n, minute in rows],
        schema=["ts", "computingsite", "gshare", "jobstatus", "njobs"],
        orient="row",
    )
    counts = recorded_counts(stats, instants_of(0, 10, 30, 40, 90.5))
    found = counts.table("computingsite", "jobstatus").select("snapshot", "jobstatus", "njobs")
    assert found.rows() == [
        (1, "assigned", 2), (1, "running", 5), (2, "assigned", 2), (2, "running", 6),
        (3, "assigned", 3), (3, "running", 6),
    ]  # fmt: skip
