"""A month of a grid's queues at once, against the same queues in SimPy.

``ours``   ``simulation.run``, where every job stays at its queue: 1 M jobs at 400 queues over 30 days, frames in memory,
           results as tables.
``simpy``  the tests' twin (``tests/twins/queue_core``), a process per job, on the first queues of the same world; its starts
           and ends must be ours, to the microsecond. Seconds are scaled to all jobs by their number (extrapolated).

``grid``   ``simulation.run``: a tenth as many jobs of 3 tasks per 1,000 jobs before 400 candidate queues (220
           with slots, 240 of the candidates are pseudo-queues) over 30 days with a brokerage every hour, one seed: the
           very rules on what the queues are then, transfers over links of 200 MB/s, timeouts. The time is that of a
           run under settings of choice; making the world and preparing its static tables (once for all settings) is
           told apart. Fast rebrokerage needs thresholds by share, of which there are none here.

Queues have 40 to 4000 cores and are offered 0.7 to 1.05 of them; one job in three takes 8 cores; wall times are lognormal
with a median of 2.5 h; one job in a hundred is killed. The first call compiles (or reads what was compiled before) and is
timed apart.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.grid_world import make_world as make_grid_world
from benchmarks.sides import Figures, Line, main, million
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import QueueRules
from brokerlab.calibrate.simulation.loop import Loop

T0 = np.datetime64("2026-03-01", "us")
SIZE = 1_000_000
DAYS, QUEUES, SAMPLE_QUEUES = 30, 400, 12
PARTS = ("jobs", "queues")
RULES = QueueRules(attempts=2, memory_ladder_mb=(2000, 4000, 8000, 16000))


def make_world(n_jobs: int, n_queues: int, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return jobs and queues; the slots of a queue are set by the load that it is to have."""
    rng = np.random.default_rng(seed)
    names = np.array([f"Q{i:03}" for i in range(n_queues)])
    share = rng.lognormal(0, 1, n_queues)
    queue = rng.choice(n_queues, n_jobs, p=share / share.sum())
    cores = np.where(rng.random(n_jobs) < 1 / 3, 8, 1)
    wall = np.round(rng.lognormal(np.log(9000), 0.8, n_jobs), 3)
    offered = np.bincount(queue, weights=wall * cores, minlength=n_queues) / (DAYS * 86_400)
    slots = np.maximum(np.ceil(offered / rng.uniform(0.7, 1.05, n_queues)), 8).astype(np.int64)
    ready = rng.integers(0, DAYS * 86_400 * 1_000_000, n_jobs)
    jobs = pl.DataFrame(
        {
            "pandaid": np.arange(1, n_jobs + 1),
            "computingsite": names[queue],
            "creationtime": T0 + ready.astype("timedelta64[us]"),
            "readytime": T0 + ready.astype("timedelta64[us]"),
            "walltime_s": wall,
            "corecount": cores,
            "currentpriority": rng.choice([100, 500, 900], n_jobs),
            "peak_memory_mb": np.where(rng.random(n_jobs) < 0.01, 3000.0, 1500.0),
            "memory_limit_mb": 2000.0,
            "gshare": rng.choice(["MC", "Data", "Analysis"], n_jobs),
        }
    )
    queues = pl.DataFrame({"panda_queue": names, "slots": slots, "startup_s": 300.0})
    return jobs, queues


def run_simpy(jobs: pl.DataFrame, queues: pl.DataFrame) -> tuple[float, pl.DataFrame]:
    """Run the twin: CPU seconds of the events alone, and its attempts."""
    from tests.twins import queue_core

    rows = jobs.with_columns(
        ready_us=pl.col("readytime").to_physical(),
        cores="corecount",
        priority="currentpriority",
        walltime_limit_s=pl.lit(None),
    ).rows(named=True)
    places = [
        row | {"maxtime": None, "maxrss": None, "delays_us": [300_000_000], "changes": []}
        for row in queues.rows(named=True)
    ]
    begin = time.process_time()
    out = queue_core.simulate(rows, places, RULES, 1)
    seconds = time.process_time() - begin
    names = ["pandaid", "attempt", "readytime", "starttime", "endtime", "outcome"]
    return seconds, pl.DataFrame(out, schema=names, orient="row")


def timed(jobs: pl.DataFrame, queues: pl.DataFrame) -> tuple[float, float, simulation.Outcome]:
    """Run ours: wall and CPU seconds, checks and tables included, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    start = T0.item()
    end, until = start + timedelta(days=DAYS), start + timedelta(days=4 * DAYS)
    stay = simulation.Transfers(mode="none")
    world = simulation.of_tables(
        jobs, queues, start=start, end=end, until=until, queueing=RULES, transfers=stay
    )
    done = simulation.run(world)
    return time.perf_counter() - wall, time.process_time() - cpu, done


def same(world: simulation.World, twin: pl.DataFrame) -> bool:
    """Tell whether both have the very same attempts."""
    from tests.queue_toys import attempts_of

    loop = Loop(world)
    loop.run()
    times = pl.col("readytime", "starttime", "endtime").to_physical()
    ours = attempts_of(world, loop.copies[0]).with_columns(times)
    return ours.select(twin.columns).equals(twin)


def make(folder: Path, n_jobs: int) -> None:
    """Write jobs and queues."""
    for name, frame in zip(PARTS, make_world(n_jobs, QUEUES), strict=True):
        frame.write_parquet(folder / f"{name}.parquet")


def read(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read jobs and queues."""
    jobs, queues = (pl.read_parquet(folder / f"{name}.parquet") for name in PARTS)
    return jobs, queues


def run_ours(folder: Path) -> Figures:
    """Run all queues; the first call, which compiles, is timed apart."""
    jobs, queues = read(folder)
    first, _, _ = timed(jobs.head(10), queues)
    wall, cpu, done = timed(jobs, queues)
    used = done.queues["used_core_s"].sum() / done.queues["capacity_core_s"].sum()
    attempts = done.jobs["n_attempts"].sum()
    return {"first_s": first, "wall_s": wall, "cpu_s": cpu, "used": used, "attempts": attempts}


def run_both(folder: Path) -> Figures:
    """Run the first queues in SimPy and in ours, and compare their attempts."""
    jobs, queues = read(folder)
    few = queues.head(SAMPLE_QUEUES)
    sample = jobs.filter(pl.col("computingsite").is_in(few["panda_queue"].implode()))
    timed(sample.head(10), few)
    _, ours, small = timed(sample, few)
    theirs, twin = run_simpy(sample, few)
    same_s = float(same(small.world, twin))
    return {"cpu_s": theirs, "ours_s": ours, "jobs": sample.height, "same": same_s}


def run_grid(folder: Path) -> Figures:
    """Run a month with the brokerage replayed; the first cycle, which compiles, is timed apart."""
    n_jobs = read(folder)[0].height // 10
    world = make_grid_world(n_jobs, max(n_jobs * 3 // 1000, 20), QUEUES)
    first = replace(world, until=world.begin + world.cycle, end=world.begin + world.cycle)
    simulation.run(first)
    wall, cpu = time.perf_counter(), time.process_time()
    done = simulation.run(world)
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "jobs": n_jobs,
        "finished": done.jobs.filter(state="finished").height,
    }


SIDES = {"ours": run_ours, "simpy": run_both, "grid": run_grid}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare ours with SimPy on the same queues, and tell what a cycle of the grid costs."""
    ours, simpy, grid = (figures[side] for side in SIDES)
    same_s = "the same attempts" if simpy["same"] else "OTHER ATTEMPTS"
    return [
        Line(
            what=f"{million(size)} jobs at {QUEUES} queues over {DAYS} days",
            ours=f"{ours['wall_s']:.1f} s after a first call of {ours['first_s']:.1f} s",
            against=f"SimPy / ours on {simpy['jobs']:,.0f} jobs of {SAMPLE_QUEUES} queues, {same_s}",
            ratio=simpy["cpu_s"] / simpy["ours_s"],
            cpu_s=ours["cpu_s"],
            peak_gb=ours["peak_gb"],
        ),
        Line(
            what=f"{million(grid['jobs'])} jobs before {QUEUES} queues with hourly brokerage over {DAYS} days",
            ours=f"{1e3 * grid['cpu_s'] / (24 * DAYS):.0f} ms of CPU a cycle",
            against="",
            ratio=None,
            cpu_s=grid["cpu_s"],
            peak_gb=grid["peak_gb"],
        ),
    ]


if __name__ == "__main__":
    main("benchmarks.simulation", __doc__)
