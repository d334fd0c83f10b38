"""The batch queue against plain Python, on a real log and on a generated one of a million jobs.

``ours``   ``batch.run``: checks, event loop, result as a table. The first call compiles, or reads what was compiled before,
           and is timed apart.
``twin``   the tests' twin (``tests/twins/batch_queue``): a heap and lists. Every start and end must be ours.

The real log is KTH SP2 (28,475 jobs, 100 hosts); without it a generated one of the same size is taken. All seconds are CPU
seconds of one core, the best of several runs for ours. An estimate of a start in the middle of the log is timed, too.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.sides import Figures, Line, main, million
from brokerlab.workflows import batch, load, swf

KTH = Path(os.environ.get("BROKERLAB_DATA", "../shared/data")) / "swf-logs" / "kth_sp2.swf.gz"
SIZE = 1_000_000
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


def run_batch(_: Path) -> Figures:
    """Run the log under every policy, and in the twin; the first call, which compiles, is not timed."""
    jobs, hosts = log_of()
    figures: Figures = {"jobs": jobs.height, "wall_s": 0.0, "cpu_s": 0.0}
    for policy in POLICIES:
        seconds(lambda p=policy: batch.run(jobs.head(10), hosts=hosts, policy=p))
        ours, done = seconds(lambda p=policy: batch.run(jobs, hosts=hosts, policy=p), 5)
        theirs, expected = twin_times(jobs, hosts, policy)
        same = done["start_s", "end_s"].rows() == expected  # type: ignore[index]
        figures |= {policy: ours, f"{policy}_twin": theirs, f"{policy}_same": float(same)}
        figures["cpu_s"] += ours
    return figures


def run_asked(_: Path) -> Figures:
    """Come to states in the middle of the log, and ask each for a start."""
    jobs, hosts = log_of()
    figures: Figures = {}
    for policy in POLICIES:
        sim = batch.start(jobs, hosts=hosts, policy=policy)
        instants = np.quantile(jobs["submit_s"].to_numpy(), np.linspace(0.2, 0.8, 25))
        asks = []
        for instant in instants:
            batch.advance(sim, float(instant))
            fork = sim.copy()
            batch.arrive(fork)
            asks.append(seconds(lambda fork=fork: batch.estimate_start(fork, 8, 3600))[0])
        figures[policy] = statistics.median(asks)
    return figures


def run_many(folder: Path) -> Figures:
    """Run a long generated log under every policy."""
    n_jobs = int((folder / "jobs").read_text(encoding="utf-8"))
    jobs = generated(n_jobs, MILLION_HOSTS)
    for policy in POLICIES:
        batch.run(jobs.head(10), hosts=MILLION_HOSTS, policy=policy)  # compiles
    runs = {
        policy: seconds(lambda p=policy: batch.run(jobs, hosts=MILLION_HOSTS, policy=p))[0]
        for policy in POLICIES
    }
    return {**runs, "cpu_s": sum(runs.values())}


def make(folder: Path, n_jobs: int) -> None:
    """Write how many jobs the long log has."""
    (folder / "jobs").write_text(str(n_jobs), encoding="utf-8")


def log_of() -> tuple[pl.DataFrame, int]:
    """Return the jobs and hosts of the real log; without it of a generated one of its size."""
    if not KTH.is_file():
        return generated(28_475, 100), 100
    cleaned = load.of_swf(swf.read(KTH))
    return cleaned.jobs, cleaned.hosts


SIDES = {"batch": run_batch, "asked": run_asked, "many": run_many}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare ours with the twin, policy by policy."""
    log, asked, many = (figures[side] for side in SIDES)
    name = "KTH SP2" if KTH.is_file() else "a generated log"
    return [
        Line(
            what=f"{name}, {log['jobs']:,.0f} jobs, {policy}",
            ours=f"{1e3 * log[policy]:.0f} ms; a start asked in the middle {1e3 * asked[policy]:.2f} ms; "
            f"{million(size)} generated jobs {many[policy]:.1f} s",
            against=f"a Python twin / ours, {'the same' if log[f'{policy}_same'] else 'OTHER'} starts and ends",
            ratio=log[f"{policy}_twin"] / log[policy],
            cpu_s=log[policy],
            peak_gb=log["peak_gb"],
        )
        for policy in POLICIES
    ]


if __name__ == "__main__":
    main("benchmarks.workflows", __doc__)
