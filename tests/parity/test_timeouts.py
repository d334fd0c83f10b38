"""Polars, DuckDB and Spark say the same about when rules would have fired."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.lifecycle.timeouts import TimeoutRules, would_fire
from brokerlab.lifecycle.timeouts.rule import LIVE

START = datetime(2026, 3, 1)
END = START + timedelta(days=40)
TIMES = ("creationtime", "activatedtime", "starttime", "endtime", "statechangetime", "modificationtime")  # fmt: skip
QUEUES = pl.DataFrame(
    {"panda_queue": ["Q", "R"], "status": ["online", "test"], "workflow": [None, "push"]}
)


def tables() -> dict[str, pl.DataFrame]:
    """Draw jobs of every kind, a log of some and heartbeats of some."""
    draw = random.Random(5)  # noqa: S311 - not a secret
    jobs: list[dict[str, Any]] = []
    log: list[tuple[int, str, datetime]] = []
    signs: list[tuple[int, datetime]] = []
    for number in range(150):
        hours = sorted(draw.choice([0, 1, 5, 50, 100, 300, 700]) + draw.random() for _ in TIMES)
        times = {n: START + timedelta(hours=h) for n, h in zip(TIMES, hours, strict=True)}
        times |= {n: None for n in TIMES[1:5] if draw.random() < 0.2}
        jobs.append(
            {
                "pandaid": number,
                "jeditaskid": draw.choice([None, 1]),
                "jobstatus": draw.choice([*LIVE, "finished", "finished", "failed", "closed"]),
                "computingsite": draw.choice("QRS"),
                "currentpriority": draw.choice([None, 100, 900]),
                "prodsourcelabel": draw.choice(["managed", "managed", "user"]),
                "processingtype": "simul",
                "lockedby": draw.choice([None, "jedi"]),
                "relocationflag": draw.choice([None, 0, 2]),
                "jobsubstatus": draw.choice([None, "s3"]),
                "transformation": draw.choice(["buildGen", "run"]),
                "eventservice": draw.choice([None, 2]),
                **times,
            }
        )
        moments = [times["creationtime"] + timedelta(hours=draw.randrange(200)) for _ in range(6)]
        log += [(number, draw.choice(LIVE), moment) for moment in moments[: draw.choice([0, 4])]]
        signs += [(number, moment) for moment in moments]
    times_of = {"modificationtime": pl.Datetime("us")}
    return {
        "jobs": pl.DataFrame(jobs, infer_schema_length=None, schema_overrides=dict.fromkeys(TIMES, pl.Datetime("us"))),
        "job_status_log": pl.DataFrame(sorted(set(log)), orient="row", schema={"pandaid": pl.Int64, "jobstatus": pl.String} | times_of),
        "heartbeats": pl.DataFrame(sorted(set(signs)), orient="row", schema={"pandaid": pl.Int64} | times_of),
    }  # fmt: skip


def answers(of: dict[str, Any], *, beats: bool = True) -> list[pl.DataFrame]:
    jobs, log = of["jobs"], of["job_status_log"]
    found = [would_fire(jobs, log, at=END, queues=QUEUES, rules=TimeoutRules("production"))]
    if beats:
        found.append(would_fire(jobs, log, at=END, queues=QUEUES, heartbeats=of["heartbeats"]))
    return found


def same(ours: list[pl.DataFrame], expected: list[pl.DataFrame]) -> None:
    for got, wanted in zip(ours, expected, strict=True):
        assert wanted["rule"].n_unique() > 10
        assert_frame_equal(got, wanted, check_exact=True)


def test_lazy_polars_and_another_order_of_rows() -> None:
    drawn = tables()
    same(answers({name: frame.reverse().lazy() for name, frame in drawn.items()}), answers(drawn))


def test_duckdb() -> None:
    drawn = tables()
    session = duckdb.connect()
    relations = {name: session.from_arrow(frame.to_arrow()) for name, frame in drawn.items()}
    same(answers(relations), answers(drawn))


@pytest.mark.long
@pytest.mark.spark
def test_spark(spark: Any, tmp_path: Path) -> None:
    drawn = tables()
    for name, frame in drawn.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    frames = {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in drawn}
    same(answers(frames, beats=False), answers(drawn, beats=False))
