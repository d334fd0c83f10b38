"""Every row of scouts.md 14: what the document's rules, production's, and the one switch alone say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.scouts import ScoutRules
from brokerlab.units import KB, MB
from tests.scout_toys import Toy, among, result_of


def three(
    toy: Toy, name: str, production: dict[str, Any], *, beside: Sequence[Toy] = (), **keywords: Any
) -> tuple[Any, Any, Any]:
    """Return a parameter under the document, the document with one switch as in production, production.

    A toy that stands among those ``beside`` it is one task of many.
    """
    toys = beside or [toy]
    number = next(n for n, each in enumerate(toys) if each is toy)
    return (
        among(toys, number, "document", **keywords)[name],
        among(toys, number, "document", **production, **keywords)[name],
        among(toys, number, "production", **keywords)[name],
    )


def test_worked_check():
    """Worked check (production), end of scouts.md 14"""
    toy = Toy(basewalltime=600, cpuefficiency=90).job(1, 7200).job(2, 10_800)
    assert toy.parameters("production")["cputime"] == 1353


# ---- the switches


def test_s01_key_of_the_cputime_rank():
    toy = Toy().job(1, 3600).job(2, 7200)  # 360 and 720 per event
    config = {"SCOUT_CPUTIME_RANK": 100, "SCOUT_RAMCOUNT_RANK": 50}
    assert three(toy, "cputime", {"cputime_rank_key": "SCOUT_CPUTIME_RANK"}, config=config) == (
        1080,
        1080,
        1080,
    )
    other = toy.parameters(cputime_rank_key="SCOUT_RAMCOUNT_RANK", config=config)
    assert other["cputime"] == 810
    assert toy.parameters(cputime_rank_key="SCOUT_RAMCOUNT_RANK")["cputime"] == 945  # rank 75


def test_s02_null_efficiency():
    toy = Toy(cpuefficiency=None).job(1)
    assert three(toy, "cputime", {"default_cpu_efficiency": 100}) == (486, 540, 540)


def test_s03_pseudo_input():
    toy = Toy().job(1, events=1, file={"type": "pseudo_input", "fsize": None})
    assert three(toy, "cputime", {"pseudo_input_eligible": True}) == (None, 54_000, 54_000)


SIX_HOURS = [
    (21_600, (64_800, None, None)),
    (21_600.5, (64_800, 64_800, 64_800)),  # the full time stamp, not whole seconds
    (21_601, (64_803, 64_803, 64_803)),
    (21_599.9, (None, None, None)),
]
LONG_TOYS = [Toy().job(1, seconds, events=5) for seconds, _ in SIX_HOURS]


@pytest.mark.parametrize("number", range(len(SIX_HOURS)))
def test_s04_six_hours(number):
    toy, (_, expected) = LONG_TOYS[number], SIX_HOURS[number]
    found = three(toy, "cputime", {"long_job_inclusive": False}, beside=LONG_TOYS)
    assert found == expected


def test_s05_minimum_where_the_interpolation_straddles_it():
    toy = Toy().job(1, maxpss=100 * 1024).job(2, maxpss=300 * 1024)
    # document: max(110, 200) = 200 and 330: 200 x 0.25 + 330 x 0.75 = 297.5
    # production: 100 x 0.25 + 300 x 0.75 = 250, x 1.1 = 275
    config = {"SCOUT_RAMCOUNT_MIN": 200}
    found = three(toy, "ramcount", {"ram_min_per_job": False}, config=config)
    assert found == (297, 275, 275)


def test_s05_rounding():
    toy = Toy().job(1, maxpss=100 * 1024)
    # document: 100.0 x 1.15 in floats is 114.99999999999999; production: 102400 x 115 // 100 / 1024
    config = {"SCOUT_RAMCOUNT_MARGIN": 15}
    assert three(toy, "ramcount", {"ram_min_per_job": False}, config=config) == (114, 115, 115)


@pytest.mark.parametrize(("margin", "maxpss_mb", "expected"), [(14, 50, 57), (84, 125, 229)])
def test_s05_margin_as_written(margin, maxpss_mb, expected):
    """r_j = max(kB_j / 1024 x (1 + margin / 100), min)"""
    toy = Toy().job(1, maxpss=maxpss_mb * 1024)
    assert toy.parameters(config={"SCOUT_RAMCOUNT_MARGIN": margin})["ramcount"] == expected


@pytest.mark.parametrize("rules", ["document", "production"])
def test_negative_memory_becomes_one(rules):
    toy = Toy(baseramcount=4000).job(1, maxpss=1000 * 1024)
    assert toy.parameters(rules)["ramcount"] == 1
    assert toy.parameters(rules, config={"SCOUT_RAMCOUNT_MIN": 500})["ramcount"] == 500


def test_s06_cores_in_io_intensity():
    toy = Toy().job(1, 100, input_mb=10, actualcorecount=8, outputfilebytes=0)  # 10 240 kB / 100 s
    assert three(toy, "iointensity", {"io_intensity_per_core": True}) == (103, 13, 13)


def test_s07_where_the_cap_on_diskio_acts():
    toy = Toy().job(1, 100, totrbytes=200, totwbytes=0).job(2, 100, totrbytes=99_000, totwbytes=0)
    config = {"SCOUT_DISK_IO_CAP": 100}  # 2 and 990: (2 + 100) // 2, or min(496, 100)
    assert three(toy, "diskio", {"diskio_cap_per_job": False}, config=config) == (51, 100, 100)


def ng_toy() -> Toy:
    """One job, 1000 events, 1000 MB in and out, 500 MB of secondary input, 24 MB of work directory."""
    toy = Toy(splitrule="US=2,TN=2")
    toy.job(
        1,
        events=1000,
        input_mb=1000,
        inputfilebytes=1500 * MB,
        outputfilebytes=1000 * MB,
        jobmetrics=f"workDirSize={24 * MB}",
    )
    return toy.output(1, "A", 1000 * MB)


def test_s08_bytes_in_ng():
    # E = 2048 MB, k = 2048 events, W = 324 MB
    # production: I = (1000 + 500 MB) x 2.048 = 1024 MB: 1896 MB = 1.85 GB
    # in bytes:   I = 1500 MB x 2.048 = 3072 MB: 3944 MB = 3.85 GB
    assert three(ng_toy(), "newng", {}) == (1, 1, 1)
    assert ng_toy().parameters(ng_input_in_bytes=True)["newng"] == 3


def test_s08_at_least_one():
    toy = Toy(splitrule="TN=1", outdiskunit="kB")
    toy.job(1, input_mb=1000, outputfilebytes=1000 * MB).output(1, "A", 1000 * MB)
    # 1024 + 1024 - 1500 = 548 MB
    assert three(toy, "newng", {"ng_at_least_one": False}) == (1, 0, 0)


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize(
    ("target", "out_mb", "expected"),
    [(1, 20_000, 1), (1000, 1000, 100)],  # 1024 + 102 - 1500 < 0: 1 GB; the most is 100 GB
)
def test_ng_is_bounded(rules, target, out_mb, expected):
    toy = Toy(splitrule=f"TN={target}", outdiskunit="kB")
    toy.job(1, input_mb=1000, outputfilebytes=out_mb * MB).output(1, "A", out_mb * MB)
    assert toy.parameters(rules)["newng"] == expected


def test_ng_of_the_upper_origin_wins_and_the_lower_stands_in_for_it():
    """For each origin, in the order they were tagged; the last valid one wins (5.10)."""
    toy = Toy(splitrule="TN=2", outdiskunit="kB")
    for pandaid, out in ((1, 1000), (2, 1004)):
        toy.job(pandaid, input_mb=1000, outputfilebytes=out * MB)
    toy.output(1, "A", 1000 * MB)
    # only job 1 has its outputs recorded. 1048576 and 1052771 (rounded up) B per MB, at rank 75
    # 1051722.25 B = 1027 kB; k = 2 GB // 1027 kB = 2042 MB; 2048 + 2042 - 1500 = 2590 MB
    assert toy.parameters()["newng"] == 2
    # job 2's output is in two datasets, the larger holds half: 4 GB in all when it has 2 GB
    toy.output(2, "A", 502 * MB).output(2, "B", 502 * MB)  # 4096 + 4084 - 1500 = 6680 MB
    assert toy.parameters()["newng"] == 6


def test_ng_skips_jobs_without_output():
    toy = Toy(splitrule="TN=2", outdiskunit="kB").job(1, outputfilebytes=MB)
    assert toy.output(1, "A", 0).parameters()["newng"] is None


def test_ng_needs_all_values_where_the_unit_is_per_event():
    toy = Toy(splitrule="TN=2").job(1, outputfilebytes=100 * MB).output(1, "A", 100 * MB)
    assert toy.parameters()["newng"] is None  # inputfilebytes is not known


# ---- the rows without a switch


@pytest.mark.parametrize("rules", ["document", "production"])
def test_margin_is_per_cent(rules):
    toy = Toy().job(1, maxpss=1000 * 1024)
    assert toy.parameters(rules, config={"SCOUT_RAMCOUNT_MARGIN": 20})["ramcount"] == 1200


WHOLE_TOYS = [
    Toy(ramunit=unit, baseramcount=500).job(1, maxpss=2000 * 1024, actualcorecount=8)
    for unit in ("MB", None, "GB")
]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(WHOLE_TOYS)))
def test_memory_of_the_whole_job(rules, number):
    found = among(WHOLE_TOYS, number, rules)
    assert (found["ramcount"], found["ramunit"]) == (2200, "MB")


@pytest.mark.parametrize(
    ("maxpss", "expected"), [(0, 1100), (-5, 1100), (None, None), (500 * 1024, 550)]
)
def test_memory_from_the_virtual_peak(maxpss, expected):
    """maxpss if > 0, else the digits after vmPeakMax= (kB) (5.2, 12)"""
    toy = Toy(ramunit="MB").job(1, maxpss=maxpss, jobmetrics=f"vmPeakMax={1000 * 1024}")
    assert toy.parameters()["ramcount"] == expected
    if maxpss != 500 * 1024:
        per_core = Toy().job(1, maxpss=maxpss, jobmetrics=f"vmPeakMax={1000 * 1024}")
        assert per_core.parameters()["ramcount"] is None


@pytest.mark.parametrize("rules", ["document", "production"])
def test_input_of_io_intensity_is_effective_and_primary(rules):
    """effective size of the primary input only, at least 1 MB per file"""
    half = {"nevents": 100, "startevent": 0, "endevent": 49}
    toy = Toy().job(1, 1024, input_mb=8, file=half, outputfilebytes=0)
    toy.file(1, fsize=0).file(1, fsize=None)
    toy.file(1, dataset=2, fsize=900 * MB)
    assert toy.parameters(rules)["iointensity"] == 6  # 4 + 1 + 1 MB in 1024 s


@pytest.mark.parametrize("rules", ["document", "production"])
def test_diskio_is_a_floored_mean(rules):
    toy = Toy()
    for pandaid, read in ((1, 100), (2, 200), (3, 201)):
        toy.job(pandaid, 100, totrbytes=read, totwbytes=0)
    assert toy.parameters(rules)["diskio"] == 1  # 5.01 / 3 = 1.67


@pytest.mark.parametrize("rules", ["document", "production"])
def test_outdiskcount_per_mb_of_input(rules):
    toy = Toy(outdiskunit="MB").job(1, input_mb=4, outputfilebytes=4 * 30 * KB)
    found = toy.parameters(rules)
    assert (found["outdiskcount"], found["outdiskunit"]) == (30, "kB")


def test_outdiskcount_is_capped_at_10_mb():
    toy = Toy().job(1, events=10, outputfilebytes=10 * 11 * MB)
    assert three(toy, "outdiskcount", {"outdisk_capped": True}) == (11_264, 10_240, 10_240)


FIXED_TOYS = [
    Toy(outdiskunit=unit).job(1, outputfilebytes=100 * KB, maxpss=1024)
    for unit in ("kBFixed", "kBPerEventFixed", "kBFixedPerEvent")
]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(FIXED_TOYS)))
def test_fixed_outdiskcount(rules, number):
    found = among(FIXED_TOYS, number, rules)
    assert (found["outdiskcount"], found["outdiskunit"]) == (None, None)
    assert (found["ramcount"], found["cputime"]) == (1, 540)


@pytest.mark.parametrize("rules", ["document", "production"])
def test_rank_of_outdiskcount_is_75(rules):
    toy = Toy().job(1, outputfilebytes=100 * 100 * KB).job(2, outputfilebytes=100 * 200 * KB)
    config = {"SCOUT_RAMCOUNT_RANK": 50, "SCOUT_CPUTIME_RANK": 50}
    assert toy.parameters(rules, config=config)["outdiskcount"] == 175


LIBRARIES = [
    ({"fsize": 200 * MB}, 200),
    ({"fsize": 50 * MB}, 90),
    ({"fsize": 200 * MB, "status": "ready"}, 90),
    ({"fsize": 200 * MB, "type": "input"}, 90),
]
LIBRARY_TOYS = [
    Toy()
    .job(1, jobmetrics=f"workDirSize={90 * MB}")
    .file(7, dataset=3, **({"type": "lib"} | library))
    for library, _ in LIBRARIES
]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(LIBRARIES)))
def test_library_is_a_lower_bound_of_the_work_directory(rules, number):
    assert among(LIBRARY_TOYS, number, rules)["workdiskcount"] == LIBRARIES[number][1]


WALLTIMES = [
    (None, 7200, 2700),  # 7200 / 4 MB x 1.5
    (None, 3600, 1350),
    (None, 3599, 0),  # below an hour counts as nothing
    (2699, 7200, 2700),
    (2701, 7200, 2701),
    (-1, 7200, -1),
    (None, 10**10, 999_999_999),
    (2 * 10**9, 7200, 999_999_999),
]
WALLTIME_TOYS = [
    Toy(walltime=preset)
    .job(1, input_mb=2, cpuconsumptiontime=cpu)
    .job(2, input_mb=4, cpuconsumptiontime=1)  # the largest input need not be the same job's
    for preset, cpu, _ in WALLTIMES
]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(WALLTIMES)))
def test_walltime(rules, number):
    """CPU time per MB of input; never below the preset nor over a negative one (5.7)"""
    found, expected = among(WALLTIME_TOYS, number, rules), WALLTIMES[number][-1]
    assert (found["walltime"], found["walltimeunit"]) == (expected, "kSI2kseconds")
    tags = result_of(WALLTIME_TOYS, rules).tags.filter(jeditaskid=number, parameter="walltime")
    assert tags["pandaid"].to_list() == [1000 * number + 1]


@pytest.mark.parametrize("rules", ["document", "production"])
def test_fixed_units_are_the_current_ones(rules):
    """cpuTime by the *requested* unit, the other two by the task's *current* unit"""
    toy = Toy(cputimeunit="HS06sPerEventFixed", orig_cputimeunit="HS06sPerEvent").job(1)
    assert toy.parameters(rules)["cputime"] == 540
    toy = Toy(cputimeunit="HS06sPerEvent", orig_cputimeunit="HS06sPerEventFixed").job(1)
    assert toy.parameters(rules)["cputime"] is None


@pytest.mark.parametrize("rules", ["document", "production"])
def test_corepower_from_the_hosts_benchmark(rules):
    """host benchmark, else queue, else 10; benchmark off unless tables are given"""
    toy = (
        Toy().queue("B", 20.0, atlas_site="SITE").job(1, computingsite="B", modificationhost="a@n1")
    )
    node = {"site": ["SITE"], "host_name": ["n1"], "cpu_model_normalized": ["x"]}
    node |= {"threads_per_core": [2], "n_logical_cpus": [64]}
    score = {"cpu_type_normalized": ["x"], "smt_enabled": [1], "ncores": [64], "site": ["SITE"]}
    score |= {"score_per_core": [30.0]}
    tables = {"worker_nodes": pl.DataFrame(node), "cpu_benchmarks": pl.DataFrame(score)}
    assert toy.parameters(rules)["cputime"] == 1080
    assert toy.parameters(rules, **tables)["cputime"] == 1620


EVENTS: list[tuple[dict[str, Any], int]] = [
    ({"nevents": None}, 108_000),  # 72 000 HS06 s / 1 event
    ({"nevents": 0}, 108_000),  # 0 stays 0: the job counts as a whole
    ({"nevents": 50, "startevent": 0, "endevent": 1}, 54_000),
    ({"nevents": 50, "startevent": 9, "endevent": 1}, 108_000),
    ({"nevents": 50, "startevent": 9}, 2160),
]
EVENT_TOYS = [Toy().job(1, 7200, file={"type": "pseudo_input"} | columns) for columns, _ in EVENTS]


@pytest.mark.parametrize("rules", ["document", "production"])
@pytest.mark.parametrize("number", range(len(EVENTS)))
def test_events_of_one_file(rules, number):
    """1 (0 stays 0); a range counts at least 1"""
    found = among(EVENT_TOYS, number, rules, pseudo_input_eligible=True)
    assert found["cputime"] == EVENTS[number][1]


@pytest.mark.parametrize("rules", ["document", "production"])
def test_memory_leak_is_a_mean_per_core_rounded_up(rules):
    toy = Toy().job(1, memory_leak=10, memory_leak_x2=0.9, actualcorecount=4)  # ceil 2.5, int 0
    toy.job(2, memory_leak=-9, memory_leak_x2=3.7, actualcorecount=2)  # ceil -4.5 = -4, 3
    toy.job(3, memory_leak=5, memory_leak_x2=-1.5)  # 5, -1
    found = toy.parameters(rules)
    assert found["memory_leak_core"] == 2  # (3 - 4 + 5) / 3 = 1.33
    assert found["memory_leak_x2"] == 1  # (0 + 3 - 1) / 3 = 0.67


@pytest.mark.parametrize("rules", ["document", "production"])
def test_min_cpu_efficiency_is_a_median(rules):
    toy = Toy()
    for pandaid, cpu in ((1, 1000), (2, 500), (3, 100), (4, 901)):
        toy.job(pandaid, 1000, cpuconsumptiontime=cpu)
    found = toy.parameters(rules, config={"SCOUT_LOW_CPU_EFFICIENCY_managed": 50})
    assert found["min_cpu_efficiency"] == 70  # 10, 50, 91 (rounded up), 100: (50 + 91) / 2
    assert (found["n_inefficient"], found["n_total_for_ineff"]) == (1, 4)
    assert toy.tags("cpuEfficiency", rules) == []  # no job has exactly 70
    assert toy.job(5, 1000, cpuconsumptiontime=700).tags("cpuEfficiency", rules) == [5]


# ---- the switches as values


def test_every_switch_can_be_set_alone():
    for name, switch in ScoutRules.SWITCHES.items():
        document, production = switch.document, switch.production
        alone = ScoutRules("document", **{name: production}).to_dict()
        expected = ScoutRules().to_dict() | {name: production}
        assert alone == expected, name
        assert ScoutRules("production").to_dict()[name] == production
        assert ScoutRules().to_dict()[name] == document


@pytest.mark.parametrize(
    ("arguments", "switches", "message"),
    [
        (("documents",), {}, "did you mean 'document'"),
        ((), {"io_intensity": True}, "did you mean 'io_intensity_per_core'"),
        ((), {"long_job_inclusive": 1}, "allowed is True or False"),
        ((), {"default_cpu_efficiency": -1}, "a number of at least 0"),
        ((), {"second_trigger_counts": "both"}, "after_avalanche or whole_task"),
    ],
)
def test_wrong_switches_are_refused(arguments, switches, message):
    with pytest.raises(ConfigError, match=message):
        ScoutRules(*arguments, **switches)


def test_all_wrong_switches_are_named_at_once():
    with pytest.raises(ConfigError, match=r"rules='x'.*no such switch.*allowed is True or False"):
        ScoutRules("x", nonsense=1, leak_exhausts="yes")


def test_digest_and_rules_are_part_of_the_result():
    result = Toy().job(1).result("production", config={"SCOUT_CPUTIME_RANK": 50})
    assert result.rules == ScoutRules("production")
    assert result.config_digest.startswith("sha256:")
    assert result.config_digest != Toy().job(1).result().config_digest
