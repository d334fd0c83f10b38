"""Classes and usage as they were evaluated last before each instant."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import analysis
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from tests.unit.brokerage.replaying.toys import SCHEMA, T0, at

NAMES = ("prodsourcelabel", "processingtype", "produsername")
USER = {"prodsourcelabel": "user", "gshare": "User Analysis", "produsername": "ann"}
QUEUES = pl.DataFrame({"panda_queue": ["FAST", "SLOW"], "resource_type_q": ["GRID", "GRID"]})
RATED = {"FAST": 1, "SLOW": -1}


def jobs_of(*rows: dict[str, Any]) -> pl.DataFrame:
    schema = {**SCHEMA, **dict.fromkeys(NAMES, pl.String), "hs06": pl.Int64}
    return pl.DataFrame([USER | row for row in rows], schema=schema)


def instants_of(*minutes: float) -> pl.DataFrame:
    return replaying.instants(pl.DataFrame({"at": [at(m) for m in minutes]}), every=None)


def probes() -> list[dict[str, Any]]:
    """Make probes: FAST starts them within 2 minutes, SLOW within 5 hours; all are over 90 minutes before T0."""
    rows = []
    for queue, wait in (("FAST", 1), ("SLOW", 300)):
        for n in range(6):
            begun = T0 - timedelta(hours=2, minutes=n)
            rows.append(
                {
                    "pandaid": len(rows),
                    "jobstatus": "finished",
                    "computingsite": queue,
                    "produsername": "gangarbt",
                    "processingtype": "gangarobot",
                    "creationtime": begun - timedelta(minutes=wait + n % 2),
                    "activatedtime": begun - timedelta(minutes=wait + n % 2),
                    "starttime": begun,
                    "endtime": T0 - timedelta(minutes=90),
                    "modificationtime": T0 - timedelta(minutes=90),
                }
            )
    return rows


def running(queue: str, minute: float, cores: int, **columns: Any) -> dict[str, Any]:
    return {
        "pandaid": 99,
        "jobstatus": "running",
        "computingsite": queue,
        "creationtime": at(minute),
        "activatedtime": at(minute),
        "starttime": at(minute),
        "modificationtime": at(minute),
        "corecount": cores,
        "hs06": 10 * cores,
        **columns,
    }


@pytest.mark.parametrize(("minute", "seen"), [(0, 0), (29.99, 0), (30, 30), (59, 30), (-0.01, -30)])
def test_an_instant_sees_the_last_evaluation(minute: float, seen: float) -> None:
    found = analysis.Ticks.of(instants_of(minute), "30m")
    assert found.ticks["at"].to_list() == [at(seen)]


def test_instants_of_one_tick_share_its_rows() -> None:
    found = analysis.Ticks.of(instants_of(1, 9, 11), "10m")
    rows = pl.DataFrame({"snapshot": [0, 1, 1], "x": ["a", "c", "b"]})
    ten = at(10)
    assert found.seen(rows, "x").rows() == [
        (0, "a", T0),
        (1, "a", T0),
        (2, "b", ten),
        (2, "c", ten),
    ]


def test_queues_are_rated_every_half_hour() -> None:
    # probes end at T0 - 90 min: from then on they are in the sample
    found = analysis.site_ratings(
        jobs_of(*probes()), QUEUES, instants_of(-91, -89, -61, 0, 29), status_log=None
    )
    assert found["timestamp"].unique().sort().to_list() == [at(-90), T0]
    assert found["snapshot"].unique().sort().to_list() == [1, 2, 3, 4]
    assert {dict(part.select("computingsite", "class").rows()) == RATED for _, part in found.group_by("snapshot")} == {True}  # fmt: skip


def usage_of(instants: pl.DataFrame, *rows: dict[str, Any]) -> tuple[analysis.Ticks, pl.DataFrame]:
    rated = analysis.site_ratings(jobs_of(*probes()), QUEUES, instants, status_log=None)
    users = analysis.users(jobs_of(*rows), rated, instants, status_log=None)
    usage = classification.user_usage(users["slots"], users["rated"], config=Config.empty()).users
    return analysis.Ticks.of(instants, analysis.USERS_EVERY), usage


def test_what_users_have_left_is_that_of_the_last_ten_minutes() -> None:
    found = usage_of(
        instants_of(4, 5, 12),
        running("FAST", -1, 100),
        running("FAST", 5, 10),  # seen from the evaluation at 10 min on
        running("SLOW", -1, 50),
        running("FAST", -1, 7, produsername="bob"),
        running("OTHER", -1, 1000),  # not rated
    )
    units = pl.DataFrame(
        {
            "snapshot": [0, 1, 2, 0],
            "username": ["ann", "ann", "ann", "eve"],
            "origusername": [None, "A. Nn", None, None],
        }
    )
    assert analysis.user_ratings(*found, units).rows() == [
        (0, "ann", 900.0, 7900.0, T0),
        (1, "A. Nn", 900.0, 7900.0, T0),
        (2, "ann", 890.0, 7890.0, at(10)),
    ]


def test_shares_are_held_against_their_targets() -> None:
    shares = pl.DataFrame(
        {"name": ["User Analysis", "Other"], "value": [50.0, 50.0], "parent": [None, None]}
    )
    rows = jobs_of(running("FAST", -1, 3), running("SLOW", -1, 1, gshare="Other"))
    found = analysis.share_ratings(rows, shares, instants_of(7), status_log=None)
    # 30 of 40 HS06 run in the share, 20 are its target
    own = found.filter(pl.col("gshare") == "User Analysis").row(0, named=True)
    assert (own["snapshot"], own["usage_perc"], own["timestamp"]) == (0, 1.5, T0)


def tables(*tasks: dict[str, Any]) -> dict[str, Any]:
    plain = {
        "username": "ann",
        "gshare": "User Analysis",
        "tasktype": "anal",
        "prodsourcelabel": "user",
        "status": "done",
        "creationdate": at(-60),
        "modificationtime": at(600),
    }
    files = {
        "jeditaskid": [1] * 10,
        "datasetid": [1] * 10,
        "pandaid": range(10),
        "fileid": range(10),
    }
    jobs = {"jeditaskid": [1] * 10, "pandaid": range(10), "creationtime": [at(-50)] * 10}
    done = [at(-1)] * 8 + [at(15), at(100)]
    dataset = {"jeditaskid": 1, "datasetid": 1, "masterid": None, "type": "input", "nfiles": 10}
    return {
        "tasks": pl.DataFrame([plain | task for task in tasks]),
        "files": pl.DataFrame(files).with_columns(status=pl.lit("finished")),
        "datasets": pl.DataFrame([dataset], schema_overrides={"masterid": pl.Int64}),
        "jobs": pl.DataFrame({**jobs, "modificationtime": done}),
    }


rated = partial(analysis.task_ratings, config=Config.empty(), rules=None)


def classes_of(found: pl.DataFrame) -> list[tuple[int, int, int, datetime]]:
    return found.select("snapshot", "jeditaskid", "class", "timestamp").rows()


def test_tasks_are_rated_by_the_usage_and_progress_of_the_evaluation() -> None:
    at_ticks, usage = usage_of(instants_of(9, 19, 25), running("FAST", 10, 1001))
    pairs = pl.DataFrame({"jeditaskid": [1, 1, 1, 2], "snapshot": [0, 1, 2, 1]})
    given = tables({"jeditaskid": 1}, {"jeditaskid": 2, "creationdate": at(11)})
    found = analysis.active_tasks(given, pairs, at_ticks)
    # 0: no slots at hi queues, A; 1: 1001 of them, B; 2: 9 of 10 files done, S. Task 2 begins after its evaluation
    expected = [(0, 1, 1, T0), (1, 1, 0, at(10)), (2, 1, 2, at(20))]
    assert classes_of(rated(at_ticks, usage, found, pairs)) == expected
    del given["files"]
    blind = analysis.active_tasks(given, pairs, at_ticks)
    assert classes_of(rated(at_ticks, usage, blind, pairs))[2] == (2, 1, 0, at(20))


def test_the_rule_set_of_the_classes_is_obeyed() -> None:
    at_ticks, usage = usage_of(instants_of(25), running("FAST", 0, 1))
    pairs = pl.DataFrame({"jeditaskid": [1], "snapshot": [0]})
    rules = ClassRules(express_is_s=False, task_rules="progress")
    express = tables({"jeditaskid": 1, "gshare": "Express Analysis"})
    found = analysis.active_tasks(express, pairs, at_ticks)
    # 90 % done and one job left: S by progress
    assert classes_of(rated(at_ticks, usage, found, pairs, rules=rules)) == [(0, 1, 2, at(20))]


def test_waits_come_from_a_log_that_tells_all_jobs_and_from_no_other() -> None:
    jobs, at_0 = jobs_of(*probes()), instants_of(0)
    whole = pl.DataFrame(
        [
            (row["pandaid"], status, row[time])
            for row in probes()
            for status, time in (("activated", "activatedtime"), ("running", "starttime"))
        ],
        schema={
            "pandaid": pl.Int64,
            "jobstatus": pl.String,
            "modificationtime": pl.Datetime("us"),
        },
        orient="row",
    )
    plain = jobs.with_columns(activatedtime=pl.col("starttime"))  # no wait, by the jobs' own times
    told = analysis.site_ratings(plain, QUEUES, at_0, status_log=whole)
    assert dict(told.select("computingsite", "class").rows()) == RATED
    part = analysis.site_ratings(
        plain, QUEUES, at_0, status_log=whole.filter(pl.col("pandaid") > 0)
    )
    assert part["class"].to_list() == [None, None]


def test_a_log_that_tells_all_jobs_is_used_and_no_other() -> None:
    jobs = pl.DataFrame({"pandaid": [1, 2]})
    assert analysis.covered(jobs, pl.DataFrame({"pandaid": [2, 1, 1, 3]}))
    assert not analysis.covered(jobs, pl.DataFrame({"pandaid": [1]}))
