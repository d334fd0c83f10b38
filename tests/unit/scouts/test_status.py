"""What becomes of a task (exhausted.md 1 and 3), and its resource type (scouts.md 9)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.errors import SchemaError
from tests.scout_toys import Toy, at


def task(
    status: str, rule: str = "US=2,NF=1", *, stopped: bool = False, failed: bool = False
) -> Toy:
    """A task that X6 stops or not, whose scouts succeeded or not."""
    toy = Toy(status=status, oldstatus="before", splitrule=rule, nfiles=1000)
    if failed:
        return toy.file(1, status="ready", attemptnr=3, maxattempt=3)
    return toy.job(1, 1000, cpuconsumptiontime=9999 if stopped else 10)


def after(toy: Toy, **keywords: Any) -> dict[str, Any]:
    tasks, result = toy.tables()[2], toy.result()
    verdicts = scouts.exhausted({"tasks": tasks}, scouts=result)
    return scouts.next_status(tasks, result, verdicts, **keywords).row(0, named=True)


@pytest.mark.parametrize("status", ["scouting", "ready"])
def test_scouting_and_stopped(status):
    row = after(task(status, stopped=True))
    assert (row["status"], row["oldstatus"]) == ("exhausted", status)
    assert (row["splitrule"], row["message"]) == ("US=3,NF=1", "over_cpu_consumption")


@pytest.mark.parametrize("status", ["scouting", "ready"])
def test_scouting_and_passed(status):
    row = after(task(status))
    assert (row["status"], row["oldstatus"]) == ("scouted", "before")
    assert (row["splitrule"], row["message"]) == ("US=3,NF=1", None)


@pytest.mark.parametrize("status", ["scouting", "ready"])
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("US=2,NF=1", "no scout jobs succeeded"),
        ("US=2,NF=1,SS=5", "not enough scout jobs succeeded"),
    ],
)
def test_scouting_and_failed(status, rule, message):
    row = after(task(status, rule, failed=True))
    assert (row["status"], row["oldstatus"]) == ("tobroken", "before")
    assert (row["splitrule"], row["message"]) == (rule, message)


@pytest.mark.parametrize("reason", ["forced_avalanche", "tolerated"])
@pytest.mark.parametrize(
    ("whom", "status"),
    [(True, "scouted"), ([1], "scouted"), ([2], "tobroken"), (False, "tobroken")],
)
def test_failed_scouts_may_be_excused(reason, whom, status):
    row = after(task("scouting", failed=True), **{reason: whom})
    assert row["status"] == status
    assert (row["message"] is None) == (status == "scouted")


def test_a_forced_avalanche_does_not_save_from_the_checks():
    assert after(task("scouting", stopped=True), forced_avalanche=True)["status"] == "exhausted"


def test_running_and_stopped():
    row = after(task("running", stopped=True))
    assert (row["status"], row["oldstatus"]) == ("exhausted", "running")
    assert row["splitrule"] == "US=2,NF=1"  # the flag changes in the first two cases only


@pytest.mark.parametrize("failed", [True, False])
def test_running_and_not_stopped(failed):
    row = after(task("running", failed=failed))
    assert row == {
        "jeditaskid": 1,
        "status": "running",
        "oldstatus": "before",
        "splitrule": "US=2,NF=1",
        "message": None,
    }


@pytest.mark.parametrize("status", ["finishing", "aborted", "paused"])
def test_other_statuses_stay(status):
    """exhausted, only if still running"""
    assert after(task(status, stopped=True))["status"] == status


def test_flag_of_a_task_without_split_rule():
    toy = Toy(status="scouting", splitrule=None).job(1)
    assert after(toy)["splitrule"] == "US=3"


def test_several_tasks():
    toy = task("scouting", stopped=True).task(2, status="running").task(3).job(2, task=3)
    tasks, result = toy.tables()[2], toy.result()
    found = scouts.next_status(tasks, result, scouts.exhausted({"tasks": tasks}, scouts=result))
    assert found["status"].to_list() == ["exhausted", "running", "scouted"]


# ---- after exhausted


@pytest.mark.parametrize(
    ("status", "hours", "rule", "overdue"),
    [
        ("exhausted", 48.01, "US=3", True),
        ("exhausted", 48, "US=3", False),
        ("exhausted", 99, "US=3,DF=1", False),
        ("exhausted", 99, None, True),
        ("running", 99, "US=3", False),
        ("exhausted", None, "US=3", False),
    ],
)
def test_exhausted_tasks_are_finished_after_two_days(status, hours, rule, overdue):
    """After 48 h an exhausted task goes to finishing, unless its rule DF forbids"""
    changed = None if hours is None else at(-hours * 3600)
    frame = pl.DataFrame(
        {"status": [status], "statechangetime": [changed], "splitrule": [rule]},
        schema={"status": pl.String, "statechangetime": pl.Datetime("us"), "splitrule": pl.String},
    )
    assert frame.select(scouts.is_overdue(at(0))).item() is overdue


@pytest.mark.parametrize(
    ("old", "rule", "back"),
    [
        ("running", "US=3", "running"),
        ("running", None, "running"),
        ("scouting", "US=2", "scouting"),
        ("scouting", None, "scouting"),
        ("scouting", "US=3", "running"),
        ("done", "US=3", None),
        (None, "US=3", None),
    ],
)
def test_a_retry_returns_to_the_status_before(old, rule, back):
    frame = pl.DataFrame(
        {"oldstatus": [old], "splitrule": [rule]},
        schema={"oldstatus": pl.String, "splitrule": pl.String},
    )
    assert frame.select(scouts.status_of_retry()).item() == back


# ---- resource types

TYPES = pl.DataFrame(
    {
        "resource_name": ["SCORE", "MCORE", "SCORE_HIMEM", "MCORE_HIMEM"],
        "mincore": [None, 2, None, 2],
        "maxcore": [1, None, 1, None],
        "minrampercore": [None, None, 2001, 2001],
        "maxrampercore": [2000, 2000, None, None],
    }
)


@pytest.mark.parametrize(
    ("cores", "ram", "unit", "expected"),
    [
        (1, 2000, "MBPerCore", "SCORE"),
        (1, 2001, "MBPerCore", "SCORE_HIMEM"),
        (8, 2000, "MBPerCore", "MCORE"),
        (8, 2001, "MBPerCoreFixed", "MCORE_HIMEM"),
        (8, 16_000, "MB", "MCORE"),
        (8, 16_008, "MB", "MCORE_HIMEM"),
        (8, 16_001, "MB", None),  # between the two bounds
        (0, 100, "MBPerCore", "SCORE"),
        (None, None, None, "SCORE"),
    ],
)
def test_resource_types(cores, ram, unit, expected):
    schema = {"jeditaskid": pl.Int64, "corecount": pl.Int64, "ramcount": pl.Int64}
    tasks = pl.DataFrame(
        [(7, cores, ram, unit)], schema=schema | {"ramunit": pl.String}, orient="row"
    )
    assert scouts.resource_types(tasks, TYPES).rows() == [(7, expected)]


def test_resource_types_need_their_names():
    with pytest.raises(SchemaError, match=r"resource_types\.resource_name: column missing"):
        scouts.resource_types(Toy().tables()[2], TYPES.drop("resource_name"))


def test_no_resource_types():
    assert scouts.resource_types(Toy().tables()[2], TYPES.clear()).rows() == [(1, None)]


def test_the_resource_type_is_written_after_the_memory():
    toy = (
        Toy(ramcount=1000, corecount=1).job(1, maxpss=3000 * 1024).task(2, ramcount=1, corecount=8)
    )
    toy.task(3, ramcount=1000, corecount=1)
    tasks = toy.tables()[2].with_columns(resource_type=pl.lit("OLD"))
    result = toy.result()
    only = scouts.ScoutResult(
        result.parameters.filter(pl.col("jeditaskid") < 3), result.tags, result.rules, ""
    )
    found = scouts.write_tasks(tasks, only, resource_types=TYPES)
    assert found["resource_type"].to_list() == ["SCORE_HIMEM", "MCORE", "OLD"]
    assert scouts.write_tasks(tasks, only)["resource_type"].to_list() == ["OLD"] * 3
