"""User tasks, their input, endpoints and workers in the words of the analysis brokerage."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import contracts
from brokerlab.brokerage.replaying import places, task_tables
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.frames import prepared
from tests.unit.brokerage.replaying.toys import T0, at, instants_of

TASK = {"jeditaskid": 1, "ramcount": 3000, "orig_ramcount": 2000, "frozentime": at(10)}


def rows_of(task: dict[str, Any], **schedule: Any) -> dict[str, Any]:
    plan = pl.DataFrame([{"jeditaskid": 1, "snapshot": 0, "at": T0, **schedule}])
    own = task_tables.read_tasks(pl.DataFrame([TASK | task]))
    rows = task_tables.task_rows(plan, own, stage="analysis")
    return prepared({"tasks": rows}, contracts.TABLES)["tasks"].row(0, named=True)


@pytest.mark.parametrize(
    ("rule", "scouts", "expected"),
    [
        (3, True, (True, True)),
        (3, False, (False, False)),
        (2, False, (True, False)),
        (None, False, (False, False)),
    ],
)
def test_a_task_has_scouts_while_the_rule_says_so_and_at_the_chunk_that_makes_them(
    rule: int | None, scouts: bool, expected: tuple[bool, bool]
) -> None:
    row = rows_of({"usescout": rule}, use_scout=scouts)
    assert (row["usescout"], row["chunk_usescout"]) == expected


def test_parameters_are_words_and_flags() -> None:
    row = rows_of(
        {"allowinputlan": 2, "avoidvp": 1, "limitedsites": 0, "allowincompleteinds": None}
    )
    assert row["allowinputlan"] == "only"
    assert [row[name] for name in ("avoidvp", "allowincompleteinds", "limitedsites")] == [
        True,
        None,
        False,
    ]


def test_scouts_need_the_memory_submitted_and_a_later_freeze_is_not_seen() -> None:
    assert rows_of({}, use_scout=True)["ramcount"] == 2000
    assert rows_of({}, use_scout=False)["ramcount"] == 3000
    assert rows_of({}, at=at(9))["frozentime"] is None
    assert rows_of({}, at=at(10))["frozentime"] == at(10)


def datasets_of(*rows: dict[str, Any]) -> pl.DataFrame:
    plain = {"jeditaskid": 1, "masterid": None, "type": "input", "attributes": None}
    frame = pl.DataFrame(
        [plain | {"datasetid": n, "datasetname": f"d{n}"} | row for n, row in enumerate(rows)],
        schema_overrides={"masterid": pl.Int64, "attributes": pl.String},
    )
    read = task_tables.read_datasets(frame, [1])
    return task_tables.input_datasets(read)


def test_pseudo_input_is_not_distributed() -> None:
    found = datasets_of(
        {"attributes": "distributed"}, {"type": "pseudo_input"}, {"masterid": 0, "attributes": "x"}
    )
    assert found["is_distributed"].to_list() == [True, False, False]
    assert found["is_master"].to_list() == [True, True, False]


def test_a_chunk_splits_into_the_jobs_made_or_else_the_whole_input() -> None:
    datasets = datasets_of({})
    files = pl.DataFrame({"jeditaskid": 1, "datasetname": "d0", "lfn": ["a", "b", "c"]})
    rows = pl.DataFrame(
        {"jeditaskid": [1, 1], "nfilesperjob": [2, 2], "n_jobs": [7, None]},
    )
    found = task_tables.with_number_of_jobs(rows, datasets, files)
    assert found["n_jobs_to_submit"].to_list() == [7, 2]
    alone = task_tables.with_number_of_jobs(rows.drop("n_jobs"), datasets, files)
    assert alone["n_jobs_to_submit"].to_list() == [2, 2]
    nothing = task_tables.with_number_of_jobs(rows.tail(1), None, None)
    assert nothing["n_jobs_to_submit"].to_list() == [0]


LINKS = pl.DataFrame(
    [
        ("Q", "E", "output", "analysis", None, 1, True),
        ("Q", "T", "input", None, 2, None, False),
        ("Q", "E", "input", "default", 1, None, True),
    ],
    schema=[
        *("panda_queue", "ddm_endpoint_name", "direction", "scope", "order_read", "order_write"),
        "is_default",
    ],
    orient="row",
)


def test_endpoints_keep_their_scope_and_production_reads_the_default_one() -> None:
    found = places.scoped_endpoints(LINKS)
    columns = ["ddm_endpoint_name", "direction", "scope"]
    default = [("E", "input", "default"), ("T", "input", "default")]
    assert found.select(columns).rows() == [*default, ("E", "output", "analysis")]
    assert places.queue_endpoints(LINKS).select(columns[:2]).rows() == [row[:2] for row in default]


def test_space_that_can_be_used_is_what_is_free_and_expired_less_what_is_kept() -> None:
    endpoint = {
        "ddm_endpoint_name": "E",
        "is_tape": False,
        "read_lan": "ON",
        "space_free": 100.0,
        "space_expired": 20.0,
        "space_min_free": 5.0,
        "space_unavailable": None,
    }
    tape = endpoint | dict.fromkeys(endpoint.keys() - {"ddm_endpoint_name"}) | {"is_tape": True}
    kinds = {"is_tape": pl.Boolean, "read_lan": pl.String}
    storage = pl.DataFrame(
        [endpoint, tape | {"ddm_endpoint_name": "T"}],
        schema=dict.fromkeys(endpoint, pl.Float64) | kinds | {"ddm_endpoint_name": pl.String},
    ).with_columns(
        pl.lit(None, pl.String).alias(name) for name in ("write_lan", "read_wan", "write_wan")
    )
    links = places.scoped_endpoints(LINKS)
    found = places.endpoints_with_storage(links, storage)
    assert found["space_usable"].to_list() == [115.0, None, 115.0]
    assert found["is_tape"].to_list() == [False, True, False]
    assert found["read_lan"].to_list() == ["ON", None, "ON"]
    bare = places.endpoints_with_storage(links, None)
    assert set(bare.columns) == set(found.columns)
    assert bare["space_usable"].null_count() == 3


def test_workers_not_seen_for_an_hour_do_not_count() -> None:
    rows = pl.DataFrame(
        {
            "computingsite": ["A", "B", "C", "D"],
            "resourcetype": ["SCORE"] * 4,
            "status": ["running"] * 4,
            "n_workers": [1, 2, 3, 4],
            "ts": [T0, T0, T0, None],
            "lastupdate": [at(-59), at(-60), None, at(-600)],
        }
    )
    clock = Clock.of(instants_of(0))
    every = places.worker_stats(rows, clock)
    assert every["n_workers"].to_list() == [1, 2, 3, 4]
    late = places.worker_stats(rows, clock, seen_within_s=3600)
    assert late["panda_queue"].to_list() == ["A", "C", "D"]


def test_what_is_too_old_to_count_does_not_bring_back_what_was_before() -> None:
    """At +120 min the queue's workers were last seen at +10: nobody is there, not those recorded at 0."""
    rows = pl.DataFrame(
        {
            "computingsite": ["A", "A"],
            "resourcetype": ["SCORE", "SCORE"],
            "status": ["running", "running"],
            "n_workers": [7, 9],
            "lastupdate": [at(0), at(10)],
            "ts": [at(0), at(120)],
        }
    )
    clock = Clock.of(instants_of(60, 130))
    found = places.worker_stats(rows, clock, seen_within_s=3600)
    assert found.select("snapshot", "n_workers").rows() == [(0, 7)]
