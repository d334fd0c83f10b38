"""Switches of the class rules, each alone: what its two values decide differently, all else being the page's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from brokerlab.lifecycle.classification import ClassRules, site_classes
from tests.unit.lifecycle.classification import test_site_classes as sites
from tests.unit.lifecycle.classification import test_users_tasks_shares as tasks
from tests.unit.lifecycle.classification import test_wait_stats as waits
from tests.unit.lifecycle.classification.toys import jobs, queued, waited

HOUR = 3600.0
QUICK = {f"F{n}": (1.0, 0, 1.0) for n in range(9)}
SLOW = {"A": (2 * HOUR, 2, 1.0), "B": (4 * HOUR, 0, 1.0), "C": (8 * HOUR, 0, 1.0)}


def mean_wait(rules: ClassRules) -> float:
    """A job that started 6 h ago weighs half of one that starts now, or more."""
    found = waits.only(jobs(waited(1, 100), waited(2, 200, age_s=6 * HOUR)), rules)
    return round(found["w_mean"], 2)


def failed_job(rules: ClassRules) -> int:
    return waits.counted(jobs(waited(1, 1800, age_s=600, jobstatus="failed")), rules)


def starting_job(rules: ClassRules) -> int:
    table = jobs(waited(1, 100), queued(2, 1000, jobstatus="starting"))
    return int(waits.only(table, rules)["long_q_n"])


def at_one_hour(rules: ClassRules) -> int | None:
    return sites.classes_of({**QUICK, "Q": (HOUR, 0, 1.0)}, rules=rules)["Q"]


def ranked(rules: ClassRules) -> int:
    return int(sites.rated(SLOW, rules=rules, kinds={"C": "hpc"}).percentiles["n_ranked"][0])


def slowest(rules: ClassRules) -> int | None:
    return sites.classes_of(SLOW, rules=rules)["C"]


def production_alone(rules: ClassRules) -> int:
    """The queue started jobs, but none of analysis."""
    stats = pl.DataFrame({"computingsite": ["Q"], "w_cl95upp": [1.0], "long_q_n": [0], "long_q_mean": [1.0]})  # fmt: skip
    known = pl.DataFrame({"panda_queue": ["Q"], "resource_type": ["GRID"]})
    activity = pl.DataFrame({"computingsite": ["Q"], "strr_1d": [1.0], "analysis_starts_1d": [0]})
    return int(site_classes(stats, known, activity, rules=rules).classes["class"][0])


def nothing_left(rules: ClassRules) -> str | None:
    """Nine of ten files are finished, the last one failed: no job remains."""
    return tasks.name_of(tasks.task(), done=(10, 9, 1, 10), hi=0, rules=rules)


def at_the_threshold(rules: ClassRules) -> str | None:
    return tasks.name_of(tasks.task(), hi=1000, rules=rules)


def without_usage(rules: ClassRules) -> str | None:
    return tasks.name_of(tasks.task(), rules=rules)


CASES: dict[str, tuple[Callable[[ClassRules], Any], tuple[Any, Any], tuple[Any, Any]]] = {
    "half_life_hours": (mean_wait, (6, 12), (133.33, 141.42)),
    "sample_status": (failed_job, ("finished", "started"), (0, 1)),
    "long_q_status": (starting_job, ("activated_starting", "activated_sent_push"), (1, 0)),
    "hi_test": (at_one_hour, ("all", "either"), (0, 1)),
    "percentile_basis": (ranked, ("w_cl95upp", "grid_ranking"), (3, 2)),
    "percentile_high": (slowest, (0.67, 1), (-1, 0)),
    "recent_activity": (production_alone, ("analysis_start", "slot_rate"), (0, 1)),
    "task_rules": (nothing_left, ("share", "progress"), ("S", "A")),
    "threshold_inclusive": (at_the_threshold, (True, False), ("A", "B")),
    "missing_usage": (without_usage, ("zero", "skip"), ("A", None)),
}
"""Switch -> what is looked at, two values, and what is seen under each."""
ELSEWHERE = {
    "wait_time", "effective_n", "empty_long_queue", "percentile_low", "hi_limit_hours", "lo_limit_hours",
    "short_queue_jobs", "empty_percentile", "express_is_s", "default_threshold_b",
}  # fmt: skip
"""Set alone in the other modules of this folder."""


@pytest.mark.parametrize("name", CASES)
def test_a_switch_alone_changes_the_classes(name: str) -> None:
    see, values, seen = CASES[name]
    assert tuple(see(ClassRules(**{name: value})) for value in values) == seen


def test_no_switch_is_forgotten() -> None:
    assert CASES.keys() | ELSEWHERE == ClassRules.SWITCHES.keys()
