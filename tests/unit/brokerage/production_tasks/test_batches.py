"""One code path from one task to many, rows in any order, and input that no rule foresees."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.brokerage.production_tasks import TaskDecisions, decide
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import DataError, SchemaError
from brokerlab.gdpconfig import Config
from tests.examples import examples
from tests.unit.brokerage.production_tasks.world import (
    AT,
    TB,
    Row,
    decided,
    endpoint,
    frames,
    nucleus,
    reasons,
    replica,
    task,
    the_task,
    world,
)

few = settings(derandomize=True, deadline=None, max_examples=examples(8))
RESULTS = ("tasks", "nuclei", "datasets", "findings")
SITES = ("A", "B", "C", "D")


def drawn_world(seed: int) -> dict[str, list[Row]]:
    """Return tasks at two instants each in a world that differs between the instants; every order is a column."""
    rng = random.Random(seed)  # noqa: S311 - data for a test
    pick = rng.choice
    tasks, datasets, outputs, replicas = [], [], [], []
    for n in range(rng.randint(2, 6)):
        base = {
            "jeditaskid": n,
            "fullchain": pick([None, None, "capable", "require", "only", "odd"]),
            "parent_tid": pick([None, n, 900, 901]),
            "nucleus": pick([None] * 8 + ["A", "NOWHERE"]),
            "iointensity": pick([None, 100, 500]),
            "taskpriority": pick([None, 100, 900]),
            "currentpriority": pick([None, 100, 900]),
            "t1weight": pick([None, 0, -1]),
            "inputprestaging": pick([None, True, False]),
            "frozentime": pick([None, AT, AT.replace(month=1)]),
            "gshare": pick(["MC", "Other", None]),
        }
        # each task has a snapshot of its own: tasks of one cycle see each other
        tasks += [task(**base, snapshot=10 * n + k) for k in (0, 1)]
        if rng.random() < 0.8:
            datasets.append({"jeditaskid": n, "datasetname": f"in{n}", "is_master": True})
        for site in rng.sample(SITES, rng.randint(0, 3)):
            found = rng.randint(0, 10)
            part = pick([None, "c1", "c2"])
            replicas.append(replica(site, found, dataset=f"in{n}", constituent=part))
        outputs += [
            {"jeditaskid": pick([n, None]), "datasetname": f"out{n}_{k}", "storagetoken": token}
            for k, token in enumerate(
                rng.sample(["ATLASDATADISK", "ddd:A", "B_DATADISK", None, "(", "ATLASTAPE"], 2)
            )
        ]
    snapshots = [row["snapshot"] for row in tasks]
    tables: dict[str, list[Row]] = {
        "tasks": tasks,
        "datasets": datasets,
        "replicas": replicas,
        "output_datasets": outputs,
        "nuclei": [
            nucleus(
                name,
                role=pick(["nucleus", "nucleus", "satellite", None]),
                state=pick(["ACTIVE", "ACTIVE", "ACTIVE", None]),
                bare_mode=pick([None, "allow", "only"]),
                secondary_nucleus=pick([None, "A", "NOWHERE"]),
                output_endpoints=pick([[f"{name}_DATADISK"], [], None, ["GONE"]]),
            )
            for name in SITES
        ],
        "storage_endpoints": [
            endpoint(
                f"{name}_DATADISK",
                snapshot=snapshot,
                read_wan=pick(["ON", "ON", "OFF", None]),
                space_free=pick([None, 50.0 * TB, 500.0 * TB]),
                space_total=pick([None, 0.0, 1000.0 * TB]),
            )
            for name in SITES
            for snapshot in snapshots
        ],
        "parent_tasks": [{"jeditaskid": 900, "fullchain": "capable", "nucleus": "A"}],
        "remaining_work": [{"nucleus": name, "rw": rng.random() * 1e12} for name in SITES],
    }
    for name in ("tasks", "output_datasets", "replicas", "nuclei"):
        for position, row in enumerate(tables[name]):
            row["position"] = position
    return tables


def hints_of(tables: dict[str, list[Row]], seed: int) -> pl.DataFrame | None:
    rng = random.Random(seed)  # noqa: S311 - data for a test
    if rng.random() < 0.4:
        return None
    rows = [
        {"jeditaskid": row["jeditaskid"], "snapshot": row["snapshot"], "panda_queue": f"{site}_Q"}
        for row in tables["tasks"]
        for site in SITES
        if rng.random() < 0.8
    ]
    types = {"jeditaskid": pl.Int64, "snapshot": pl.Int64, "panda_queue": pl.String}
    return pl.DataFrame(rows, schema=types)


def run(tables: dict[str, list[Row]], rules: str, hints: pl.DataFrame | None) -> TaskDecisions:
    config = Config.empty().with_values({"DISK_THRESHOLD_MC": 60})
    return decide(frames(tables), rules=ProductionRules(rules), config=config, hint_queues=hints)


@settings(few, max_examples=examples(5))
@given(seed=st.integers(0, 10**6), rules=st.sampled_from(["document", "production"]))
def test_a_batch_decides_as_one_task_at_a_time(seed: int, rules: str) -> None:
    tables = drawn_world(seed)
    tables["queues"] = [{"panda_queue": f"{s}_{c}", "pandasite": s, "catchall": c} for s in SITES for c in ("bareNucleus=only", "x")]  # fmt: skip
    hints = hints_of(tables, seed)
    together = run(tables, rules, hints)
    alone = [run(tables | {"tasks": [row]}, rules, hints) for row in tables["tasks"]]
    for name in RESULTS:
        whole = getattr(together, name)
        parts = pl.concat([getattr(result, name) for result in alone]).unique(maintain_order=True)
        parts = parts.sort("position" if name == "datasets" else whole.columns[2])
        parts = parts.sort("jeditaskid", "snapshot", maintain_order=True)
        assert_frame_equal(parts, whole, check_exact=True)


@few
@given(seed=st.integers(0, 10**6), rules=st.sampled_from(["document", "production"]))
def test_the_order_of_rows_does_not_matter(seed: int, rules: str) -> None:
    tables = drawn_world(seed)
    rng = random.Random(seed)  # noqa: S311 - data for a test
    mixed = {name: rng.sample(rows, len(rows)) for name, rows in tables.items()}
    hints = hints_of(tables, seed)
    one, other = run(tables, rules, hints), run(mixed, rules, hints)
    for name in RESULTS:
        assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)


@few
@given(seed=st.integers(0, 10**6), rules=st.sampled_from(["document", "production"]))
def test_results_hold_together(seed: int, rules: str) -> None:
    tables = drawn_world(seed)
    result = run(tables, rules, hints_of(tables, seed))
    tasks, nuclei = result.tasks, result.nuclei
    assert tasks.height == len(tables["tasks"])
    assert tasks["outcome"].null_count() == 0
    assert (tasks["nucleus"].is_not_null() == (tasks["outcome"] == "nucleus")).all()
    assert (nuclei["weight"].is_not_null() == nuclei["check"].is_null()).all()
    chosen = tasks.filter(~pl.col("already_assigned")).drop_nulls("nucleus")
    drawn = chosen.join(
        nuclei.filter(pl.col("check").is_null()), on=["jeditaskid", "snapshot", "nucleus"]
    )
    assert drawn.height == chosen.height
    total = (
        nuclei.filter(pl.col("check").is_null())
        .group_by("jeditaskid", "snapshot")
        .agg(pl.col("probability").sum())
    )
    assert total["probability"].to_list() == pytest.approx([1.0] * total.height)
    empty = nuclei.group_by("jeditaskid", "snapshot").agg(passed=pl.col("check").is_null().any())
    ended = empty.join(tasks, on=["jeditaskid", "snapshot"])
    assert (ended["passed"] == (ended["outcome"] == "nucleus")).all()


def odd(rules: str = "document", **tables: list[Row]) -> TaskDecisions:
    return decided(world("A", "B", **tables), rules)


@pytest.mark.parametrize(
    ("tables", "finding"),
    [
        ({"tasks": [task(nucleus="NOWHERE")]}, "names no nucleus or satellite: one is chosen"),
        (
            {"output_datasets": [{"datasetname": "out", "storagetoken": None}]},
            "storagetoken is null: goes to the first endpoint",
        ),
    ],
)
def test_odd_input_is_decided_and_told(tables: dict[str, Any], finding: str) -> None:
    result = odd(**tables)
    assert the_task(result)["outcome"] == "nucleus"
    assert result.findings["finding"].to_list() == [finding]


def test_replicas_that_nobody_listed_are_unknown_not_bad() -> None:
    tables = frames(world("A", datasets=[{"datasetname": "in", "is_master": True}]))
    del tables["replicas"]
    result = decide(tables, rules=ProductionRules("production"))
    assert the_task(result)["outcome"] == "nucleus"
    assert "replicas" in result.world.unasked


def test_a_pattern_that_is_none_is_told() -> None:
    result = odd(output_datasets=[{"datasetname": "out", "storagetoken": "A_("}])
    assert the_task(result)["outcome"] == "no_candidates"
    assert "malformed expression" in result.findings["finding"].item()


def test_a_dataset_without_replicas_is_not_readable() -> None:
    datasets = [{"datasetname": "in", "is_master": True}]
    result = odd("production", datasets=datasets, replicas=[])
    assert the_task(result)["outcome"] == "input_not_readable"


def test_a_nucleus_without_endpoints_is_skipped_alone() -> None:
    tables = world("A", "B")
    tables["nuclei"][0] |= {"input_endpoints": None, "output_endpoints": None}
    assert reasons(decided(tables)) == {"A": "no_storage", "B": None}


def test_a_world_without_nuclei_has_no_candidates() -> None:
    result = decided({"tasks": [task()]})
    assert the_task(result)["outcome"] == "no_candidates"
    assert result.findings["finding"].to_list() == ["none at this snapshot"]


def test_no_tasks_give_empty_tables() -> None:
    result = decided(world("A") | {"tasks": []})
    full = decided(world("A"))
    for name in RESULTS:
        assert getattr(result, name).height == 0
        assert getattr(result, name).schema == getattr(full, name).schema


def test_everything_wrong_with_the_tables_is_said_at_once() -> None:
    with pytest.raises(SchemaError, match=r"tasks\.at .*unknown table 'nucleii'.*'nuclei'"):
        decide(
            {"tasks": pl.DataFrame({"jeditaskid": [1]}), "nucleii": pl.DataFrame()},
            rules=ProductionRules(),
            config=Config.empty(),
        )


def test_a_task_twice_at_one_snapshot_is_refused() -> None:
    with pytest.raises(DataError, match=r"1 tasks stand twice.*\(7, 1\)"):
        decided(world("A", tasks=[task(), task()]))


def test_tables_of_the_job_brokerage_are_let_pass() -> None:
    tables = frames(world("A")) | {"locks": pl.DataFrame({"panda_queue": ["Q"]})}
    assert "locks" not in TABLES
    result = decide(tables, rules=ProductionRules(), config=Config.empty())
    assert result.to_dict()["rules"]["rules"] == "document"
    assert result.frame() is result.tasks
    assert "<table" in result._repr_html_()


def test_endpoints_of_nuclei_may_come_as_a_table() -> None:
    rows = [
        {
            "nucleus": "A",
            "direction": "output",
            "ddm_endpoint_name": "B_DATADISK",
            "is_local": False,
        },
        {
            "nucleus": "A",
            "direction": "output",
            "ddm_endpoint_name": "A_DATADISK",
            "is_local": True,
        },
    ]
    result = decided(world("A", "B", nucleus_endpoints=rows))
    assert reasons(result) == {"A": None, "B": "no_storage"}
    assert result.datasets["ddm_endpoint_name"].to_list() == ["A_DATADISK"]


def test_settings_with_a_history_are_those_of_the_instant() -> None:
    rows = [
        {"app": "jedi", "component": "taskbrokerage", "key": "DISK_THRESHOLD", "value": value}
        | {"type": "int", "vo": "atlas", "valid_from": start, "valid_to": end}
        for value, start, end in (
            ("100", AT.replace(month=1), AT.replace(day=2)),
            ("600", AT.replace(day=2), None),
        )
    ]
    tables = world("A", tasks=[task(), task(snapshot=2, at=AT.replace(day=3))])
    result = decide(frames(tables), rules=ProductionRules(), config=Config.from_rows(rows))
    assert result.tasks["outcome"].to_list() == ["nucleus", "no_candidates"]
