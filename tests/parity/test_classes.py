"""Polars, DuckDB and Spark classify alike, whatever the order of rows, at one instant and at many."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from tests.unit.lifecycle.classification.toys import NOW, drawn

SHARES = pl.DataFrame(
    {
        "name": ["Analysis", "User Analysis", "Express Analysis", "Rest"],
        "value": [80, 3, 1, 20],
        "parent": [None, "Analysis", "Analysis", None],
    }
)
GRID = [NOW + timedelta(hours=hour) for hour in range(-150, 0, 30)]
ODD = [NOW, NOW - timedelta(minutes=7), NOW - timedelta(days=3, seconds=1.25)]
Found = dict[str, pl.DataFrame]


def from_jobs(of: dict[str, Any], at: list[datetime], rules: ClassRules, log: Any) -> Found:
    """Ask each question about job-sized tables once."""
    jobs = of["jobs"]
    return {
        "waits": classification.wait_stats(jobs, of["queues"], status_log=log, at=at, rules=rules),
        "slots": classification.user_slots(jobs, status_log=log, at=at),
        "shares": classification.share_job_stats(jobs, status_log=log, at=at),
    }


def each_query(of: dict[str, Any], at: list[datetime]) -> Found:
    """Ask one question of each kind of query."""
    jobs, log = of["jobs"], of["job_status_log"]
    states = pl.DataFrame({"snapshot": range(len(at)), "at": at, "jeditaskid": 7})
    production = ClassRules("production")
    return {
        "waits": classification.wait_stats(
            jobs, of["queues"], status_log=log, at=at, rules=production
        ),
        "slots": classification.user_slots(jobs, status_log=log, at=at),
        "activity": classification.queue_activity(jobs, at=at, vo="atlas"),
        "progress": classification.task_progress(states, of["files"], of["datasets"], jobs),
        "states": classification.task_states(of["tasks"], status_log=of["task_status_log"], at=at),
    }


def everything(of: dict[str, Any], at: list[datetime]) -> Found:
    """Ask every question, and classify."""
    rules = ClassRules()
    log = of["job_status_log"]
    found = each_query(of, at) | from_jobs(of, at, ClassRules("production"), log)
    found["progress"] = classification.task_progress(
        found["states"], of["files"], of["datasets"], of["jobs"]
    )
    plain = from_jobs(of, at, rules, None)
    states = classification.task_states(of["tasks"], at=at)
    rated = classification.site_classes_at(of["jobs"], of["queues"], at=at, vo="atlas", rules=rules)
    apart = classification.site_classes(
        plain["waits"], of["queues"], found["activity"], rules=rules
    )
    assert_frame_equal(apart.classes, rated.classes, check_exact=True)
    usage = classification.user_usage(plain["slots"], rated.classes, rules=rules).users
    tasks = classification.task_classes(states, found["progress"], usage, at=at, rules=rules)
    shares = classification.share_usage(SHARES, plain["shares"])
    return found | {
        **{f"{name}, times": frame for name, frame in plain.items()},
        "states, times": states,
        "classes": rated.classes,
        "percentiles": rated.percentiles,
        "users": usage,
        "tasks": tasks.classes,
        "usage": shares.usage,
    }


def same(ours: Found, expected: Found) -> None:
    assert ours.keys() == expected.keys()
    for name, frame in expected.items():
        try:
            assert_frame_equal(ours[name], frame, check_exact=True)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize("at", [GRID, ODD], ids=["grid", "odd"])
def test_lazy_polars_and_another_order_of_rows(at: list[datetime]) -> None:
    tables = drawn(1)
    turned = {name: frame.reverse().lazy() for name, frame in tables.items()}
    expected = everything(tables, at)
    assert not [name for name, frame in expected.items() if frame.is_empty()]
    same(everything(turned, at), expected)


@pytest.mark.parametrize("at", [GRID, ODD], ids=["grid", "odd"])
def test_duckdb(at: list[datetime]) -> None:
    tables = drawn(2)
    session = duckdb.connect()
    relations = {name: session.from_arrow(frame.to_arrow()) for name, frame in tables.items()}
    same(everything(relations, at), everything(tables, at))


@pytest.mark.long
@pytest.mark.spark
def test_spark(spark: Any, tmp_path: Path) -> None:
    tables = drawn(3)
    for name, frame in tables.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    frames = {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in tables}
    same(each_query(frames, GRID), each_query(tables, GRID))
