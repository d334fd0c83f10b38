"""Wall time (rows 28 to 30): the smallest job must fit, and must not be too short.

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
A job of 1000 events x 100 HS06 s takes 1250 s in the queue's slots of 8 cores x 10 HS06.
"""

from __future__ import annotations

from typing import Any

from tests.unit.brokerage.production_jobs.book import ADDED, Found, ask, cases, one

DAY = 86_400
SINGLE = {"site": "SITE"}
LISTED = {"site": "SITE,OTHER"}


def lasting(maxtime: int | None, /, *, rules: Any = ADDED, **columns: Any) -> Found:
    """Ask about a queue of ``maxtime``; columns of the queue start with ``q_``, the others are the task's."""
    return _with({"maxtime": maxtime}, columns, rules)


def starting(mintime: int | None, /, *, rules: Any = ADDED, **columns: Any) -> Found:
    """Ask about a queue of ``mintime``."""
    return _with({"mintime": mintime}, columns, rules)


def _with(limit: dict[str, Any], columns: dict[str, Any], rules: str) -> Found:
    own = {name.removeprefix("q_"): columns.pop(name) for name in list(columns) if name[:2] == "q_"}
    return ask(one(columns, **(limit | own)), rules)


@cases(
    (lasting(1250), None),
    (lasting(1249), "walltime_max"),
    (lasting(1), "walltime_max"),
    (lasting(0), None),
    (lasting(None), None),
    (lasting(1350, basewalltime=100.0), None),
    (lasting(1349, basewalltime=100.0), "walltime_max"),
    (lasting(2500, cpuefficiency=50.0), None),
    (lasting(2499, cpuefficiency=50.0), "walltime_max"),
    (lasting(1389, cpuefficiency=None), None),  # 90 %
    (lasting(1388, cpuefficiency=None), "walltime_max"),
    (lasting(1250, q_corepower=9.9), "walltime_max"),
    (lasting(1250, q_corepower=None), "walltime_max"),
    (lasting(1250, basewalltime=None), None),
    (lasting(10_000, q_corecount=0, corecount=0), None),
    (lasting(9999, q_corecount=0, corecount=0), "walltime_max"),
    (lasting(1250, cputime=100_000.0, cputimeunit="mHS06sPerEvent"), None),
    (lasting(1249, cputime=100_000.0, cputimeunit="mHS06sPerEventFixed"), "walltime_max"),
    (lasting(1249, cputimeunit="HS06sPerEventFixed"), "walltime_max"),
    (lasting(1, atom_nevents=0), None),
    (lasting(1, atom_nevents=None), None),
    (lasting(1249, **SINGLE), "walltime_max"),
    (lasting(1249, is_merging=True), "walltime_max"),
)
def test_walltime_at_most(found: Found, expected: str | None) -> None:
    """ "cpuTime × nEvents / (C × P × cpuEfficiency) + baseTime ... must be between mintime and maxtime at the queue." """
    assert found.check == expected


@cases(
    (starting(1250), None),
    (starting(1251), "walltime_min"),
    (starting(0), None),
    (starting(None), None),
    (starting(1350, basewalltime=100.0), None),
    (starting(1351, basewalltime=100.0), "walltime_min"),
    (starting(1, cputime=None), "walltime_min"),
    (starting(0, cputime=None), None),
    (starting(1, atom_nevents=0), "walltime_min"),
    (starting(99_999, q_corepower=None, q_maxtime=0), None),
    (starting(1251, **SINGLE), "walltime_min"),
)
def test_walltime_at_least(found: Found, expected: str | None) -> None:
    """The same: "must be between mintime and maxtime". Chapter, row 30: "need undefined or need < capacity(mintime)"."""
    assert found.check == expected


PER_MB = {"cputimeunit": None, "walltime": 1000.0}


@cases(
    (lasting(12_500, **PER_MB), None),  # 1000 s x 100 MB in 8 cores
    (lasting(12_499, **PER_MB), "walltime_max"),
    (lasting(12_500, **PER_MB, basewalltime=1e6, cpuefficiency=1.0, q_corepower=1.0), None),
    (lasting(1, cputimeunit=None, walltimeunit="kSI2kseconds"), None),
    (starting(12_500, **PER_MB), None),
    (starting(12_501, **PER_MB), "walltime_min"),
    (starting(1, cputimeunit=None, walltimeunit="kSI2kseconds"), "walltime_min"),
    (lasting(12_499, **PER_MB | {"cputimeunit": "kHS06"}), "walltime_max"),
)
def test_walltime_by_size_of_the_input(found: Found, expected: str | None) -> None:
    """Chapter 4.4: "Other mode: capacity(x) = x * max(1, corecount); need = walltime * atom_size_effective"."""
    assert found.check == expected


ES = {"eventservice": 1}


@cases(
    (lasting(417, **ES), None),  # a third of 1250 s
    (lasting(416, **ES), "walltime_max"),
    (lasting(250, **ES, maxattemptesjob=4), None),
    (lasting(249, **ES, maxattemptesjob=4), "walltime_max"),
    (lasting(125, **ES, maxattemptesjob=4, nesconsumers=2), None),
    (lasting(124, **ES, maxattemptesjob=4, nesconsumers=2), "walltime_max"),
    (lasting(1249, **ES, usejobcloning=True), "walltime_max"),
)
def test_walltime_of_event_service(found: Found, expected: str | None) -> None:
    """Chapter 4.4: "Event service (not cloning): need / (nesconsumers * attempts)"; 1.1: "1; 3, otherwise value + 1"."""
    assert found.check == expected


DYNAMIC = {"dynamicnumevents": 100, "max_consecutive_events": 500}


@cases(
    (lasting(125, **DYNAMIC, q_mintime=1), None),
    (lasting(124, **DYNAMIC, q_mintime=1), "walltime_max"),
    (lasting(1249, **DYNAMIC), "walltime_max"),
    (lasting(1250, **DYNAMIC), None),
    (lasting(1249, dynamicnumevents=0, q_mintime=1), "walltime_max"),
    (starting(625, **DYNAMIC), None),
    (starting(626, **DYNAMIC), "walltime_min"),
    (starting(250, **DYNAMIC, maxeventsperjob=200), None),
    (starting(251, **DYNAMIC, maxeventsperjob=200), "walltime_min"),
    (starting(625, **DYNAMIC, maxeventsperjob=9000), None),
    (starting(125, dynamicnumevents=100), None),
    (starting(126, dynamicnumevents=100), "walltime_min"),
    (starting(1, **DYNAMIC, cputime=None), "walltime_min"),
)
def test_dynamic_number_of_events(found: Found, expected: str | None) -> None:
    """Chapter 4.4: "need_dyn = cputime_s * granularity, need_dyn_max = cputime_s * min(max_consecutive_events, maxeventsperjob); used instead of need at queues with mintime > 0"."""
    assert found.check == expected


EFFICIENCY_0 = {"cpuefficiency": 0.0, "basewalltime": 1000.0}


@cases(
    (lasting(1000, **EFFICIENCY_0), None),
    (lasting(999, **EFFICIENCY_0), "walltime_max"),
    (starting(1000, **EFFICIENCY_0), None),
    (starting(1001, **EFFICIENCY_0), "walltime_min"),
    (lasting(1000, **EFFICIENCY_0, cputime=1e9), None),
    (lasting(1, cpuefficiency=0.0), None),
    (starting(1, cpuefficiency=0.0), "walltime_min"),
    (starting(1000, **EFFICIENCY_0, cputime=None), None),
    (lasting(12_499, **PER_MB, **EFFICIENCY_0), "walltime_max"),
    (lasting(345_600, **EFFICIENCY_0, rules="production"), "walltime_max"),
    (lasting(0, **EFFICIENCY_0, rules="production"), None),
    (starting(99_999, **EFFICIENCY_0, q_maxtime=0, rules="production"), None),
)
def test_efficiency_0_disables_scaling_with_events(found: Found, expected: str | None) -> None:
    """Chapter, J14: "disables scaling with events"; "document: with 0, need = basewalltime only"; production: "every queue with maxtime fails when need > 0"."""
    assert found.check == expected


SCOUT = {"use_scout": True}
UNDEFINED = {"cputime": None}


@cases(
    (lasting(DAY, **SCOUT), None),
    (lasting(DAY - 1, **SCOUT), "walltime_24h"),
    (lasting(0, **SCOUT), None),
    (lasting(None, **SCOUT), None),
    (lasting(DAY - 1), None),
    (lasting(DAY - 1, **SCOUT, **SINGLE), None),
    (lasting(DAY - 1, **SCOUT, **LISTED), "walltime_24h"),
    (lasting(DAY, **UNDEFINED), None),
    (lasting(DAY - 1, **UNDEFINED), "walltime_24h"),
    (lasting(DAY - 1, cputime=0.0), "walltime_24h"),
    (lasting(DAY - 1, cputimeunit=None), "walltime_24h"),
    (lasting(DAY - 1, cputimeunit=None, walltime=0.0), "walltime_24h"),
    (lasting(DAY - 1, cputimeunit=None, walltime=1.0), None),
    (lasting(DAY - 1, cputimeunit=None, walltimeunit="kSI2kseconds"), None),
    (lasting(DAY - 1, **UNDEFINED, **SINGLE), "walltime_24h"),
    (lasting(DAY - 1, is_merging=True), None),
    (lasting(DAY, **SCOUT, q_corepower=5.0), None),
    (lasting(DAY - 1, **SCOUT, q_corepower=20.0), "walltime_24h"),
    (lasting(1, **UNDEFINED, is_merging=True), "walltime_24h"),
)
def test_scouts_and_jobs_of_unknown_walltime_need_a_day(found: Found, expected: str | None) -> None:
    """ "For scout or walltime-undefined jobs, skip queues if their maxtime is less than 24 hours." """
    assert found.check == expected


P = {"rules": "production"}


@cases(
    (lasting(DAY, **SCOUT, **P), None),
    (lasting(DAY - 1, **SCOUT, **P), "walltime_24h"),
    (lasting(DAY, **SCOUT, **P, q_corepower=9.9), "walltime_24h"),
    (lasting(DAY // 2, **SCOUT, **P, q_corepower=20.0), None),
    (lasting(DAY, **SCOUT, **P, cpuefficiency=99.0), "walltime_24h"),
    (lasting(DAY, **SCOUT, **P, basewalltime=1.0), "walltime_24h"),
    (lasting(DAY - 1, is_merging=True, **P), "walltime_24h"),
    (lasting(DAY - 1, is_merging=True, **SINGLE, **P), "walltime_24h"),
    (lasting(0, **SCOUT, **P), None),
    (lasting(0, **SCOUT, **P, basewalltime=1.0), "walltime_24h"),
    (lasting(10 * DAY, **SCOUT, **PER_MB, **P), None),
    (lasting(10 * DAY - 1, **SCOUT, **PER_MB, **P), "walltime_24h"),
)
def test_production_compares_the_capacity_of_a_day(found: Found, expected: str | None) -> None:
    """Chapter, J13: "HS06 capacity < 24 h * 10 HS06 * cores; plus merging. In non-HS06 mode ... 240 h"; J14b: "negative capacity: rejected"."""
    assert found.check == expected
