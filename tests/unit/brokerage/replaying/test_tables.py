"""Tasks, queues, nuclei, input: from the archive's tables to those of the chapters."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.archive.contracts import polars_schema
from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import places, plan, task_tables
from brokerlab.brokerage.replaying.clock import Clock
from tests.unit.brokerage.replaying.toys import at, instants_of

CLOCK = Clock.of(instants_of(0, 10))


def table(name: str, *rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=polars_schema(name))


def task(number: int = 1, **columns: Any) -> pl.DataFrame:
    known = {"vo": "atlas", "prodsourcelabel": "managed", "status": "done", "creationdate": at(0)}
    row = {"jeditaskid": number, "modificationtime": at(99), "gshare": "A", "nucleus": "N"}
    return task_tables.read_tasks(table("tasks", row | known | columns))


def row_of(tasks: pl.DataFrame, stage: str = "jobs", **schedule: Any) -> dict[str, Any]:
    planned = pl.DataFrame({"jeditaskid": [1], "snapshot": [0], "at": [at(5)]} | schedule)
    found: dict[str, Any] = task_tables.task_rows(planned, tasks, stage=stage).row(0, named=True)
    return found


def test_numbers_of_the_split_rule_become_words() -> None:
    row = row_of(
        task(
            fullchain=3, allowinputlan=2, ipconnectivity=2, ipstack=6, uselocalio=1, allowinputwan=0,
            usejobcloning=None, mergeoutput=1, onlytagsforfc=1, ramunit="MBPerCore", corecount=8,
        )
    )  # fmt: skip
    words = ["fullchain", "allowinputlan", "ipconnectivity", "ipstack"]
    assert [row[name] for name in words] == ["capable", "only", "http", "IPv6"]
    flags = ["uselocalio", "allowinputwan", "usejobcloning", "mergeoutput", "onlytagsforfc"]
    assert [row[name] for name in flags] == [True, False, None, True, True]
    assert (row["ramcountunit"], row["workqueue_name"], row["nucleus"]) == ("MBPerCore", "A", "N")
    assert row_of(task(fullchain=9, ipstack=5))["fullchain"] is None


MEASURED = {"ramcount": 900, "orig_ramcount": 2000, "cputime": 7, "cputimeunit": "mHS06sPerEvent"}


@pytest.mark.parametrize(
    ("stage", "scout", "expected"),
    [
        ("jobs", False, (900, 7.0, "mHS06sPerEvent")),
        ("jobs", True, (2000, 3.5, "HS06sPerEvent")),
        ("tasks", False, (2000, 3.5, "HS06sPerEvent")),
    ],
)
def test_before_scouts_the_submitted_parameters_hold(
    stage: str, scout: bool, expected: object
) -> None:
    row = row_of(task(**MEASURED, orig_cputime=3.5), stage, use_scout=[scout])
    assert (row["ramcount"], row["cputime"], row["cputimeunit"]) == expected


def test_what_was_not_submitted_is_not_known_before_scouts() -> None:
    row = row_of(task(**MEASURED | {"orig_ramcount": None}), use_scout=[True])
    assert [row[name] for name in ("ramcount", "cputime", "cputimeunit")] == [None] * 3


def test_a_task_freezes_and_gets_its_nucleus_in_time() -> None:
    assert row_of(task(frozentime=at(4)))["frozentime"] == at(4)
    assert row_of(task(frozentime=at(6)))["frozentime"] is None
    assert row_of(task(), "tasks")["nucleus"] is None


def queue(name: str, **columns: Any) -> dict[str, Any]:
    known = {"atlas_site": "S", "type": "production", "status": "online", "role": "satellite"}
    return {"panda_queue": name, "pandasite_state": "ACTIVE"} | known | columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ('["AUTO", "21.0"]', ["AUTO", "21.0"]), ("AUTO, ANY", ["AUTO", "ANY"]), ('["A"', ['["A"']), ("7", ["7"])],
)  # fmt: skip
def test_releases(text: str | None, expected: list[str] | None) -> None:
    found = places.queues(table("queues", queue("Q", releases=text)), None, CLOCK)
    assert found["releases"].to_list() == [expected]
    assert "snapshot" not in found.columns


def test_queues_follow_their_history_and_split_up() -> None:
    types = table(
        "resource_types",
        {"resource_name": "SCORE", "maxcore": 1},
        {"resource_name": "MCORE", "mincore": 2},
    )
    rows = [
        queue("U", capability="ucore", corecount=8, maxrss=16000, status=status, ts=at(minute))
        for status, minute in (("online", -5), ("offline", 10))
    ]
    found = places.queues(table("queues", *rows, queue("Q")), types, CLOCK)
    names = ["Q", "U", "U/MCORE", "U/SCORE"]
    assert found["panda_queue"].to_list() == names * 2
    assert found["status"].to_list() == ["online"] * 5 + ["offline"] * 3
    assert found.filter(pl.col("panda_queue") == "U/SCORE")["maxrss"].to_list() == [2000.0] * 2


def endpoint_rows() -> pl.DataFrame:
    rows = [
        ("Q1", "S_DATADISK", "output", 1, True, True),
        ("Q1", "S_SCRATCHDISK", "input", 2, False, True),
        ("Q1", "S_DATADISK", "input", 1, True, True),
        ("Q2", "N_DATADISK", "output", 1, True, False),
        ("Q2", "N_DATADISK", "input", 9, False, False),
        ("Q2", "S_TAPE", "input", None, False, True),
    ]
    made = [
        {
            "panda_queue": q, "ddm_endpoint_name": e, "direction": d, "scope": "default", "is_default": default,
            "is_local": local, "order_read": n if d == "input" else None, "order_write": n if d == "output" else None,
        }
        for q, e, d, n, default, local in rows
    ]  # fmt: skip
    analysis = {
        "panda_queue": "Q1",
        "ddm_endpoint_name": "X",
        "direction": "input",
        "scope": "analysis",
    }
    return table("queue_endpoints", *made, analysis)


def endpoints() -> pl.DataFrame:
    rows = [
        ("S_DATADISK", "S", False),
        ("S_SCRATCHDISK", "S", False),
        ("N_DATADISK", "N", False),
        ("S_TAPE", "S", True),
    ]
    made = [{"ddm_endpoint_name": e, "site_name": s, "is_tape": t} for e, s, t in rows]
    return places.storage_endpoints(table("ddm_endpoints", *made), CLOCK)


def test_nuclei_and_their_endpoints() -> None:
    links = places.queue_endpoints(endpoint_rows())
    assert links.filter(pl.col("panda_queue") == "Q1").select("direction", "ddm_endpoint_name").rows() == [
        ("input", "S_DATADISK"), ("input", "S_SCRATCHDISK"), ("output", "S_DATADISK")
    ]  # fmt: skip
    rows = [queue("Q2", role="nucleus"), queue("Q1"), queue("A", type="analysis"), queue("B", atlas_site="T", pandasite_state=None)]  # fmt: skip
    found = places.nuclei(places.queues(table("queues", *rows), None, CLOCK), links)
    assert found.rows(named=True) == [
        {
            "nucleus": "S", "role": "nucleus", "state": "ACTIVE", "queues": ["Q1", "Q2"],
            "default_endpoint_out": "S_DATADISK", "output_endpoints": ["S_DATADISK"],
            "input_endpoints": ["S_DATADISK", "S_SCRATCHDISK", "N_DATADISK", "S_TAPE"],
        },
        {
            "nucleus": "T", "role": "satellite", "state": None, "queues": ["B"], "default_endpoint_out": None,
            "output_endpoints": None, "input_endpoints": None,
        },
    ]  # fmt: skip
    sites = places.queue_storage_site(links, endpoints())
    assert sites.rows() == [("Q1", "S"), ("Q2", "N")]


def test_cpu_levels_of_a_site_are_those_of_its_queues() -> None:
    nodes = pl.DataFrame(
        {
            "site": "S",
            "cpu_architecture_level": ["v3", "v2", "v3", None],
            "n_logical_cpus": [10, 20, 20, 50],
        }
    )
    found = places.cpu_levels(nodes, places.queues(table("queues", queue("Q")), None, CLOCK))
    assert found.rows() == [("Q", "v2", 20.0), ("Q", "v3", 30.0)]


def dataset(number: int, **columns: Any) -> dict[str, Any]:
    return {
        "jeditaskid": 1,
        "datasetid": number,
        "datasetname": f"d{number}",
        "type": "input",
    } | columns


def test_datasets_of_a_task() -> None:
    rows = table(
        "datasets", dataset(1, creationtime=at(1)), dataset(2, masterid=1, attributes="repeat,ratio=3,nosplit"),
        dataset(3, type="pseudo_input"), dataset(4, type="output", storagetoken="dst:X"), dataset(5, type="trn_output"),
        dataset(6, attributes="distributed"), dataset(7) | {"jeditaskid": 9},
    )  # fmt: skip
    read = task_tables.read_datasets(rows, [1])
    own = task_tables.input_datasets(read)
    columns = ["datasetname", "is_master", "distributed", "ratio", "nosplit"]
    assert own.select(columns).rows() == [
        ("d1", True, False, None, False), ("d2", False, False, 3, True), ("d3", True, True, None, False),
        ("d6", True, True, None, False),
    ]  # fmt: skip
    assert task_tables.output_datasets(read)["storagetoken"].to_list() == ["dst:X"]
    assert task_tables.input_datasets(read, merging=True)["datasetname"].to_list() == ["d5"]
    assert task_tables.master_times(read).rows() == [(1, at(1), None)]


def test_replicas_and_where_files_are() -> None:
    own = task_tables.input_datasets(table("datasets", dataset(1), dataset(2, masterid=1)))
    replicas = table(
        "replicas", *(
            {"datasetname": d, "ddm_endpoint_name": e, "found": f, "total": 4, "bytes": b, "ts": None} | more
            for d, e, f, b, more in [
                ("d1", "S_DATADISK", 4, 400, {}), ("d1", "S_SCRATCHDISK", 2, 210, {}),
                ("d2", "S_TAPE", 4, None, {}), ("d2", "N_DATADISK", 2, 100, {}), ("dX", "N_DATADISK", 2, 100, {}),
                ("d2", "S_DATADISK", 4, None, {"vp": True}),
            ]
        )
    )  # fmt: skip
    pairs = pl.DataFrame({"jeditaskid": [1], "snapshot": [0]})
    found = task_tables.replicas(replicas, own, pairs, CLOCK)
    sizes = found.select("datasetname", "ddm_endpoint_name", "asize", "tsize").rows()
    assert sizes == [
        ("d1", "S_DATADISK", 400, 400), ("d1", "S_SCRATCHDISK", 210, 400), ("d2", "N_DATADISK", 100, 200),
        ("d2", "S_DATADISK", None, 200), ("d2", "S_TAPE", None, 200),
    ]  # fmt: skip
    files = table("files", *({"jeditaskid": 1, "datasetid": d, "fileid": d, "type": "input", "status": "ready", "lfn": n} for d, n in ((1, "a"), (2, None))))  # fmt: skip
    named = task_tables.input_files(files, own)
    links = places.queue_endpoints(endpoint_rows())
    places_of = task_tables.file_locations(named, found, links, endpoints())
    assert places_of.select("panda_queue", "lfn", "kind").rows() == [
        ("Q1", "a", "localdisk"), ("Q1", "file 2", "cache"), ("Q2", "file 2", "localtape")
    ]  # fmt: skip


def test_files_come_once() -> None:
    own = task_tables.input_datasets(table("datasets", dataset(1)))
    rows = [
        {"jeditaskid": 1, "datasetid": 1, "fileid": n, "type": "input", "status": "ready", "lfn": "a", "attemptnr": n, "fsize": 5}
        for n in (1, 2)
    ]  # fmt: skip
    rows.append(rows[0] | {"startevent": 5, "endevent": 9})
    for order in (rows, rows[::-1]):  # in whatever order an engine gives them
        found = task_tables.input_files(table("files", *order), own)
        assert found.select("startevent", "fileid").rows() == [(None, 2), (5, 1)]
    rows = [rows[1], rows[1] | {"attemptnr": 3, "startevent": 0, "endevent": 4, "fsize": 4}]
    found = task_tables.input_files(table("files", *rows), own)  # the last attempt says what it is
    assert found.select("startevent", "fsize").rows() == [(0, 4)]


def jobs_made(*rows: tuple[int, float, str | None, str | None]) -> pl.DataFrame:
    made = [
        {"jeditaskid": t, "creationtime": at(m), "prodsourcelabel": "managed", "processingtype": p, "specialhandling": s}
        for t, m, p, s in rows
    ]  # fmt: skip
    kinds = dict.fromkeys(["prodsourcelabel", "processingtype", "specialhandling"], pl.String)
    return pl.DataFrame(
        made, schema={"jeditaskid": pl.Int64, "creationtime": pl.Datetime("us"), **kinds}
    )


def test_jobs_of_an_hour_come_from_one_brokerage() -> None:
    jobs = jobs_made((1, 5, None, None), (1, 1, "simul", "a,sj"), (1, 30, "pmerge", None), (1, 60, None, "sjx"), (2, 0, "pmerge", None))  # fmt: skip
    found = replaying.job_brokerages(jobs)
    second = 1 / 60
    assert found.rows() == [
        (1, at(1 - second), False, True, 2), (1, at(30 - second), True, False, 1),
        (1, at(60 - second), False, False, 1), (2, at(-second), True, False, 1),
    ]  # fmt: skip
    assert replaying.job_brokerages(jobs, label="user").is_empty()


def test_the_nucleus_is_chosen_when_the_task_is_assigned() -> None:
    tasks = pl.concat([task(1), task(2, creationdate=at(3)), task(3, prodsourcelabel="user")])
    log = pl.DataFrame(
        {"jeditaskid": [1, 1, 1], "status": ["defined", "assigning", "assigning"], "modificationtime": [at(1), at(4), at(2)]}
    )  # fmt: skip
    assert plan.task_brokerages(tasks).rows() == [(1, at(0)), (2, at(3))]
    assert plan.task_brokerages(tasks, log).rows() == [(1, at(2)), (2, at(3))]
