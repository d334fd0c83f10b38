"""Trigger by trigger: later values replace earlier ones, presets never go down (scouts.md 7, 9)."""

from __future__ import annotations

import polars as pl

from brokerlab import scouts
from tests.scout_toys import Toy, at, by_name

MB_PER_GB = 1024


def many(n: int) -> Toy:
    """One task of n jobs, job k ending at k minutes; the first ten are its scouts."""
    toy = Toy(splitrule="US=3", workdiskcount=10)
    for number in range(1, n + 1):
        columns = {
            "maxpss": (1000 + number) * 1024,
            "jobmetrics": f"workDirSize={5 * 2**30 // number}",
        }
        toy.job(number, 60 * number, **columns)
    return toy


def test_one_row_per_task_and_trigger() -> None:
    found = scouts.replay(by_name(many(120).tables())).parameters
    assert found["trigger"].to_list() == ["T1", "T2"]
    assert found["at"].to_list() == [at(5 * 60), at(105 * 60)]  # 5 of 10; the 100th after that
    assert found["n_jobs_used"].to_list() == [5, 105]
    assert found["ramcount"][0] < found["ramcount"][1]


def test_production_reads_at_the_fifth_and_the_hundredth() -> None:
    rules = scouts.ScoutRules("production")
    found = scouts.replay(by_name(many(120).tables()), rules=rules).parameters
    assert found["trigger"].to_list() == ["T1", "T2a", "T2b"]
    assert found["n_jobs_used"].to_list() == [5, 5, 100]


def test_a_preset_is_the_value_of_the_trigger_before() -> None:
    toy = many(120)
    for job in toy.jobs[:5]:
        job["jobmetrics"] = "workDirSize=1"
    toy.jobs[0]["jobmetrics"] = f"workDirSize={5 * 2**30}"
    tables = toy.tables()
    when = scouts.triggers(*tables[:4])
    first = scouts.replay(by_name(tables), at=when).parameters
    assert first["workdiskcount"].to_list() == [5 * MB_PER_GB, 5 * MB_PER_GB]
    without = tables[0].with_columns(
        jobmetrics=pl.when(pl.col("pandaid") > 5).then(pl.lit("workDirSize=1048576"))
    )
    later = scouts.replay(by_name((without, *tables[1:])), at=when).parameters
    assert later["workdiskcount"].to_list() == [10, 10]  # the task's own preset


def test_tags_name_their_trigger() -> None:
    tags = scouts.replay(by_name(many(120).tables())).tags
    assert set(tags["trigger"]) == {"T1", "T2"}
    assert tags.filter(pl.col("trigger") == "T1")["pandaid"].max() == 5


def test_after_the_avalanche_a_task_does_not_use_scouts_any_more() -> None:
    """In the first two cases the scout flag becomes US=3 (exhausted.md 1)."""
    toy = many(120)
    toy.tasks[0]["splitrule"] = "US=2,SS=5"
    rates = scouts.replay(by_name(toy.tables())).parameters["success_rate"].to_list()
    assert rates == [1.0, None]


def test_scouts_that_failed_stay_scouts() -> None:
    toy = many(120)
    toy.tasks[0]["splitrule"] = "US=2,SS=6"
    for number in range(1, 100):
        toy.file(number, status="ready", attemptnr=3, maxattempt=3)
    found = scouts.replay(by_name(toy.tables())).parameters
    assert found["success_rate"].is_not_null().to_list() == [True, True]
