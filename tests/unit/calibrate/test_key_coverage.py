"""Every key of the catalogue stands in the coverage once, and what it is said to be tried by tries it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import brokerlab
from brokerlab.brokerage.studies.alternatives import check_keys
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION
from brokerlab.calibrate.key_coverage import (
    NO_TRIAL,
    RULE_SETS,
    coverage,
    coverage_of,
    mechanisms,
    read_by,
    screen_keys,
    screened_keys,
)
from brokerlab.calibrate.percentiles.parameters import PARAMETERS
from brokerlab.calibrate.thresholds.screening import CHANGES, NOTHING, UNTOLD
from brokerlab.calibrate.thresholds.settings import threshold_of
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import catalogue
from brokerlab.gdpconfig.keys import rows
from brokerlab.lifecycle.timeouts import TimeoutRules, decision_table
from tests.scout_toys import Toy, settings
from tests.unit.lifecycle.timeouts.toys import HOUR, NOW, frame, job, queue

ROOMS = ("scouts", "brokerage", "lifecycle")
"""Rooms whose rules read keys."""


@pytest.fixture(scope="module")
def covered() -> pl.DataFrame:
    return coverage()


def of(covered: pl.DataFrame, key: str) -> dict[str, object]:
    return covered.row(by_predicate=pl.col("key") == key, named=True)


def test_every_row_of_the_catalogue_stands_in_it_once(covered):
    place = ["key", "component"]
    assert covered.select(place).rows() == catalogue().select(place).rows()
    assert covered.select(place).is_duplicated().sum() == 0


def test_a_key_is_tried_by_something_or_a_reason_is_given(covered):
    tried = pl.col("how") != "not"
    assert covered.filter(tried == pl.col("reason").is_not_null()).is_empty()
    assert covered.filter(tried == (pl.col("by").list.len() == 0)).is_empty()
    assert covered.filter(tried == (pl.col("reports").list.len() == 0)).is_empty()
    # nothing can be tried that no rule reads
    assert covered.filter(tried & (pl.col("read_by").list.len() == 0)).is_empty()


def test_calibrated_is_said_where_a_calibration_is_among_what_tries_it(covered):
    calibrating = {one.name for one in mechanisms() if one.how == "calibrated"}
    for row in covered.iter_rows(named=True):
        assert (row["how"] == "calibrated") == bool(calibrating & set(row["by"])), row["key"]


def test_what_the_source_reads_is_what_is_said_to_be_read():
    home = Path(brokerlab.__file__).parent
    texts = [path.read_text() for room in ROOMS for path in sorted((home / room).rglob("*.py"))]
    source = "\n".join(texts)
    said = {key for _, key in read_by()}
    for row in rows():
        literal = re.search(rf'"{re.escape(row.key)}"', source) is not None
        assert literal == (row.key in said), row.key


@pytest.mark.parametrize("name", sorted({one.name for one in mechanisms()}))
def test_the_calls_that_are_named_exist(name):
    module, _, call = f"brokerlab.{name}".rpartition(".")
    assert callable(
        getattr(importlib.import_module(module), call, None)
    ) or importlib.import_module(f"brokerlab.{name}")


def accepts(report: str, key: str) -> bool:
    """Ask what a report asks whether it can try a key."""
    if report == "scout-percentiles":
        return key in {k for p in PARAMETERS.values() for k in (p.rank_key, p.margin_key)}
    if report == "thresholds":
        tried = {row.key for name in RULE_SETS for row in screened_keys(name)}
        return key in tried or threshold_of(key).key == key
    if report == "network-curve":
        return key == "NW_QUEUE_IMPORTANCE"
    if report == "waiting-rules":
        tables = [decision_table(rules=TimeoutRules(name)) for name in ("document", "production")]
        return any(key in keys for table in tables for keys in table["keys"])
    check_keys([key], {"brokerage-replay": PRODUCTION, "analysis-replay": ANALYSIS}[report])
    return True


def test_a_key_is_really_in_what_it_is_said_to_be_tried_by(covered):
    for key, reports in covered.select("key", "reports").iter_rows():
        for report in reports:
            assert accepts(report, key), (key, report)


def test_known_keys(covered):
    rank = of(covered, "SCOUT_CPUTIME_RANK")
    assert (rank["how"], rank["reports"]) == ("calibrated", ["scout-percentiles"])
    cap = of(covered, "NQUEUED_SAT_CAP")
    assert cap["how"] == "calibrated"
    assert "production jobs: link_backlog" in cap["read_by"]
    beat = of(covered, "HEARTBEAT_TIMEOUT_<workflow>")
    assert (beat["how"], beat["reports"]) == ("screened", ["waiting-rules", "thresholds"])
    # gdpconfig.md: the documented name of a key that the code reads under another name
    gone = of(covered, "MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_<prodsourcelabel>")
    assert (gone["how"], gone["reason"]) == ("not", "documented, but no code reads it")


def test_no_key_that_a_rule_reads_is_left_out(covered):
    assert covered.filter(reason=NO_TRIAL).is_empty()
    assert covered.filter(pl.col("read_by").list.len() > 0, how="not").is_empty()


def test_keys_that_reports_try_only_if_they_are_named_are_marked(covered):
    marked = covered.filter("if_named")
    assert set(marked["reports"].explode()) == {"brokerage-replay", "analysis-replay"}
    for row in marked.iter_rows(named=True):
        for report, kind in {"brokerage-replay": PRODUCTION, "analysis-replay": ANALYSIS}.items():
            assert report not in row["reports"] or row["key"] not in kind.usual_keys
    assert of(covered, "MAX_PRIO_TO_BOOTSTRAP")["if_named"]
    for key in (
        "STORAGE_MIN_FREE_SIZE",
        "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]",
        "NQUEUED_SAT_CAP",
    ):
        assert not of(covered, key)["if_named"]


def test_group_caps_are_thresholds(covered):
    # 002, "User analysis brokerage": groups have caps of their own
    for key in ("CAP_RUNNING_GROUP_JOBS", "CAP_RUNNING_GROUP_CORES"):
        assert "thresholds" in of(covered, key)["reports"]


def test_what_screens_say_of_an_archive_stands_beside(covered):
    row = {"stage": "jobs", "state": "changes decisions", "at": 10.0, "n_tasks": 3, "n_jobs": None}
    types = {"n_tasks": pl.Int64, "n_jobs": pl.Int64}
    brokerage = pl.DataFrame(
        [
            {"key": "NQUEUELIMITSITE_Express", **row},
            {"key": "NQUEUELIMITSITE_MC", **row, "n_tasks": 5},
        ],
        schema_overrides=types,
    )
    found = coverage_of(brokerage, screen_keys({}, ["SCOUT_RAMCOUNT_MIN"]))
    assert found.select(covered.columns).equals(covered)
    limit = of(found, "NQUEUELIMITSITE_<gshare>")
    assert (limit["state"], limit["n_changed"], limit["counts"]) == (
        "changes decisions",
        5,
        "tasks",
    )
    assert of(found, "SCOUT_RAMCOUNT_MIN")["state"] == "not told"
    assert of(found, "NQUEUED_SAT_CAP")["state"] is None


# ---- the screen of the keys of scouts, exhausted checks and limits, on toys of which is known which values change anything


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
