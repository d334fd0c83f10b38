"""The throttle of analysis-jobs.md 2."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.gdpconfig import Config
from tests.one_value import throttle
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE

TOTALS = {"nrunjobs": 0, "nqueuedjobs": 0, "nruncores": 0, "nqueuedcores": 0}
CAPS = {"CAP_RUNNING_USER_JOBS": 100, "CAP_RUNNING_USER_CORES": 200}


def held(
    *, task: dict[str, Any] | None = None, rules: str = "document", caps: dict[str, int] | None = None,
    **tables: dict[str, Any],
) -> str | None:  # fmt: skip
    """Return which rule holds a task of alice back."""
    row = {"jeditaskid": 1, "at": AT, "username": "alice", "gshare": SHARE} | (task or {})
    frames = {name: pl.DataFrame([found]) for name, found in tables.items()}
    values = {f"pandaserver/prio_mgr/{key}": value for key, value in (caps or CAPS).items()}
    result = throttle(
        {"tasks": pl.DataFrame([row]), **frames}, rules=AnalysisRules(rules),
        config=Config.empty().with_values(values),
    )  # fmt: skip
    return result["throttle"].item()


@pytest.mark.parametrize(
    ("column", "most", "rule"),
    [
        ("nrunjobs", 100, "cap_running_jobs"), ("nqueuedjobs", 200, "cap_queued_jobs"),
        ("nruncores", 200, "cap_running_cores"), ("nqueuedcores", 400, "cap_queued_cores"),
    ],
)  # fmt: skip
def test_caps_are_strict_and_in_production_not_for_merging(
    column: str, most: int, rule: str
) -> None:
    totals = TOTALS | {"origusername": "alice"}
    assert held(user_totals=totals | {column: most}) is None
    assert held(user_totals=totals | {column: most + 1}) == rule
    merging = {"user_totals": totals | {column: most + 1}, "task": {"is_merging": True}}
    assert held(**merging, rules="production") is None
    assert held(**merging, rules="document") == rule
    assert held(user_totals=totals | {column: most + 1}, task={"workinggroup": "G"}) is None
    assert held(user_totals=totals | {column: most + 1}, caps={"CAP_RUNNING_USER_JOBS": 0}) is None


@pytest.mark.parametrize(
    ("task_class", "usage", "rule"),
    [(-1, 0.9, None), (-1, 0.91, "gshare_class_c"), (0, 0.95, None), (0, 0.96, "gshare_class_b"),
     (1, 2.0, None), (1, 2.01, "gshare_class_a"), (2, 9.0, None)],
)  # fmt: skip
def test_classes_are_held_back_by_usage(task_class: int, usage: float, rule: str | None) -> None:
    """Nothing is known of alice: in production half of the threshold counts as used."""
    tables = {
        "task_class": {"jeditaskid": 1, "class": task_class},
        "gshare_usage": {"gshare": SHARE, "usage_perc": usage},
        "user_eval": {"user": "bob"},
    }
    assert held(**tables, rules="production") == rule
    assert held(**tables, task={"gshare": "Express Analysis"}) is None
    old = tables["task_class"] | {"timestamp": AT - timedelta(minutes=16)}
    assert held(**{**tables, "task_class": old}) is None


def test_a_user_who_fills_the_threshold_counts_whole() -> None:
    tables = {
        "task_class": {"jeditaskid": 1, "class": 1},
        "gshare_usage": {"gshare": SHARE, "usage_perc": 1.01},
        "user_eval": {"user": "alice", "rem_slots_a": 0.0},
    }
    assert held(**tables) == "gshare_class_a"
    assert held(**tables | {"user_eval": {"user": "alice", "rem_slots_a": 1000.0}}) is None


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [("global_quota_ok", False, "global_quota"), ("near_global_limit", True, "near_global_quota"),
     ("local_quota_ok", False, "quota_unavailable")],
)  # fmt: skip
def test_quota(column: str, value: bool, rule: str) -> None:
    assert held(quota={column: value}, rules="production") == rule
    assert held(quota={"username": "bob", column: value}, rules="production") is None
    of_page = rule if rule == "global_quota" else None
    assert held(quota={column: value}, rules="document") == of_page
