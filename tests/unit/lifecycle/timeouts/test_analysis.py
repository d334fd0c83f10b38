"""Waiting analysis jobs that are brokered again."""

from __future__ import annotations

from typing import Any

import pytest

from brokerlab.lifecycle.timeouts import TimeoutRules
from tests.unit.lifecycle.timeouts.toys import DAY, HOUR, SECOND, job, judge, queue


def user(status: str, pandaid: int = 1, **columns: Any) -> dict[str, Any]:
    """Return a user's job that changed its state long ago."""
    plain = {
        "prodsourcelabel": "user",
        "produsername": "alice",
        "jobdefinitionid": 3,
        "statechangetime": DAY,
    }
    return job(status, pandaid=pandaid, **{**plain, **columns})  # fmt: skip


def log(pandaid: int, age: Any) -> dict[str, Any]:
    return {"pandaid": pandaid, "jobstatus": "activated", "modificationtime": age}


def moved(*jobs: dict[str, Any], rules: str = "document", **context: Any) -> list[int]:
    both = TimeoutRules(rules, analysis_rebrokerage=True)
    fired = judge(*jobs, rules=both, **context).fired
    rows = fired.filter(rule="analysis_rebrokerage")
    assert set(rows["action"]) <= {"reassign"}
    return rows["pandaid"].to_list()


@pytest.mark.parametrize("rules", ["document", "production"])
def test_a_group_moves_from_the_limit_on(rules: str) -> None:
    jobs = [
        user("activated"),
        user("starting", 2),
        user("assigned", 3),
        user("running", 4),
        user("activated", 5, jobdefinitionid=4),
    ]
    assert moved(*jobs, rules=rules, status_log=[log(1, 12 * HOUR)]) == [1, 2, 3]
    assert moved(*jobs, rules=rules, status_log=[log(1, 12 * HOUR - SECOND)]) == []
    assert moved(*jobs, rules=rules) == []  # nobody knows since when
    assert moved(*jobs, rules=rules, status_log=[log(2, DAY)]) == []  # not of the lowest pandaid
    assert moved(*jobs, queues=[], rules=rules, status_log=[log(1, DAY)]) == []  # fmt: skip


def test_limits_are_those_of_the_group() -> None:
    jobs, seen = [user("activated", workinggroup="phys")], [log(1, 6 * HOUR)]
    assert moved(*jobs, status_log=seen) == []
    assert moved(*jobs, status_log=seen, config={"ANALY_TIMEOUT": 6}) == [1]
    assert moved(*jobs, status_log=seen, config={"ANALY_TIMEOUT_phys": 6}) == [1]
    assert moved(*jobs, status_log=seen, config={"ANALY_TIMEOUT": 6, "ANALY_TIMEOUT_phys": 7}) == []
    assert moved(*jobs, status_log=seen, config={"ANALY_TIMEOUT": 6, "ANALY_TIMEOUT_phys": 0}) == [1]  # fmt: skip


def test_a_queue_that_is_down_gives_jobs_back_at_once() -> None:
    jobs, down = [user("activated")], {"queues": [queue(status="test")]}
    assert moved(*jobs, **down, status_log=[log(1, 3 * HOUR)]) == []
    assert moved(*jobs, **down, status_log=[log(1, 3 * HOUR + SECOND)]) == [1]


@pytest.mark.parametrize(
    ("status", "age", "stays"),
    [
        ("running", 3 * HOUR - SECOND, True),
        ("running", 3 * HOUR, False),
        ("activated", HOUR, True),
        ("finished", HOUR, True),
        ("closed", HOUR, False),
        ("failed", HOUR, False),
        ("starting", HOUR, False),
        ("pending", HOUR, False),
    ],
)
def test_a_recent_change_of_state_keeps_a_group(status: str, age: Any, *, stays: bool) -> None:
    recent = user(status, 2, statechangetime=age)
    seen = [log(1, DAY), log(2, DAY)]
    assert (1 in moved(user("activated"), recent, status_log=seen)) != stays
    for other in ({"produsername": "bob"}, {"jobdefinitionid": 9}, {"computingsite": "P"}):
        assert 1 in moved(user("activated"), {**recent, **other}, status_log=seen)


def test_jobs_before_activation_count_where_no_activated_group_does() -> None:
    early = user("defined", creationtime=12 * HOUR)
    assert moved(early) == [1]
    assert moved({**early, "creationtime": 12 * HOUR - SECOND}) == []
    assert moved(early, user("assigned", 2, creationtime=5 * HOUR)) == []  # the latest one counts
    assert moved(early, user("assigned", 2, creationtime=3 * HOUR)) == [1, 2]  # too young to
    waiting = user("activated", 2, computingsite="P")
    queues = [queue(), queue(panda_queue="P")]
    assert moved(early, waiting, queues=queues, status_log=[log(2, 4 * HOUR)]) == []
    assert moved(early, waiting, queues=queues, status_log=[log(2, HOUR)]) == [1]
    assert moved(early, waiting, queues=queues) == [1]


def test_only_jobs_of_users_under_jedi_count() -> None:
    seen = {"status_log": [log(1, DAY)]}
    assert moved(user("activated", prodsourcelabel="panda"), **seen) == [1]
    for column in ({"prodsourcelabel": "managed"}, {"lockedby": None}, {"jeditaskid": None}):
        assert moved({**user("activated"), **column}, **seen) == []
    assert judge(user("activated"), rules="document", **seen).fired.is_empty()
    assert not judge(user("activated"), rules="production", **seen).fired.is_empty()
