"""The rules as a table."""

from __future__ import annotations

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table

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
