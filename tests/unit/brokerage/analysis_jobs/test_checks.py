"""The checks of analysis-jobs.md 4, one queue that fails and one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.units import GB, MB
from tests.unit.brokerage.analysis_jobs.toys import AT, WITH_CODE, Found, World, ask, checks_of
from tests.unit.brokerage.production_jobs.book import cases, told

Row = dict[str, Any]


SOFTWARE = (
    '{"cmtconfigs": [], "containers": ["any"], "cvmfs": ["any"], "tags": [],'
    ' "architectures": [{"type": "cpu", "arch": ["x86_64"]}]}'
)
OF_ONE_QUEUE: tuple[tuple[str, Row, Row], ...] = (
    ("status", {}, {"status": "brokeroff"}),
    ("status", {}, {"status": "paused"}),
    ("zeroshare", {}, {"fairsharepolicy": "type=any:0%"}),
    ("max_io_intensity", {"iointensity": 501.0}, {"max_io_intensity": 500.0}),
    ("cpucore", {"corecount": 8}, {"corecount": 1}),
    ("cpucore", {}, {"corecount": 8}),
    ("max_cpucore", {"corecount": 8, "maxcorecount": 4}, {"corecount": 8}),
    ("architecture", {"architecture": None}, {"catchall": "gpu"}),
    ("cache", {"architecture": "#x86_64"}, {"releases": ["24.0.40"]}),
    ("lowmemory", {"ramcount": 2001, "baseramcount": 223}, {"maxrss": 2000.0}),
    ("highmemory", {}, {"minrss": 1801.0}),
    ("remoteio", {"allowinputlan": "only"}, {}),
    ("disk", {"atom_size": 10 * MB}, {"maxwdir": 10.0}),
    ("storage", {}, {"e_space_usable": 200.0}),
    ("blacklist", {}, {"e_read_lan": "OFF"}),
    ("blacklist", {}, {"e_write_wan": "TEST"}),
    ("shortwalltime", {}, {"maxtime": 99}),
    ("longwalltime", {}, {"mintime": 101}),
    ("scout_walltime", {"chunk_usescout": True}, {"maxtime": 86399}),
    ("min_walltime", {"cputime": None}, {"maxtime": 86399}),
    ("nopilot", {}, {}),
    ("excluded", {"excludedsite": ["*BAD"], "limitedsites": True}, {}),
    ("notincluded", {"includedsite": ["GOOD"], "limitedsites": True}, {}),
    ("cloudmismatch", {"cloud": "DE"}, {"cloud": "FR"}),
    ("nonpreassigned", {"site": "GOOD"}, {}),
)
"""Rule, task, what queue BAD has."""


def of_one_queue(check: str, task: Row, queue: Row) -> World:
    world = World(**task).queue("BAD", **queue)
    if check == "nopilot":
        world.rows["site_activity"].clear()
    fits = {"corecount": 8} if task.get("corecount") == 8 else {}
    fits |= {"direct_access_lan": True} if check == "remoteio" else {}
    fits |= {"corecount": 2} if check == "max_cpucore" else {}
    fits |= {"cloud": "DE"} if check == "cloudmismatch" else {}
    if check == "cache":
        world.add("sw_tags", panda_queue="GOOD", data=SOFTWARE)
        fits |= {"releases": ["AUTO"]}
    return world.queue("GOOD", **fits)


@pytest.fixture(scope="module")
def decided() -> list[dict[str, Any]]:
    return checks_of([of_one_queue(*case) for case in OF_ONE_QUEUE], WITH_CODE)


@pytest.mark.parametrize("number", range(len(OF_ONE_QUEUE)))
def test_a_check_of_one_queue(number: int, decided: list[dict[str, Any]]) -> None:
    assert decided[number] == {"BAD": OF_ONE_QUEUE[number][0], "GOOD": None}


def test_worlds_decided_at_once_are_decided_as_alone() -> None:
    worlds = [of_one_queue(*case) for case in OF_ONE_QUEUE[-4:]]
    assert checks_of(worlds) == [world.checks() for world in worlds]


RULE_SETS: tuple[tuple[Row, Row, str | None, str | None], ...] = (
    ({}, {"status": "paused"}, "status", None),
    ({"baseramcount": 300}, {"maxrss": 2000.0}, "lowmemory", None),
    ({"atom_size": 10 * MB}, {"maxwdir": 10.0}, "disk", None),
    ({}, {"e_space_usable": 200.0}, "storage", None),
    ({"architecture": "x86_64-el9-gcc13-opt"}, {}, None, "cache"),
    ({"chunk_usescout": True}, {"maxtime": 86399, "corepower": 20.0}, "scout_walltime", None),
)
"""Task, queue, check by the document, by production."""


@pytest.mark.parametrize("rules", ["document", "production"])
def test_where_the_rule_sets_differ(rules: str) -> None:
    found = checks_of([World(**task).queue("Q", **queue) for task, queue, *_ in RULE_SETS], rules)
    place = 2 if rules == "document" else 3
    assert found == [{"Q": case[place]} for case in RULE_SETS]


def ended(status: str, number: int) -> World:
    world = World().queue("Q")
    return world.add("failure_counts", computingsite="Q", jobstatus=status, njobs=number)


@cases((ask(ended("closed", 1), "production"), "closed"), (ask(ended("closed", 1)), None))
def test_one_closed_job_skips_in_production_only(found: Found, expected: str | None) -> None:
    assert found.checks() == {"Q": expected}


@cases((ask(ended("failed", 5)), "badsite"), (ask(ended("failed", 5), "production"), None))
def test_bad_jobs_at_the_limit_mark_in_the_document_only(
    found: Found, expected: str | None
) -> None:
    assert found.checks() == {"Q": expected}


def test_cap_of_a_resource_type() -> None:
    """41 waiting jobs are more than 2 max(20, 5); only the document removes."""
    world = World().queue("Q").jobs("Q", "running", 5).jobs("Q", "activated", 41)
    world.queue("R").jobs("R", "running", 100).jobs("R", "activated", 900)
    strict = AnalysisRules("production", cap_rt_effective=True)
    assert world.checks(OVERLOAD_MIN_QUEUE=1000)["Q"] == "cap_rt"
    assert world.checks("production", OVERLOAD_MIN_QUEUE=1000)["Q"] is None
    assert world.checks(strict, OVERLOAD_MIN_QUEUE=1000)["Q"] == "cap_rt"


def _busy() -> World:
    return World().queue("Q").jobs("Q", "running", 10).jobs("Q", "activated", 40)


def _busy_beside_another() -> World:
    return _busy().queue("R").jobs("R", "running", 90).jobs("R", "activated", 60)


@cases(
    (ask(_busy()), {"Q": None}),
    (ask(_busy_beside_another()), {"Q": None, "R": None}),
    (ask(_busy_beside_another(), "production"), {"Q": "overloaded", "R": None}),
)
def test_overloaded_queues_go_where_another_is_left(found: Found, expected: Row) -> None:
    assert found.checks() == expected


@cases(
    (ask(World().queue("A_HOSPITAL")), None),
    (ask(World().queue("A_HOSPITAL").queue("B"), "production"), "hospital"),
    (ask(World().queue("A_HOSPITAL").queue("B")), None),
)
def test_hospital_queues_give_way(found: Found, expected: str | None) -> None:
    assert found.checks()["A_HOSPITAL"] == expected


LISTS = {"includedsite": ["A", "AUTO"], "limitedsites": True}


@told(
    listed=ask(World(**LISTS).queue("A").queue("B")),
    reserve=ask(World(**LISTS).queue("A", maxtime=1).queue("B")),
)
def test_a_reserve_is_used_only_without_listed_queues(listed: Found, reserve: Found) -> None:
    assert listed.checks() == {"A": None, "B": "notincluded"}
    assert reserve.checks()["B"] is None


@cases((ask(World(site="A_DISK").queue("A").queue("B")), {"A": None, "B": "notincluded"}))
def test_an_endpoint_in_site_lists_its_queues(found: Found, expected: Row) -> None:
    assert found.checks() == expected


@cases(
    *(
        (ask(World(site="A").queue("A", maxtime=1).queue("B"), rules), outcome)
        for rules, outcome in (("production", "fatal"), ("document", "temporary_error"))
    )
)
def test_a_preassigned_queue_that_fails_is_fatal(found: Found, expected: str) -> None:
    assert found.task["outcome"] == expected


def _with_input(**task: Any) -> World:
    """Return a world whose input is whole at A and not at B."""
    world = World(**task).queue("A").queue("B")
    world.add("datasets", datasetname="D", is_master=True)
    world.add("files", datasetname="D", lfn="f", fsize=GB)
    return world.add("replicas", datasetname="D", ddm_endpoint_name="A_DISK", found=1, total=1)


def _too_long() -> World:
    world = _with_input()
    world.rows["queues"][0]["maxtime"] = 1
    return world


@told(found=ask(_with_input()))
def test_the_first_loop_asks_for_locality(found: Found) -> None:
    assert found.checks() == {"A": None, "B": "data_locality"}
    assert found.task["loop"] == 1


@told(found=ask(_too_long()))
def test_the_second_loop_does_not(found: Found) -> None:
    assert found.checks() == {"A": "shortwalltime", "B": None}
    assert found.first_checks() == {"A": "shortwalltime", "B": "data_locality"}
    assert found.task["loop"] == 2


RELAXED = {"IO_INTENSITY_CUTOFF_USER": 100, "DATA_CHECK_TIMEOUT_USER": 2}


@cases(
    *(
        (ask(_with_input(**task), rules, **RELAXED), {"A": None, "B": check})
        for task in (
            {"taskpriority": 2000},
            {"iointensity": 100.0},
            {"frozentime": AT.replace(hour=9)},
        )
        for rules, check in (("document", None), ("production", "data_locality"))
    )
)
def test_a_relaxation_suppresses_locality_in_the_document(found: Found, expected: Row) -> None:
    assert found.checks() == expected


def _partly(files: int) -> World:
    world = _with_input()
    world.rows["replicas"][0] |= {"found": files, "total": 100}
    return world


@cases(
    (ask(_partly(10)), None),
    (ask(_partly(10), "production"), "input_incomplete"),
    (ask(_partly(90), "production"), None),
)
def test_incomplete_input_ends_the_task(found: Found, expected: str | None) -> None:
    assert found.task["throttle"] == expected


def test_every_switch_is_a_field() -> None:
    rules = AnalysisRules()
    assert {name: getattr(rules, name) for name in AnalysisRules.SWITCHES} == {
        name: switch.document for name, switch in AnalysisRules.SWITCHES.items()
    }
