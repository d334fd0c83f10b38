"""What is written into the task (scouts.md 9, 10; exhausted.md 1)."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.units import KB, MB
from tests.scout_toys import Toy, at, by_name, settings

FULL: dict[str, Any] = {
    "outputfilebytes": 100 * 50 * KB,
    "maxpss": 1000 * 1024,
    "totrbytes": 3600,
    "totwbytes": 3600,
    "memory_leak": 4,
    "memory_leak_x2": 2.5,
    "cpuconsumptiontime": 3600,
    "jobmetrics": f"workDirSize={8 * MB}",
}


def written(toy: Toy, tasks: pl.DataFrame | None = None, **keywords: Any) -> dict[str, Any]:
    tasks = toy.tables()[2] if tasks is None else tasks
    return scouts.write_tasks(tasks, toy.result(**keywords)).row(0, named=True)


def test_all_parameters_with_their_units():
    toy = Toy(ramcount=1, orig_cputimeunit="HS06sPerEvent").job(1, **FULL)
    expected = {
        "cputime": 540,
        "cputimeunit": "HS06sPerEvent",
        "ramcount": 1100,
        "ramunit": "MBPerCore",
        "outdiskcount": 50,
        "outdiskunit": "kBPerEvent",
        "workdiskcount": 8,
        "workdiskunit": "MB",
        "iointensity": 2,
        "iointensityunit": "kBPerS",
        "diskio": 2,
        "diskiounit": "kBPerS",
        "walltime": 5400,
        "walltimeunit": "kSI2kseconds",
        "memory_leak_core": 4,
        "memory_leak_x2": 2,
    }
    row = written(toy)
    assert row.items() >= expected.items()
    before = toy.tables()[2].row(0, named=True)
    assert {k: row[k] for k in before if k not in expected} == {
        k: before[k] for k in before if k not in expected
    }


def test_missing_values_leave_the_task_as_it_is():
    toy = Toy(cputime=77, ramcount=88, walltime=5, workdiskcount=3).job(1, None)
    row = written(toy)
    assert (row["cputime"], row["cputimeunit"]) == (77, "HS06sPerEvent")
    assert (row["ramcount"], row["ramunit"]) == (88, "MBPerCore")
    assert (row["walltime"], row["walltimeunit"]) == (5, "kSI2kseconds")
    assert (row["outdiskcount"], row["outdiskunit"]) == (None, "kBPerEvent")
    assert row["workdiskcount"] == 3


def test_a_task_whose_scouts_all_failed_keeps_its_values():
    row = written(Toy(cputime=77).file(1, status="ready"))
    assert (row["cputime"], row["walltime"], row["walltimeunit"]) == (77, None, "kSI2kseconds")


def test_presets_never_go_down_from_the_first_to_the_second_trigger():
    """ "preset" is the *current* task value: workdiskcount and walltime never go down"""
    toy = Toy()
    toy.job(1, 100, **FULL)
    small = FULL | {"maxpss": 500 * 1024, "jobmetrics": f"workDirSize={2 * MB}"}
    small |= {"cpuconsumptiontime": 3600, "outputfilebytes": 100 * 20 * KB}
    for number in range(2, 7):
        toy.job(number, 100, start=1000, input_mb=9, **small)
    first = scouts.write_tasks(toy.tables()[2], toy.result(at=at(100)))
    assert first.select("workdiskcount", "walltime", "ramcount", "outdiskcount").rows() == [
        (8, 5400, 1100, 50)
    ]
    toy.jobs, toy.files = toy.jobs[1:], toy.files[1:]  # the large job is not among the later ones
    jobs, files, _, datasets, queues = toy.tables()
    second = scouts.estimate(by_name((jobs, files, first, datasets, queues)))
    row = scouts.write_tasks(first, second).row(0, named=True)
    assert (row["workdiskcount"], row["walltime"]) == (8, 5400)
    assert (row["ramcount"], row["outdiskcount"]) == (550, 20)  # the others follow, up or down


def test_new_gb_per_job_goes_into_the_split_rule():
    toy = Toy(splitrule="TN=2,NG=7,MC=5", outdiskunit="kB")
    toy.job(1, input_mb=1000, outputfilebytes=1000 * MB).output(1, "A", 1000 * MB)
    row = written(toy)
    assert row["splitrule"] == "TN=2,NG=2,MC=5"
    assert "newng" not in row


def test_merge_scouts_write_their_own_columns():
    toy = Toy(splitrule="MO=1", baseramcount=500).job(1, **FULL)
    merge = FULL | {"maxpss": 4000 * 1024, "cpuconsumptiontime": 7200}
    toy.job(2, **merge, file={"type": "trn_log", "datasetid": 14})
    tasks = toy.tables()[2]
    row = scouts.write_tasks(tasks, toy.result(), merge_scouts=toy.result(merge=True)).row(
        0, named=True
    )
    assert (row["ramcount"], row["mergeramcount"], row["mergeramunit"]) == (550, 4400, "MBPerCore")
    assert (row["walltime"], row["mergewalltime"]) == (5400, 10_800)
    assert row["mergewalltimeunit"] == "kSI2kseconds"
    assert (row["cputime"], row["outdiskcount"], row["workdiskcount"]) == (540, 50, 8)


@pytest.mark.parametrize("status", ["scouting", "running", "ready"])
def test_exhausted_tasks_keep_their_old_status(status):
    toy = Toy(splitrule="NF=1", nfiles=1000, status=status, oldstatus="defined")
    toy.job(1, 1000, cpuconsumptiontime=2001)
    toy.task(2, splitrule="NF=1", nfiles=1000, status=status, oldstatus="defined").job(2, task=2)
    tasks, result = toy.tables()[2], toy.result()
    verdict = scouts.exhausted({"tasks": tasks}, scouts=result)
    found = scouts.write_tasks(tasks, result, exhausted=verdict)
    assert found.select("status", "oldstatus").rows() == [
        ("exhausted", status),
        (status, "defined"),
    ]


def test_changed_split_rules_are_written():
    toy = Toy(splitrule="US=3,NF=1,MF=9", nfiles=1000).job(1, 60).file(None, nevents=10**6)
    config = {
        "SCOUT_NUM_SHORT_managed": 5,
        "SCOUT_THR_SHORT_managed": 1,
        "SCOUT_SHORT_EXECTIME_managed": 10,
        "SCOUT_CHANGE_SR_managed": True,
    }
    tasks, result = toy.tables()[2], toy.result("production", config=config)
    verdict = scouts.exhausted({"tasks": tasks}, scouts=result, config=settings(config))
    row = scouts.write_tasks(tasks, result, exhausted=verdict).row(0, named=True)
    assert (row["splitrule"], row["status"]) == ("US=3,MF=200", "scouting")


def test_other_tasks_columns_and_order():
    toy = Toy().task(3).task(2).job(1, **FULL).job(2, task=3, **FULL)
    tasks = toy.tables()[2].with_columns(extra=pl.lit("kept")).drop("walltimeunit", "oldstatus")
    result = toy.result()
    only = scouts.ScoutResult(
        result.parameters.filter(pl.col("jeditaskid") != 3), result.tags, result.rules, ""
    )
    found = scouts.write_tasks(tasks.lazy(), only)
    assert found["jeditaskid"].to_list() == [1, 2, 3]
    assert found["ramcount"].to_list() == [1100, None, None]
    assert found["walltimeunit"].to_list() == ["kSI2kseconds", "kSI2kseconds", None]
    assert found["extra"].to_list() == ["kept"] * 3


def test_tasks_without_status_or_split_rule_columns():
    toy = Toy(splitrule="NF=1", nfiles=1000).job(1, 1000, cpuconsumptiontime=2001)
    tasks, result = toy.tables()[2].drop("status", "splitrule"), toy.result()
    verdict = scouts.exhausted({"tasks": tasks}, scouts=result)
    assert verdict.verdicts["rule"].item() == "X6"
    row = scouts.write_tasks(tasks, result, exhausted=verdict).row(0, named=True)
    assert (row["status"], row["splitrule"], row["cputime"]) == (None, None, 150)


@pytest.mark.parametrize("status", ["done", "finishing"])
def test_only_tasks_at_work_become_exhausted(status):
    """running: exhausted only if still running (exhausted.md 1)."""
    toy = Toy(splitrule="NF=1", nfiles=1000, status=status).job(1, 1000, cpuconsumptiontime=2001)
    tasks, result = toy.tables()[2], toy.result()
    verdict = scouts.exhausted({"tasks": tasks}, scouts=result)
    assert verdict.verdicts.select("rule", "status").row(0) == ("X6", status)
    assert scouts.write_tasks(tasks, result, exhausted=verdict)["status"].item() == status
