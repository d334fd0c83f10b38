"""The checks X1 to X7 (exhausted.md 1, 2, 4), boundaries included, under both rule sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.scouts import ExhaustedResult
from brokerlab.scouts.exhausted import each_check, edit_split_rule
from brokerlab.units import MB
from tests.scout_toys import Toy, settings, together

PRODUCTION = pytest.mark.parametrize("rules", ["production"])
BOTH = pytest.mark.parametrize("rules", ["document", "production"])
DAY = 86_400
NAMES = ["X1", "X2", "X3", "X4", "X5", "X6", "X7"]
ANSWERS: dict[str, ExhaustedResult] = {}


def big(rule: str = "US=2,NF=1", nfiles: int = 1000, **task: Any) -> Toy:
    """A task with one file per job and many more jobs to come."""
    return Toy(splitrule=rule, nfiles=nfiles, **task)


def checked(
    toy: Toy,
    rules: str = "document",
    *,
    config: dict[str, Any] | None = None,
    use_exhausted: bool = True,
    beside: Sequence[Toy] = (),
    **switches: Any,
) -> ExhaustedResult:
    """Return the verdict on a toy as it stands; the same question is answered once.

    A toy that stands among those ``beside`` it is one task of many, and all of them are answered at once.
    """
    if beside:
        number = next(n for n, each in enumerate(beside) if each is toy)
        whole = checked(
            together(beside), rules, config=config, use_exhausted=use_exhausted, **switches
        )
        own = pl.col("jeditaskid") == number
        return replace(whole, verdicts=whole.verdicts.filter(own), trace=whole.trace.filter(own))
    asked = repr((vars(toy), rules, config, use_exhausted, switches))
    if asked not in ANSWERS:
        result = toy.result(rules, config=config, **switches)
        ANSWERS[asked] = scouts.exhausted(
            {"tasks": toy.tables()[2]},
            scouts=result,
            config=settings(config),
            use_exhausted=use_exhausted,
        )
    return ANSWERS[asked]


def verdict(toy: Toy, rules: str = "document", **keywords: Any) -> dict[str, Any]:
    return checked(toy, rules, **keywords).verdicts.row(0, named=True)


def fired(toy: Toy, rules: str = "document", **keywords: Any) -> str | None:
    return verdict(toy, rules, **keywords)["rule"]


def why_not(toy: Toy, check: str, rules: str = "document", **keywords: Any) -> str | None:
    trace = checked(toy, rules, **keywords).trace
    return trace.filter(pl.col("rule") == check)["why_not"].item()


# ---- the frame


def abusing(**task: Any) -> Toy:
    """A task that only X6 stops."""
    return big(**task).job(1, 1000, cpuconsumptiontime=2001)


@BOTH
def test_order_trace_and_numbers(rules):
    found = checked(abusing(), rules)
    row = found.verdicts.row(0, named=True)
    assert (row["rule"], row["reason_code"]) == ("X6", "over_cpu_consumption")
    assert (row["message_code"], row["action"]) == ("over_cpu_consumption", None)
    assert row["rules"] == rules
    assert json.loads(row["numbers"]) == {
        "max_cpu_time": 2001,
        "max_cpu_time_duration": 1000.0,
        "max_cpu_time_cores": 1,
    }
    trace = found.trace
    assert trace["rule"].to_list() == NAMES
    assert trace["evaluated"].to_list() == [True] * 6 + [False]
    assert trace["fired"].to_list() == [False] * 5 + [True, False]
    assert trace["why_not"].null_count() == 1
    assert trace["why_not"].to_list()[6] == "not evaluated"


def stopped_thrice() -> Toy:
    """A task that X1, X2 and X6 stop."""
    toy = abusing(orig_cputime=1, orig_ramcount=100)
    toy.jobs[0] |= {"maxpss": 8000 * 1024, "endtime": toy.jobs[0]["starttime"]}
    return toy.job(2, 2 * DAY, cpuconsumptiontime=20 * DAY)


@BOTH
def test_each_check_on_its_own(rules):
    toy = stopped_thrice()
    found = each_check(toy.tables()[2], toy.result(rules)).row(0, named=True)
    fires = [name for name in NAMES if found[name]]
    assert (found["eligible"], fires) == (True, ["X1", "X2", "X6"])
    few = abusing(nfiles=1)
    found = each_check(few.tables()[2], few.result("production")).row(0, named=True)
    assert not any(found[name] for name in ("eligible", *NAMES))


@BOTH
def test_the_first_that_fires_decides(rules):
    toy = stopped_thrice()
    assert fired(toy, rules) == "X1"
    toy.tasks[0]["orig_cputime"] = None
    assert fired(toy, rules) == "X2"


@PRODUCTION
@pytest.mark.parametrize(("nfiles", "rule"), [(22, "X6"), (21, None), (20, None)])
def test_no_check_up_to_twenty_new_jobs(rules, nfiles, rule):
    """new_jobs > 20 (fixed number: at most 20 new jobs -> no check at all)"""
    toy = abusing(nfiles=nfiles, nfilesused=1)  # (nfiles - 1) x 1 job / 1 file
    assert fired(toy, rules) == rule
    if rule is None:
        assert checked(toy, rules).trace["evaluated"].to_list() == [False] * 7


@BOTH
def test_no_check_where_the_trigger_does_not_allow_it(rules):
    assert fired(abusing(), rules, use_exhausted=False) is None


@BOTH
def test_no_check_where_scouts_failed(rules):
    toy = abusing(rule="US=2,NF=1,SS=6").file(2, status="ready", attemptnr=1, maxattempt=1)
    assert fired(toy, rules) is None
    assert toy.parameters(rules)["succeeded"] is False


@BOTH
def test_an_ordinary_task_passes(rules):
    found = checked(big().job(1, maxpss=1024, cpuconsumptiontime=3000), rules)
    row = found.verdicts.row(0, named=True)
    nothing = dict.fromkeys(["rule", "reason_code", "message_code", "action", "numbers"])
    same = {"jeditaskid": 1, "status": "scouting", "splitrule": "US=2,NF=1", "rules": rules}
    assert row == same | nothing
    assert found.trace["evaluated"].to_list() == [True] * 7


# ---- X1


def slow(seconds: int = DAY + 1, asked: float | None = 100, **task: Any) -> Toy:
    """100 events; cputime is seconds x 10 / 100 x 1.5, i.e. 0.15 x seconds."""
    return big(orig_cputime=asked, **task).job(1, seconds)


X1 = [
    (slow(), None),
    (slow(cputimeunit="mHS06sPerEventFixed"), None),
    (slow(cputimeunit="HS06sPerFile"), "unit of cputime is not HS06"),
    (slow(cputimeunit=None), "unit of cputime is not HS06"),
    (slow(orig_cputimeunit="HS06sPerEventFixed"), "no new cputime"),
    (slow(asked=None), "no cputime was requested"),
    (slow(asked=0), "no cputime was requested"),
    (slow(100_000, asked=7500), "not above the threshold"),  # 15 000 = 2 x 7500
    (slow(100_000, asked=7499.5), None),
    (slow(DAY), "jobs run 24 h or less"),
    (slow(10, asked=10**9), "not above the threshold"),  # much smaller never fires
]
X1_TOYS = [toy for toy, _ in X1]


@PRODUCTION
@pytest.mark.parametrize(("toy", "reason"), X1)
def test_x1(rules, toy, reason):
    assert why_not(toy, "X1", rules, beside=X1_TOYS) == reason
    assert fired(toy, rules, beside=X1_TOYS) == ("X1" if reason is None else None)


@PRODUCTION
def test_x1_threshold(rules):
    toy = slow(100_000, asked=5000)  # 15 000
    off = why_not(toy, "X1", rules, config={"SCOUT_WRONG_CPUTIME_THRESHOLD": 0.0})
    assert off == "threshold off"
    three = {"SCOUT_WRONG_CPUTIME_THRESHOLD": 3.0}
    assert why_not(toy, "X1", rules, config=three) == "not above the threshold"
    numbers = json.loads(verdict(toy, rules)["numbers"])
    assert numbers == {
        "cputime": 15_000,
        "old_cputime": 5000.0,
        "wrong_cputime_threshold": 2.0,
        "exec_time": 100_000.0,
    }


@PRODUCTION
def test_x1_compares_in_one_unit(rules):
    """cputime > thr x old_cputime (same unit)"""
    toy = big(orig_cputime=4, orig_cputimeunit="HS06sPerEvent")
    toy.job(1, 100_000, events=200_000)  # 5 x 1.5 = 7.5 HS06 s = 7500 milli, below 2 x 4000
    assert why_not(toy, "X1", rules) == "not above the threshold"
    toy.tasks[0] |= {"orig_cputime": 3.7}  # 7400
    assert fired(toy, rules) == "X1"


# ---- X2


X2 = [
    ({"orig_ramcount": 3999}, 3638, None),  # 4001.8: 4001
    ({"orig_ramcount": 3999}, 3637, "measured at or below the threshold"),  # 4000.7: 4000
    ({"orig_ramcount": 4000}, 9000, "requested at or above the threshold"),
    ({"orig_ramcount": None}, 9000, "no ramcount was requested"),
    ({"orig_ramcount": 0}, 9000, None),
    ({"orig_ramcount": 1, "ramunit": "MB"}, 9000, "unit of ramcount is not per core"),
    ({"orig_ramcount": 1, "ramunit": None}, 9000, "unit of ramcount is not per core"),
    ({"orig_ramcount": 1, "ramunit": "MBPerCoreFixed"}, 9000, "no new ramcount"),
]
X2_TOYS = [big(**task).job(1, maxpss=maxpss_mb * 1024) for task, maxpss_mb, _ in X2]


@PRODUCTION
@pytest.mark.parametrize("number", range(len(X2)))
def test_x2(rules, number):
    toy, (*_, reason) = X2_TOYS[number], X2[number]
    assert why_not(toy, "X2", rules, beside=X2_TOYS) == reason
    assert fired(toy, rules, beside=X2_TOYS) == ("X2" if reason is None else None)


@PRODUCTION
def test_x2_threshold_is_in_thousand_mb(rules):
    """key in GB, default 4 -> 4000 MB, not 4096"""
    toy = big(orig_ramcount=100).job(1, maxpss=2000 * 1024)  # 2200
    assert fired(toy, rules) is None
    assert fired(toy, rules, config={"RAM_THR_EXAUSTED": 2}) == "X2"
    numbers = json.loads(verdict(toy, rules, config={"RAM_THR_EXAUSTED": 2})["numbers"])
    assert numbers == {"ramcount": 2200, "old_ramcount": 100, "ram_threshold_mb": 2000}


# ---- X3

LEAK = {"SCOUT_MEM_LEAK_PER_CORE_managed": 10}


@pytest.mark.parametrize(
    ("leak", "config", "reason"),
    [
        (11, LEAK, None),
        (10, LEAK, "not above the threshold"),
        (11, {}, "threshold off"),
        (11, {"SCOUT_MEM_LEAK_PER_CORE_managed": 0}, "threshold off"),
        (11, {"SCOUT_MEM_LEAK_PER_CORE_user": 1}, "threshold off"),
        (0, LEAK, "no leak measured"),
        (None, LEAK, "no leak measured"),
        (-20, LEAK, "not above the threshold"),
    ],
)
def test_x3_of_the_document(leak, config, reason):
    """huge memory leaks (the threshold is defined as SCOUT_MEM_LEAK_PER_CORE_<activity> in gdpconfig)"""
    toy = big().job(1, memory_leak=leak)
    assert why_not(toy, "X3", config=config) == reason
    assert fired(toy, config=config) == ("X3" if reason is None else None)


def test_x3_of_production_leaves_a_message():
    toy = big().job(1, memory_leak=11)
    row = verdict(toy, "production", config=LEAK)
    assert (row["rule"], row["reason_code"]) == (None, None)
    assert row["message_code"] == "scout_memory_leak"
    assert why_not(toy, "X3", "production", config=LEAK) == "only reported in production"
    assert fired(toy, leak_exhausts=False, config=LEAK) is None
    assert fired(toy, "production", leak_exhausts=True, config=LEAK) == "X3"


def test_a_later_check_replaces_the_message():
    toy = big().job(1, 1000, memory_leak=11, cpuconsumptiontime=2001)
    row = verdict(toy, "production", config=LEAK)
    assert (row["rule"], row["message_code"]) == ("X6", "over_cpu_consumption")
    assert verdict(toy, config=LEAK)["rule"] == "X3"


# ---- X4

SHORT = {
    "SCOUT_NUM_SHORT_managed": 5,
    "SCOUT_THR_SHORT_managed": 100,
    "SCOUT_SHORT_EXECTIME_managed": 10,
}
CHANGE = SHORT | {"SCOUT_CHANGE_SR_managed": True}


def short(
    rule: str = "US=3,NE=100",
    n_short: int = 2,
    n_long: int = 2,
    nfiles: int = 1000,
    events: int = 10**4,
) -> Toy:
    """Short jobs of 10 min, long ones of a second more, at a queue with direct access."""
    toy = big(rule, nfiles, nfilesused=n_short + n_long).queue("DIRECT", 10.0, maxinputsize=-1)
    for number in range(n_short + n_long):
        seconds = 600 if number < n_short else 601
        toy.job(number + 1, seconds, computingsite="DIRECT", cpuconsumptiontime=1)
    return toy.file(None, status="ready", nevents=events)


X4 = [
    (short(), SHORT, None),
    (short(n_long=3), SHORT, "too few short jobs"),
    (short(), SHORT | {"SCOUT_NUM_SHORT_managed": 0}, "number or cutoff off"),
    (short(), SHORT | {"SCOUT_THR_SHORT_managed": 0}, "number or cutoff off"),
    (short(), {"SCOUT_SHORT_EXECTIME_managed": 10}, "number or cutoff off"),
    (short(), SHORT | {"SCOUT_SHORT_EXECTIME_managed": 9}, "too few short jobs"),
    (short(nfiles=104), SHORT, None),  # 100 are new: not below 100
    (short(nfiles=103), SHORT, "few jobs expected"),
    (short(events=9500), SHORT, None),  # whatever their events are
]
X4_TOYS = [toy for toy, *_ in X4]


@pytest.mark.parametrize(("toy", "config", "reason"), X4)
def test_x4_of_the_document(toy, config, reason):
    """too many short jobs ... and a large number of new jobs expected"""
    assert why_not(toy, "X4", config=config, beside=X4_TOYS) == reason
    assert fired(toy, config=config, beside=X4_TOYS) == ("X4" if reason is None else None)


X4_ALL = [
    (short(nfiles=100), None),
    (short(nfiles=99), "few jobs expected"),
    # 100 expected by events: 4 jobs x 100 of 400; the *smaller* of both counts
    (short(events=9600), None),
    (short(events=9500), "few jobs expected"),
]
X4_ALL_TOYS = [toy for toy, _ in X4_ALL]


@pytest.mark.parametrize(("toy", "reason"), X4_ALL)
def test_x4_counts_all_jobs(toy, reason):
    """min(expected_jobs, expected_jobs_event) < cut"""
    asked: dict[str, Any] = {"config": SHORT, "beside": X4_ALL_TOYS}
    assert why_not(toy, "X4", **asked, short_cutoff_counts="all_jobs") == reason
    deployed = why_not(toy, "X4", "production", **asked)
    assert deployed == (reason or "never exhausts in production")


@pytest.mark.parametrize(
    ("counts", "jobs"),
    [
        ("new_jobs", {"new_jobs": 996}),
        ("all_jobs", {"expected_jobs": 1000, "expected_jobs_event": 104}),
    ],
)
def test_x4_numbers(counts, jobs):
    row = verdict(short(), config=SHORT, short_cutoff_counts=counts)
    assert json.loads(row["numbers"]) == jobs | {
        "n_short": 2,
        "n_short_copy": 0,
        "total_short_base": 4,
        "short_tenths": 5.0,
        "short_cutoff": 100.0,
        "longest_short": 600,
        "short_exec_time": 10.0,
    }


def test_x4_without_a_known_duration():
    toy = big("US=3,NE=1").job(1, None)
    assert why_not(toy, "X4", config=SHORT) == "no job with known duration"


@pytest.mark.parametrize(
    ("direct", "reason"), [(2, None), (1, "short where copy to scratch is forced")]
)
def test_x4_excuses_forced_copies(direct, reason):
    """too many short jobs without being enforced to copy input files to scratch disk"""
    toy = short()
    for job in toy.jobs[direct:2]:
        job["computingsite"] = "Q"  # not direct: the copy is forced
    assert why_not(toy, "X4", config=SHORT) == reason


@pytest.mark.parametrize(
    ("rule", "limit", "reason"),
    [
        ("US=2", 99, "jobs grow long enough after the avalanche"),  # 600 s x 10 = 100 min
        ("US=2", 100, None),
        ("US=2,NF=1", 99, None),  # the files per job are fixed
        ("US=2,MF=1", 99, None),
        ("US=2,MF=2", 99, "jobs grow long enough after the avalanche"),
        ("US=2,NE=100", 99, None),  # the events per job are fixed
        ("US=3", 99, None),  # not scouts any more
    ],
)
def test_x4_excuses_jobs_that_will_grow(rule, limit, reason):
    """If new jobs after avalanche have more input files than scout jobs and the extrapolated execution time
    is longer than SCOUT_SHORT_EXECTIME_<activity>, tasks are not set to exhausted."""
    # without limits on jobs few are expected after the avalanche: the cutoff is low
    config = SHORT | {"SCOUT_SHORT_EXECTIME_managed": limit, "SCOUT_THR_SHORT_managed": 1}
    toy = short(rule, events=10**7)
    toy.files[-1]["fsize"] = 10**12
    for file in toy.files[:4]:
        file["fsize"] = 10**10
    assert why_not(toy, "X4", config=config) == reason


def test_x4_scaled_time_is_cut_to_whole_minutes():
    config = SHORT | {"SCOUT_SHORT_EXECTIME_managed": 11}
    toy = short("US=2,MF=9")
    toy.jobs = toy.jobs[:2]
    for job in toy.jobs:
        job["endtime"] = job["starttime"].replace(second=59, minute=1)  # 119 s x 10 / 60 = 19.8
    assert why_not(toy, "X4", config=config) == "jobs grow long enough after the avalanche"
    config["SCOUT_SHORT_EXECTIME_managed"] = 19
    assert why_not(toy, "X4", config=config) is None


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        ("document", "US=2,NF=1", "US=2"),
        ("document", "NG=5,US=2", "US=2"),
        ("document", "US=2,NF=1,NG=5,MF=50,MC=5", "US=2,MF=50,MC=5"),
        ("production", "US=2,NF=1", "US=2"),
        ("production", "NG=5,US=2", "US=2"),
        ("production", "US=2,NF=1,NG=5,MF=50,MC=5", "US=2,MF=200,MC=5"),
        ("production", "US=2,MF=199", "US=2,MF=200"),
        ("production", "US=2,NF=3,MF=200", "US=2,MF=200"),
    ],
)
def test_x4_changes_the_split_rule_instead(rules, before, after):
    """If tasks meet the above condition and specify nGBPerJob or nFilesPerJob, and SCOUT_CHANGE_SR_<activity>
    is defined in gdpconfig, the system will automatically remove those parameters, rather than sending them to
    exhausted."""
    toy = short(before)
    toy.files[-1]["nevents"] = 10**7
    config = CHANGE | {"SCOUT_THR_SHORT_managed": 1}
    row = verdict(toy, rules, config=config)
    assert (row["rule"], row["action"], row["splitrule"]) == (None, "change_split_rule", after)
    assert why_not(toy, "X4", rules, config=config) == "split rule changed instead"
    assert why_not(toy, "X5", rules, config=config) == "split rule changed instead"
    assert checked(toy, rules, config=config).trace["evaluated"].to_list() == [True] * 7
    unchanged = verdict(toy, rules, config=SHORT)
    assert (unchanged["action"], unchanged["splitrule"]) == (None, before)


@pytest.mark.parametrize("rule", ["US=3,NE=100", "US=3,NE=100,MF=200"])
def test_x4_exhausts_where_nothing_can_be_changed(rule):
    assert verdict(short(rule), config=CHANGE)["rule"] == "X4"
    assert verdict(short(rule), config=CHANGE)["action"] is None


def test_x4_takes_back_the_new_gb_per_job():
    """nGBPerJob set by the same scouts is in the split rule by then"""
    toy = short("US=3,NE=100,TN=2")
    toy.tasks[0]["outdiskunit"] = "kB"
    for job in toy.jobs:
        job["outputfilebytes"] = MB
        toy.output(job["pandaid"], "A", MB)
    row = verdict(toy, config=CHANGE)
    assert (row["action"], row["splitrule"]) == ("change_split_rule", "US=3,NE=100,TN=2")
    assert "NG=" in verdict(toy, config=SHORT)["splitrule"]


def test_other_checks_run_after_a_changed_split_rule():
    toy = short("US=3,NF=1")
    toy.jobs[0]["cpuconsumptiontime"] = 5000
    row = verdict(toy, config=CHANGE)
    assert (row["rule"], row["action"]) == ("X6", "change_split_rule")


def test_x4_of_production_never_exhausts():
    assert fired(short(), "production", config=SHORT) is None
    assert why_not(short(), "X4", "production", config=SHORT) == "never exhausts in production"
    assert fired(short(), config=SHORT, short_jobs_exhaust=False) is None
    assert fired(short(), "production", config=SHORT, short_jobs_exhaust=True) == "X4"


@pytest.mark.parametrize(
    ("rule", "raised", "kept"),
    [
        ("NF=1", "", ""),
        ("US=2", "US=2", "US=2"),
        ("", "", ""),
        ("MF=9,AN=1,2,NF=2", "MF=200,AN=1,2", "MF=9,AN=1,2"),
    ],
)
def test_edit_split_rule(rule, raised, kept):
    assert edit_split_rule(rule, raises_max_files=True) == raised
    assert edit_split_rule(rule, raises_max_files=False) == kept


# ---- X5

LAZY = {
    "SCOUT_NUM_CPU_INEFFICIENT_managed": 5,
    "SCOUT_THR_CPU_INEFFICIENT_managed": 100,
    "SCOUT_LOW_CPU_EFFICIENCY_managed": 50,
}


def lazy(rule: str = "US=2,NF=1", nfiles: int = 1000, n_low: int = 2, **job: Any) -> Toy:
    """Four jobs of which some reach 49 % and the others 50 %."""
    toy = big(rule, nfiles)
    for number in range(4):
        cpu = 490 if number < n_low else 500
        toy.job(number + 1, 1000, **({"cpuconsumptiontime": cpu} | job))
    return toy


X5 = [
    (lazy(), {}, None),
    (lazy(n_low=1), {}, "within the general limit"),
    (lazy(nfiles=101), {}, None),
    (lazy(nfiles=100), {}, "within the general limit"),  # above the cutoff, not at it
    (
        lazy(nfiles=30).file(None, status="ready", nevents=10**4),
        {},
        None,
    ),  # the *larger* counts
    (lazy(), {"SCOUT_NUM_CPU_INEFFICIENT_managed": 0}, "within the general limit"),
    (lazy(), {"SCOUT_NUM_CPU_INEFFICIENT_managed": 6}, "within the general limit"),
    (lazy(), {"SCOUT_THR_CPU_INEFFICIENT_managed": 0}, "within the general limit"),
    (lazy(cpuconsumptiontime=None), {}, "within the general limit"),
    (lazy(), {"SCOUT_LOW_CPU_EFFICIENCY_managed": 49}, "within the general limit"),
]
X5_TOYS = [toy for toy, *_ in X5]


@BOTH
@pytest.mark.parametrize(("toy", "change", "reason"), X5)
def test_x5_general_limit(rules, toy, change, reason):
    asked: dict[str, Any] = {"config": LAZY | change, "beside": X5_TOYS}
    assert why_not(toy, "X5", rules, **asked) == reason
    assert fired(toy, rules, **asked) == ("X5" if reason is None else None)


@BOTH
@pytest.mark.parametrize(
    ("limit", "change", "reason"),
    [
        (50, {}, None),
        (
            49,
            {},
            "meets its own limit",
        ),  # median of 49, 49, 50, 50: int(49.5); and not the general one
        (0, {}, "within the general limit"),  # 0 is not set
        (50, {"cpuconsumptiontime": None}, "efficiency not measured"),
    ],
)
def test_x5_own_limit(rules, limit, change, reason):
    """very low CPU efficiency (the threshold is defined as a task parameter minCpuEfficiency)"""
    toy = lazy(f"US=2,NF=1,MC={limit}", **change)
    assert why_not(toy, "X5", rules) == reason
    assert fired(toy, rules) == ("X5" if reason is None else None)
    if limit == 49:
        assert why_not(toy, "X5", rules, config=LAZY) == reason


def test_x5_own_limit_crashes_the_deployed_release():
    toy = lazy("US=2,NF=1,MC=50")
    notes = checked(toy, "production").trace["note"].to_list()
    assert notes == [None] * 4 + ["mc_unsupported_in_1_0_4"] + [None] * 2
    assert checked(toy).trace["note"].null_count() == 7
    assert checked(lazy(), "production").trace["note"].null_count() == 7


BUSY = {rule: lazy(rule, outputfilebytes=0) for rule in ("US=2,NF=1", "US=2,NF=1,MC=50")}
"""1024 kB / 1000 s: rounded up to 2."""


@BOTH
@pytest.mark.parametrize("rule", ["US=2,NF=1", "US=2,NF=1,MC=50"])
@pytest.mark.parametrize(("limit", "excused"), [(1, True), (2, False), (0, False), (None, False)])
def test_x5_excuses_busy_io(rules, rule, limit, excused):
    """iointensity > io: then it is only reported"""
    toy = BUSY[rule]
    config = LAZY | (
        {} if limit is None else {"SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_managed": limit}
    )
    expected = "excused by its ioIntensity" if excused else None
    assert why_not(toy, "X5", rules, config=config, beside=[*BUSY.values()]) == expected


@BOTH
def test_x5_numbers(rules):
    numbers = json.loads(verdict(lazy(), rules, config=LAZY)["numbers"])
    assert numbers == {
        "min_cpu_efficiency": 49,
        "MC": None,
        "n_inefficient": 2,
        "n_total_for_ineff": 4,
        "inefficient_tenths": 5.0,
        "expected_jobs": 1000,
        "expected_jobs_event": 4,
        "inefficient_cutoff": 100.0,
        "iointensity": None,
        "max_io_intensity": None,
    }


@BOTH
def test_x5_without_io_intensity_is_not_excused(rules):
    config = LAZY | {"SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_managed": 1}
    assert fired(lazy(), rules, config=config) == "X5"


# ---- X6

TWICE = "not above twice duration times cores"


X6 = {(8001, 4): None, (8000, 4): TWICE, (1, 0): None, (None, 4): TWICE}
X6_TOYS = {
    (cpu, cores): big().job(1, 1000, cpuconsumptiontime=cpu, actualcorecount=cores)
    for cpu, cores in X6
}


@BOTH
@pytest.mark.parametrize("case", X6)
def test_x6(rules, case):
    """non-allocated CPUs being abused, e.g. multi-core jobs running on single-core resources"""
    assert why_not(X6_TOYS[case], "X6", rules, beside=[*X6_TOYS.values()]) == X6[case]


@BOTH
def test_x6_without_times(rules):
    toy = big().job(1, None, cpuconsumptiontime=9000)
    assert why_not(toy, "X6", rules) == TWICE


# ---- X7


def partly(n_bad: int, rule: str = "US=2,NF=1,SS=8") -> Toy:
    """Ten scouts, some of which can no longer succeed."""
    toy = big(rule)
    for number in range(10):
        if number < n_bad:
            toy.file(number + 1, status="ready", attemptnr=3, maxattempt=3)
        else:
            toy.job(number + 1)
    return toy


OK_RATE = {"SCOUT_MIN_OK_RATE_EXHAUSTED_managed": 0.5}
PARTLY = {n_bad: partly(n_bad) for n_bad in (6, 5, 3, 2, 0)}


@cache
def succeeds(rules: str) -> dict[int, bool]:
    """Return which of these tasks the scouts let go on."""
    found = together([*PARTLY.values()]).result(rules, config=OK_RATE).parameters
    return dict(zip(PARTLY, found.sort("jeditaskid")["succeeded"], strict=True))


@BOTH
@pytest.mark.parametrize(
    ("n_bad", "rule", "succeeded"),
    [(6, None, False), (5, "X7", True), (3, "X7", True), (2, None, True), (0, None, True)],
)
def test_x7(rules, n_bad, rule, succeeded):
    """success_rate < rate -> tobroken; rate <= success_rate < SS/10 -> exhausted; >= SS/10 -> go on"""
    toy = PARTLY[n_bad]
    assert fired(toy, rules, config=OK_RATE, beside=[*PARTLY.values()]) == rule
    assert succeeds(rules)[n_bad] is succeeded


FIVE = {
    rule: partly(5, rule)
    for rule in (
        "US=2,NF=1,SS=8",
        "US=2,NF=1",
        "US=2,NF=1,SS=5",
        "US=2,NF=1,SS=4",
        "US=3,NF=1,SS=8",
    )
}


@BOTH
@pytest.mark.parametrize(
    ("rule", "config", "reason"),
    [
        ("US=2,NF=1,SS=8", {}, "not evaluated"),  # below SS/10: the scouts failed
        ("US=2,NF=1", OK_RATE, "rates not both set, or the task's is not stricter"),
        ("US=2,NF=1,SS=5", OK_RATE, "rates not both set, or the task's is not stricter"),
        ("US=2,NF=1,SS=4", OK_RATE, "rates not both set, or the task's is not stricter"),
        ("US=3,NF=1,SS=8", OK_RATE, "no success rate"),
    ],
)
def test_x7_off(rules, rule, config, reason):
    toy = FIVE[rule]
    assert why_not(toy, "X7", rules, config=config, beside=[*FIVE.values()]) == reason


# ---- many tasks


@BOTH
def test_every_task_has_its_own_label_and_verdict(rules):
    toy = big(prodsourcelabel="user").task(
        2, splitrule="NF=1", nfiles=1000, prodsourcelabel="managed"
    )
    toy.task(3, splitrule="NF=1", nfiles=1000, prodsourcelabel=None)
    for number in (1, 2, 3):
        toy.job(number, 1000, task=number, memory_leak=11)
    found = checked(toy, config=LEAK).verdicts
    assert found.select("jeditaskid", "rule").rows() == [(1, None), (2, "X3"), (3, None)]
    assert checked(toy, rules, config=LEAK).trace.height == 21
