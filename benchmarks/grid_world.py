"""A month of production for the grid simulator: the tables of the job brokerage's benchmark, and jobs for their tasks."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from benchmarks import brokerage_world
from benchmarks.brokerage_world import START
from brokerlab.calibrate import simulation

DAYS, CHUNKS, LOAD = 30, 4, 0.85
DAY_US = 86_400_000_000


def make_world(n_jobs: int, n_tasks: int, n_queues: int, seed: int = 1) -> simulation.World:
    """Return the world.

    Every day is an epoch. A task's jobs are made in four chunks over a day from its own; they need lognormal wall times
    with a median of 2.5 h and the task's cores. Slots are lognormal and make some 0.85 of them busy on average.

    Args:
        n_jobs: Jobs, lognormal over tasks.
        n_tasks: Tasks, spread evenly over the days.
        n_queues: Candidates, pseudo-queues among them.
        seed: Same seed, same world.
    """
    rng = np.random.default_rng(seed)
    tables = brokerage_world.make_world(n_tasks, n_queues, DAYS, seed)
    tasks = tables["tasks"].with_columns(
        is_merging=pl.lit(value=False), site=pl.lit(None, pl.String)
    )
    later = [tasks.with_columns(pl.col("snapshot") + day) for day in range(3)]
    tables["tasks"] = pl.concat(later).filter(pl.col("snapshot") < DAYS)
    jobs = _jobs(rng, n_jobs, tasks)
    queues = _queues(rng, tables["queues"], jobs)
    epochs = pl.DataFrame({"snapshot": range(DAYS)}).with_columns(
        at=pl.lit(START) + pl.col("snapshot") * pl.duration(days=1)
    )
    sizes = tables["files"].group_by("jeditaskid").agg(total=pl.col("fsize").sum())
    here = tables["file_locations"].filter(pl.col("kind") != "remote").join(
        tables["files"], on=["jeditaskid", "datasetname", "lfn"]
    )  # fmt: skip
    present = (
        here.group_by("jeditaskid", "panda_queue").agg(pl.col("fsize").sum()).join(sizes, on="jeditaskid")
        .select("jeditaskid", "panda_queue", part=(pl.col("fsize") / pl.col("total")).clip(0, 1))
    )  # fmt: skip
    sources = tables["replicas"].filter(pl.col("found") == pl.col("total")).select(
        "jeditaskid", site=pl.col("ddm_endpoint_name").str.strip_suffix("_DATADISK")
    )  # fmt: skip
    end = START + timedelta(days=DAYS)
    return simulation.of_tables(
        jobs, queues, tables, epochs, start=START, end=end,
        data={"present": present, "sources": sources.unique()},
        transfers=simulation.Transfers(default_mbps=200.0),
    )  # fmt: skip


def _jobs(rng: np.random.Generator, n: int, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs."""
    share = rng.lognormal(0, 1, tasks.height)
    row = rng.choice(tasks.height, n, p=share / share.sum())
    chunk = np.sort(rng.random((tasks.height, CHUNKS)), axis=1)[row, rng.integers(0, CHUNKS, n)]
    made = (tasks["snapshot"].to_numpy()[row] + chunk) * DAY_US
    made = np.minimum(made.astype(np.int64), DAYS * DAY_US - 1)
    order = np.argsort(made, kind="stable")
    own = tasks.select(
        "jeditaskid", "gshare", "nucleus", "resource_type", "corecount", "diskio", "prodsourcelabel",
        pl.col("currentpriority"),
    )[pl.Series(row[order])]  # fmt: skip
    wall = np.round(rng.lognormal(np.log(9000), 0.8, n), 3)
    return own.with_columns(
        pl.col("corecount", "diskio").cast(pl.Int64),
        pandaid=np.arange(1, n + 1),
        creationtime=pl.lit(START) + pl.Series(made[order]).cast(pl.Duration("us")),
        walltime_s=wall,
        brokered=True,
        produsername=pl.lit("prod"),
        peak_memory_mb=np.where(rng.random(n) < 0.01, 3000.0, 1500.0),
        memory_limit_mb=2000.0,
        input_bytes=rng.integers(10**8, 10**10, n),
        output_bytes=rng.integers(10**7, 10**9, n),
    )


def _queues(rng: np.random.Generator, queues: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the parents with slots."""
    names = queues.filter(pl.col("unified_name").is_null())["panda_queue"].unique().sort()
    need = (jobs["walltime_s"] * jobs["corecount"]).sum() / (DAYS * 86_400) / LOAD
    part = rng.lognormal(0, 0.7, len(names))
    slots = np.maximum(np.ceil(need * part / part.sum()), 64).astype(np.int64)
    return pl.DataFrame({"panda_queue": names, "slots": slots, "startup_s": 300.0})
