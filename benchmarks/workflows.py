"""The batch queue against plain Python, on a real log and on a generated one of a million jobs.

``ours``   ``batch.run``: checks, event loop, result as a table. The first call compiles, or reads what was compiled before,
           and is timed apart.
``twin``   the tests' twin (``tests/twins/batch_queue``): a heap and lists. Every start and end must be ours.

The real log is KTH SP2 (28,475 jobs, 100 hosts); without it a generated one of the same size is taken. All seconds are CPU
seconds of one core, the best of several runs for ours. Reading, an estimate of a start in the middle of the log, and a copy
of that state are timed too.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from brokerlab.workflows import batch, load, swf

KTH = Path(os.environ.get("BROKERLAB_DATA", "../shared/data")) / "swf-logs" / "kth_sp2.swf.gz"
MILLION_HOSTS, LOAD = 1000, 0.8
POLICIES = ("fcfs", "easy", "conservative")


def generated(n_jobs: int, hosts: int, seed: int = 1) -> pl.DataFrame:
    """Return jobs of many sizes that use LOAD of a machine; requests are one to ten times the run."""
    rng = np.random.default_rng(seed)
    wide = np.minimum(2 ** rng.integers(0, int(np.log2(hosts)) - 1, n_jobs), hosts)
    run = np.round(np.clip(rng.lognormal(7.5, 1.6, n_jobs), 10, 2 * 86_400))
    length = float((wide * run).sum()) / hosts / LOAD
    return pl.DataFrame(
        {
            "job_id": np.arange(n_jobs).astype(str),
            "submit_s": np.sort(np.round(rng.uniform(0, length, n_jobs))),
            "run_s": run,
            "requested_s": run * rng.choice([1.0, 1.5, 2.0, 4.0, 10.0], n_jobs),
            "hosts": wide,
        }
    )


def seconds(what: Callable[[], object], times: int = 1) -> tuple[float, object]:
    """Return the least CPU time of several calls, and what the last gave."""
    took = []
    for _ in range(times):
        begin = time.process_time()
        result = what()
        took.append(time.process_time() - begin)
    return min(took), result


def twin_times(
    jobs: pl.DataFrame, hosts: int, policy: str
) -> tuple[float, list[tuple[float, float]]]:
    """Run the twin: CPU seconds of its events, and starts and ends."""
    from tests.twins import batch_queue

    rows = jobs.select("submit_s", "hosts", "requested_s", "run_s").rows()
    made = [batch_queue.Job(*row) for row in rows]
    took, done = seconds(lambda: batch_queue.run(made, hosts, policy))
    return took, [(job.start, job.end) for job in done]  # type: ignore[attr-defined]


def compare(jobs: pl.DataFrame, hosts: int) -> None:
    """Print ours and the twin, policy by policy."""
    for policy in POLICIES:
        first, _ = seconds(lambda p=policy: batch.run(jobs.head(10), hosts=hosts, policy=p))
        ours, done = seconds(lambda p=policy: batch.run(jobs, hosts=hosts, policy=p), 5)
        theirs, expected = twin_times(jobs, hosts, policy)
        same = done["start_s", "end_s"].rows() == expected
        print(
            f"{policy:13} ours {ours:.3f} s (first call {first:.1f} s), twin {theirs:.2f} s: {theirs / ours:.0f} times; "
            f"mean wait {done['wait_s'].mean():,.0f} s; the same starts and ends: {'yes' if same else 'NO'}"
        )


def ask_in_the_middle(jobs: pl.DataFrame, hosts: int) -> None:
    """Print what a state of the queue costs: to come to it, to copy it, to ask it."""
    for policy in POLICIES:
        sim = batch.start(jobs, hosts=hosts, policy=policy)
        instants = np.quantile(jobs["submit_s"].to_numpy(), np.linspace(0.2, 0.8, 25))
        copies, asks = [], []
        for instant in instants:
            batch.advance(sim, float(instant))
            copies.append(seconds(sim.copy)[0])
            fork = sim.copy()
            batch.arrive(fork)
            asks.append(seconds(lambda fork=fork: batch.estimate_start(fork, 8, 3600))[0])
        print(
            f"{policy:13} copy of a state {statistics.median(copies) * 1e3:.2f} ms, "
            f"first estimate {statistics.median(asks) * 1e3:.2f} ms (median of {len(asks)} instants, at most {max(asks) * 1e3:.1f} ms)"
        )


def many(n_jobs: int) -> None:
    """Print the times of a long generated log."""
    jobs = generated(n_jobs, MILLION_HOSTS)
    for policy in POLICIES:
        took, done = seconds(lambda p=policy: batch.run(jobs, hosts=MILLION_HOSTS, policy=p))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(
            f"{policy:13} {n_jobs:,} jobs on {MILLION_HOSTS:,} hosts: {took:.1f} s, mean wait {done['wait_s'].mean():,.0f} s, peak {peak:.1f} GB"
        )


def main() -> None:
    """Print seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    options = parser.parse_args()
    if KTH.is_file():
        took, log = seconds(lambda: swf.read(KTH), 3)
        cleaned = load.of_swf(log)
        jobs, hosts = cleaned.jobs, cleaned.hosts
        print(
            f"KTH SP2: {len(jobs):,} jobs of {log.rows:,} lines, {hosts} hosts; read in {took:.2f} s"
        )
    else:
        jobs, hosts = generated(28_475, 100), 100
        print(f"a generated log of {len(jobs):,} jobs on {hosts} hosts")
    compare(jobs, hosts)
    ask_in_the_middle(jobs, hosts)
    many(options.jobs)


if __name__ == "__main__":
    main()
