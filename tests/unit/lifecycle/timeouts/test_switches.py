"""Every switch of the timeout rules alone: jobs that its two values judge differently, all else being the page's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table
from tests.unit.lifecycle.timeouts.toys import DAY, HOUR, job, judge, queue

Row = dict[str, Any]
Seen = list[tuple[int, str]]

URGENT = {"currentpriority": 900}
IDLE: Row = {"site_data": [{"computingsite": "Q", "laststart": DAY}]}
PUSH: Row = {"queues": [queue(workflow="push")], "config": {"HEARTBEAT_TIMEOUT_push": 2, "HEARTBEAT_TIMEOUT_analysis": 9}}  # fmt: skip
CASES: dict[str, tuple[list[Row], Row, Seen, Seen]] = {
    "exemption_mode": (
        [job("running", modificationtime=3 * HOUR)], {"queues": [queue(catchall="disableReassign")]},
        [], [(1, "heartbeat")],
    ),
    "holding_lo_any_priority": (
        [job("holding", **URGENT, modificationtime=3 * DAY)], {},
        [(1, "holding_hi")], [(1, "holding_hi"), (1, "holding_lo")],
    ),
    "holding_hi_from_800": (
        [job("holding", currentpriority=800, modificationtime=4 * HOUR)], {}, [(1, "holding_hi")], [],
    ),
    "running_since_creation": ([job("merging", creationtime=22 * DAY)], {}, [], [(1, "running")]),
    "transferring_fixed_limits": (
        [job("transferring", **URGENT, endtime=3 * DAY)], {"queues": [queue(transtimehi=9, transtimelo=9)]},
        [], [(1, "transferring_hi")],
    ),
    "transferring_heartbeat_users": (
        [job("transferring", jobsubstatus="s3", modificationtime=3 * HOUR)], PUSH,
        [(1, "heartbeat_transferring")], [],
    ),
    "heartbeat_stages": ([job("stagein", modificationtime=3 * HOUR)], {}, [], [(1, "heartbeat")]),
    "assigned_whole_table": ([job("waiting", modificationtime=13 * HOUR)], {}, [], [(1, "assigned")]),
    "label_limits": (
        [job("activated", prodsourcelabel="test", modificationtime=3 * DAY)], {}, [(1, "activated")], [],
    ),
    "heartbeat_two_checks": (
        [job("running", prodsourcelabel="user", modificationtime=3 * HOUR)], PUSH, [], [(1, "heartbeat")],
    ),
    "inactive_queue_two_steps": (
        [job("activated", **URGENT, modificationtime=5 * HOUR), job("activated", **URGENT, pandaid=2, statechangetime=5 * HOUR)],
        IDLE, [(1, "inactive_queue")], [(1, "inactive_queue"), (2, "inactive_queue")],
    ),
    "code_only_rules": ([job("activated", creationtime=timedelta(days=8))], {}, [], [(1, "x_activated_7d")]),
}  # fmt: skip
"""Switch -> jobs, what else there is, what fires under the value of the page, and under that of the code."""
ELSEWHERE = {
    "second_look": "below",
    "fr_row_limit_bug": "test_fast",
    "fr_zero_running_triggers": "test_fast",
    "analysis_rebrokerage": "test_analysis",
}


def fired(jobs: list[Row], context: Row, rules: TimeoutRules) -> Seen:
    return sorted(judge(*jobs, rules=rules, **context).fired.select("pandaid", "rule").rows())


@pytest.mark.parametrize("name", CASES)
def test_a_switch_alone_changes_what_fires(name: str) -> None:
    jobs, context, page, code = CASES[name]
    switch = TimeoutRules.SWITCHES[name]
    assert fired(jobs, context, TimeoutRules(**{name: switch.document})) == page
    assert fired(jobs, context, TimeoutRules(**{name: switch.production})) == code


def test_a_second_look_spares_a_job_that_moved_lately() -> None:
    """21 days of running kill; failing it as well is left undone where it was changed a minute ago."""
    old = job("running", starttime=22 * DAY)
    found = {look: judge(old, rules=TimeoutRules(second_look=look)) for look in (False, True)}
    assert {look: one.fired["action"].to_list() for look, one in found.items()} == {
        False: ["kill"],
        True: ["kill"],
    }
    assert found[False].spared.is_empty()
    assert found[True].spared.select("rule", "action").rows() == [("running", "fail")]


def test_no_switch_is_forgotten() -> None:
    assert CASES.keys() | ELSEWHERE.keys() == TimeoutRules.SWITCHES.keys()


PAGE = [
    ("pending", 1), ("defined", 4), ("assigned", 12), ("throttled", 168), ("activated", 48), ("starting", 48),
    ("inactive_queue", 4), ("sent", 0.5), ("running", 504), ("heartbeat", 2), ("heartbeat_transferring", 2),
    ("holding_hi", 3), ("holding_lo", 48), ("transferring_hi", 48), ("transferring_lo", 144),
]  # fmt: skip


def test_the_page_in_order() -> None:
    found = decision_table()
    assert found.select("rule", "limit_h").rows() == PAGE
    assert found["number"].to_list() == list(range(1, 16))
    assert not found["second_look"].any()


def test_production_has_more() -> None:
    found = decision_table(rules=TimeoutRules("production"))
    assert set(found["rule"]) - {name for name, _ in PAGE} == {
        f"x_{name}" for name in ("holding_user", "transferring_user", "defined_7d", "activated_7d", "analysis_7d",
                                 "waiting", "es_waiting", "es_24h", "build")
    }  # fmt: skip
    assert "heartbeat_transferring" not in found["rule"]
    assert found.filter(rule="running")["action"].to_list() == ["kill", "fail"]
    assert found["number"].is_sorted()


def test_limits_are_those_of_the_configuration() -> None:
    keys = {"TIMEOUT_defined": 6, "TIMEOUT_holding": 24, "HEARTBEAT_TIMEOUT_push": 5}
    found = decision_table(config=Config.empty().with_values(keys), workflow="push")
    limits = dict(found.select("rule", "limit_h").rows())
    assert (limits["defined"], limits["holding_lo"], limits["heartbeat"]) == (6, 24, 5)
    assert found.filter(rule="heartbeat")["keys"].to_list() == [["HEARTBEAT_TIMEOUT_<workflow>"]]
