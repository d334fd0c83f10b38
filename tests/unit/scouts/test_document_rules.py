"""One test per sentence of *Dynamic Optimization of Task Parameters*; numbers worked out by hand.

Unless a test says otherwise a toy job has one core, runs 3600 s on 10 HS06 per core, reads 100 events,
and its task has no base time and an efficiency of 100 %: 36 000 HS06 s, 360 per event, 540 with the 1.5.
"""

from __future__ import annotations

import pytest

from brokerlab.units import KB, MB
from tests.scout_toys import Toy

# ---- events


def test_input_without_event_information_counts_one_event_per_file():
    """If input data don't have event information, the number of events in each file is internally
    regarded as 1."""
    toy = Toy().job(1, 6 * 3600, events=None).file(1).file(1)
    assert toy.parameters()["cputime"] == 108_000  # 21 600 s x 10 / 3 events x 1.5


# ---- cpuTime


def test_cputime_formula():
    """cpuTime = max(0, endTime - startTime - baseTime) x corePower x coreCount x cpuEfficiency x 1.5 /
    nEvents"""
    toy = Toy(basewalltime=600, cpuefficiency=50).queue("P12", 12.0)
    toy.job(1, 4200, events=200, actualcorecount=4, computingsite="P12")
    # (4200 - 600) x 12 x 4 x 0.5 = 86 400; / 200 = 432; x 1.5 = 648
    assert toy.parameters()["cputime"] == 648


@pytest.mark.parametrize("seconds", [599, 600])
def test_cputime_is_never_negative(seconds):
    """max(0, ...)"""
    found = Toy(basewalltime=600).job(1, seconds).parameters()
    assert (found["cputime"], found["cputimeunit"]) == (0, "mHS06sPerEvent")


@pytest.mark.parametrize(
    ("site", "cputime"), [("FAST", 1080), ("NOPOWER", 540), ("ZERO", 540), ("UNKNOWN", 540)]
)
def test_corepower_is_that_of_the_resource(site, cputime):
    """where corePower is the HS06 core-power at the computing resource (10 where it is not known)"""
    toy = Toy().queue("FAST", 20.0).queue("NOPOWER", None).queue("ZERO", 0.0)
    assert toy.job(1, computingsite=site).parameters()["cputime"] == cputime


def test_cpu_efficiency_defaults_to_90():
    """cpuEfficiency is a task parameter representing CPU efficiency and defaults to 90%"""
    assert Toy(cpuefficiency=None).job(1).parameters()["cputime"] == 486  # 32 400 / 100 x 1.5


@pytest.mark.parametrize(
    ("columns", "cores"),
    [
        ({"actualcorecount": 2, "corecount": 8, "jobmetrics": "coreCount=4"}, 2),
        ({"actualcorecount": None, "corecount": 8, "jobmetrics": "a=1 coreCount=4 coreCount=5"}, 4),
        ({"actualcorecount": None, "corecount": 8, "jobmetrics": "corecount=4"}, 8),
        ({"actualcorecount": None, "corecount": 0}, 1),
        ({"actualcorecount": None, "corecount": None}, 1),
    ],
)
def test_cores_are_those_used(columns, cores):
    """coreCount is the number of CPU cores that the job used"""
    assert Toy().job(1, events=1000, **columns).parameters()["cputime"] == 54 * cores


def test_cores_of_zero_were_reported_by_the_pilot():
    """actualcorecount decides even as 0 (scouts.md 3.1): no work, cputime 0."""
    toy = Toy().job(1, actualcorecount=0, corecount=8)
    assert toy.parameters()["cputime"] == 0


def test_events_are_those_of_the_files_processed():
    """nEvents is the number of events processed in the job"""
    toy = Toy().job(1, events=100, nevents=7).file(1, nevents=500, startevent=0, endevent=99)
    assert toy.parameters()["cputime"] == 270  # 36 000 / 200 x 1.5


def test_95th_percentile():
    """The 95th percentile of cpuTime of scout jobs"""
    toy = Toy().job(1, 3600).job(2, 7200)
    # 360 x 0.05 + 720 x 0.95 = 702; x 1.5 = 1053
    assert toy.parameters()["cputime"] == 1053
    assert toy.tags("cpuTime") == [1, 2]
    assert toy.parameters()["exec_time"] == 7200


@pytest.mark.parametrize(("events", "cputime"), [(40, 5400), (39, None)])
def test_ten_events_per_core_are_enough(events, cputime):
    """with nEvents >= 10 x coreCount"""
    toy = Toy().job(1, 3600, events=events, actualcorecount=4)
    assert toy.parameters()["cputime"] == cputime  # 144 000 / 40 x 1.5


@pytest.mark.parametrize(("seconds", "cputime"), [(21_600, 64_800), (21_599, None)])
def test_few_events_count_from_six_hours_on(seconds, cputime):
    """or with fewer nEvents but endTime - startTime >= 6 h"""
    assert Toy().job(1, seconds, events=5).parameters()["cputime"] == cputime


def test_other_scouts_are_ignored():
    """Other scout jobs with fewer events and short execution time are ignored since they tend to skew the
    estimation."""
    toy = Toy().job(1).job(2, 3600, events=1, outputfilebytes=10, cpuconsumptiontime=1)
    found = toy.parameters()
    assert found["cputime"] == 540
    assert found["n_jobs_used"] == 2  # they still speak of the rest
    assert found["iointensity"] == 1


def test_rank_of_cputime_can_be_set():
    """The percentile rank can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig (a slip: SCOUT_CPUTIME_RANK)"""
    toy = Toy().job(1, 3600).job(2, 7200)
    assert toy.parameters(config={"SCOUT_CPUTIME_RANK": 50})["cputime"] == 810
    assert toy.parameters(config={"SCOUT_RAMCOUNT_RANK": 50})["cputime"] == 1053


def test_the_m_prefix_is_a_thousandth():
    """The m prefix means that the cpuTime value is in milliseconds."""
    found = Toy().job(1, 3600, events=6000).parameters()  # 6 x 1.5 = 9 HS06 s
    assert (found["cputime"], found["cputimeunit"]) == (9000, "mHS06sPerEvent")
    found = Toy().job(1, 3600, events=5400).parameters()  # 36 000 / 5400 x 1.5 = 10 exactly
    assert (found["cputime"], found["cputimeunit"]) == (10, None)


@pytest.mark.parametrize("unit", ["HS06sPerEventFixed", "mHS06sPerEventFixed"])
def test_fixed_cputime_is_not_overwritten(unit):
    """If the Fixed suffix is used, scout jobs don't overwrite the preset cpuTime value."""
    toy = Toy(orig_cputime=3, orig_cputimeunit=unit).job(1, maxpss=1000 * 1024)
    found = toy.parameters()
    assert (found["cputime"], found["cputimeunit"], found["exec_time"]) == (None, None, None)
    assert toy.tags("cpuTime") == []
    assert found["ramcount"] == 1100


@pytest.mark.parametrize(
    ("asked", "events", "unit"),
    [
        ({"orig_cputimeunit": "mHS06sPerEvent"}, 100, "HS06sPerEvent"),
        ({"orig_cputimeunit": "HS06sPerEvent"}, 6000, "mHS06sPerEvent"),
        ({"orig_cputime": 5}, 100, "HS06sPerEvent"),
        ({"orig_cputime": 0}, 100, None),
        ({}, 100, None),
    ],
)
def test_unit_follows_the_value_not_the_request(asked, events, unit):
    """cpuTimeUnit is a task parameter for the unit of cpuTime (scouts.md 5.1)"""
    assert Toy(**asked).job(1, events=events).parameters()["cputimeunit"] == unit


def test_efficiency_of_zero_disables_scaling():
    """Tasks can set cpuEfficiency to 0 to disable scaling with the number of events."""
    found = Toy(cpuefficiency=0).job(1).parameters()
    assert (found["cputime"], found["cputimeunit"]) == (0, "mHS06sPerEvent")


# ---- ramCount


def test_ramcount_formula():
    """ramCount = max((maxPSS - baseRamCount) / coreCount x margin, minRamCount)"""
    toy = Toy(baseramcount=1000).job(1, actualcorecount=4, maxpss=9000 * 1024)
    found = toy.parameters()
    assert (found["ramcount"], found["ramunit"]) == (2200, "MBPerCore")  # 8000 / 4 x 1.1


def test_base_ram_is_a_preset_offset():
    """allowing some offset (baseRamCount) independent of core count ... a preset task parameter"""
    assert Toy().job(1, maxpss=1000 * 1024).parameters()["ramcount"] == 1100
    assert Toy(baseramcount=500).job(1, maxpss=1000 * 1024).parameters()["ramcount"] == 550


def test_ram_margin():
    """margin is defined as SCOUT_RAMCOUNT_MARGIN in gdpconfig and 10 by default."""
    toy = Toy().job(1, maxpss=1000 * 1024)
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MARGIN": 50})["ramcount"] == 1500
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MARGIN": 0})["ramcount"] == 1000


@pytest.mark.parametrize(("minimum", "ramcount"), [(1000, 1100), (1100, 1100), (1101, 1101)])
def test_ram_minimum(minimum, ramcount):
    """If minRamCount is defined as SCOUT_RAMCOUNT_MIN in gdpconfig, it is used as the lower limit."""
    toy = Toy().job(1, maxpss=1000 * 1024)
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MIN": minimum})["ramcount"] == ramcount


def test_75th_percentile_of_memory():
    """The 75th percentile of ramCount of scout jobs is used"""
    toy = Toy()
    for pandaid in range(1, 6):
        toy.job(pandaid, maxpss=pandaid * 100 * 1024)
    assert toy.parameters()["ramcount"] == 440  # (5-1) x 0.75 = 3: the fourth, 400 x 1.1
    assert toy.tags("ramCount") == [4]


def test_rank_of_ramcount_can_be_set():
    """The percentile rank can be defined as SCOUT_RAMCOUNT_RANK in gdpconfig."""
    toy = Toy().job(1, maxpss=100 * 1024).job(2, maxpss=200 * 1024)
    assert toy.parameters()["ramcount"] == 192  # 175 x 1.1 = 192.5
    assert toy.parameters(config={"SCOUT_RAMCOUNT_RANK": 100})["ramcount"] == 220


def test_fixed_ramcount_is_not_overwritten():
    """ramCountUnit is either MBPerCore or MBPerCoreFixed. If the latter, scout jobs don't overwrite the
    preset value."""
    toy = Toy(ramunit="MBPerCoreFixed").job(1, maxpss=1000 * 1024)
    found = toy.parameters()
    assert (found["ramcount"], found["ramunit"], found["cputime"]) == (None, None, 540)
    assert toy.tags("ramCount") == []


# ---- outDiskCount and workDiskCount


def test_75th_percentile_of_output_per_event():
    """The 75th percentile of the total output size per event of scout jobs outDiskCount is used"""
    toy = Toy()
    for pandaid in range(1, 6):
        toy.job(pandaid, events=100, outputfilebytes=pandaid * 100 * 100 * KB)
    found = toy.parameters()
    assert (found["outdiskcount"], found["outdiskunit"]) == (400, "kBPerEvent")
    assert toy.tags("outDiskCount") == [4]


@pytest.mark.parametrize("unit", ["kBPerEvent", "kB"])
@pytest.mark.parametrize(("events", "known"), [(10, True), (9, False)])
def test_jobs_of_few_events_do_not_set_outdiskcount(unit, events, known):
    """Scout jobs with less than ten events are ignored."""
    toy = Toy(outdiskunit=unit).job(1, events=events, outputfilebytes=events * 50 * KB)
    assert (toy.parameters()["outdiskcount"] is not None) == known


def test_largest_work_directory():
    """The maximum value of workDiskCount of scout jobs is used"""
    toy = Toy().job(1, jobmetrics=f"workDirSize={70 * MB}")
    toy.job(2, jobmetrics=f"leak=3 workDirSize={90 * MB + 5} dbTime=1")
    found = toy.parameters()
    assert (found["workdiskcount"], found["workdiskunit"]) == (90, "MB")


@pytest.mark.parametrize(("preset", "kept"), [(91, 91), (90, 90), (89, 90), (None, 90)])
def test_a_larger_preset_work_directory_is_kept(preset, kept):
    """scout jobs don't overwrite the preset workDisCount value when the measured value is smaller"""
    toy = Toy(workdiskcount=preset).job(1, jobmetrics=f"workDirSize={90 * MB}")
    assert toy.parameters()["workdiskcount"] == kept


# ---- ioIntensity and diskIO


def test_io_intensity():
    """ioIntensity is the total size of job input and output divided by the job execution time"""
    toy = Toy().job(1, 100, input_mb=10, outputfilebytes=5 * MB, actualcorecount=8)
    found = toy.parameters()  # 15 x 1024 kB / 100 s = 153.6
    assert (found["iointensity"], found["iointensityunit"]) == (154, "kBPerS")


def test_the_largest_io_intensity_is_used():
    """The maximum value of ioIntensity is used in the job brokerage"""
    toy = Toy().job(1, 1024, outputfilebytes=MB).job(2, 1024, outputfilebytes=4 * MB)
    assert toy.parameters()["iointensity"] == 5
    assert toy.tags("ioIntensity") == [2]


def test_diskio_formula():
    """diskIO = min((totRBYTES + totWBYTES) / (endTime - startTime), capOnDiskIO)"""
    toy = Toy().job(1, 100, totrbytes=1000, totwbytes=500)
    found = toy.parameters()
    assert (found["diskio"], found["diskiounit"]) == (15, "kBPerS")
    assert toy.parameters(config={"SCOUT_DISK_IO_CAP": 10})["diskio"] == 10


def test_diskio_cap_acts_on_each_job():
    """diskIO is calculated for each job using the following formula: ... capOnDiskIO is defined as
    SCOUT_DISK_IO_CAP in gdpconfig."""
    toy = Toy().job(1, 100, totrbytes=100, totwbytes=100)  # 2 kB/s
    toy.job(2, 100, totrbytes=90_000, totwbytes=9_000)  # 990 kB/s, capped at 100
    assert toy.parameters(config={"SCOUT_DISK_IO_CAP": 100})["diskio"] == 51  # (2 + 100) / 2
    assert toy.parameters()["diskio"] == 496  # (2 + 990) / 2


# ---- nGBPerJob


def test_gb_per_job_follows_the_target_of_the_output():
    """The parameter is adjusted based on outDiskCount and workDiskCout optimized by scout jobs, if the task
    sets the target size of the output size, tgtMaxOutputForNG."""

    def toy(rule):
        job = Toy(splitrule=rule, outdiskunit="kB")
        job.job(1, input_mb=1000, outputfilebytes=1000 * MB)
        return job.output(1, "A", 1000 * MB).output(1, "A.log", 9 * MB, type="log")

    # 1 MB of output per MB of input; 2 GB of output need 2048 MB of input;
    # 2048 + 2048 - 1500 = 2596 MB = 2.5 GB
    assert toy("US=2,TN=2").parameters()["newng"] == 2
    assert toy("US=2").parameters()["newng"] is None
