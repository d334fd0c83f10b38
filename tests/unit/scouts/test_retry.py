"""Other ways to exhausted: E1 and E3 to E8 (exhausted.md 3)."""

from __future__ import annotations

import json
import random
from typing import Any

import duckdb
import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.errors import SchemaError
from brokerlab.scouts import RetryResult, ScoutResult, ScoutRules
from brokerlab.scouts.retry import LABELS
from tests.scout_toys import Toy, at, settings
from tests.twins.scout_formulas import task_failure_metrics

HOUR = 3600


def history(failed: int = 3, finished: int = 4, hs06sec: int | None = None, **task: Any) -> Toy:
    """A task with some jobs that failed and some that finished."""
    toy = Toy(**task)
    for number in range(failed + finished):
        status = "failed" if number < failed else "finished"
        toy.job(number + 1, jobstatus=status, prodsourcelabel="managed", hs06sec=hs06sec)
    return toy


SCOUTS: dict[str, ScoutResult] = {}


def scouts_of(toy: Toy) -> ScoutResult:
    """Read the scouts of a toy as it stands, once: settings of retries do not matter to them."""
    asked = repr(vars(toy))
    if asked not in SCOUTS:
        SCOUTS[asked] = toy.result()
    return SCOUTS[asked]


def checked(
    toy: Toy,
    config: dict[str, Any] | None = None,
    *,
    with_scouts: bool = True,
    with_files: bool = True,
    **keywords: Any,
) -> RetryResult:
    jobs, files, tasks, _, _ = toy.tables()
    return scouts.retry_checks(
        tasks,
        jobs,
        files=files if with_files else None,
        scouts=scouts_of(toy) if with_scouts else None,
        config=settings(config),
        **keywords,
    )


def verdict(toy: Toy, config: dict[str, Any] | None = None, **keywords: Any) -> dict[str, Any]:
    return checked(toy, config, **keywords).verdicts.row(0, named=True)


def why_not(
    toy: Toy, rule: str, config: dict[str, Any] | None = None, **keywords: Any
) -> str | None:
    trace = checked(toy, config, **keywords).trace
    return trace.filter((pl.col("rule") == rule) & (pl.col("jeditaskid") == 1))["why_not"].item()


# ---- how much failed


def test_example_of_the_chapter():
    """3 failed of 7 -> 0.429"""
    found = scouts.failure_metrics(history().tables()[0])
    assert found.rows() == [(1, 3, 0.429, None, None)]


def test_work_of_failed_jobs():
    toy = history(failed=2, finished=1, hs06sec=5399)
    toy.job(9, jobstatus="cancelled", prodsourcelabel="managed", hs06sec=10**9)
    toy.job(10, jobstatus="failed", prodsourcelabel="test", hs06sec=10**9)
    # int(2 x 5399 / 3600) = 2; 2/3 = 0.667
    assert scouts.failure_metrics(toy.tables()[0]).rows() == [(1, 2, 0.667, 2, 0.667)]


def test_all_tasks_at_once_are_the_formula_of_each():
    draw = random.Random(3)  # noqa: S311 - not a secret
    toy = Toy()
    for number in range(2, 30):
        toy.task(number)
    for number in range(400):
        toy.job(
            number,
            task=draw.randrange(1, 30),
            jobstatus=draw.choice(["failed", "finished", "finished", "cancelled", "running"]),
            prodsourcelabel=draw.choice(["managed", "managed", "user", "test"]),
            hs06sec=draw.choice([None, None, 0, 1800, 123_456, 999_999_999]),
        )
    jobs = toy.tables()[0]
    frames = [jobs, jobs.lazy(), duckdb.connect().from_arrow(jobs.to_arrow())]
    answers = [scouts.failure_metrics(frame).rows() for frame in frames]
    assert answers[0] == answers[1] == answers[2]
    rows = jobs.rows(named=True)
    expected = [
        (task, *vars(task_failure_metrics(task, rows)).values())
        for task in range(1, 30)
        if task_failure_metrics(task, rows).num_failed is not None
    ]
    assert answers[0] == expected


def test_task_without_counted_jobs():
    toy = Toy().job(1, jobstatus="failed", prodsourcelabel="test", hs06sec=10)
    assert scouts.failure_metrics(toy.tables()[0]).is_empty()
    config = {"MAX_JOB_FAILURE_RATE_managed": 0.1}
    assert why_not(toy, "E6", config) == "not known"


def test_missing_columns():
    with pytest.raises(SchemaError, match=r"jobs\.jobstatus: column missing"):
        scouts.failure_metrics(history().tables()[0].drop("jobstatus"))


# ---- the rules

RULES = [
    ("E3", {"attemptnr": 5}, {}, "TASK_MAX_ATTEMPT_managed", 5, 6, "task_max_attempt"),
    ("E4", {}, {"hs06sec": 3600}, "MAX_FAILED_HEP_SCORE_HOURS_managed", 3, 4, "max_failed_hours"),
    (
        "E5",
        {},
        {"hs06sec": 10},
        "MAX_FAILED_HEP_SCORE_RATE_managed",
        0.429,
        0.43,
        "max_failed_rate",
    ),
    ("E6", {}, {}, "MAX_JOB_FAILURE_RATE_managed", 0.429, 0.43, "max_failure_rate"),
]


@pytest.mark.parametrize(("rule", "task", "jobs", "key", "reached", "missed", "reason"), RULES)
def test_limits_are_reached_at_the_limit(rule, task, jobs, key, reached, missed, reason):
    toy = history(**jobs, **task)
    row = verdict(toy, {key: reached})
    assert (row["rule"], row["reason_code"], row["action"]) == (rule, reason, "exhausted")
    assert list(json.loads(row["numbers"]).values())[1] == reached
    assert why_not(toy, rule, {key: missed}) == "below the setting"
    assert verdict(toy, {key: missed})["action"] == "none"
    assert why_not(toy, rule, {key: type(reached)(0)}) == "setting off"
    assert why_not(toy, rule) == "setting off"
    assert why_not(toy, rule, {key.replace("managed", "user"): reached}) == "setting off"


@pytest.mark.parametrize(("rule", "task", "jobs", "key", "reached", "missed", "reason"), RULES)
def test_an_operator_may_ignore_them(rule, task, jobs, key, reached, missed, reason):
    toy = history(**jobs, **task)
    assert verdict(toy, {key: reached}, ignore=True)["action"] == "none"
    assert why_not(toy, rule, {key: reached}, ignore=True) == "ignored by the operator"


def test_they_are_tested_in_order():
    toy = history(hs06sec=3600, attemptnr=5)
    config = {
        "TASK_MAX_ATTEMPT_managed": 5,
        "MAX_FAILED_HEP_SCORE_HOURS_managed": 3,
        "MAX_FAILED_HEP_SCORE_RATE_managed": 0.1,
        "MAX_JOB_FAILURE_RATE_managed": 0.1,
        "JOB_MAX_ATTEMPT_managed": 1,
        "MIN_CPU_EFFICIENCY_managed": 90,
    }
    toy.file(1, status="ready", maxattempt=9)
    for job in toy.jobs:
        job["cpuconsumptiontime"] = 1
    hit = []
    for key in list(config):
        hit.append(verdict(toy, config)["rule"])
        del config[key]
    assert hit == ["E3", "E4", "E5", "E6", "E7", "E8"]
    assert verdict(toy, config)["rule"] is None
    trace = checked(toy, {"MAX_JOB_FAILURE_RATE_managed": 0.1}).trace
    assert trace["rule"].to_list() == ["E1", "E3", "E4", "E5", "E6", "E7", "E8"]
    assert trace["evaluated"].to_list() == [True] * 5 + [False] * 2
    assert trace["fired"].to_list() == [False] * 4 + [True] + [False] * 2


@pytest.mark.parametrize(
    ("limit", "reason"), [(10, None), (11, "below the setting"), (None, "setting off")]
)
def test_e7_rejects_the_retry_and_leaves_the_status(limit, reason):
    """largest maxattempt of input files >= JOB_MAX_ATTEMPT_<label>: retry rejected, status unchanged"""
    toy = history().file(1, maxattempt=10).file(2, maxattempt=3)
    toy.file(3, maxattempt=99, type="log")  # no input
    config = {} if limit is None else {"JOB_MAX_ATTEMPT_managed": limit}
    row = verdict(toy, config)
    assert why_not(toy, "E7", config) == reason
    assert row["action"] == ("rejected" if reason is None else "none")
    assert why_not(toy, "E7", config, with_files=False) in ("not known", "setting off")


def test_e7_of_zero():
    """0 is documented as off, but in the code 0 rejects everything"""
    config = {"JOB_MAX_ATTEMPT_managed": 0}
    toy = history().file(1, maxattempt=10)
    assert verdict(toy, config)["action"] == "none"
    assert why_not(toy, "E7", config) == "setting off"
    assert verdict(toy, config, rules=ScoutRules("production"))["action"] == "rejected"
    switched = ScoutRules(zero_attempts_reject=True)
    assert verdict(history(), config, rules=switched)["action"] == "rejected"
    assert verdict(history(), {}, rules=switched)["action"] == "none"


@pytest.mark.parametrize(
    ("limit", "cpu", "reason"),
    [
        (51, 1800, None),
        (50, 1800, "not below the setting"),
        (1, 1, "not below the setting"),  # rounded up to 1 %
        (0, 0, "not below the setting"),
        (50, None, "not known"),
        (None, 1, "setting off"),
    ],
)
def test_e8(limit, cpu, reason):
    """MIN_CPU_EFFICIENCY_<label> > min_cpu_efficiency (median over finished jobs)"""
    toy = history()
    for job in toy.jobs:
        job["cpuconsumptiontime"] = cpu
    config = {} if limit is None else {"MIN_CPU_EFFICIENCY_managed": limit}
    assert why_not(toy, "E8", config) == reason
    if reason is None:
        assert verdict(toy, config)["reason_code"] == "min_cpu_efficiency"
        assert why_not(toy, "E8", config, with_scouts=False) == "not known"


# ---- E1


def pending(hours: float, parent: str | None = None, **task: Any) -> Toy:
    toy = Toy(**({"status": "pending", "frozentime": at(-hours * HOUR), "parent_tid": 1} | task))
    if parent is not None:
        toy.tasks[0]["parent_tid"] = 2
        toy.task(2, status=parent)
    return toy


@pytest.mark.parametrize(
    ("toy", "config", "reason"),
    [
        (pending(168.01), {}, None),
        (pending(168), {}, "not longer than the timeout"),
        (pending(49), {"PENDING_TIMEOUT_managed": 48}, None),
        (pending(49), {"PENDING_TIMEOUT_user": 48}, "not longer than the timeout"),
        (pending(999, status="running"), {}, "not pending"),
        (pending(999, parent="running"), {}, "its parent is running"),
        (pending(999, parent="done"), {}, None),
        (pending(999, parent_tid=77), {}, None),
        (pending(999, parent_tid=None), {}, None),
    ],
)
def test_e1(toy, config, reason):
    """pending longer than the timeout since frozentime, parent not running"""
    assert why_not(toy, "E1", config, at=at(0)) == reason
    assert verdict(toy, config, at=at(0))["action"] == ("exhausted" if reason is None else "none")


def test_e1_message_and_numbers():
    row = verdict(pending(200), at=at(0))
    assert (row["rule"], row["reason_code"]) == ("E1", "pending_timeout")
    assert row["message"] == "timeout while in pending since 2026-02-20 16:00:00"
    assert json.loads(row["numbers"]) == {"pending_h": 200.0, "pending_timeout_h": 168.0}


def test_e1_needs_a_time_and_may_have_another_static_setting():
    assert verdict(pending(999))["action"] == "none"
    unknown = "time of the last progress or of the look not known"
    assert why_not(pending(999), "E1") == unknown
    assert why_not(pending(1, frozentime=None), "E1", at=at(0)) == unknown
    assert verdict(pending(30), at=at(0), pending_timeout_h=24)["rule"] == "E1"


def test_e1_is_not_the_operators_to_ignore():
    assert verdict(pending(200), at=at(0), ignore=True)["rule"] == "E1"


def test_labels():
    """E2/E9/E10 are labels only"""
    assert sorted(LABELS) == ["E10", "E2", "E9"]


def test_tasks_of_several_labels():
    toy = history(attemptnr=9).task(2, attemptnr=9, prodsourcelabel="user").task(3, attemptnr=None)
    found = checked(toy, {"TASK_MAX_ATTEMPT_managed": 5}).verdicts
    assert found["action"].to_list() == ["exhausted", "none", "none"]
    assert found["rules"].to_list() == ["document"] * 3
