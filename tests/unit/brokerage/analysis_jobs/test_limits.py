"""What holds exactly at a limit, and what null means: analysis-jobs.md 3 and 5."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.brokerage.analysis_jobs.toys import WITH_CODE, Found, World, ask, checks_of
from tests.unit.brokerage.production_jobs.book import cases

Row = dict[str, Any]


AT_THE_LIMIT: tuple[tuple[str, Row, Row, Row], ...] = (
    ("max_io_intensity", {"iointensity": 500.0}, {"max_io_intensity": 500.0}, {"max_io_intensity": 499.0}),
    ("max_io_intensity", {"iointensity": 1.0}, {"max_io_intensity": None}, {"max_io_intensity": 0.0}),
    ("cpucore", {"corecount": 8}, {"corecount": 2}, {"corecount": None}),
    ("cpucore", {"corecount": None}, {"corecount": None}, {"corecount": 2}),
    ("cpucore", {"corecount": 1}, {"corecount": 0}, {"corecount": 8}),
    ("max_cpucore", {"corecount": 8, "maxcorecount": 4}, {"corecount": 4}, {"corecount": 5}),
    ("lowmemory", {"ramcount": 2000}, {"maxrss": 1800.0}, {"maxrss": 1799.0}),
    ("highmemory", {"ramcount": 2000}, {"minrss": 1800.0}, {"minrss": 1801.0}),
    ("lowmemory", {"ramcount": 2000, "chunk_ramcount": 3000}, {"maxrss": 2700.0}, {"maxrss": 2699.0}),
    ("lowmemory", {"ramcount": None, "chunk_ramcount": 3000}, {"maxrss": None}, {"maxrss": 2699.0}),
    ("shortwalltime", {}, {"maxtime": 100}, {"maxtime": 99}),
    ("longwalltime", {}, {"mintime": 100}, {"mintime": 101}),
    ("shortwalltime", {"basewalltime": 10.0}, {"maxtime": 110}, {"maxtime": 109}),
    ("storage", {}, {"e_space_usable": 200.5}, {"e_space_usable": 199.5}),
    ("storage", {}, {"e_space_usable": None}, {"e_space_usable": 0.0}),
    ("blacklist", {}, {"e_read_lan": None}, {"e_read_lan": "TEST"}),
    ("cloudmismatch", {"cloud": "DE"}, {"cloud": "DE"}, {"cloud": None}),
)  # fmt: skip
"""Rule, task, a queue that passes, one that does not."""


@pytest.fixture(scope="module", params=[WITH_CODE, "production"], ids=["document", "production"])
def decided(request: pytest.FixtureRequest) -> dict[tuple[int, str], str | None]:
    """Decide every case at once: each task may only go to its own two queues."""
    world = World()
    first, *_ = world.rows.pop("tasks")
    for number, (_, task, passes, fails) in enumerate(AT_THE_LIMIT):
        names = [f"P{number}", f"F{number}"]
        own = {"jeditaskid": number, "includedsite": names, "limitedsites": True}
        world.add("tasks", **(first | own | task))
        world.queue(names[0], **passes).queue(names[1], **fails)
    rows = world.decided(request.param).queues.select("jeditaskid", "panda_queue", "check").rows()
    return {(task, name): None if check is None else str(check) for task, name, check in rows}


@pytest.mark.parametrize("number", range(len(AT_THE_LIMIT)))
def test_exactly_at_the_limit(number: int, decided: dict[tuple[int, str], str | None]) -> None:
    assert decided[number, f"P{number}"] is None
    assert decided[number, f"F{number}"] == AT_THE_LIMIT[number][0]


def test_disk_traffic_has_to_be_over_the_limit_on_both_sides() -> None:
    """In production the task's traffic is divided by the 8 cores; the limit of the queue is 100 kB/s per core."""
    cases = {(800.0, 101.0): None, (801.0, 100.0): None, (801.0, 101.0): "diskio", (0.0, 900.0): None, (None, 900.0): None, (900.0, None): None}  # fmt: skip
    worlds = []
    for diskio, usage in cases:
        world = World(corecount=8, diskio=diskio).queue("Q", corecount=8, maxdiskio=100.0)
        worlds.append(world.add("diskio_usage", computingsite="Q", diskio_per_core=usage))
    assert checks_of(worlds, "production") == [{"Q": check} for check in cases.values()]


@pytest.mark.parametrize(("rules", "check"), [("document", None), ("production", "status")])
def test_offline_stays_out_in_production_also_where_preassigned(
    rules: str, check: str | None
) -> None:
    worlds = [World(site="Q").queue("Q", status=status) for status in ("offline", "brokeroff")]
    assert checks_of(worlds, rules) == [{"Q": check}, {"Q": None}]


@cases((ask(World(site="Q").queue("Q").queue("P", status="test")), {"P": "status", "Q": None}))
def test_a_preassigned_queue_lifts_the_status_of_no_other(found: Found, expected: Row) -> None:
    assert found.checks() == expected


def test_preliminary_candidates() -> None:
    kinds = [("analysis", None), ("unified", None), ("production", None), (None, None), ("production", "grandly_unified")]  # fmt: skip
    there = [True, True, False, False]
    worlds = [
        World(site=site).queue("GOOD").queue("Q", type=kind, catchall=catchall)
        for site in (None, "Q")
        for kind, catchall in kinds
    ]
    for rules, grandly in (("document", False), ("production", True)):
        found = checks_of(worlds, rules)
        assert ["Q" in checks for checks in found[:5]] == [*there, grandly]
        assert [checks["Q"] for checks in found[5:]] == [None] * 5


@cases((ask(World(site="NOWHERE").queue("Q")), {"Q": None}))
def test_an_unknown_site_that_is_no_endpoint_is_ignored(found: Found, expected: Row) -> None:
    assert found.checks() == expected


@cases(
    *(
        (ask(World(excludedsite=[pattern], limitedsites=True).queue("SITE_Q")), check)
        for pattern, check in (
            ("SITE_Q", "excluded"), ("ITE*", "excluded"), ("", None), ("*", "excluded"),
            ("Q*SITE", None),
        )
    )
)  # fmt: skip
def test_patterns_of_lists(found: Found, expected: str | None) -> None:
    """With ``*`` anywhere in the name, without it the whole name; the empty one never."""
    assert found.checks()["SITE_Q"] == expected


def test_a_part_of_a_name_is_no_pattern() -> None:
    world = World(excludedsite=["ITE_Q"], limitedsites=True).queue("SITE_Q")
    assert world.checks() == {"SITE_Q": None}


def test_pilots_of_test_tasks_do_not_matter() -> None:
    worlds = [World(prodsourcelabel=label).queue("Q") for label in ("user", "test")]
    for world in worlds:
        world.rows["site_activity"] = [{"computingsite": "Q", "getjob": 0, "updatejob": 0}]
    assert checks_of(worlds, "production") == [{"Q": "nopilot"}, {"Q": None}]
    assert checks_of(worlds, "document") == [{"Q": "nopilot"}, {"Q": "nopilot"}]


def test_cap_of_a_resource_type_lets_equality_pass() -> None:
    worlds = [
        World().queue("Q").jobs("Q", "running", 20).jobs("Q", "activated", waiting)
        for waiting in (40, 41)
    ]
    assert checks_of(worlds) == [{"Q": None}, {"Q": "cap_rt"}]


def test_overload_is_strict() -> None:
    """One job waits per running one over all queues (grand = 1 with the other queue); the factor is 1.2."""
    cases = {(20, 0): None, (21, 0): "overloaded", (36, 30): None, (37, 30): "overloaded"}
    worlds = []
    for waiting, running in cases:
        world = World().queue("Q").queue("R")
        world.jobs("Q", "running", running).jobs("Q", "activated", waiting)
        world.jobs("R", "running", 1000 + waiting - running).jobs("R", "activated", 1000)
        worlds.append(world)
    assert [checks["Q"] for checks in checks_of(worlds, "production")] == list(cases.values())


def merging() -> World:
    world = World(is_merging=True).queue("Q").queue("R").jobs("Q", "activated", 30)
    return world.jobs("R", "running", 100).add("failure_counts", computingsite="Q", jobstatus="failed", njobs=50)  # fmt: skip


@cases((ask(merging(), "production"), None), (ask(merging()), "badsite"))
def test_merge_chunks_are_not_overloaded_nor_marked_in_production(
    found: Found, expected: str | None
) -> None:
    assert found.check == expected


@cases(
    *(
        (
            ask(World(is_merging=True, mergeramcount=1000).queue("Q", maxrss=maxrss), "production"),
            check,
        )
        for maxrss, check in ((1799.0, "lowmemory"), (1800.0, None))
    )
)
def test_merge_memory_is_at_least_2000(found: Found, expected: str | None) -> None:
    assert found.check == expected


def test_bad_jobs_have_to_stay_below_the_larger_limit() -> None:
    cases = {(4, 0): None, (5, 0): "badsite", (9, 5): None, (10, 5): "badsite"}
    worlds = []
    for bad, finished in cases:
        world = World().queue("Q")
        for status, number in (("failed", bad - 1), ("closed", 1), ("finished", finished)):
            world.add("failure_counts", jeditaskid=1, computingsite="Q", jobstatus=status, njobs=number)  # fmt: skip
        worlds.append(world)
    assert checks_of(worlds) == [{"Q": check} for check in cases.values()]


@cases(
    *(
        (
            ask(
                World()
                .queue("Q")
                .queue("R")
                .add("quota", username="alice", endpoints_over_local_quota=["Q_DISK"]),
                rules,
            ),
            {"Q": check, "R": None},
        )
        for rules, check in (("production", "local_quota"), ("document", None))
    )
)
def test_a_local_quota_closes_its_endpoint(found: Found, expected: Row) -> None:
    assert found.checks() == expected
