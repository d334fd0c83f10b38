"""Which jobs speak for a task, and what a job with holes still says (scouts.md 2, 3.3, 6, 10, 11, 12)."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.errors import DataError, SchemaError
from brokerlab.units import KB, MB
from tests.scout_toys import T0, Toy, among, at, by_name

FULL = {
    "outputfilebytes": 100 * 50 * KB,
    "maxpss": 1000 * 1024,
    "totrbytes": 3600,
    "totwbytes": 3600,
    "memory_leak": 4,
    "memory_leak_x2": 2.5,
    "cpuconsumptiontime": 3600,
    "jobmetrics": f"workDirSize={8 * MB} vmPeakMax=5",
}
SAID = {
    "cputime": 540,
    "ramcount": 1100,
    "outdiskcount": 50,
    "workdiskcount": 8,
    "iointensity": 2,  # (1024 + 5000) / 3600 = 1.67
    "diskio": 2,
    "walltime": 5400,
    "memory_leak_core": 4,
    "memory_leak_x2": 2,
    "min_cpu_efficiency": 100,
    "total_short_base": 1,
    "max_cpu_time": 3600,
}
EPOCH = datetime(1970, 1, 1)  # what PanDA stores before a time is known
RATES = {"iointensity": None, "diskio": None, "min_cpu_efficiency": None}


# ---- which jobs


def test_a_full_job_says_everything():
    assert Toy().job(1, **FULL).parameters().items() >= SAID.items()


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(
    ("change", "n_finished"),
    [
        ({"jobstatus": "failed"}, 2),
        ({"jobstatus": "running"}, 2),
        ({"jeditaskid": 99}, 2),  # of another task
        ({"file": {"status": "running"}}, 1),
        ({"file": {"type": "log"}}, 1),
        ({"file": {"datasetid": 12}}, 1),  # a secondary dataset
        ({"file": {"datasetid": 99}}, 1),  # a dataset that is not there
    ],
)
def test_jobs_without_a_say(rules, change, n_finished):
    toy = Toy().job(1, **FULL).job(2, 40_000, **(FULL | {"maxpss": 9_000_000} | change))
    found = toy.parameters(rules)
    assert (found["n_jobs_used"], found["num_finished_jobs"]) == (1, n_finished)
    assert (found["ramcount"], found["max_cpu_time_duration"]) == (1100, 3600)


def test_secondary_files_do_not_enter_sizes_and_events():
    toy = Toy().job(1, **FULL).file(1, dataset=2, fsize=900 * MB, nevents=10_000)
    assert toy.parameters().items() >= SAID.items()


def test_every_finished_job_is_used_after_the_avalanche():
    toy = Toy(splitrule="US=3")
    for pandaid in range(1, 16):
        toy.job(pandaid, specialhandling="sj" if pandaid < 11 else None)
    assert toy.parameters()["n_jobs_used"] == 15


def test_event_service_brings_in_its_jobset():
    toy = Toy().job(1, **FULL, eventservice=1, jobsetid=7, nevents=100)
    for pandaid, jobset, status in ((2, 7, "finished"), (3, 8, "finished"), (4, 7, "failed")):
        toy.job(pandaid, jobsetid=jobset, jobstatus=status, nevents=1000, maxpss=3000 * 1024)
        toy.files.pop()  # no input file of its own
    found = toy.parameters()
    assert found["n_jobs_used"] == 2
    assert found["ramcount"] == 2750  # 1100 and 3300 at rank 75
    assert found["cputime"] == 516  # 36 x 0.05 + 360 x 0.95 = 343.8; x 1.5 = 515.7


def test_event_service_outputs_are_skipped_and_its_work_directory_is_nothing():
    found = Toy().job(1, **FULL, eventservice=1, jobsetid=7, nevents=100).parameters()
    assert (found["outdiskcount"], found["workdiskcount"]) == (None, 0)
    cloned = Toy().job(
        1, **FULL, eventservice=1, jobsetid=7, nevents=5, specialhandling="sj,sc:storeonce"
    )
    assert cloned.parameters().items() >= SAID.items()


def test_event_service_without_events():
    found = Toy().job(1, **FULL, eventservice=1, jobsetid=7).parameters()
    assert (found["cputime"], found["outdiskcount"]) == (None, None)
    assert found["ramcount"] == 1100


@pytest.mark.parametrize("rules", ["document", "production"])
def test_event_service_merge_speaks_of_disk_only(rules):
    found = Toy().job(1, **FULL, eventservice=2).parameters(rules)
    nothing = dict.fromkeys(SAID) | {"outdiskcount": 50, "workdiskcount": 8, "total_short_base": 0}
    assert found.items() >= nothing.items()


@pytest.mark.parametrize("service", [3, 4, 5, 6, None])
def test_other_event_services_are_ordinary(service):
    assert Toy().job(1, **FULL, eventservice=service).parameters().items() >= SAID.items()


# ---- holes (section 12), row by row


HOLES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"starttime": None}, RATES | {"cputime": None, "total_short_base": 0}),
    ({"endtime": None}, RATES | {"cputime": None, "total_short_base": 0}),
    ({"starttime": EPOCH}, RATES | {"cputime": None, "total_short_base": 0}),
    ({"endtime": T0}, RATES | {"cputime": 0}),
    ({"outputfilebytes": None}, {"outdiskcount": None, "iointensity": None}),
    ({"maxpss": None}, {"ramcount": None}),
    ({"maxpss": 0}, {"ramcount": None}),
    ({"totrbytes": None}, {"diskio": None}),
    ({"totwbytes": None}, {"diskio": None}),
    ({"memory_leak": None}, {"memory_leak_core": None}),
    ({"memory_leak_x2": None}, {"memory_leak_x2": None}),
    (
        {"cpuconsumptiontime": None},
        {"walltime": None, "min_cpu_efficiency": None, "max_cpu_time": None},
    ),
    ({"jobmetrics": None}, {"workdiskcount": 0}),
    ({"jobmetrics": "workDirSize=x"}, {"workdiskcount": 0}),
]
HOLED_TOYS = [Toy().job(1, **(FULL | change)) for change, _ in HOLES]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(HOLES)))
def test_only_what_is_missing_is_skipped(rules, number):
    found = among(HOLED_TOYS, number, rules)
    assert found.items() >= (SAID | HOLES[number][1]).items()


@pytest.mark.parametrize("rules", ["document", "production"])
def test_zero_cores(rules):
    toy = Toy().job(1, **FULL, actualcorecount=0, corecount=4)
    said = {
        "cputime": 0,
        "ramcount": None,
        "memory_leak_core": None,
        "min_cpu_efficiency": None,
        "max_cpu_time": 3600,
        "outdiskcount": 50,
        "diskio": 2,
    }
    assert toy.parameters(rules).items() >= said.items()


def test_a_job_with_holes_does_not_silence_the_others():
    toy = Toy().job(1, **FULL).job(2, None, events=None)
    assert toy.parameters().items() >= (SAID | {"n_jobs_used": 2}).items()


def test_null_host_with_benchmarks():
    node = {"site": ["S"], "host_name": ["n1"]}
    node |= {"cpu_model_normalized": ["x"], "threads_per_core": [1], "n_logical_cpus": [8]}
    score = {"cpu_type_normalized": ["x"], "smt_enabled": [0], "ncores": [8], "site": ["S"]}
    score |= {"score_per_core": [30.0]}
    tables = {"worker_nodes": pl.DataFrame(node), "cpu_benchmarks": pl.DataFrame(score)}
    toy = Toy().queue("B", 20.0, atlas_site="S").job(1, computingsite="B")
    assert toy.parameters(**tables)["cputime"] == 1080


# ---- success (section 6)


def failing(rule: str, **file: object) -> Toy:
    """Three jobs that finished, one whose file cannot be tried again, one that can."""
    toy = Toy(splitrule=rule).job(1).job(2).job(3)
    toy.file(4, status="ready", attemptnr=3, maxattempt=3, **file)
    return toy.file(5, status="ready", attemptnr=1, maxattempt=3)


SUCCESSES = [
    ("US=2", 0.75, True),
    ("US=2,SS=7", 0.75, True),
    ("US=2,SS=8", 0.75, False),
    ("US=3,SS=8", None, True),
    ("SS=8", None, True),
]
FAILING_TOYS = [failing(rule) for rule, *_ in SUCCESSES]


@pytest.mark.parametrize("number", range(len(SUCCESSES)))
def test_success_rate(number):
    found, (_, *expected) = among(FAILING_TOYS, number), SUCCESSES[number]
    assert [found["success_rate"], found["succeeded"]] == expected


TRIED: list[tuple[dict[str, int], float]] = [
    ({"failedattempt": 2, "maxfailure": 2}, 0.5),
    ({"failedattempt": 1, "maxfailure": 2}, 1.0),
    ({"failedattempt": 3}, 1.0),
    ({"attemptnr": 4, "maxattempt": 3}, 0.5),
    ({}, 1.0),
]
TRIED_TOYS = [Toy().job(1).file(2, status="ready", **file) for file, _ in TRIED]


@pytest.mark.parametrize("number", range(len(TRIED)))
def test_files_that_cannot_be_tried_again(number):
    assert among(TRIED_TOYS, number)["success_rate"] == TRIED[number][1]


def test_a_job_counts_on_both_sides_if_its_files_differ():
    toy = Toy().job(1).file(1, status="ready", attemptnr=3, maxattempt=3)
    assert toy.parameters()["success_rate"] == 0.5


@pytest.mark.parametrize(("minimum", "succeeded"), [(0.75, True), (0.76, False), (0.9, False)])
def test_the_threshold_is_lowered_by_the_setting(minimum, succeeded):
    config = {"SCOUT_MIN_OK_RATE_EXHAUSTED_managed": minimum}
    assert failing("US=2,SS=8").parameters(config=config)["succeeded"] == succeeded


def test_nothing_finished():
    toy = Toy(splitrule="US=3,SS=5").file(1, status="ready")
    found = toy.parameters()
    assert (found["success_rate"], found["succeeded"], found["n_jobs_used"]) == (0.0, False, 0)
    assert found["walltimeunit"] == "kSI2kseconds"
    written = ["cputime", "ramcount", "outdiskcount", "workdiskcount", "iointensity", "walltime"]
    assert [found[name] for name in written] == [None] * 6


# ---- merge jobs (section 10)


def merging() -> Toy:
    toy = Toy(splitrule="US=2,MO=1,TN=1", baseramcount=500, orig_mergeramcount=3000)
    toy.job(1, **FULL)
    toy.job(2, **(FULL | {"maxpss": 4000 * 1024}), file={"type": "trn_log", "datasetid": 14})
    return toy


def test_merge_jobs_read_logs_and_outputs():
    toy = merging()
    plain, merged = toy.parameters(), toy.parameters(merge=True)
    assert (plain["n_jobs_used"], plain["ramcount"]) == (1, 550)
    assert (merged["n_jobs_used"], merged["ramcount"]) == (1, 4400)  # no base
    assert (merged["old_ramcount"], plain["old_ramcount"]) == (3000, None)
    assert (merged["walltime"], merged["success_rate"]) == (5400, None)
    expected = ["expected_jobs", "expected_jobs_event", "new_jobs"]
    assert [merged[name] for name in expected] == [0, 0, 0]
    assert (merged["num_finished_jobs"], merged["newng"]) == (1, None)


# ---- order and cap (section 11)


def test_ties_tag_the_last_job():
    toy = Toy()
    for pandaid in (5, 9, 7):
        toy.job(pandaid, **FULL)
    result = toy.result()
    tagged = result.tags.group_by("parameter").agg("pandaid").sort("parameter").rows()
    names = ("cpuEfficiency", "cpuTime", "ioIntensity", "outDiskCount", "ramCount", "walltime")
    assert tagged == [(name, [9]) for name in names]


def crowd(n: int = 40) -> Toy:
    toy = Toy()
    for pandaid in range(1, n + 1):
        toy.job(pandaid, maxpss=pandaid * 1024)
    return toy


def chosen(n: int, seed: int, size: int) -> list[int]:
    def key(job: int) -> bytes:  # big-endian: bytes compare as the number
        return hashlib.blake2b(f"{seed}:1:{job}".encode(), digest_size=8).digest()

    return sorted(sorted(range(1, n + 1), key=key)[:size])


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_the_cap_takes_the_smallest_hashes(seed):
    found = scouts.job_quantities(by_name(crowd().tables()), seed=seed, max_jobs=10)
    assert found["pandaid"].to_list() == chosen(40, seed, 10)
    assert chosen(40, 0, 10) != chosen(40, 1, 10)


def test_the_cap_does_not_depend_on_the_order_of_rows():
    toy = crowd()
    before = toy.result(max_scouts=10)
    toy.jobs.reverse()
    toy.files.reverse()
    after = toy.result(max_scouts=10)
    assert before.parameters.equals(after.parameters)
    assert before.tags.equals(after.tags)


def test_the_cap_is_1000_by_default_and_leaves_the_expected_numbers_alone():
    found = crowd(1001).parameters()
    assert (found["n_jobs_used"], found["num_finished_jobs"]) == (1000, 1001)
    assert crowd(1000).parameters()["n_jobs_used"] == 1000
    assert crowd(1001).parameters(max_scouts=None)["n_jobs_used"] == 1001


# ---- looking back (at)


def test_at_an_instant_later_jobs_do_not_exist():
    toy = Toy(nfiles=100, nfilesused=3, splitrule="US=2,NF=1")
    toy.job(1, 100, maxpss=1000 * 1024).job(2, 200, maxpss=2000 * 1024)
    toy.job(3, 100, start=500, created=150, maxpss=3000 * 1024)
    first = toy.parameters(at=at(100))
    assert (first["n_jobs_used"], first["ramcount"]) == (1, 1100)
    assert first["nfilesfinished"] == 1
    assert first["new_jobs"] == 98  # (100 files - 2 in use) x 1 job / 1 finished file
    assert toy.parameters(at=at(199))["n_jobs_used"] == 1
    assert toy.parameters(at=at(200))["n_jobs_used"] == 2
    assert toy.parameters(at=at(200))["new_jobs"] == 97
    assert toy.parameters(at=at(600)) == toy.parameters()


def test_at_an_instant_per_task():
    toy = Toy().task(2).job(1, 100).job(2, 200).job(3, 100, task=2).job(4, 200, task=2).task(3)
    instants = pl.DataFrame({"jeditaskid": [1, 2], "at": [at(100), at(300)]})
    found = toy.result(at=instants).parameters
    assert found.select("jeditaskid", "n_jobs_used").rows() == [(1, 1), (2, 2)]


def test_at_an_instant_the_jobset_brings_in_no_later_jobs():
    toy = Toy().job(1, 100, eventservice=1, jobsetid=7, nevents=10)
    toy.job(2, 500, eventservice=1, jobsetid=7, nevents=10)
    toy.files.pop()
    assert toy.parameters(at=at(100))["n_jobs_used"] == 1
    assert toy.parameters(at=at(500))["n_jobs_used"] == 2


# ---- wrong tables


def test_missing_columns_are_named_at_once():
    jobs, files, tasks, datasets, queues = Toy().job(1).tables()
    wrong = (jobs.drop("jobstatus"), files.drop("status").rename({"type": "typ"}))
    with pytest.raises(SchemaError, match=r"(?s)jobs\.jobstatus.*files\.type.*typ.*files\.status"):
        scouts.estimate(by_name((*wrong, tasks, datasets, queues)))


def test_optional_columns_may_be_absent():
    jobs, files, tasks, datasets, queues = Toy(prodsourcelabel=None).job(1).tables()
    tables = (
        jobs.select("pandaid", "jeditaskid", "jobstatus", "starttime", "endtime"),
        files.select("jeditaskid", "datasetid", "pandaid", "type", "status"),
        tasks.select("jeditaskid"),
        datasets.select("jeditaskid", "datasetid", "type", "masterid"),
        queues.select("panda_queue"),
    )
    found = scouts.estimate(by_name(tables))
    assert found.parameters["n_jobs_used"].to_list() == [1]


def test_a_task_twice_is_refused():
    with pytest.raises(
        DataError, match=r"tasks\.jeditaskid: 1 ids occur more than once, e\.g\. \[1\]"
    ):
        Toy().task(1).result()


@pytest.mark.parametrize("empty", range(5))
def test_empty_tables(empty):
    tables = list(Toy().job(1, **FULL).tables())
    tables[empty] = tables[empty].clear()
    found = scouts.estimate(by_name(tables)).parameters
    assert found.height == (0 if empty == 2 else 1)
