"""Expected numbers of jobs and short jobs (scouts.md 8)."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.units import MB
from tests.scout_toys import Toy, among


def numbers(toy: Toy, rules: str = "document") -> tuple[int, int, int]:
    found = toy.parameters(rules)
    return found["expected_jobs"], found["expected_jobs_event"], found["new_jobs"]


def two_jobs(rule: str = "NF=2", **file: object) -> Toy:
    """Two jobs of two files each, of a dataset of 1001 files of which 10 are used."""
    toy = Toy(splitrule=rule, nfiles=1001, nfilesused=10)
    for pandaid in (1, 2):
        toy.job(pandaid, events=10, file=file).file(pandaid, nevents=10, **file)
    return toy


@pytest.mark.parametrize("limit", ["NF=2", "NE=50", "NG=3", "MF=9"])
def test_files_are_extrapolated(limit):
    # 1001 files x 2 jobs // 4 finished = 500; (1001 - 10) x 2 // 4 = 495; 40 x 2 // 40 events = 2
    assert numbers(two_jobs(limit)) == (500, 2, 495)


def test_without_limits_the_input_per_job_grows():
    toy = two_jobs("US=3", fsize=62_500 * MB)  # 125 000 MB per job, 500 000 MB after the avalanche
    assert numbers(toy) == (125, 2, 123)  # 500 / 4, 495 / 4 = 123.75


def test_without_limits_scouts_read_a_tenth_of_the_events():
    toy = two_jobs("US=2", fsize=62_500 * MB).file(None, status="ready", nevents=960)
    assert numbers(toy) == (125, 5, 123)  # 1000 events x 2 // 40 = 50; x 50 000 / 500 000
    toy = two_jobs("US=2,NF=2").file(None, status="ready", nevents=960)
    assert numbers(toy) == (500, 50, 495)


def test_sizes_are_plain_in_the_mean():
    """mean *plain* input size per job; a null size counts as nothing here"""
    toy = two_jobs("US=3", fsize=62_500 * MB, startevent=0, endevent=0)
    assert numbers(toy)[0] == 125
    assert numbers(two_jobs("US=3", fsize=None))[0] == 0


def test_events_of_a_range_and_of_files_without_any():
    toy = two_jobs().file(None, status="ready", nevents=1000, startevent=10, endevent=29)  # 20
    toy.file(None, status="ready").file(None, status="running", nevents=100)  # none, 100
    assert numbers(toy)[1] == 8  # 160 x 2 // 40
    assert (
        numbers(two_jobs().file(None, nevents=40))[1] == 2
    )  # 80 x 2 // 80: finished, without a job


def test_of_several_attempts_at_a_file_the_last_one_counts():
    """``files`` has a row per attempt (archive.md 4): weekly exports have several of one file."""
    toy = two_jobs("US=2,NF=2")
    for attempt, most in ((3, 3), (4, 6)):
        toy.file(3, fileid=5, attemptnr=attempt, maxattempt=most, status="ready", nevents=960)
    for number, row in enumerate(toy.files):
        row.setdefault("fileid", number)
    assert numbers(toy) == (500, 50, 495)
    assert toy.parameters()["success_rate"] == 1


def test_nothing_finished_expects_nothing():
    toy = Toy(nfiles=100, splitrule="NF=1").file(1, status="running", nevents=10)
    assert numbers(toy) == (0, 0, 0)
    assert toy.parameters()["num_finished_jobs"] == 0


def test_secondary_datasets_do_not_count():
    toy = two_jobs().file(None, dataset=2, status="ready", nevents=10_000)
    toy.datasets[1] |= {"nfiles": 5000, "nfilesused": 1, "nfilesfinished": 1}
    assert numbers(toy) == (500, 2, 495)


def test_pseudo_input_counts():
    toy = two_jobs()
    toy.datasets.append(
        {"jeditaskid": 1, "datasetid": 19, "type": "pseudo_input", "nfiles": 1000}
        | {"nfilesused": 0, "nfilesfinished": 0}
    )
    assert numbers(toy)[0] == 1000  # 2001 x 2 // 4


@pytest.mark.parametrize("rules", ["document", "production"])
def test_short_jobs(rules):
    toy = Toy().job(1, 599).job(2, 600).job(3, 601).job(4, None)
    found = toy.parameters(rules, config={"SCOUT_SHORT_EXECTIME_managed": 10})
    assert (found["n_short"], found["total_short_base"], found["longest_short"]) == (2, 3, 600)
    assert found["short_exec_time"] == 10
    other = toy.parameters(rules, config={"SCOUT_SHORT_EXECTIME_user": 10})
    assert (other["n_short"], other["longest_short"]) == (0, 0)


COPIES = [
    ("US=2", {"maxinputsize": 1000}, 1),
    ("US=2", {"maxinputsize": -1}, 0),
    ("IL=1", {"maxinputsize": 1000, "direct_access_lan": True}, 0),
    ("IL=2", {"maxinputsize": 1000, "direct_access_lan": True}, 0),
    ("IL=3", {"maxinputsize": 1000, "direct_access_lan": True}, 1),
    ("IL=1", {"maxinputsize": 1000, "direct_access_lan": False}, 1),
    ("US=2", {"direct_access_lan": True}, 1),
    ("LI=1", {"maxinputsize": 1000}, 0),  # the task asks for it: never "forced"
    ("LI=1,IL=1", {"maxinputsize": -1}, 0),
    ("LI=0", {"maxinputsize": 1000}, 1),
    ("US=2", None, 1),  # a queue that is not in `queues` has no direct input
]
COPYING_TOYS = [
    (toy if queue is None else toy.queue("X", 10.0, **queue))
    for rule, queue, _ in COPIES
    for toy in [Toy(splitrule=rule).job(1, 60, computingsite="X")]
]


@pytest.mark.parametrize("number", range(len(COPIES)))
def test_forced_copy_to_scratch(number):
    found = among(COPYING_TOYS, number, config={"SCOUT_SHORT_EXECTIME_managed": 10})
    assert (found["n_short"], found["n_short_copy"]) == (1, COPIES[number][-1])


@pytest.mark.parametrize("rules", ["document", "production"])
def test_cpu_abuse_inputs_are_those_of_one_job(rules):
    toy = Toy().job(1, 1000, cpuconsumptiontime=5000).job(2, 9000, actualcorecount=8)
    toy.job(3, 100, cpuconsumptiontime=4999, actualcorecount=4)
    found = toy.parameters(rules)
    names = ["max_cpu_time", "max_cpu_time_duration", "max_cpu_time_cores"]
    assert [found[name] for name in names] == [5000, 1000, 1]


OLD: list[tuple[dict[str, Any], int, float | None]] = [
    ({"orig_cputime": 2500, "orig_cputimeunit": "mHS06sPerEvent"}, 100, 2.5),
    ({"orig_cputime": 2500, "orig_cputimeunit": "mHS06sPerEvent"}, 6000, 2500),
    ({"orig_cputime": 3, "orig_cputimeunit": "HS06sPerEvent"}, 100, 3),
    ({"orig_cputime": 3, "orig_cputimeunit": "HS06sPerEvent"}, 6000, 3000),
    ({"orig_cputime": 3}, 100, 3),
    ({}, 100, None),
]
OLD_TOYS = [Toy(**asked).job(1, events=events) for asked, events, _ in OLD]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(OLD)))
def test_old_cputime_is_in_the_new_unit(rules, number):
    assert among(OLD_TOYS, number, rules)["old_cputime"] == OLD[number][-1]


@pytest.mark.parametrize("ram", [0, None, 2000])
def test_old_ramcount(ram):
    assert Toy(orig_ramcount=ram).job(1).parameters()["old_ramcount"] == ram
