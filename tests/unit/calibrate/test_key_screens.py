"""The screen of the keys of scouts, exhausted checks and limits, on toys of which is known which values change anything."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.calibrate.key_coverage import screen_keys, screened_keys
from brokerlab.calibrate.thresholds.screening import CHANGES, NOTHING, UNTOLD
from brokerlab.errors import ConfigError
from tests.scout_toys import Toy, settings
from tests.unit.lifecycle.timeouts.toys import HOUR, NOW, frame, job, queue

TABLES = ("jobs", "files", "tasks", "datasets", "queues")
MINIMUM, CAP = "SCOUT_RAMCOUNT_MIN", "SCOUT_DISK_IO_CAP"
LEAK = "SCOUT_MEM_LEAK_PER_CORE_<prodsourcelabel>"
ATTEMPTS = "TASK_MAX_ATTEMPT_<prodsourcelabel>"
GENTLE = {"maxpss": 2000 * 1024, "totrbytes": 10**9, "totwbytes": 0, "memory_leak": 100}


def scouted(config: dict[str, Any] | None = None, *keys: str, **task: Any) -> pl.DataFrame:
    """Screen keys on one task with ten scouts and many jobs to come."""
    toy = Toy(nfiles=1000, splitrule="US=3,NF=1", **task)
    for i in range(10):
        toy.job(i, 1000, **GENTLE)
    tables = dict(zip(TABLES, toy.tables(), strict=True))
    return screen_keys(tables, keys, config=settings(config))


def limited(
    key: str,
    *jobs: dict[str, Any],
    log: tuple[dict[str, Any], ...] = (),
    rules: str = "document",
    earlier: tuple[dict[str, Any], ...] = (),
    **config: Any,
) -> dict[str, Any]:
    """Screen a limit on jobs at one queue; the last change is now."""
    fresh = job("finished", pandaid=99, modificationtime=0 * HOUR)
    tables = {
        "jobs": frame("jobs", [*jobs, fresh]),
        "queues": frame("queues", [queue(ts=1 * HOUR), *earlier]),
    }
    if log:
        tables["job_status_log"] = frame("status_log", list(log))
    assert tables["jobs"]["modificationtime"].max() == NOW
    return screen_keys(tables, [key], rules=rules, config=settings(config)).row(0, named=True)


def test_a_least_memory_above_what_scouts_say_changes_the_task():
    (row,) = scouted(None, MINIMUM).rows(named=True)
    # scouts say 2200 MB; the guard rails are 0 to 4000 MB
    assert (row["current"], row["state"], row["at"]) == (None, CHANGES, 4000.0)
    assert (row["n_changed"], row["n_decided"], row["counts"]) == (1, 1, "tasks")
    (row,) = scouted({MINIMUM: 4000}, MINIMUM).rows(named=True)
    assert (row["current"], row["state"]) == (4000.0, CHANGES)


def test_a_cap_of_disk_traffic_changes_what_is_above_it_only():
    # 10^9 B in 1000 s are a little less than 1000 kB/s
    (row,) = scouted(None, CAP).rows(named=True)
    assert (row["state"], row["at"], row["part"]) == (CHANGES, 100.0, "scouts")


def test_a_check_that_stops_the_task_is_a_change():
    (row,) = scouted(None, LEAK).rows(named=True)
    assert (row["state"], row["at"], row["beside"]) == (CHANGES, 1.0, None)


def test_keys_that_are_off_for_another_are_tried_with_it():
    short = "SCOUT_NUM_SHORT_<prodsourcelabel>"
    (row,) = scouted(None, short).rows(named=True)
    assert "SCOUT_SHORT_EXECTIME_<prodsourcelabel> = 60" in row["beside"]
    assert row["state"] == NOTHING  # fewer jobs are expected than a task needs to be stopped


def test_retries_are_asked_of_every_task():
    (row,) = scouted(None, ATTEMPTS, attemptnr=3).rows(named=True)
    assert (row["part"], row["state"], row["at"], row["n_changed"]) == ("retries", CHANGES, 1.0, 1)
    (row,) = scouted(None, ATTEMPTS, attemptnr=0).rows(named=True)
    assert (row["state"], row["at"], row["n_changed"]) == (NOTHING, None, 0)


@pytest.mark.parametrize(("age", "state"), [(0.5, NOTHING), (3, CHANGES), (300, NOTHING)])
def test_a_limit_changes_what_waits_between_its_values(age: float, state: str):
    # 1 h to 240 h are tried of TIMEOUT_holding, which is 48 h
    held = job("holding", modificationtime=age * HOUR, creationtime=400 * HOUR, endtime=age * HOUR)
    seen = {"pandaid": 1, "jobstatus": "holding", "modificationtime": age * HOUR}
    row = limited("TIMEOUT_holding", held, log=(seen,))
    assert (row["current"], row["part"], row["state"]) == (48.0, "limits", state)
    assert row["n_changed"] == int(state == CHANGES)


def test_the_heartbeat_of_workflows_is_set_where_there_is_a_limit():
    row = limited(
        "HEARTBEAT_TIMEOUT_<workflow>",
        job("running", modificationtime=10 * HOUR, creationtime=400 * HOUR),
    )
    assert (row["current"], row["state"]) == (2.0, CHANGES)  # longer ones leave the job alone


def test_waiting_user_jobs_are_asked_at_the_end_under_production():
    own = {"prodsourcelabel": "user", "produsername": "alice", "jobdefinitionid": 3}
    waiting = job("activated", statechangetime=24 * HOUR, modificationtime=24 * HOUR, **own)
    seen = {"pandaid": 1, "jobstatus": "activated", "modificationtime": 24 * HOUR}
    key = "ANALY_TIMEOUT[_<workinggroup>]"
    row = limited(key, waiting, log=(seen,), rules="production")
    assert (row["current"], row["state"], row["n_changed"]) == (12.0, CHANGES, 1)
    assert row["at"] > 24
    assert limited(key, waiting, log=(seen,))["state"] == NOTHING  # no page says so
    older = queue(status="test", ts=9 * HOUR)  # hours before now; it stands last
    again = limited(key, waiting, log=(seen,), rules="production", earlier=(older,))
    assert again == row


def test_what_the_tables_cannot_tell_is_said():
    found = screen_keys({"jobs": frame("jobs", [job("holding")])}, [MINIMUM, "TIMEOUT_holding"])
    assert found["state"].to_list() == [UNTOLD, NOTHING]
    assert "has no table 'tasks'" in found["reason"][0]
    with pytest.raises(
        ConfigError, match=r"'SCOUT_RAMCOUNT_MUN': did you mean 'SCOUT_RAMCOUNT_MIN'"
    ):
        screen_keys({}, ["SCOUT_RAMCOUNT_MUN"])


@pytest.mark.parametrize("rules", ["document", "production"])
def test_every_key_is_tried_once(rules: str):
    keys = [row.key for row in screened_keys(rules)]
    assert len(keys) == len(set(keys))
    assert {MINIMUM, CAP, LEAK, ATTEMPTS, "TIMEOUT_defined", "HEARTBEAT_TIMEOUT_<workflow>"} < set(
        keys
    )
