"""The weight of a queue (6.3), its factors, and what the network weight keeps out (row 47), worked out by hand.

Every test is made from the words that it quotes: of the page where a quotation is not marked, else of the chapter.
"""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.units import GB
from tests.brokerage_toys import World
from tests.unit.brokerage.production_jobs.book import (
    ADDED,
    Found,
    ask,
    cases,
    levelled,
    one,
    parent,
    told,
)

BASE = {"defined": 2, "assigned": 15, "activated": 10, "starting": 3}


def weighed(
    held: int | None = None, *, rules: Any = ADDED, live: int = 0, task: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None, **jobs: int,
) -> Found:  # fmt: skip
    """Ask about a queue that holds so many of 10 files of 1 GB; no input without a number.

    49 jobs run; 2 are defined, 15 assigned, 10 activated, 3 starting, unless said otherwise; no nucleus.
    """
    world = one({"nucleus": None} | (task or {}), running=49).jobs("SITE", **(BASE | jobs))
    if held is not None:
        world.data(10, size=GB, here={"SITE": held})
    if live:
        world.add("live", panda_queue="SITE", njobs=live)
    return ask(world, rules, **(settings or {}))


@cases(
    (weighed(), 50 / (10 + 3 + 2 + 10)),
    (weighed(10), 50 / 25 * 2),
    (weighed(assigned=0), 50 / 25),
    (weighed(live=5), 50 / 30),
    (weighed(defined=7), 50 / 30),
)
def test_the_weight_of_a_queue_with_its_input(found: Found, expected: float) -> None:
    """ "The number of assigned jobs is ignored for the weight calculation ... if the input for the jobs being considered is already available locally." Chapter 6.3: "defined D (+ jobs submitted in this cycle, `live`)"."""
    assert found.only["weight"] == pytest.approx(expected, rel=1e-12)


@told(some=weighed(6), none=weighed(0))
def test_the_weight_of_a_queue_without_all_input(some: Found, none: Found) -> None:
    """ "weight = (running + 1) / ((activated + assigned + starting + defined + 10) × manyAssigned)"; "weight × (availableSize + totalSize) / (totalSize × (numMissingFiles / 100 + 1))"."""
    by_hand = 50 / (10 + 15 + 3 + 2 + 10) / (16 / 11) * (10 + 6) / 10 / (4 / 100 + 1)
    found = some.only
    assert found["weight"] == pytest.approx(by_hand, rel=1e-12)
    assert (found["missing_files"], found["missing_mb"]) == (4, 4096)
    nothing = 50 / 40 / (16 / 11) * 1 / (10 / 100 + 1)
    assert none.only["weight"] == pytest.approx(nothing, rel=1e-12)


@cases(
    (weighed(0, assigned=10), 1.0),
    (weighed(0, assigned=9), 1.0),
    (weighed(0, assigned=0), 1.0),
    (weighed(0, assigned=15), 16 / 11),
    (weighed(0, assigned=21), 2.0),
    (weighed(0, assigned=32), 2.0),
    (weighed(0, assigned=20), 21 / 11),
    (weighed(0, assigned=0, activated=0), 1.0),
    (weighed(0, assigned=5, activated=0), 2.0),
)
def test_many_assigned(found: Found, expected: float) -> None:
    """ "manyAssigned = max(1, min(2, assigned / activated))"; J25: "(A + 1) / (V + 1): code's fact (no division by zero)"."""
    jobs = {row["jobstatus"]: row["njobs"] for row in found.world.tables["job_stats"]}
    waiting = sum(jobs[status] for status in BASE) + 10
    assert found.only["work"] == pytest.approx(50 / waiting / expected, rel=1e-12)


HALF, NOTHING = 1.5 / 1.05, 1 / 1.1
COPIES = {"localdisk": HALF, "cache": HALF, "localtape": NOTHING, "remote": NOTHING}


@cases(
    *[
        (ask(one({"nucleus": None}).data(10, here={"SITE": 5}, kind=kind)), factor)
        for kind, factor in COPIES.items()
    ]
)
def test_other_kinds_of_copies_are_no_local_input(found: Found, expected: float) -> None:
    """Chapter 6.1: "avail / navail: lfn at `localdisk` or `cache` of the parent"."""
    assert found.only["data"] == pytest.approx(expected, rel=1e-12)


# the nucleus


def preferred(**task: Any) -> Found:
    """Ask about a queue of the nucleus, a sharing one and another."""
    world = World(**task).queue("OWN", site="NUC").queue("SHARING").queue("FAR")
    place = {"panda_queue": "OWN", "direction": "input", "ddm_endpoint_name": "SHARING_DATADISK"}
    return ask(world.add("queue_endpoints", **place))


@cases(
    (preferred(), 1),
    (preferred(t1weight=7), 7),
    (preferred(t1weight=-1), 1),
    (preferred(t1weight=-1, is_merging=True), 1),
    (preferred(iointensity=501), 4),
    (preferred(iointensity=500), 1),
    (preferred(iointensity=501, t1weight=7), 7),
    (preferred(currentpriority=900), 100),
    (preferred(currentpriority=899), 1),
    (preferred(use_scout=True), 100),
    (preferred(use_scout=True, t1weight=101), 101),
    (preferred(currentpriority=900, t1weight=-1), 100),
    (preferred(currentpriority=900, eventservice=1), 1),
    (preferred(currentpriority=900, eventservice=1, usejobcloning=True), 1),
    (preferred(currentpriority=900, site="OWN,SHARING,FAR"), 1),
)
def test_queues_of_the_nucleus_are_preferred(found: Found, expected: int) -> None:
    """Chapter 4.6: "t1 = t1weight; 0: 1, or 4 if iointensity > 500; negative (not merging): 1 after check 38. t1 = max(t1, h), h = 100 if (prio >= 900 or scout) and eventservice not in (1, 2) and not single_or_list, else 1"."""
    rows = found.queues()
    assert {rows["OWN"]["t1"], rows["SHARING"]["t1"]} == {expected}
    assert rows["FAR"].get("t1", 1) == 1
    own = rows["OWN"]
    product = own["work"] * own["data"] * expected * own["network"] * own["preference"]
    assert own["weight"] == pytest.approx(product, rel=1e-12)


def unified_with_input() -> World:
    """Return pseudo-queues of a nucleus's unified queue that has 6 of 10 files."""
    world = World(t1weight=7).queue("OTHER")
    parent(world, "SITE", {}, {}, site="NUC", running=49)
    return world.data(10, here={"SITE": 6})


@told(found=ask(unified_with_input()))
def test_pseudo_queues_have_what_their_parent_has(found: Found) -> None:
    """Chapter 6: "Per pseudo-queue; statistics by parent name"; 6.1: "of the parent"; 6.3: "if parent is a nucleus or sharing queue"."""
    rows = found.queues()
    factors = {(row["work"], row["data"], row["t1"], row["network"]) for row in rows.values()}
    assert rows["SITE/0"]["weight"] == rows["SITE/1"]["weight"]
    assert factors >= {(50 / 20, 1.6 / 1.04, 7, 2.5)}
    assert len(factors) == 2


# the network


def networked(rules: Any = ADDED, /, *, active: bool = False, **link: Any) -> Found:
    return ask(one().link("SITE", **link), rules, NW_ACTIVE=active)


@cases(
    (networked(queued=30, mbps=80.0), 1.85),
    (networked(queued=75, mbps=None, closeness=11), (1.75 + 1.0) / 2),
    (networked(queued=0, mbps=None, closeness=0), 2.0),
    (networked(queued=30, mbps=60.0), (1.9 + 1.7) / 2),
    (networked(queued=30, mbps=60.0, active=True), (1.9 + 1.7) / 2),
    (networked("production", queued=30, mbps=60.0), 1.0),
    (networked("production", queued=30, mbps=60.0, active=True), (1.8 + 1.6) / 2),
    (ask(one({"nucleus": None})), 1.0),
    (ask(World().queue("AT", site="NUC")), 2.5),
    (ask(one().change("queue_storage_site", site_name=None)), 1.65),
    (ask(World().queue("AT", site="NUC").change("queue_storage_site", site_name="SITE")), 1.65),
)
def test_the_network_weight_multiplies(found: Found, expected: float) -> None:
    """ "Apply a Network weight based on connectivity between nucleus and satellite, since the output files are aggregated to the nucleus. weight = weight × networkWeight"."""
    row = found.only
    assert row["network"] == pytest.approx(expected, rel=1e-12)
    assert row["weight"] == pytest.approx(101 / 20 * expected, rel=1e-12)


@told(nowhere=ask(one({"nucleus": None})), silent=networked("production", queued=30, mbps=60.0))
def test_the_network_weight_is_told_where_it_does_not_act(nowhere: Found, silent: Found) -> None:
    """network-weight.md 3: "task without nucleus: not computed; factor 1"; production without NW_ACTIVE: the number is told, the factor is 1."""
    assert (nowhere.only["network_weight"], nowhere.only["network"]) == (None, 1.0)
    assert (silent.only["network_weight"], silent.only["network"]) == (pytest.approx(1.7), 1.0)


def express(
    rules: Any = ADDED, /, *, active: bool = False, multiplier: float = 1, threshold: float = 1.7,
    task: dict[str, Any] | None = None, **link: Any,
) -> Found:  # fmt: skip
    """Ask about express work; 30 files queued, in production 15, and 30 MB/s weigh (1.9 + 1.5) / 2 = 1.7."""
    queued = 15 if rules == "production" else 30
    settings = {"NW_THRESHOLD": threshold, "NW_WEIGHT_MULTIPLIER": multiplier, "NW_ACTIVE": active}
    world = one({"processingtype": "urgent"} | (task or {}))
    return ask(world.link("SITE", **({"queued": queued, "mbps": 30.0} | link)), rules, **settings)


LOW = "network_weight_low"
PLAIN = {"processingtype": "simul"}


@cases(
    (express(), None),
    (express(queued=31), LOW),
    (express(threshold=1.71), LOW),
    (express(multiplier=1.1), LOW),
    (express(multiplier=0.5, queued=149), None),
    (express(queued=31, task=PLAIN), None),
    (express(queued=31, task=PLAIN | {"currentpriority": 1000}), LOW),
    (express(queued=31, task=PLAIN | {"currentpriority": 999}), None),
    (express(queued=31, task={"nucleus": None}), None),
    (express("production", queued=16), None),
    (express("production", queued=16, active=True), LOW),
    (express("production", queued=16, active=True, task=PLAIN | {"currentpriority": 1000}), None),
    (express("production", queued=16, active=True, task=PLAIN | {"currentpriority": 1001}), LOW),
)
def test_express_work_needs_a_good_network(found: Found, expected: str | None) -> None:
    """ "If processingType=*urgent* or priority ≥ 1000, the Network weight must be larger than or equal to NW_THRESHOLD × NW_WEIGHT_MULTIPLIER"."""
    assert found.check == expected


# preference of a CPU level


@cases(
    (ask(levelled(40.0)), 1.4),
    (ask(levelled(100.0)), 2.0),
    (ask(levelled(None)), 1.0),
)
def test_the_preferred_level_of_cpus(found: Found, expected: float) -> None:
    """Chapter 6.3: "weight *= 1 + pct / 100 | CPU-level preference, software chapter"."""
    assert found.only["preference"] == pytest.approx(expected)
    assert found.only["weight"] == pytest.approx(101 / 20 * expected, rel=1e-12)


# the least weight

WEIGHT_1 = {"running": 9, "activated": 0}


def light(least: dict[str, Any], **task: Any) -> Found:
    """Ask about a queue of weight (9 + 1) / 10 = 1."""
    return ask(World(nucleus=None, **task).queue("SITE", **WEIGHT_1), **least)


@cases(
    (light({"MIN_WEIGHT_managed": 1.0}), None),
    (light({"MIN_WEIGHT_managed": 1.01}), "below_min_weight"),
    (light({"MIN_WEIGHT_managed": 0}), None),
    (light({"MIN_WEIGHT_managed_MC 16 simul": 1.01}), "below_min_weight"),
    (light({"MIN_WEIGHT_managed_MC 16 simul": 1.0, "MIN_WEIGHT_managed": 2.0}), None),
    (light({"MIN_WEIGHT_managed_Other": 2.0}), None),
    (light({"MIN_WEIGHT_test": 2.0}), None),
    (light({"MIN_WEIGHT_managed": 2.0}, site="SITE"), "below_min_weight"),
    (light({}), None),
)
def test_the_least_weight(found: Found, expected: str | None) -> None:
    """Chapter, row 50: "min weight > 0 and weight < it"; 1.7: "MIN_WEIGHT_<label>_<gshare>, then MIN_WEIGHT_<label>"."""
    assert found.check == expected
