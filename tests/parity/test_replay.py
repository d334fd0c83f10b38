"""Polars, DuckDB and Spark rebuild the same states from the same histories."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage import replaying
from brokerlab.brokerage.replaying import counts, places, plan, task_tables
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.lifecycle import states
from tests.one_value import job_counts
from tests.unit.brokerage.replaying.toys import LOG, SCHEMA, at

EXTRA = {
    "nevents": pl.Int64,
    **dict.fromkeys(["processingtype", "prodsourcelabel", "specialhandling"], pl.String),
}
OF_USERS = {
    **dict.fromkeys(["produsername", "workinggroup", "jobsubstatus"], pl.String),
    **dict.fromkeys(["piloterrorcode", "relocationflag"], pl.Int64),
}


def tables() -> dict[str, pl.DataFrame]:
    """Draw jobs with every kind of gap, a log of some, links, tasks and datasets."""
    draw = random.Random(11)  # noqa: S311 - not a secret
    maybe = lambda *values: draw.choice([None, *values])  # noqa: E731
    jobs, log = [], []
    for number in range(300):
        steps = [draw.randrange(-60, 300)]
        for _ in range(5):
            steps.append(steps[-1] + draw.choice([-5, 0, 0, 1, 7, 30, 90]))
        names = (
            "creationtime",
            "activatedtime",
            "starttime",
            "endtime",
            "statechangetime",
            "modificationtime",
        )
        times = {
            n: at(m) + timedelta(seconds=draw.randrange(60))
            for n, m in zip(names, steps, strict=True)
        }
        times |= {n: None for n in names[1:5] if draw.random() < 0.15}
        jobs.append(
            {
                "pandaid": number,
                "jeditaskid": maybe(1, 2, 3),
                "jobstatus": draw.choice(
                    ["finished"] * 4 + ["failed", "closed", "running", "activated"]
                ),
                "computingsite": draw.choice(["Q", "R", "Q/SCORE"]),
                "gshare": maybe("A", "B"),
                "workqueue_id": maybe(1, 2),
                "resource_type": maybe("SCORE", "MCORE"),
                "nucleus": maybe("N", "M"),
                "corecount": maybe(0, 1, 8),
                "diskio": maybe(0, 7, 1000),
                "nevents": maybe(0, 10, 25),
                "processingtype": maybe("pmerge", "simul"),
                "prodsourcelabel": draw.choice(["managed", "managed", "user"]),
                "specialhandling": maybe("sj", "x,sj", "sjx", ""),
                **times,
            }
        )
        for _ in range(draw.choice([0, 0, 3])):
            moment = at(draw.randrange(-60, 300))
            log.append((number, draw.choice(states.ORDER), moment, maybe("Q", "S")))
    of_users = [
        {
            "produsername": draw.choice(["ann", "bob", None]),
            "workinggroup": draw.choice([None, None, "G"]),
            "jobsubstatus": draw.choice([None, "toreassign"]),
            "piloterrorcode": draw.choice([None, 0, 1099]),
            "relocationflag": draw.choice([None, 0, 2, 3]),
        }
        for _ in jobs
    ]
    links = [
        (
            draw.choice("AB"),
            draw.choice("XY"),
            draw.choice(["k", "l"]),
            maybe(1.5, 2.0),
            at(draw.randrange(300)),
        )
        for _ in range(80)
    ]
    tasks = [
        (n, "managed", "N", "A", 500, "running", 10, "HS06sPerEvent", at(n), at(900))
        for n in (1, 2, 3)
    ]
    return {
        "jobs": pl.concat(
            [pl.DataFrame(jobs, schema=SCHEMA | EXTRA), pl.DataFrame(of_users, schema=OF_USERS)],
            how="horizontal",
        ),
        "job_status_log": pl.DataFrame(sorted(set(log), key=str), schema=LOG, orient="row"),
        "network_matrix": pl.DataFrame(
            list({row[:3] + row[4:]: row for row in links}.values()),
            schema={**dict.fromkeys(["src", "dst", "key"], pl.String), "value": pl.Float64, "ts": pl.Datetime("us")},
            orient="row",
        ),
        "tasks": pl.DataFrame(
            tasks,
            schema=["jeditaskid", "prodsourcelabel", "nucleus", "gshare", "currentpriority", "status", "cputime", "cputimeunit", "creationdate", "modificationtime"],
            orient="row",
        ),
        "datasets": pl.DataFrame(
            {"jeditaskid": [1, 2, 3], "datasetid": [1, 2, 3], "masterid": None, "type": "input", "nevents": [100, 500, 9000]},
            schema_overrides={"masterid": pl.Int64},
        ),
    }  # fmt: skip


INSTANTS = replaying.instants(
    pl.DataFrame({"at": [at(m) for m in (-90, 0, 7, 30, 31, 90.25, 200, 299, 500)]}), every=None
)


def each_kind(of: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Ask one question of each kind of query."""
    jobs = of["jobs"]
    return {
        "counts, log": job_counts(jobs, of["job_status_log"], INSTANTS),
        "links": places.network_matrix(of["network_matrix"], Clock.of(INSTANTS)),
        "brokerages": replaying.job_brokerages(jobs),
        "starts": places.to_run_rate(jobs, Clock.of(INSTANTS)),
        "open": task_tables.open_tasks(of["tasks"], of["datasets"], jobs, INSTANTS),
    }


def everything(of: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Ask every question that reads archive-sized tables."""
    jobs, log, clock = of["jobs"], of["job_status_log"], Clock.of(INSTANTS)
    pairs = pl.DataFrame({"jeditaskid": [1, 1, 2, 3], "snapshot": [2, 6, 4, 5]})
    shares = INSTANTS.select("snapshot", gshare=pl.lit("A"))
    units = INSTANTS.select("snapshot", username=pl.lit("ann"), origusername=pl.lit("A. Nn"), workinggroup=pl.lit(None, pl.String))  # fmt: skip
    users = counts.user_changes(jobs, log, clock)
    return each_kind(of) | {
        "counts, times": job_counts(jobs, None, INSTANTS),
        "counts, grid": job_counts(jobs, log, replaying.instants(INSTANTS, every="10m")),
        "pilots": places.site_activity_of_jobs(jobs, clock),
        "choices": plan.task_brokerages(of["tasks"]),
        "types": task_tables.task_resource_types(jobs, pairs, INSTANTS),
        "ends": places.failure_counts(jobs, pairs, clock, hours=2),
        "used": places.sites_used(jobs, pairs, clock),
        "users": counts.user_job_stats(users, shares),
        "totals": counts.user_totals(users, units),
    }


def same(ours: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    assert ours.keys() == expected.keys()
    for name, frame in expected.items():
        assert not frame.is_empty(), name
        try:
            assert_frame_equal(ours[name], frame, check_exact=True)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_lazy_polars_and_another_order_of_rows() -> None:
    drawn = tables()
    turned = {name: frame.reverse().lazy() for name, frame in drawn.items()}
    same(everything(turned), everything(drawn))


def test_duckdb() -> None:
    drawn = tables()
    session = duckdb.connect()
    relations = {name: session.from_arrow(frame.to_arrow()) for name, frame in drawn.items()}
    same(everything(relations), everything(drawn))


@pytest.mark.long
@pytest.mark.spark
def test_spark(spark: Any, tmp_path: Path) -> None:
    drawn = tables()
    for name, frame in drawn.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    frames = {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in drawn}
    same(each_kind(frames), each_kind(drawn))
