"""Work that tasks have left, against a loop; resource types of a task's jobs."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.brokerage.production_tasks import remaining_work
from brokerlab.brokerage.replaying import task_tables
from brokerlab.brokerage.replaying.changes import happened
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.rules import ProductionRules
from tests.unit.brokerage.replaying.toys import SCHEMA, at, instants_of, job, status_by_times

TASKS = (
    dict.fromkeys(["jeditaskid", "currentpriority", "cputime"], pl.Int64)
    | dict.fromkeys(["prodsourcelabel", "nucleus", "gshare", "status", "cputimeunit"], pl.String)
    | dict.fromkeys(["creationdate", "endtime", "modificationtime"], pl.Datetime("us"))
)


def task(number: int, begin: float, end: float | None, **columns: Any) -> dict[str, Any]:
    known = {"prodsourcelabel": "managed", "nucleus": "N", "gshare": "A", "currentpriority": 500}
    known |= {
        "status": "running" if end is None else "done",
        "cputime": 10,
        "cputimeunit": "HS06sPerEvent",
    }
    times = {
        "creationdate": at(begin),
        "endtime": None if end is None else at(end),
        "modificationtime": at(999),
    }
    return {"jeditaskid": number} | known | times | columns


def tasks_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TASKS)


def datasets_of(**events: int | None) -> pl.DataFrame:
    rows = [
        {
            "jeditaskid": int(n[1:]),
            "datasetid": int(n[1:]),
            "masterid": None,
            "type": "input",
            "nevents": e,
        }
        for n, e in events.items()
    ]
    kinds = dict.fromkeys(["jeditaskid", "datasetid", "masterid", "nevents"], pl.Int64)
    return pl.DataFrame(rows, schema=kinds | {"type": pl.String})


def jobs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    kinds = SCHEMA | {"nevents": pl.Int64, "processingtype": pl.String}
    return pl.DataFrame(list(rows), schema=kinds)


def log_of(*rows: tuple[int, str, float]) -> pl.DataFrame:
    kinds = {"jeditaskid": pl.Int64, "status": pl.String, "modificationtime": pl.Datetime("us")}
    return pl.DataFrame([(n, s, at(m)) for n, s, m in rows], schema=kinds, orient="row")


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.one_of(st.none(), st.integers(0, 90))),
        min_size=1,
        max_size=4,
    ),
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 90), st.integers(0, 60), st.booleans()),
        max_size=10,
    ),
    st.lists(st.integers(-5, 99), min_size=1, max_size=6),
)
def test_open_tasks_against_a_loop(
    spans: list[tuple[int, int | None]], done: list[tuple[int, int, int, bool]], ticks: list[int]
) -> None:
    tasks = [task(n, b, e) for n, (b, e) in enumerate(spans, 1)]
    jobs = [
        job(n, 0, 0, 0, m, m, jeditaskid=t, nevents=e, jobstatus="finished" if ok else "failed")
        for n, (t, m, e, ok) in enumerate(done)
    ]
    instants = instants_of(*ticks)
    datasets = datasets_of(**{f"t{n}": 100 for n in range(1, len(tasks) + 1)})
    found = task_tables.open_tasks(tasks_of(*tasks), datasets, jobs_of(*jobs), instants)
    expected = []
    for snapshot, t in instants.iter_rows():
        for row in tasks:
            mine = [
                j
                for j in jobs
                if j["jeditaskid"] == row["jeditaskid"] and j["jobstatus"] == "finished"
            ]
            used = sum(j["nevents"] for j in mine if j["modificationtime"] <= t)
            if (
                row["creationdate"] < t
                and (row["endtime"] is None or t < row["endtime"])
                and used < 100
            ):
                expected.append((snapshot, row["jeditaskid"], used))
    assert found.select("snapshot", "jeditaskid", "neventsused").rows() == expected


def test_merge_jobs_use_no_events_and_others_no_more_than_there_are() -> None:
    made = [
        job(1, 0, 0, 0, 5, 5, jeditaskid=1, nevents=40, processingtype="pmerge"),
        job(2, 0, 0, 0, 5, 5, jeditaskid=1, nevents=30),
        job(3, 0, 0, 0, 15, 15, jeditaskid=1, nevents=500),
    ]
    tables = tasks_of(task(1, 0, None)), datasets_of(t1=100), jobs_of(*made)
    found = task_tables.open_tasks(*tables, instants_of(0, 10, 20))
    assert found.select("snapshot", "neventsused").rows() == [(1, 30)]


def test_the_task_log_says_when_a_task_is_open() -> None:
    log = log_of((1, "assigning", 0), (1, "ready", 10), (1, "running", 20), (1, "paused", 30), (1, "pending", 40), (1, "finished", 50))  # fmt: skip
    tables = tasks_of(task(1, 0, 99), task(2, 0, 15)), datasets_of(t1=9, t2=9), jobs_of()
    found = task_tables.open_tasks(*tables, instants_of(5, 10, 30, 40, 50), status_log=log)
    assert found.select("snapshot", "jeditaskid").rows() == [(0, 2), (1, 1), (1, 2), (3, 1)]


def test_tasks_without_nucleus_events_or_label_have_no_work() -> None:
    tasks = tasks_of(
        task(1, 0, None, nucleus=None), task(2, 0, None), task(3, 0, None, prodsourcelabel="user")
    )
    found = task_tables.open_tasks(
        tasks, datasets_of(t1=9, t2=None, t3=9), jobs_of(), instants_of(5)
    )
    assert found.is_empty()


def test_remaining_work_is_that_of_the_chapter() -> None:
    tasks = tasks_of(
        task(1, 0, None), task(2, 0, None, currentpriority=900), task(3, 0, None, gshare="B", cputime=None),
        task(4, 0, None, cputimeunit="mHS06sPerEvent", nucleus="M"),
    )  # fmt: skip
    left = task_tables.open_tasks(
        tasks, datasets_of(t1=1, t2=2, t3=3, t4=4000), jobs_of(), instants_of(5)
    )
    asked = pl.DataFrame({"snapshot": [0], "workqueue_name": ["A"], "currentpriority": [600]})
    found = remaining_work(left, asked, rules=ProductionRules())
    assert sorted(found.drop("snapshot").rows(), key=str) == [
        ("M", None, None, 40.0), ("N", "A", 600, 20.0), ("N", None, None, 10 + 20 + 900.0)
    ]  # fmt: skip
    as_deployed = remaining_work(left, asked, rules=ProductionRules("production"))
    assert as_deployed.filter(pl.col("nucleus") == "M")["rw"].item() == 40_000.0


@pytest.mark.parametrize("used", [[], [(1, 0, 5)], [(2, 1, 5), (2, 0, 3), (7, 0, 1)]])
def test_used_events(used: list[tuple[int, int, int]]) -> None:
    instants = instants_of(0, 10)
    rows = pl.DataFrame(
        [(task, instants["at"][place], n) for task, place, n in used],
        schema={"jeditaskid": pl.Int64, "time": pl.Datetime("us"), "n": pl.Int64},
        orient="row",
    )
    events = happened(nw.from_native(rows.lazy()), Clock.of(instants), ["jeditaskid"], ["n"])
    for number in (0, 1, 2, 7, 9):
        for place in (0, 1):
            expected = sum(n for t, p, n in used if t == number and p <= place)
            asked = pl.DataFrame({"snapshot": [place], "jeditaskid": [number]})
            assert events.at_instants(["jeditaskid"], ["n"], only=asked)["n"].sum() == expected


def test_resource_types_need_a_fifth() -> None:
    kinds = ["MCORE"] * 4 + ["SCORE"]
    made = [
        job(
            n,
            0,
            0,
            0,
            50,
            60,
            jeditaskid=1,
            resource_type=kind,
            computingsite="Q/MCORE" if n else "Q",
        )
        for n, kind in enumerate(kinds)
    ]
    made += [job(10, 20, 20, 20, 50, 60, jeditaskid=1, resource_type="MCORE")]
    pairs = pl.DataFrame({"jeditaskid": [1, 1, 1], "snapshot": [0, 1, 2]})
    found = task_tables.task_resource_types(jobs_of(*made), pairs, instants_of(10, 30, 60))
    assert found.rows() == [
        (0, 1, "Q", "MCORE"), (0, 1, "Q", "SCORE"), (1, 1, "Q", "MCORE")
    ]  # fmt: skip
    assert status_by_times(jobs_of(made[0]).row(0, named=True), at(59)) == "holding"
    assert task_tables.task_resource_types(jobs_of(*made), pairs.clear(), instants_of(1)).is_empty()
