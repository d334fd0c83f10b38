"""Cases of *Dynamic Optimization of Task Parameters* (003); numbers worked out by hand.

Unless a test says otherwise a toy job has one core, runs 3600 s on 10 HS06 per core, reads 100 events,
and its task has no base time and an efficiency of 100 %: 36 000 HS06 s, 360 per event, 540 with the 1.5.
"""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab import scouts
from brokerlab.scouts.parameters import jobs_of_files
from brokerlab.units import KB, MB
from tests.scout_toys import Toy, at, settings, together


def values(column: str, toys: dict[Any, Toy], rules: str = "document") -> dict[Any, Any]:
    """Return a parameter of toys of one task each, answered at once."""
    found = together([*toys.values()]).result(rules).parameters.sort("jeditaskid")
    return dict(zip(toys, found[column], strict=True))


# ---- events


def test_input_without_event_information_counts_one_event_per_file():
    """003, introduction: If input data don’t have event information, the number of events in each
    file is internally regarded as 1.
    """
    toy = Toy().job(1, 6 * 3600, events=None).file(1).file(1)
    assert toy.parameters()["cputime"] == 108_000  # 21 600 s x 10 / 3 events x 1.5


# ---- cpuTime


def test_cputime_formula():
    """003, cpuTime: cpuTime is calculated for each job using the following formula"""
    toy = Toy(basewalltime=600, cpuefficiency=50).queue("P12", 12.0)
    toy.job(1, 4200, events=200, actualcorecount=4, computingsite="P12")
    # (4200 - 600) x 12 x 4 x 0.5 = 86 400; / 200 = 432; x 1.5 = 648
    assert toy.parameters()["cputime"] == 648


@pytest.mark.parametrize("seconds", [599, 600])
def test_cputime_is_never_negative(seconds):
    """003, cpuTime: max(0, endTime-startTime-baseTime)"""
    found = Toy(basewalltime=600).job(1, seconds).parameters()
    assert (found["cputime"], found["cputimeunit"]) == (0, "mHS06sPerEvent")


def test_corepower_is_that_of_the_resource():
    """003, cpuTime: where corePower is the HS06 core-power at the computing resource

    10 where it is not known.
    """
    expected = {"FAST": 1080, "NOPOWER": 540, "ZERO": 540, "UNKNOWN": 540}
    toys = {
        site: Toy()
        .queue("FAST", 20.0)
        .queue("NOPOWER", None)
        .queue("ZERO", 0.0)
        .job(1, computingsite=site)
        for site in expected
    }
    assert values("cputime", toys) == expected


def test_cpu_efficiency_defaults_to_90():
    """003, cpuTime: cpuEfficiency is a task parameter representing CPU efficiency and defaults to
    90%
    """
    assert Toy(cpuefficiency=None).job(1).parameters()["cputime"] == 486  # 32 400 / 100 x 1.5


def test_cores_are_those_used():
    """003, cpuTime: coreCount is the number of CPU cores that the job used"""
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({"actualcorecount": 2, "corecount": 8, "jobmetrics": "coreCount=4"}, 2),
        ({"actualcorecount": None, "corecount": 8, "jobmetrics": "a=1 coreCount=4 coreCount=5"}, 4),
        ({"actualcorecount": None, "corecount": 8, "jobmetrics": "corecount=4"}, 8),
        ({"actualcorecount": None, "corecount": 0}, 1),
        ({"actualcorecount": None, "corecount": None}, 1),
    )
    toys = {str(columns): Toy().job(1, events=1000, **columns) for columns, _ in cases}
    assert values("cputime", toys) == {str(columns): 54 * cores for columns, cores in cases}


def test_cores_of_zero_were_reported_by_the_pilot():
    """actualcorecount decides even as 0 (docs/rules/scouts.md, Jobs): no work, cputime 0."""
    toy = Toy().job(1, actualcorecount=0, corecount=8)
    assert toy.parameters()["cputime"] == 0


def test_events_are_those_of_the_files_processed():
    """003, cpuTime: nEvents is the number of events processed in the job"""
    toy = Toy().job(1, events=100, nevents=7).file(1, nevents=500, startevent=0, endevent=99)
    assert toy.parameters()["cputime"] == 270  # 36 000 / 200 x 1.5


def test_95th_percentile():
    """003, cpuTime: The 95th percentile of cpuTime of scout jobs"""
    toy = Toy().job(1, 3600).job(2, 7200)
    # 360 x 0.05 + 720 x 0.95 = 702; x 1.5 = 1053
    assert toy.parameters()["cputime"] == 1053
    assert toy.tags("cpuTime") == [1, 2]
    assert toy.parameters()["exec_time"] == 7200


def test_ten_events_per_core_are_enough():
    """003, cpuTime: with nEvents 10 × coreCount

    The sign is lost on the page: at least.
    """
    toys = {events: Toy().job(1, 3600, events=events, actualcorecount=4) for events in (40, 39)}
    assert values("cputime", toys) == {40: 5400, 39: None}  # 144 000 / 40 x 1.5


def test_few_events_count_from_six_hours_on():
    """003, cpuTime: with fewer nEvents but endTime-startTime 6h

    The sign is lost on the page: at least.
    """
    toys = {seconds: Toy().job(1, seconds, events=5) for seconds in (21_600, 21_599)}
    assert values("cputime", toys) == {21_600: 64_800, 21_599: None}


def test_other_scouts_are_ignored():
    """003, cpuTime: Other scout jobs with fewer events and short execution time are ignored"""
    toy = Toy().job(1).job(2, 3600, events=1, outputfilebytes=10, cpuconsumptiontime=1)
    found = toy.parameters()
    assert found["cputime"] == 540
    assert found["n_jobs_used"] == 2  # they still speak of the rest
    assert found["iointensity"] == 1


def test_rank_of_cputime_can_be_set():
    """003, cpuTime: The percentile rank can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig.

    A slip of the page: the key is SCOUT_CPUTIME_RANK.
    """
    toy = Toy().job(1, 3600).job(2, 7200)
    assert toy.parameters(config={"SCOUT_CPUTIME_RANK": 50})["cputime"] == 810
    assert toy.parameters(config={"SCOUT_RAMCOUNT_RANK": 50})["cputime"] == 1053


def test_the_m_prefix_is_a_thousandth():
    """003, cpuTime: The m prefix means that the cpuTime value is in milliseconds."""
    found = Toy().job(1, 3600, events=6000).parameters()  # 6 x 1.5 = 9 HS06 s
    assert (found["cputime"], found["cputimeunit"]) == (9000, "mHS06sPerEvent")
    found = Toy().job(1, 3600, events=5400).parameters()  # 36 000 / 5400 x 1.5 = 10 exactly
    assert (found["cputime"], found["cputimeunit"]) == (10, None)


@pytest.mark.parametrize("unit", ["HS06sPerEventFixed", "mHS06sPerEventFixed"])
def test_fixed_cputime_is_not_overwritten(unit):
    """003, cpuTime: If the Fixed suffix is used, scout jobs don’t overwrite the preset cpuTime
    value.
    """
    toy = Toy(orig_cputime=3, orig_cputimeunit=unit).job(1, maxpss=1000 * 1024)
    found = toy.parameters()
    assert (found["cputime"], found["cputimeunit"], found["exec_time"]) == (None, None, None)
    assert toy.tags("cpuTime") == []
    assert found["ramcount"] == 1100


def test_unit_follows_the_value_not_the_request():
    """003, cpuTime: cpuTimeUnit is a task parameter for the unit of cpuTime

    The new value may need the other prefix.
    """
    cases: tuple[tuple[dict[str, Any], int, str | None], ...] = (
        ({"orig_cputimeunit": "mHS06sPerEvent"}, 100, "HS06sPerEvent"),
        ({"orig_cputimeunit": "HS06sPerEvent"}, 6000, "mHS06sPerEvent"),
        ({"orig_cputime": 5}, 100, "HS06sPerEvent"),
        ({"orig_cputime": 0}, 100, None),
        ({}, 100, None),
    )
    toys = {str(asked): Toy(**asked).job(1, events=events) for asked, events, _ in cases}
    assert values("cputimeunit", toys) == {str(asked): unit for asked, _, unit in cases}


def test_efficiency_of_zero_disables_scaling():
    """003, cpuTime: Tasks can set cpuEfficiency to 0 to disable scaling with the number of events."""
    found = Toy(cpuefficiency=0).job(1).parameters()
    assert (found["cputime"], found["cputimeunit"]) == (0, "mHS06sPerEvent")


# ---- ramCount


def test_ramcount_formula():
    """003, ramCount: ramCount is calculated for each job using the following formula"""
    toy = Toy(baseramcount=1000).job(1, actualcorecount=4, maxpss=9000 * 1024)
    found = toy.parameters()
    assert (found["ramcount"], found["ramunit"]) == (2200, "MBPerCore")  # 8000 / 4 x 1.1


def test_base_ram_is_a_preset_offset():
    """003, ramCount: baseRamCount is a preset task parameter"""
    assert Toy().job(1, maxpss=1000 * 1024).parameters()["ramcount"] == 1100
    assert Toy(baseramcount=500).job(1, maxpss=1000 * 1024).parameters()["ramcount"] == 550


def test_ram_margin():
    """003, ramCount: margin is defined as SCOUT_RAMCOUNT_MARGIN in gdpconfig and 10 by default.

    Per cent.
    """
    toy = Toy().job(1, maxpss=1000 * 1024)
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MARGIN": 50})["ramcount"] == 1500
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MARGIN": 0})["ramcount"] == 1000


@pytest.mark.parametrize(("minimum", "ramcount"), [(1000, 1100), (1100, 1100), (1101, 1101)])
def test_ram_minimum(minimum, ramcount):
    """003, ramCount: If minRamCount is defined as SCOUT_RAMCOUNT_MIN in gdpconfig, it is used as
    the lower limit.
    """
    toy = Toy().job(1, maxpss=1000 * 1024)
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MIN": minimum})["ramcount"] == ramcount


def test_75th_percentile_of_memory():
    """003, ramCount: The 75th percentile of ramCount of scout jobs is used"""
    toy = Toy()
    for pandaid in range(1, 6):
        toy.job(pandaid, maxpss=pandaid * 100 * 1024)
    assert toy.parameters()["ramcount"] == 440  # (5-1) x 0.75 = 3: the fourth, 400 x 1.1
    assert toy.tags("ramCount") == [4]


def test_rank_of_ramcount_can_be_set():
    """003, ramCount: The percentile rank can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig."""
    toy = Toy().job(1, maxpss=100 * 1024).job(2, maxpss=200 * 1024)
    assert toy.parameters()["ramcount"] == 192  # 175 x 1.1 = 192.5
    assert toy.parameters(config={"SCOUT_RAMCOUNT_RANK": 100})["ramcount"] == 220


def test_fixed_ramcount_is_not_overwritten():
    """003, ramCount: If the latter, scout jobs don’t overwrite the preset value."""
    toy = Toy(ramunit="MBPerCoreFixed").job(1, maxpss=1000 * 1024)
    found = toy.parameters()
    assert (found["ramcount"], found["ramunit"], found["cputime"]) == (None, None, 540)
    assert toy.tags("ramCount") == []


# ---- outDiskCount and workDiskCount


def test_75th_percentile_of_output_per_event():
    """003, outDiskCount and workDiskCount: The 75th percentile of the total output size per event
    of scout jobs outDiskCount is used
    """
    toy = Toy()
    for pandaid in range(1, 6):
        toy.job(pandaid, events=100, outputfilebytes=pandaid * 100 * 100 * KB)
    found = toy.parameters()
    assert (found["outdiskcount"], found["outdiskunit"]) == (400, "kBPerEvent")
    assert toy.tags("outDiskCount") == [4]


def test_jobs_of_few_events_do_not_set_outdiskcount():
    """003, outDiskCount and workDiskCount: Scout jobs with less than ten events are ignored."""
    toys = {
        (unit, events): Toy(outdiskunit=unit).job(
            1, events=events, outputfilebytes=events * 50 * KB
        )
        for unit in ("kBPerEvent", "kB")
        for events in (10, 9)
    }
    for (unit, events), count in values("outdiskcount", toys).items():
        assert (count is not None) == (events == 10), (unit, events)


def test_largest_work_directory():
    """003, outDiskCount and workDiskCount: The maximum value of workDiskCount of scout jobs is
    used
    """
    toy = Toy().job(1, jobmetrics=f"workDirSize={70 * MB}")
    toy.job(2, jobmetrics=f"leak=3 workDirSize={90 * MB + 5} dbTime=1")
    found = toy.parameters()
    assert (found["workdiskcount"], found["workdiskunit"]) == (90, "MB")


def test_a_larger_preset_work_directory_is_kept():
    """003, outDiskCount and workDiskCount: scout jobs don’t overwrite the preset workDisCount
    value when the measured value is smaller
    """
    kept = {91: 91, 90: 90, 89: 90, None: 90}
    toys = {
        preset: Toy(workdiskcount=preset).job(1, jobmetrics=f"workDirSize={90 * MB}")
        for preset in kept
    }
    assert values("workdiskcount", toys) == kept


# ---- ioIntensity and diskIO


def test_io_intensity():
    """003, ioIntensity: ioIntensity is the total size of job input and output divided by the job
    execution time
    """
    toy = Toy().job(1, 100, input_mb=10, outputfilebytes=5 * MB, actualcorecount=8)
    found = toy.parameters()  # 15 x 1024 kB / 100 s = 153.6
    assert (found["iointensity"], found["iointensityunit"]) == (154, "kBPerS")


def test_the_largest_io_intensity_is_used():
    """003, ioIntensity: The maximum value of ioIntensity is used in the job brokerage"""
    toy = Toy().job(1, 1024, outputfilebytes=MB).job(2, 1024, outputfilebytes=4 * MB)
    assert toy.parameters()["iointensity"] == 5
    assert toy.tags("ioIntensity") == [2]


def test_diskio_formula():
    """003, diskIO: diskIO is calculated for each job using the following formula"""
    toy = Toy().job(1, 100, totrbytes=1000, totwbytes=500)
    found = toy.parameters()
    assert (found["diskio"], found["diskiounit"]) == (15, "kBPerS")
    assert toy.parameters(config={"SCOUT_DISK_IO_CAP": 10})["diskio"] == 10


def test_diskio_cap_acts_on_each_job():
    """003, diskIO: capOnDiskIO is defined as SCOUT_DISK_IO_CAP in gdpconfig."""
    toy = Toy().job(1, 100, totrbytes=100, totwbytes=100)  # 2 kB/s
    toy.job(2, 100, totrbytes=90_000, totwbytes=9_000)  # 990 kB/s, capped at 100
    assert toy.parameters(config={"SCOUT_DISK_IO_CAP": 100})["diskio"] == 51  # (2 + 100) / 2
    assert toy.parameters()["diskio"] == 496  # (2 + 990) / 2


# ---- nGBPerJob


def test_gb_per_job_follows_the_target_of_the_output():
    """003, nGBPerJob: The parameter is adjusted based on outDiskCount and workDiskCout optimized
    by scout jobs

    if the task sets the target size of the output size, tgtMaxOutputForNG
    """

    def toy(rule):
        job = Toy(splitrule=rule, outdiskunit="kB")
        job.job(1, input_mb=1000, outputfilebytes=1000 * MB)
        return job.output(1, "A", 1000 * MB).output(1, "A.log", 9 * MB, type="log")

    # 1 MB of output per MB of input; 2 GB of output need 2048 MB of input;
    # 2048 + 2048 - 1500 = 2596 MB = 2.5 GB
    assert toy("US=2,TN=2").parameters()["newng"] == 2
    assert toy("US=2").parameters()["newng"] is None


def test_jobs_stay_below_the_limit_on_disk():
    """003, nGBPerJob: JEDI generates jobs so that the expected disk usage of those jobs is less than a
    limit if the task parameter nGBPerJob is specified.
    """
    # per file 400 MB and as much output again, beside 448 MB for the work directory: two files make exactly 2048 MB
    sizes = [400 * MB] * 5
    need = {"outdiskcount": 1024, "workdiskcount": 448, "per_event": False}
    assert jobs_of_files(sizes, [1] * 5, limit_gb=2, **need) == [0, 1, 2, 3, 4]
    assert jobs_of_files(sizes, [1] * 5, limit_gb=2, **need | {"workdiskcount": 447}) == [
        0,
        0,
        1,
        1,
        2,
    ]
    # per event: 100 kB x 1024 events = 100 MB of output beside the 400 MB
    events = {"outdiskcount": 100, "workdiskcount": 48, "per_event": True}
    assert jobs_of_files(sizes, [1024] * 5, limit_gb=2, **events) == [0, 0, 0, 1, 1]


# ---- when


def test_second_trigger_is_the_hundredth_job_after_the_first():
    """003, introduction: when the first 100 jobs finished after the task avalanched"""
    toy = Toy()
    for pandaid in range(1, 111):  # ten scouts, the fifth to finish avalanches the task
        toy.job(pandaid, 3600, start=60 * pandaid)
    found = triggers(toy)
    assert found == [("T1", at(3600 + 60 * 5)), ("T2", at(3600 + 60 * 105))]
    assert triggers(toy, "production")[1:] == [
        ("T2a", at(3600 + 60 * 5)),
        ("T2b", at(3600 + 60 * 100)),
    ]


@pytest.mark.parametrize(("n_finished", "read"), [(5, True), (4, False)])
def test_first_trigger_is_half_of_the_scouts(n_finished, read):
    """003, introduction: when half of the scout jobs finished"""
    toy = Toy()
    for pandaid in range(1, 11):
        done = {} if pandaid <= n_finished else {"jobstatus": "running"}
        toy.job(pandaid, 3600, start=60 * pandaid, **done)
    assert bool(triggers(toy)) == read


def triggers(toy: Toy, rules: str = "document") -> list[tuple[str, Any]]:
    """Return names and instants of the triggers."""
    jobs, files, tasks, datasets, _ = toy.tables()
    found = scouts.triggers(jobs, files, tasks, datasets, rules=scouts.ScoutRules(rules))
    return found.select("trigger", "at").rows()


# ---- what the rule sets say


def test_base_time_does_not_scale():
    """003, cpuTime: baseTime is another task parameter representing the part of the job execution time not
    scaling with CPU power
    """
    toy = Toy(basewalltime=600).job(1, 1200)
    assert toy.parameters()["cputime"] == 90  # 600 x 10 / 100 x 1.5
    assert toy.queue("Q2", 20.0).job(2, 900, computingsite="Q2").tags("cpuTime") == [2]


def test_ramcount_is_per_core():
    """003, ramCount: It is the RSS per core, allowing some offset (baseRamCount) independent of core count"""
    toy = Toy(baseramcount=400)
    assert toy.job(1, actualcorecount=8, maxpss=8400 * 1024).parameters()["ramcount"] == 1100


def test_pseudo_input_is_no_excuse():
    """003, cpuTime: Other scout jobs with fewer events and short execution time are ignored"""
    toy = Toy().job(1, events=1, file={"type": "pseudo_input", "fsize": None})
    assert toy.parameters()["cputime"] is None
    assert toy.parameters("production")["cputime"] == 54_000


def test_output_is_not_capped():
    """003, outDiskCount and workDiskCount: The 75th percentile of the total output size per event"""
    toy = Toy().job(1, events=10, outputfilebytes=10 * 11 * MB)
    assert toy.parameters()["outdiskcount"] == 11_264
    assert toy.parameters("production")["outdiskcount"] == 10_240


# ---- exhausted


def checked(
    toy: Toy, rules: str = "document", *, config: dict[str, Any] | None = None, **switches: Any
) -> dict[str, Any]:
    """Return the verdict on the only task."""
    (found,) = verdicts({0: toy}, rules, config=config, **switches).values()
    return found


def verdicts(
    toys: dict[Any, Toy],
    rules: str = "document",
    *,
    config: dict[str, Any] | None = None,
    **switches: Any,
) -> dict[Any, dict[str, Any]]:
    """Return the verdicts on toys of one task each, answered at once."""
    toy = together([*toys.values()])
    result = toy.result(rules, config=config, **switches)
    found = scouts.exhausted({"tasks": toy.tables()[2]}, scouts=result, config=settings(config))
    return dict(zip(toys, found.verdicts.sort("jeditaskid").to_dicts(), strict=True))


def rules_of(toys: dict[Any, Toy], rules: str = "document", **settings: Any) -> dict[Any, Any]:
    """Return the checks that stop toys, null where none does."""
    return {case: row["rule"] for case, row in verdicts(toys, rules, **settings).items()}


def few_to_come(**job: Any) -> Toy:
    """A task of one job per file with one more file."""
    return Toy(splitrule="US=3,NF=1", nfiles=2, nfilesused=1).job(1, **job)


def test_the_checks_need_no_number_of_new_jobs():
    """003, exhausted: The task status is set to exhausted when scouts detect"""
    toy = few_to_come(cpuconsumptiontime=7201)
    assert checked(toy)["status"] == "exhausted"
    assert checked(toy, "production")["status"] == "scouting"
    assert checked(toy, checks_need_new_jobs=True)["status"] == "scouting"


def test_huge_leaks():
    """003, exhausted: huge memory leaks (the threshold is defined as SCOUT_MEM_LEAK_PER_CORE_<activity> in
    gdpconfig)
    """
    asked: dict[str, Any] = {"config": {"SCOUT_MEM_LEAK_PER_CORE_managed": 10}}
    toys = {leak: few_to_come(memory_leak=leak) for leak in (11, 10)}
    found = {leak: row["status"] for leak, row in verdicts(toys, **asked).items()}
    assert found == {11: "exhausted", 10: "scouting"}
    deployed = verdicts(toys, "production", **asked)
    assert {row["status"] for row in deployed.values()} == {"scouting"}


SHORT = {"SCOUT_THR_SHORT_managed": 100, "SCOUT_SHORT_EXECTIME_managed": 10}


def short(
    rule: str = "US=3,NE=100",
    *,
    n_short: int = 2,
    nfiles: int = 1000,
    used: int = 4,
    queue: str = "DIRECT",
) -> Toy:
    """Four jobs, some of ten minutes and the others of a second more, at a queue with direct access."""
    toy = Toy(splitrule=rule, nfiles=nfiles, nfilesused=used).queue("DIRECT", maxinputsize=-1)
    for number in range(4):
        seconds = 600 if number < n_short else 601
        toy.job(number + 1, seconds, computingsite=queue, cpuconsumptiontime=1)
    return toy.file(None, status="ready", nevents=10**5)


def test_too_many_short_jobs():
    """003, exhausted: too many short jobs without being enforced to copy input files to scratch disk"""
    toys = {
        "half": short(),  # half of them: the page names no number
        "a quarter": short(n_short=1),
        "copied": short(queue="Q"),  # the input is copied
    }
    expected = {"half": "X4", "a quarter": None, "copied": None}
    assert rules_of(toys, config=SHORT) == expected
    assert rules_of(toys, config=SHORT, default_short_tenths=0) == dict.fromkeys(toys)
    assert rules_of(toys, config=SHORT | {"SCOUT_NUM_SHORT_managed": 3}) == expected


def test_many_new_jobs_are_expected():
    """003, exhausted: and a large number of new jobs expected (the cutoff is defined as
    SCOUT_THR_SHORT_<activity> in gdpconfig)
    """
    expected = {
        (104, 4): "X4",
        (103, 4): None,  # 103 in all, four of them have run: 99 are new
        (1000, 901): None,
        (1000, 900): "X4",
    }
    toys = {(nfiles, used): short(nfiles=nfiles, used=used) for nfiles, used in expected}
    assert rules_of(toys, config=SHORT) == expected
    all_jobs = rules_of(toys, config=SHORT, short_cutoff_counts="all_jobs")
    assert all_jobs == dict.fromkeys(toys, "X4")


CHANGE = SHORT | {"SCOUT_CHANGE_SR_managed": True}


def test_the_split_rule_changes_instead():
    """003, exhausted: If tasks meet the above condition and specify nGBPerJob or nFilesPerJob, and
    SCOUT_CHANGE_SR_<activity> is defined in gdpconfig, the system will automatically remove those
    parameters, rather than sending them to exhausted.
    """
    after = {
        "US=3,NE=100,NF=3,MF=9": "US=3,NE=100,MF=9",
        "US=3,NE=100,NG=3": "US=3,NE=100",
        "US=3,NE=100,MF=9": None,
    }
    toys = {before: short(before) for before in after}
    for before, found in verdicts(toys, config=CHANGE).items():
        changed = found["action"] == "change_split_rule"
        expected = (True, None) if after[before] else (False, "X4")
        assert (changed, found["rule"]) == expected, before
        assert found["splitrule"] == (after[before] or before)
    production = verdicts(toys, "production", config=CHANGE | {"SCOUT_NUM_SHORT_managed": 5})
    for before, found in production.items():
        assert found["splitrule"].endswith("MF=200") == ("MF" in before), before


def test_tasks_that_must_copy_do_not_meet_the_condition():
    """003, exhausted: If tasks meet the above condition and specify nGBPerJob or nFilesPerJob"""
    toy = short("US=3,NF=1", queue="Q")
    assert checked(toy, config=CHANGE)["action"] is None
    assert checked(toy, config=CHANGE, edit_excuses_copies=False)["action"] == "change_split_rule"


@pytest.mark.parametrize(
    ("rule", "limit", "fires"),
    [
        ("US=2,MF=9", 99, False),  # 600 s x 10 = 100 min
        ("US=2,MF=9", 100, True),
        ("US=2,MF=1", 99, True),  # no more files than a scout
        ("US=2,NF=1", 99, True),
    ],
)
def test_jobs_that_will_grow_are_excused(rule, limit, fires):
    """003, exhausted: If new jobs after avalanche have more input files than scout jobs and the
    extrapolated execution time is longer than SCOUT_SHORT_EXECTIME_<activity>, tasks are not set to
    exhausted.
    """
    config = SHORT | {"SCOUT_SHORT_EXECTIME_managed": limit}
    assert (checked(short(rule), config=config)["rule"] == "X4") == fires
    as_deployed = checked(short(rule), config=config, growth_needs_more_files=False)
    assert (as_deployed["rule"] == "X4") == (limit == 100)


def test_cputime_so_different():
    """003, exhausted: the calculated ramCount or cpuTime so different from preset values

    2400 s x 10 / 100 events x 1.5 = 360. The page names no number: the factor of
    SCOUT_WRONG_CPUTIME_THRESHOLD, 2.
    """
    expected = {180: None, 179: "X1", 720: None, 721: "X1", 0: None}
    toys = {
        preset: Toy(orig_cputime=preset, nfiles=1000, splitrule="US=3,NF=1").job(1, 2400)
        for preset in expected
    }
    assert rules_of(toys) == expected
    assert rules_of(toys, "production") == dict.fromkeys(toys)
    assert rules_of(toys, wrong_cputime="exceeds_and_long") == dict.fromkeys(toys)


def test_ramcount_so_different():
    """003, exhausted: the calculated ramCount or cpuTime so different from preset values

    ramCount is 1000 x 1.1 MB.
    """
    expected = {550: None, 549: "X2", 2200: None, 2201: "X2"}
    toys = {
        preset: Toy(orig_ramcount=preset, nfiles=1000, splitrule="US=3,NF=1").job(
            1, maxpss=1000 * 1024
        )
        for preset in expected
    }
    assert rules_of(toys) == expected
    assert rules_of(toys, "production") == dict.fromkeys(toys)
    assert rules_of(toys, wrong_ramcount="crosses_line") == dict.fromkeys(toys)


def test_very_low_cpu_efficiency():
    """003, exhausted: very low CPU efficiency (the threshold is defined as a task parameter
    minCpuEfficiency)
    """
    # a second more of 3600: 10 %, and what is above 10 % is rounded up to 11 %
    toys = {
        cpu: Toy(splitrule="US=3,NF=1,MC=11", nfiles=1000).job(1, 3600, cpuconsumptiontime=cpu + 1)
        for cpu in (359, 360)
    }
    assert rules_of(toys) == {359: "X5", 360: None}


def test_cpus_that_were_not_allocated():
    """003, exhausted: non-allocated CPUs being abused, e.g. multi-core jobs running on single-core resources

    More than twice the time of the cores.
    """
    toys = {cpu: few_to_come(cpuconsumptiontime=cpu) for cpu in (7201, 7200)}
    assert rules_of(toys) == {7201: "X6", 7200: None}
