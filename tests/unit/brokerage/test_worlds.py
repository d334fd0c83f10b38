"""Input tables by hand: what is not given removes nothing, and what is not understood is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab import brokerage
from brokerlab.archive.contracts import TABLES
from brokerlab.brokerage import analysis_jobs, production_jobs, production_tasks
from brokerlab.brokerage import contracts as job_contracts
from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.analysis_jobs import contracts as analysis_contracts
from brokerlab.brokerage.production_tasks import contracts as task_contracts
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, SchemaError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config

Rows = list[dict[str, Any]]

RULE_SETS = ("document", "production")
QUEUES: Rows = [{"panda_queue": "LARGE"}, {"panda_queue": "SMALL"}]
INPUT = {
    "datasets": [{"datasetname": "d"}],
    "files": [{"datasetname": "d", "lfn": "f", "fsize": 10**13}],
}
DEMANDING: Rows = [
    {"ramcount": 4000, "ramcountunit": "MBPerCore", "corecount": 8, "gshare": "MC", "iointensity": 10_000},
    {"currentpriority": 1000, "nucleus": "NUC", "cputime": 1e6, "cputimeunit": "HS06sPerEvent"},
    {"eventservice": 1, "ipconnectivity": "full", "use_scout": True, "allowinputlan": "only"},
    {"transhome": "Athena-25.0", "architecture": "x86_64-el9-gcc13-opt#x86_64&nvidia"},
    {"is_merging": True, "mergeoutput": True, "diskio": 10**6, "workdiskcount": 10**6, "workdiskunit": "MB"},
]  # fmt: skip
OF_USERS: Rows = [
    {"ramcount": 4000, "ramunit": "MBPerCore", "corecount": 8, "username": "alice"},
    {
        "architecture": "x86_64-el9-gcc13-opt#x86_64&nvidia",
        "transhome": "AnalysisTransforms-AnalysisBase_25.2.1",
    },
    {"usescout": True, "cputime": 1e6, "cputimeunit": "HS06sPerEvent", "iointensity": 10_000},
]


def jobs(tasks: Rows, queues: Rows, rules: str = "document", **tables: Any) -> dict[str, Any]:
    """Return outcome or check of every queue of the first task."""
    given = brokerage.world(tasks, queues, **tables)
    found = production_jobs.decide(given, rules=ProductionRules(rules))
    checks = dict(found.queues.filter(jeditaskid=1).select("panda_queue", "check").iter_rows())
    return checks or {"outcome": found.tasks["outcome"][0]}


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("more", [{}, INPUT], ids=["no input", "input"])
def test_what_is_not_given_removes_no_queue_of_production(rules: str, more: dict[str, Any]) -> None:
    found = production_jobs.decide(
        brokerage.world(DEMANDING, QUEUES, **more), rules=ProductionRules(rules)
    )
    assert found.queues["check"].null_count() == found.queues.height == 10
    assert set(found.tasks["outcome"]) == {"candidates"}


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("more", [{}, INPUT], ids=["no input", "input"])
def test_what_is_not_given_removes_no_queue_of_users(rules: str, more: dict[str, Any]) -> None:
    given = brokerage.world(OF_USERS, QUEUES, brokerage="analysis-jobs", **more)
    found = analysis_jobs.decide(given, rules=AnalysisRules(rules))
    assert found.queues["check"].null_count() == found.queues.height == 6
    assert set(found.tasks["outcome"]) == {"candidates"}


@pytest.mark.parametrize(
    ("table", "task", "queue", "more", "lost"),
    [
        ("site_activity", {}, {}, {}, "no_pilot"),
        ("queue_endpoints", {}, {}, {"storage_endpoints": []}, "read_lan_down"),
        ("storage_endpoints", {}, {}, {"queue_endpoints": []}, "read_lan_down"),
        ("nuclei", {"nucleus": "NUC"}, {}, {}, "unknown_nucleus"),
        ("replicas", {}, {}, INPUT | {"storage_endpoints": []}, "input_incomplete"),
        ("file_locations", {}, {"catchall": "use_only_local_data"}, INPUT, "local_data_only"),
        ("sw_tags", {"transhome": "Athena-25.0"}, {}, {}, "software_hardware"),
    ],
)  # fmt: skip
def test_a_missing_table_is_unknown_and_an_empty_one_is_not(
    table: str, task: dict[str, Any], queue: dict[str, Any], more: dict[str, Any], lost: str
) -> None:
    """A check that needs a table that is missing does not remove; the same table without rows says that there is nothing."""
    others = [one for one in more if one != table and not more[one]]
    known = {name: rows for name, rows in more.items() if name not in others}
    queues = [{"panda_queue": "ONE"} | queue]
    assert jobs([task], queues, "production", **known) == {"ONE": None}
    assert lost in jobs([task], queues, "production", **more, **{table: []}).values()


def test_the_answer_names_what_was_missing_once() -> None:
    found = production_jobs.decide(brokerage.world([{"ramcount": 1}], QUEUES, site_activity=[]))
    assert "site_activity" not in found.world.unasked
    assert found.world.unasked["sw_tags"] == ("software_hardware", "platform_unresolved")
    text = str(brokerage.explain(found, jeditaskid=1, panda_queue="SMALL"))
    assert text.count("Nothing is known of file_locations, network_matrix, nuclei") == 1
    assert "removed nothing" in str(brokerage.explain_task(found, jeditaskid=1))


@pytest.mark.parametrize(
    ("rules", "stage", "contracts"),
    [
        (ProductionRules, "jobs", job_contracts),
        (ProductionRules, "tasks", task_contracts),
        (AnalysisRules, "analysis", analysis_contracts),
    ],
)
def test_every_check_that_needs_a_table_is_a_check(rules: Any, stage: str, contracts: Any) -> None:
    names = {"input_incomplete", "unknown_nucleus", "input_not_readable"}
    for each in RULE_SETS:
        names |= set(brokerage.checks_table(rules(each), stage=stage)["check"])
    assert {one for needs in contracts.NEEDED.values() for one in needs} <= names
    assert contracts.NEEDED.keys() | contracts.ABSENT.keys() == contracts.TABLES.keys()


def test_a_slip_is_refused_with_the_nearest_name_and_everything_at_once() -> None:
    with pytest.raises(SchemaError) as error:
        brokerage.world(
            [{"ram_count": 4000}], [{"panda_queue": 1, "maxrss": "much"}], site_activty=[]
        )
    text = str(error.value)
    assert "tasks has no column ram_count (did you mean 'ramcount'?)" in text
    assert "unknown table 'site_activty': did you mean 'site_activity'?" in text
    assert "queues.maxrss: 1 values are no Float64 ('much')" in text


@pytest.mark.parametrize(
    ("column", "value"),
    [("is_unified", 2), ("last_update", "03/04/2026")],  # March or April
)
@pytest.mark.parametrize("made_as", [list, pl.DataFrame])
def test_what_nobody_can_read_for_sure_is_refused(made_as: Any, column: str, value: Any) -> None:
    queue = {"panda_queue": "A", "type": "unified", "status": "online", column: value}
    with pytest.raises(SchemaError, match=rf"queues\.{column}: 1 values are no"):
        prepared({"queues": made_as([queue])}, {"queues": TABLES["queues"]})


@pytest.mark.parametrize("made_as", [list, pl.DataFrame])
def test_times_of_texts_are_in_utc(made_as: Any) -> None:
    for text in ("2026-03-01T02:00:00+02:00", "2026-03-01T00:00:00Z", "2026-03-01"):
        queue = {"panda_queue": "A", "type": "unified", "status": "online", "last_update": text}
        made = prepared({"queues": made_as([queue])}, {"queues": TABLES["queues"]})["queues"]
        assert made["last_update"].to_list() == [datetime(2026, 3, 1)], text


@pytest.mark.parametrize("call", ["decide", "world"])
def test_decide_refuses_what_world_refuses(call: str) -> None:
    """In silence it would switch the check of memory off."""
    tables = {"tasks": [{"jeditaskid": 1, "ram_count": 4000}], "queues": QUEUES}
    made = {
        "decide": lambda: production_jobs.decide(tables),
        "world": lambda: brokerage.world(**tables),
    }
    with pytest.raises(SchemaError, match="tasks has no column ram_count"):
        made[call]()


@pytest.mark.parametrize(
    "queues",
    [
        QUEUES,
        pl.DataFrame(QUEUES),
        pl.LazyFrame(QUEUES),
        pd.DataFrame(QUEUES),
        {"panda_queue": ["LARGE", "SMALL"]},
    ],
    ids=["rows", "polars", "lazy", "pandas", "columns"],
)
def test_tables_of_any_kind_are_the_same(queues: Any) -> None:
    made = brokerage.world({"ramcount": [4000, 2000]}, queues)
    assert made["queues"].equals(brokerage.world([{}], QUEUES)["queues"])
    assert made["tasks"]["jeditaskid"].to_list() == [1, 2]


def test_a_value_that_is_given_stays_even_where_it_is_null() -> None:
    rows = [{"panda_queue": "A", "status": None}, {"panda_queue": "B"}]
    assert brokerage.world([{}], rows)["queues"]["status"].to_list() == [None, "online"]
    assert jobs([{}], rows) == {"A": "status_offline", "B": None}


def test_tasks_of_no_given_cores_take_slots_of_any() -> None:
    assert jobs([{}], [{"panda_queue": "A", "corecount": 8}, {"panda_queue": "B"}]) == {
        "A": None,
        "B": None,
    }
    assert jobs([{"corecount": 1}], [{"panda_queue": "A", "corecount": 8}]) == {"A": "core_count"}


def test_what_is_no_table_or_no_brokerage_is_refused() -> None:
    with pytest.raises(SchemaError, match="nuclei: is a int; allowed are frames, lists of dicts"):
        brokerage.world([{}], QUEUES, nuclei=7)
    with pytest.raises(ConfigError, match="are ProductionRules, given are AnalysisRules"):
        brokerage.decide({}, rules=AnalysisRules())
    with pytest.raises(ConfigError, match="did you mean 'production-jobs'"):
        brokerage.world([{}], QUEUES, brokerage="production-job")


def test_a_rule_set_is_given_by_its_name_or_as_it_is() -> None:
    tables = brokerage.world([{}], QUEUES)
    named = brokerage.decide(tables, rules="production")
    assert_frame_equal(
        named.queues, brokerage.decide(tables, rules=ProductionRules("production")).queues
    )
    assert named.world.rules == ProductionRules("production")
    with pytest.raises(ConfigError, match="prodution"):
        brokerage.decide(tables, rules="prodution")


def test_what_is_not_given_removes_no_nucleus() -> None:
    tasks = [
        {"iointensity": 10_000, "taskpriority": 1000},
        {"fullchain": "capable", "parent_tid": 7},
    ]
    made = brokerage.world(
        tasks,
        brokerage="production-tasks",
        nuclei=[{"nucleus": "A"}],
        datasets=[{"datasetname": "d"}],
        output_datasets=[{"datasetname": "o"}],
    )
    assert made["tasks"]["at"].null_count() == 0
    for rules in RULE_SETS:
        found = production_tasks.decide(made, rules=ProductionRules(rules))
        assert found.tasks["nucleus"].to_list() == ["A", "A"]
    lost = production_tasks.decide(made | {"replicas": [], "storage_endpoints": []})
    assert lost.tasks["nucleus"].null_count() == 2
    assert "Nothing is known of" in str(brokerage.explain(found, jeditaskid=1, nucleus="A"))


def test_one_mapping_serves_tasks_and_their_jobs() -> None:
    """What only the job brokerage reads is let pass, and nothing else."""
    made = brokerage.world([{"ramcount": 1}], QUEUES)
    assert production_tasks.decide(made).tasks.height == 1
    with pytest.raises(SchemaError, match="tasks has no column ram_count"):
        production_tasks.decide({"tasks": [{"jeditaskid": 1, "ram_count": 1}]})


def test_tables_without_rows_are_tables() -> None:
    made = brokerage.world([], {"panda_queue": ["A"], "corecount": [None]})
    assert made["tasks"].height == 0
    assert production_jobs.decide(made).tasks.height == 0


def test_settings_with_a_history_ask_for_the_instant() -> None:
    turn = datetime(2026, 2, 1)
    place = {"app": "jedi", "component": "jobbroker", "vo": "atlas", "type": "int"}
    rows = [
        place | {"key": "SIZE_CUTOFF_TO_MOVE_INPUT", "value": value, "valid_from": a, "valid_to": b}
        for value, a, b in (("10", turn.replace(year=2025), turn), ("20", turn, None))
    ]
    with pytest.raises(ConfigError, match="at is null, and settings have a history"):
        production_jobs.decide(
            brokerage.world([{"at": None}], [{"panda_queue": "Q"}]), config=Config.from_rows(rows)
        )


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("document", "0.5: 400,000 GB free and 100,000 GB expired of 1,000,000 GB"),
        (
            "production",
            "0.45: 450,000 GB usable, less the 0 GB that work assigned asks for, of 1,000,000 GB",
        ),
    ],
)
def test_the_space_of_a_nucleus_is_told_as_it_counts(rules: str, said: str) -> None:
    space = {"space_free": 4e5, "space_expired": 1e5, "space_min_free": 5e4, "space_total": 1e6}
    tables = brokerage.world(
        [{}],
        brokerage="production-tasks",
        nuclei=[{"nucleus": "N", "output_endpoints": ["E"]}],
        storage_endpoints=[{"ddm_endpoint_name": "E", **space}],
        output_datasets=[{"jeditaskid": 1}],
    )
    decided = brokerage.decide(tables, brokerage="production-tasks", rules=rules)
    assert f"space fraction {said}\n" in str(brokerage.explain(decided, jeditaskid=1, nucleus="N"))
