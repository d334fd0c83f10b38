"""The plain loop by itself: the page's rule set, worked values of the chapters, its random worlds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.twins import production_jobs
from tests.twins.network import network_weight
from tests.twins.switches import SWITCHES, switches
from tests.twins.world import World
from tests.twins.worlds import random_world

Row = dict[str, Any]

NOW = datetime(2026, 6, 1, 12)
BOTH = ("document", "production")
ACCESS = ("read_lan", "write_lan", "read_wan", "write_wan")


def world(**changes: Row) -> dict[str, Any]:
    """Return a world of one task, one queue ``S_Q`` at site ``S`` and the nucleus ``N``; tables changed by row."""
    tables: dict[str, Any] = {
        "now": NOW,
        "tasks": {
            "jeditaskid": 1, "nucleus": "N", "gshare": "MC", "prodsourcelabel": "managed",
            "processingtype": "simul", "currentpriority": 500, "corecount": 8, "resource_type": "MCORE",
            "cputime": 100, "cputimeunit": "HS06sPerEvent", "cpuefficiency": 90, "basewalltime": 0,
            "atom_nevents": 100,
        },
        "queues": {
            "panda_queue": "S_Q", "type": "production", "status": "online", "pandasite": "S",
            "corecount": 8, "corepower": 10, "maxtime": 172800,
        },
        "storage_endpoints": {
            "ddm_endpoint_name": "S_DATADISK", "type": "DATADISK", "space_free": 1000,
            **dict.fromkeys(ACCESS, "ON"),
        },
        "job_stats": {"computingsite": "S_Q", "gshare": "MC", "jobstatus": "running", "njobs": 100},
        "site_activity": {"computingsite": "S_Q", "getjob": 5, "laststart": "2026-06-01T11:00:00"},
        "queue_storage_site": {"panda_queue": "S_Q", "site_name": "S"},
        "network_matrix": {"src": "S", "dst": "N", "key": "Production Output_queued", "value": 0, "ts": NOW},
        "nuclei": {"nucleus": "N", "queues": []},
        "gdpconfig": {"key": "NW_ACTIVE", "value": False},
    }  # fmt: skip
    found = {
        name: [{**row, **changes.get(name, {})}] if isinstance(row, dict) else row
        for name, row in tables.items()
    }
    found["queue_endpoints"] = [
        {"panda_queue": "S_Q", "direction": way, "ddm_endpoint_name": "S_DATADISK", "is_default": True}
        for way in ("input", "output")
    ]  # fmt: skip
    name = found["queues"][0]["panda_queue"]
    for table, key in (("job_stats", "computingsite"), ("site_activity", "computingsite"), ("queue_endpoints", "panda_queue")):  # fmt: skip
        for row in found[table]:
            row[key] = name
    return found


def reason(tables: dict[str, Any], rules: Any) -> str | None:
    (decision,) = production_jobs.decide_all(tables, rules=rules)
    (row,) = decision["queues"]
    check: str | None = row["check"]
    return check


SILENT = {"laststart": "2026-06-01T09:00:00"}

DIFFERENCES: dict[str, tuple[dict[str, Row], str | None, str | None]] = {
    "J1": ({"queues": {"panda_queue": "a_Test"}}, "name_test", None),
    "J2": ({"queues": {"status": "standby"}}, "status_offline", None),
    "J3": ({"network_matrix": {"value": 150}}, None, "link_backlog"),
    "J4": (
        {
            "tasks": {"currentpriority": 900},
            "site_activity": SILENT,
            "job_stats": {"jobstatus": "starting", "njobs": 5},
        },
        "queued_cap",
        "inactive",
    ),
    "J8": ({"tasks": {"corecount": 1, "workdiskcount": 200, "workdiskunit": "MB"}, "queues": {"corecount": 1, "maxwdir": 1900}}, None, "scratch_disk"),
    "J10": ({"tasks": {"workdiskcount": 0}, "queues": {"maxwdir": 1800}}, "scratch_disk", None),
    "J11": ({"storage_endpoints": {"space_free": 200}}, "storage_space", None),
    "J13": ({"tasks": {"use_scout": True}, "queues": {"maxtime": 80000, "corepower": 20}}, "walltime_24h", None),
    "J14": ({"tasks": {"cpuefficiency": 0}}, None, "walltime_max"),
    "J14b": ({"tasks": {"use_scout": True, "basewalltime": 60}, "queues": {"maxtime": 0}}, None, "walltime_24h"),
    "J15": ({"storage_endpoints": {"read_lan": "AUTO"}}, "read_lan_down", None),
    "J20": (
        {"tasks": {"currentpriority": 1000}, "gdpconfig": {"value": True}, "network_matrix": {"key": "AGIS_closeness", "value": 11}},
        "network_weight_low",
        None,
    ),
}  # fmt: skip
"""Row of chapter section 9 -> a world on its edge, reason by the page, reason by production."""


@pytest.mark.parametrize("row", DIFFERENCES)
def test_rule_sets_differ_where_the_chapter_says(row: str) -> None:
    changes, by_page, in_production = DIFFERENCES[row]
    tables = world(**changes)
    assert [reason(tables, rules) for rules in BOTH] == [by_page, in_production]


def test_plain_world_has_a_candidate() -> None:
    for rules in BOTH:
        assert reason(world(), rules) is None


def test_rules_are_a_name_a_dict_or_an_object() -> None:
    standby = world(queues={"status": "standby"})
    assert reason(standby, {"standby_online": True}) is None
    assert reason(standby, switches("production")) is None
    assert vars(switches({"rules": "production"})) == vars(switches("production"))
    assert vars(switches("document")).keys() == SWITCHES.keys() | {"rules"}


@pytest.mark.parametrize(
    ("fullchain", "bare_mode", "flag", "expected"),
    [
        (None, None, None, None),
        (None, "allow", "bareNucleus=only", "full_chain_only"),
        ("capable", None, None, None),
        ("capable", "allow", None, "full_chain_outside"),
        ("require", "only", None, "full_chain_outside"),
        ("require", None, "bareNucleus=only", "full_chain_only"),
    ],
)
def test_full_chain(
    fullchain: str | None, bare_mode: str | None, flag: str | None, expected: str | None
) -> None:
    """full-chain.md 3; the queue is a satellite's."""
    tables = world(
        tasks={"fullchain": fullchain}, nuclei={"bare_mode": bare_mode}, queues={"catchall": flag}
    )
    assert [reason(tables, rules) for rules in BOTH] == [expected] * 2


@pytest.mark.parametrize(
    ("closeness", "queued", "week", "day", "hour", "expected"),
    [
        (0, 0, None, None, None, (2.0, 2.0)),
        (11, 75, None, None, None, (1.375, 1.25)),
        (4, 30, 60, None, None, (1.8, 1.7)),
        (4, 30, 5, None, 250, (1.95, 1.5)),
        (4, 30, None, 250, 250, (1.95, (1.8 + 1 + 7 / 11) / 2)),
        (None, None, 200, 200, 200, (1.95, 1.95)),
    ],
)
def test_network_weight(
    closeness: int | None,
    queued: int | None,
    week: int | None,
    day: int | None,
    hour: int | None,
    expected: tuple[float, float],
) -> None:
    """network-weight.md 1."""
    metrics = {
        "AGIS_closeness": closeness,
        "Production Output_queued": queued,
        "dashb_mbps_1w": week,
        "dashb_mbps_1d": day,
        "dashb_mbps_1h": hour,
    }
    link = {key: float(value) for key, value in metrics.items() if value is not None}
    got = [network_weight("S", "N", link, False, World({}, rules)) for rules in BOTH]
    assert got == pytest.approx(expected, rel=1e-12)
    assert network_weight("N", "N", link, False, World({})) == 2.5
    assert network_weight(None, "N", None, False, World({})) == pytest.approx(1.65)


def test_hint_mode_asks_only_single_checks() -> None:
    tables = world(tasks={"nucleus": None})
    tables["locks"] = [{"panda_queue": "S_Q"}]
    index = production_jobs.index_world(tables, "production")
    row = tables["tasks"][0]
    assert production_jobs.decide(index, row)["outcome"] == "no_candidates"
    assert production_jobs.decide(index, row, hint_queues=["S_Q"])["outcome"] == "candidates"


def test_each_task_sees_its_snapshot() -> None:
    tables = world()
    tables["tasks"].append(tables["tasks"][0] | {"jeditaskid": 2, "snapshot": 1})
    tables["queues"] = [
        tables["queues"][0] | {"snapshot": number, "status": status}
        for number, status in enumerate(("online", "offline"))
    ]
    first, second = production_jobs.decide_all(tables)
    assert (first["outcome"], second["outcome"]) == ("candidates", "no_candidates")
    assert second["stage"] == "status"


def test_random_worlds_repeat_and_reach_the_edges() -> None:
    assert random_world(5, 8, 20) == random_world(5, 8, 20)
    assert random_world(5, 8, 20) != random_world(6, 8, 20)
    decided = [
        one
        for seed in range(6)
        for one in production_jobs.decide_all(random_world(seed, 50, 40), rules="production")
    ]
    outcomes = {one["outcome"] for one in decided}
    assert outcomes == {"candidates", "no_candidates", "input_incomplete", "unknown_nucleus"}
    checks = {row["check"] for one in decided for row in one["queues"]}
    assert len(checks) >= 40
