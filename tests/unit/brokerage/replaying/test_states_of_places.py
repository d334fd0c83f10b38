"""Tables with a time of validity, pilots, slots, links."""

from __future__ import annotations

from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.brokerage.replaying import places
from brokerlab.brokerage.replaying.clock import MANY, Clock, as_of
from brokerlab.brokerage.replaying.places import LINK_AGE_S
from brokerlab.engines import INT, TEXT
from brokerlab.errors import SchemaError
from tests.examples import examples
from tests.unit.brokerage.replaying.toys import at, instants_of, job, jobs_of

COLUMNS = {"name": TEXT, "part": INT, "value": INT}
KINDS = {"name": pl.String, "part": pl.Int64, "value": pl.Int64, "ts": pl.Datetime("us")}


def table(*rows: tuple[Any, ...]) -> pl.DataFrame:
    timed = [(*row[:3], None if row[3] is None else at(row[3])) for row in rows]
    return pl.DataFrame(timed, schema=KINDS, orient="row")


def held_by_loop(
    frame: pl.DataFrame, instants: pl.DataFrame, max_age_min: float | None
) -> list[tuple[Any, ...]]:
    found = []
    for snapshot, t in instants.iter_rows():
        for name in frame["name"].unique().to_list():
            own = [
                row for row in frame.rows() if row[0] == name and (row[3] is None or row[3] <= t)
            ]
            last = max((row[3] for row in own if row[3] is not None), default=None)
            if (
                last is not None
                and max_age_min is not None
                and (t - last).total_seconds() >= max_age_min * 60
            ):
                continue
            found += [(snapshot, *row) for row in own if row[3] == last]
    return sorted(found, key=str)


rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(1, 2),
        st.integers(0, 9),
        st.one_of(st.none(), st.integers(-5, 60)),
    ),
    max_size=10,
)


@settings(deadline=None, max_examples=examples(60))
@given(
    rows,
    st.lists(st.integers(-10, 70), min_size=1, max_size=6),
    st.sampled_from([None, 7, 30]),
    st.sampled_from([0, MANY]),
)
def test_rows_hold_until_the_next_time(
    values: list[Any], ticks: list[int], age: int | None, many: int
) -> None:
    frame, instants = table(*values), instants_of(*ticks)
    clock = Clock.of(instants)
    limit = None if age is None else age * 60
    with mock.patch("brokerlab.brokerage.replaying.clock.MANY", many):
        found = as_of(frame, "t", COLUMNS, clock, entity=["name"], max_age_s=limit)
    if "snapshot" not in found.columns:
        found = instants.select("snapshot").join(found, how="cross")
    assert sorted(found.rows(), key=str) == held_by_loop(frame, instants, age)


def test_a_time_without_a_row_ends_it() -> None:
    frame = table(("a", 1, 5, 0), ("a", 2, 6, 0), ("a", 1, 7, 10))
    found = as_of(frame, "t", COLUMNS, Clock.of(instants_of(0, 10)), entity=["name"])
    assert found.select("snapshot", "part", "value").rows() == [(0, 1, 5), (0, 2, 6), (1, 1, 7)]


@settings(deadline=None, max_examples=examples(40))
@given(
    rows,
    st.lists(st.integers(-10, 70), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", "c", None])), max_size=9),
)
def test_only_what_is_wanted(values: list[Any], ticks: list[int], pairs: list[Any]) -> None:
    frame, instants = table(*values), instants_of(*ticks)
    kinds = {"snapshot": pl.Int64, "name": pl.String}
    wanted = pl.DataFrame(pairs, schema=kinds, orient="row")
    found = as_of(frame, "t", COLUMNS, Clock.of(instants), entity=["name"], only=wanted)
    expected = [row for row in held_by_loop(frame, instants, None) if row[:2] in set(pairs)]
    assert sorted(found.rows(), key=str) == expected


def test_steady_tables_have_no_snapshot() -> None:
    found = as_of(
        table(("a", 1, 5, None)), "t", COLUMNS, Clock.of(instants_of(0, 10)), entity=["name"]
    )
    assert found.columns == ["name", "part", "value", "ts"]
    assert as_of(table(), "t", COLUMNS, Clock.of(instants_of(0)), entity=["name"]).is_empty()


def test_the_entity_must_be_there() -> None:
    with pytest.raises(SchemaError, match=r"t\.name"):
        as_of(table().drop("name"), "t", COLUMNS, Clock.of(instants_of(0)), entity=["name"])


def test_links_count_for_an_hour() -> None:
    frame = pl.DataFrame(
        {
            "src": "A",
            "dst": "B",
            "key": "AGIS_closeness",
            "value": [1.0, 2.0],
            "ts": [at(0), at(30)],
        }
    )
    instants = instants_of(0, 30, 30 + LINK_AGE_S / 60 - 1, 30 + LINK_AGE_S / 60)
    found = places.network_matrix(frame, Clock.of(instants))
    assert found.select("snapshot", "value").rows() == [(0, 1.0), (1, 2.0), (2, 2.0)]


def test_slots_end_with_their_time() -> None:
    frame = pl.DataFrame(
        {
            "pandaqueuename": ["Q", "Q", "R", "R"],
            "gshare": [None, "A", None, None],
            "resourcetype": None,
            "numslots": [5, 0, -1, 9],
            "modificationtime": [at(0), at(0), at(0), at(20)],
            "expirationtime": [at(10), None, None, None],
        },
        schema_overrides={"resourcetype": pl.String},
    )
    found = places.slots(frame, Clock.of(instants_of(0, 10, 20)))
    assert found.drop("resourcetype").rows() == [
        (0, "Q", None, 5), (0, "Q", "A", 0), (1, "Q", "A", 0), (2, "Q", "A", 0), (2, "R", None, 9)
    ]  # fmt: skip


def test_workers_of_all_harvesters_are_added() -> None:
    frame = pl.DataFrame(
        {
            "harvester_id": ["h1", "h2", "h1"],
            "computingsite": "Q",
            "resourcetype": "SCORE",
            "status": ["running", "running", "submitted"],
            "n_workers": [1, 2, 4],
            "ts": at(0),
        }
    )
    found = places.worker_stats(frame, Clock.of(instants_of(5)))
    assert found.rows() == [("Q", "SCORE", "running", 3), ("Q", "SCORE", "submitted", 4)]
    nameless = frame.drop("harvester_id").with_columns(
        lastupdate=pl.Series([at(-2), at(-1), at(0)])
    )
    found = places.worker_stats(
        nameless, Clock.of(instants_of(5))
    )  # "all rows of the last snapshot"
    assert found["n_workers"].to_list() == [3, 4]


def test_exports_without_a_time_are_not_added_up() -> None:
    """Null ``ts``: "whole replay"; two exports of the same queue tell of it twice, and the last one holds."""
    clock = Clock.of(instants_of(5))
    times: dict[str, Any] = {"ts": pl.Series([None, None], dtype=pl.Datetime("us"))}
    workers = {"computingsite": "Q", "resourcetype": "SCORE", "status": "running"}
    workers |= {"harvester_id": "h", "n_workers": [7, 4], "lastupdate": [at(-9), at(-3)]}
    found = places.worker_stats(pl.DataFrame(workers | times), clock)
    assert found.rows() == [("Q", "SCORE", "running", 4)]
    pilots = {"site": "Q", "flag": "production", "hours": 3, "getjob": [3, 0], "updatejob": [1, 0]}
    pilots |= {"laststart": at(-99), "lastmod": [at(-9), at(-3)]}
    seen = places.site_activity_of_data(pl.DataFrame(pilots | times), clock)
    assert seen.rows() == [("Q", 0, 0, at(-99))]


def test_pilots_from_the_system() -> None:
    frame = pl.DataFrame(
        {
            "site": ["Q", "Q", "Q", "ANALY_X", "ANALY_X"],
            "flag": ["production", "analysis", "production", "production", "analysis"],
            "hours": [3, 3, 12, 3, None],
            "getjob": [1, 10, 100, 1000, 5],
            "updatejob": [2, 20, 200, 2000, 6],
            "laststart": [at(-5)] * 5,
            "ts": [at(0)] * 5,
        }
    )
    found = places.site_activity_of_data(frame, Clock.of(instants_of(1)))
    assert found.rows() == [("ANALY_X", 5, 6, at(-5)), ("Q", 1, 2, at(-5))]


def test_a_queue_that_fell_silent_has_no_pilots() -> None:
    """A row tells of the three hours before it; three hours later nothing is known, but the last start stands."""
    frame = pl.DataFrame(
        {
            "site": ["GONE", "LIVE", "LIVE"],
            "flag": ["production"] * 3,
            "hours": [3] * 3,
            "getjob": [10, 20, 30],
            "updatejob": [5, 6, 7],
            "laststart": [at(-5)] * 3,
            "ts": [at(0), at(0), at(170)],
        }
    )
    found = places.site_activity_of_data(frame, Clock.of(instants_of(179, 180)))
    rows = {(row[0], row[1]): row[2:] for row in found.rows()}
    assert rows[0, "GONE"] == (10, 5, at(-5))
    assert rows[1, "GONE"] == (0, 0, at(-5))
    assert rows[0, "LIVE"] == rows[1, "LIVE"] == (30, 7, at(-5))
    alone = places.site_activity_of_data(frame.head(1), Clock.of(instants_of(180)))
    assert alone.drop("snapshot").rows() == [("GONE", 0, 0, at(-5))]


spells = st.lists(
    st.tuples(st.sampled_from(["Q", "R", "Q/X"]), st.integers(-300, 300), st.integers(1, 300)),
    max_size=12,
)


@settings(deadline=None, max_examples=examples(25))
@given(spells, st.lists(st.integers(-60, 400), min_size=1, max_size=5))
def test_pilots_from_jobs_against_a_loop(
    values: list[tuple[str, int, int]], ticks: list[int]
) -> None:
    made = [
        job(n, start - 5, start - 5, start, start + length, start + length + 3, computingsite=queue)
        for n, (queue, start, length) in enumerate(values)
    ]
    instants = instants_of(*ticks)
    found = places.site_activity_of_jobs(jobs_of(*made), Clock.of(instants))
    expected = []
    for snapshot, t in instants.iter_rows():
        for queue in ("Q", "R"):
            own = [row for row in made if row["computingsite"].split("/")[0] == queue]
            begun = [row for row in own if row["starttime"] <= t]
            since = t - (at(180) - at(0))
            if begun:
                got = sum(row["starttime"] > since for row in begun)
                updated = sum(row["endtime"] > since for row in begun)
                expected.append(
                    (snapshot, queue, got, updated, max(row["starttime"] for row in begun))
                )
    assert found.rows() == expected
