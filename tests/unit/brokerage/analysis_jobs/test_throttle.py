"""The throttle of analysis-jobs.md 2."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.gdpconfig import Config
from tests.one_value import throttle
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE

Row = dict[str, Any]

TOTALS = {"nrunjobs": 0, "nqueuedjobs": 0, "nruncores": 0, "nqueuedcores": 0}
CAPS = {"CAP_RUNNING_USER_JOBS": 100, "CAP_RUNNING_USER_CORES": 200}


def user(task: Row | None = None, **tables: Row) -> dict[str, Row]:
    """Return a task of alice, and a row of each table that is known."""
    return {"tasks": {"at": AT, "username": "alice", "gshare": SHARE} | (task or {}), **tables}


def held(
    *users: dict[str, Row], rules: str = "document", caps: dict[str, int] | None = None
) -> list[str | None]:
    """Return which rule holds each task back; each is of an instant of its own."""
    tables = {
        name: pl.DataFrame([row[name] | {"snapshot": n} for n, row in enumerate(users)])
        for name in users[0]
    }
    for name in {"tasks", "task_class"} & tables.keys():
        tables[name] = tables[name].with_columns(jeditaskid="snapshot")
    values = {f"pandaserver/prio_mgr/{key}": value for key, value in (caps or CAPS).items()}
    result = throttle(tables, rules=AnalysisRules(rules), config=Config.empty().with_values(values))
    return result["throttle"].cast(pl.String).to_list()


def test_caps_are_strict_and_in_production_not_for_merging() -> None:
    caps = (
        ("nrunjobs", 100, "cap_running_jobs"), ("nqueuedjobs", 200, "cap_queued_jobs"),
        ("nruncores", 200, "cap_running_cores"), ("nqueuedcores", 400, "cap_queued_cores"),
    )  # fmt: skip
    own = TOTALS | {"origusername": "alice"}
    most = [user(user_totals=own | {column: number}) for column, number, _ in caps]
    more = [own | {column: number + 1} for column, number, _ in caps]
    plain, merging, of_group = (
        [user(task, user_totals=totals) for totals in more]
        for task in ({}, {"is_merging": True}, {"workinggroup": "G"})
    )
    rules = [rule for *_, rule in caps]
    assert held(*most, *plain, *merging) == [*[None] * 4, *rules, *rules]
    assert held(*merging, rules="production") == [None] * 4
    assert held(*of_group) == [None] * 4
    assert held(*plain, caps={"CAP_RUNNING_USER_JOBS": 0}) == [None] * 4


def test_classes_are_held_back_by_usage() -> None:
    """Nothing is known of alice: in production half of the threshold counts as used."""
    expected = {
        (-1, 0.9): None, (-1, 0.91): "gshare_class_c", (0, 0.95): None, (0, 0.96): "gshare_class_b",
        (1, 2.0): None, (1, 2.01): "gshare_class_a", (2, 9.0): None,
    }  # fmt: skip

    def users(task: Row | None = None, **more: Any) -> list[dict[str, Row]]:
        return [
            user(
                task,
                task_class={"class": task_class} | more,
                gshare_usage={"gshare": SHARE, "usage_perc": usage},
                user_eval={"user": "bob"},
            )
            for task_class, usage in expected
        ]

    assert dict(zip(expected, held(*users(), rules="production"), strict=True)) == expected
    assert held(*users({"gshare": "Express Analysis"})) == [None] * 7
    assert held(*users(timestamp=AT - timedelta(minutes=16))) == [None] * 7


def test_a_user_who_fills_the_threshold_counts_whole() -> None:
    tables = {
        "task_class": {"class": 1},
        "gshare_usage": {"gshare": SHARE, "usage_perc": 1.01},
    }
    users = [
        user(**tables, user_eval={"user": "alice", "rem_slots_a": left}) for left in (0.0, 1000.0)
    ]
    assert held(*users) == ["gshare_class_a", None]


def test_quota() -> None:
    quotas = {
        "global_quota": {"global_quota_ok": False},
        "near_global_quota": {"near_global_limit": True},
        "quota_unavailable": {"local_quota_ok": False},
    }
    own = [user(quota=quota) for quota in quotas.values()]
    of_bob = [user(quota={"username": "bob", **quota}) for quota in quotas.values()]
    assert held(*own, rules="production") == [*quotas]
    assert held(*of_bob, rules="production") == [None] * 3
    assert held(*own, rules="document") == ["global_quota", None, None]
