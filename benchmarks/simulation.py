"""A month of a grid's queues at once, against the same queues in SimPy.

``ours``   ``simulation.run``, where every job stays at its queue: 1 M jobs at 400 queues over 30 days, frames in memory,
           results as tables.
``simpy``  the tests' twin (``tests/twins/queue_core``), a process per job, on the first queues of the same world; its starts
           and ends must be ours, to the microsecond. Seconds are scaled to all jobs by their number (extrapolated).

``grid``   ``simulation.run`` (only with ``--grid``): as many jobs of 3 tasks per 1,000 jobs before 400 candidate queues (220
           with slots, 240 of the candidates are pseudo-queues) over 30 days with a brokerage every hour, one seed: the
           very rules on what the queues are then, transfers over links of 200 MB/s, timeouts. The time is that of a
           run under settings of choice; making the world and preparing its static tables (once for all settings) is
           told apart. Fast rebrokerage needs thresholds by share, of which there are none here.

Queues have 40 to 4000 cores and are offered 0.7 to 1.05 of them; one job in three takes 8 cores; wall times are lognormal
with a median of 2.5 h; one job in a hundred is killed. The first call compiles (or reads what was compiled before) and is
timed apart.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import polars as pl

from benchmarks.grid_world import make_world as make_grid_world
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import QueueRules
from brokerlab.calibrate.simulation.loop import Loop

T0 = np.datetime64("2026-03-01", "us")
DAYS, QUEUES, SAMPLE_QUEUES = 30, 400, 12
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


def run_grid(n_jobs: int, n_queues: int) -> None:
    """Print the seconds of a month with the brokerage replayed."""
    world = make_grid_world(n_jobs, max(n_jobs * 3 // 1000, 20), n_queues)
    begin = time.process_time()
    simulation.run(
        replace(world, until=world.begin + world.cycle, end=world.begin + world.cycle)
    )  # compiles
    once = time.process_time()
    wall, cpu = time.perf_counter(), time.process_time()
    done = simulation.run(world)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    used = done.queues["used_core_s"].sum() / done.queues["capacity_core_s"].sum()
    finished = done.jobs.filter(state="finished").height
    moved = done.jobs["n_moves"].sum()
    print(
        f"grid   first cycle {once - begin:.1f} s; then wall {wall:.1f} s, cpu {cpu:.1f} s, peak {peak:.1f} GB; "
        f"{cpu / 720 * 1000:.0f} ms of cpu per cycle"
    )
    print(f"       {finished:,} finished, {moved:,} moves by timeouts, utilisation {used:.0%}")


def main() -> None:
    """Print seconds and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=QUEUES)
    parser.add_argument("--grid", action="store_true", help="the grid simulator, nothing else")
    options = parser.parse_args()
    if options.grid:
        run_grid(options.jobs, options.queues)
        return
    jobs, queues = make_world(options.jobs, options.queues)
    print(f"{options.jobs:,} random jobs at {options.queues} queues over {DAYS} days")
    first, _, _ = timed(jobs.head(10), queues)
    wall, cpu, done = timed(jobs, queues)
    used = done.queues["used_core_s"].sum() / done.queues["capacity_core_s"].sum()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"ours   first call {first:.1f} s; then wall {wall:.1f} s, cpu {cpu:.1f} s, peak {peak:.1f} GB"
    )
    print(f"       {done.jobs['n_attempts'].sum():,} attempts, utilisation {used:.0%}")
    few = queues.head(SAMPLE_QUEUES)
    sample = jobs.filter(pl.col("computingsite").is_in(few["panda_queue"].implode()))
    _, ours, small = timed(sample, few)
    theirs, twin = run_simpy(sample, few)
    scaled = theirs * jobs.height / sample.height
    print(
        f"simpy  {sample.height:,} jobs of {few.height} queues: cpu {theirs:.1f} s, ours {ours:.2f} s: {theirs / ours:.0f} times; "
        f"the same attempts: {'yes' if same(small.world, twin) else 'NO'}"
    )
    print(
        f"simpy  scaled to all jobs: cpu {scaled:.0f} s, {scaled / cpu:.0f} times ours (extrapolated)"
    )


if __name__ == "__main__":
    main()
