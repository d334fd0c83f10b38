"""When the scouts are read (scouts.md 7; the first list of the document)."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab import scouts
from tests.scout_toys import Toy, at


def triggers(toy: Toy, rules: str = "document", **keywords: Any) -> list[tuple[Any, ...]]:
    period = {k: keywords.pop(k) for k in ("trigger_period_s",) if k in keywords}
    jobs, files, tasks, datasets, _ = toy.tables()
    rule_set = scouts.ScoutRules(rules, **keywords)
    return scouts.triggers(jobs, files, tasks, datasets, rules=rule_set, **period).rows()


def scouting(ends: list[float], marked: bool = True, **last: Any) -> Toy:
    """Scouts that end at the given seconds; ``last`` changes the last of them."""
    toy = Toy()
    for number, end in enumerate(ends, start=1):
        change = last if number == len(ends) else {}
        toy.job(number, end, specialhandling="sj" if marked else None, **change)
    return toy


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(
    ("ends", "half"),
    [([10, 20, 30, 40], 20), ([40, 30, 20, 10, 50], 30), ([7], 7), ([9, 8], 8)],
)
def test_first_trigger_is_half_of_the_scouts(rules, ends, half):
    """when half of the scout jobs finished"""
    assert triggers(scouting(ends), rules)[0] == (1, "T1", at(half))


def test_failed_scouts_are_not_finished_scouts():
    toy = scouting([10, 20, 30, 40])
    toy.jobs[0]["jobstatus"] = "failed"
    assert triggers(toy) == [(1, "T1", at(30))]


def test_ordinary_jobs_are_not_scouts():
    toy = scouting([100, 200]).job(3, 1).job(4, 2)
    assert triggers(toy) == [(1, "T1", at(100))]


def test_without_marks_the_first_ten_are_the_scouts():
    toy = Toy()
    for number in range(1, 31):
        toy.job(
            number, 1000 - number, start=number
        )  # created and started at 1, 2, ... all end at 1000
    toy.jobs[4] |= {"endtime": at(500), "modificationtime": at(500)}
    toy.jobs[20] |= {"endtime": at(400), "modificationtime": at(400)}
    assert triggers(toy)[0] == (1, "T1", at(1000))
    for number in range(4):
        toy.jobs[number] |= {"modificationtime": at(600 + number)}
    assert triggers(toy)[0] == (1, "T1", at(603))  # 500, 600, 601, 602, 603: the fifth of ten


def test_scouts_that_never_come_to_half():
    """T1b: all scout files done, none left to use"""
    toy = scouting([10, 20, 30])
    for job in toy.jobs[:2]:
        job["jobstatus"] = "failed"
    toy.jobs[2]["modificationtime"] = at(35)
    assert triggers(toy) == [(1, "T1b", at(35))]
    toy.jobs[1]["jobstatus"] = "running"
    assert triggers(toy) == []


def test_scouts_that_all_failed_are_read_too():
    """T1b comes when all scout files are done; the task is broken then (exhausted.md 1)."""
    toy = scouting([10, 20])
    for job in toy.jobs:
        job["jobstatus"] = "failed"
    for file in toy.files:
        file |= {"status": "ready", "attemptnr": 3, "maxattempt": 3}
    assert triggers(toy) == [(1, "T1b", at(20))]


def avalanche(n_scouts: int, n_jobs: int) -> Toy:
    """Scouts ending at 1, 2, ...; further jobs ending at 1001, 1002, ..."""
    toy = scouting([float(end) for end in range(1, n_scouts + 1)])
    for number in range(1, n_jobs + 1):
        toy.job(1000 + number, 1000 + number)
    return toy


def test_second_trigger_of_the_document():
    """when the first 100 jobs finished after the task avalanched"""
    # T1 at 5; the scouts that end at 6 to 10 finish after it, 95 more are needed
    assert triggers(avalanche(10, 95)) == [(1, "T1", at(5)), (1, "T2", at(1095))]
    assert triggers(avalanche(10, 94)) == [(1, "T1", at(5))]


def test_second_trigger_of_production():
    """the 5th and the 100th finished job of the task, scouts included"""
    expected = [(1, "T1", at(5)), (1, "T2a", at(5)), (1, "T2b", at(1090))]
    assert triggers(avalanche(10, 90), "production") == expected
    assert triggers(avalanche(10, 90), second_trigger_counts="whole_task") == expected
    assert triggers(avalanche(10, 89), "production") == expected[:2]
    assert triggers(avalanche(4, 0), "production") == [(1, "T1", at(2))]


def test_jobs_that_finish_with_the_first_trigger_are_before_it():
    toy = scouting([5.0] * 10)
    for number in range(100):
        toy.job(1000 + number, 6 + number)
    assert triggers(toy) == [(1, "T1", at(5)), (1, "T2", at(105))]


def test_failed_and_merge_jobs_do_not_count_for_the_second():
    toy = avalanche(10, 95)
    toy.job(5000, 2000, jobstatus="failed").job(5001, 1500)
    toy.files[-1] |= {"type": "trn_log", "datasetid": 14}
    assert triggers(toy)[-1] == (1, "T2", at(1095))
    toy.jobs[50]["jobstatus"] = "failed"
    assert len(triggers(toy)) == 1


def test_the_first_trigger_may_wait_for_the_next_look():
    """finished >= 50 %, every 10 min; setting trigger_period_s"""
    toy = scouting([601.0, 700.0])
    assert triggers(toy, trigger_period_s=600) == [(1, "T1", at(1200))]
    assert triggers(scouting([600.0, 700.0]), trigger_period_s=600) == [(1, "T1", at(600))]
    assert triggers(toy) == [(1, "T1", at(601))]


def test_tasks_do_not_mix_and_strangers_are_left_out():
    toy = Toy().task(2)
    toy.job(1, 10, specialhandling="sj").job(2, 20, task=2).job(3, 5, task=2)
    toy.job(4, 1)
    toy.tasks = toy.tasks[:1]
    assert triggers(toy) == [(1, "T1", at(10))]


def test_a_replay_reads_what_had_finished_by_then():
    """T1 uses jobs finished at that moment; both use whatever finished by then"""
    toy = avalanche(10, 95)
    jobs, files, tasks, datasets, _ = toy.tables()
    found = scouts.triggers(jobs, files, tasks, datasets)
    used = [
        toy.result(at=moment.select("jeditaskid", "at")).parameters["n_jobs_used"].item()
        for moment in found.partition_by("trigger")
    ]
    assert used == [5, 105]
