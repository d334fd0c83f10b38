"""Queues differ in how long the same jobs run there, and a job that is sent elsewhere needs what it needs there."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation.archive import slowness


def jobs(n: int, slow: float) -> pl.DataFrame:
    """Tasks of other lengths, each with n jobs at a usual queue and at a slow one."""
    rows = [
        (task, 8, queue, 1000.0 * (1 + task) * factor)
        for task in range(40)
        for queue, factor in (("USUAL", 1.0), ("SLOW", slow))
        for _ in range(n)
    ]
    names = ["jeditaskid", "corecount", "panda_queue", "wall_s"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_the_ratio_of_two_queues_is_found_whatever_the_tasks_are() -> None:
    found = dict(slowness(jobs(20, 2.0)).iter_rows())
    assert found["SLOW"] / found["USUAL"] == pytest.approx(2.0, rel=0.05)


def test_queues_that_differ_by_chance_alone_are_usual() -> None:
    rng = np.random.default_rng(1)
    same = jobs(5, 1.0)
    drawn = same.with_columns(wall_s=pl.col("wall_s") * rng.lognormal(0, 0.4, same.height))
    assert slowness(drawn)["slowness"].to_list() == pytest.approx([1.0, 1.0], abs=0.05)
    slow = jobs(5, 2.0).with_columns(wall_s=pl.col("wall_s") * rng.lognormal(0, 0.4, same.height))
    found = dict(slowness(slow).iter_rows())
    assert found["SLOW"] / found["USUAL"] == pytest.approx(2.0, rel=0.1)


def test_no_jobs_no_queues() -> None:
    assert slowness(jobs(1, 2.0).clear()).is_empty()


def test_tasks_at_one_queue_alone_say_nothing_of_it() -> None:
    alone = jobs(20, 2.0).filter(pl.col("panda_queue") == "SLOW")
    assert slowness(alone)["slowness"].to_list() == pytest.approx([1.0])


def test_jobs_that_stay_need_what_they_needed() -> None:
    start = datetime(2026, 3, 1)
    one = pl.DataFrame(
        {
            "pandaid": [1],
            "computingsite": "Q",
            "creationtime": start,
            "readytime": start,
            "walltime_s": 3600.0,
        }
    )
    queues = pl.DataFrame({"panda_queue": ["Q"], "slots": [1], "slowness": [3.0]})
    world = simulation.of_tables(one, queues, start=start, end=start + timedelta(hours=6))
    assert simulation.run(world).jobs["running_s"].to_list() == [3600.0]
