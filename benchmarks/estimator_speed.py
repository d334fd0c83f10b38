"""Estimators on a million synthetic jobs: fit, calibration, replay in submission order, one online update.

All jobs are generated here, by lognormal levels of tasks, queues and kinds; none is real. Each side runs in a process of
its own: wall and CPU seconds of fitting all jobs, calibrating on a quarter as many of other tasks, and replaying as many later
jobs at two levels; then 500 updates by one finished job each, on top of what was seen, and as many predictions of one job.

``rule``       PanDA's: percentile x margin of the scouts; has nothing to fit
``hierarchy``  per task, updated by its finished jobs
``boosting``   quantile gradient boosting (at most 100,000 rows are fitted)
``lines``      linear quantile regression (at most 2,500 rows are fitted)
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

JOBS_PER_TASK = 60
SCOUTS = 10
ONE_BY_ONE = 500
LEVELS = (0.5, 0.95)


def make_records(n_jobs: int, seed: int, first: int = 0) -> pl.DataFrame:
    """Return records of synthetic tasks: ten scouts, the others an hour later."""
    rng = np.random.default_rng(seed)
    n_tasks = max(n_jobs // JOBS_PER_TASK, 1)
    task = np.repeat(np.arange(n_tasks), JOBS_PER_TASK)
    n, place = task.size, np.tile(np.arange(JOBS_PER_TASK), n_tasks)
    kind = rng.integers(0, 30, n_tasks)[task]
    cores = rng.choice([1, 8], n_tasks)[task]
    queue = rng.integers(0, 200, n)
    level = 7 + 0.05 * kind + rng.normal(0, 0.3, n_tasks)[task] + 0.9 * np.log(cores)
    decided = rng.uniform(0, 28 * 86_400, n_tasks)[task] + 3600 * (place >= SCOUTS) + place * 0.05
    wall = rng.lognormal(7.5, 0.5, n)
    used = np.exp(level + rng.normal(0, 0.05, 200)[queue] + rng.normal(0, 0.1, n))
    return pl.DataFrame(
        {
            "pandaid": first * 1_000_000_000 + np.arange(n),
            "jeditaskid": first * 100_000_000 + task,
            "kind": pl.Series(np.array([f"kind {i}" for i in range(30)])[kind]),
            "queue": pl.Series(np.array([f"QUEUE_{i}" for i in range(200)])[queue]),
            "cores": cores,
            "events": rng.integers(100, 2000, n),
            "input_mb": rng.lognormal(6, 1, n),
            "corepower": rng.uniform(8, 20, 200)[queue],
            "requested": 2000.0 * cores,
            "sent": 2000.0 * cores,
            "is_scout": place < SCOUTS,
            "decided_s": decided,
            "ended_s": decided + wall,
            "used": used,
            "censored": np.zeros(n, dtype=bool),
            "wall_s": wall,
        }
    )


def make_estimator(side: str) -> object:
    """Return one estimator of memory, nothing learnt."""
    from brokerlab.estimators.deployed import rules
    from brokerlab.estimators.hierarchy import Hierarchy
    from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting

    made: dict[str, Callable[[], object]] = {
        "rule": lambda: rules("memory")[0],
        "hierarchy": lambda: Hierarchy("memory"),
        "boosting": lambda: QuantileBoosting("memory"),
        "lines": lambda: LinearQuantiles("memory"),
    }
    return made[side]()


PARTS = ("jobs", "others", "later")
SIDES = ("rule", "hierarchy", "boosting", "lines")


def timed(what: Callable[[], object]) -> tuple[float, object]:
    """Return the wall seconds of a call, and what it gave."""
    begin = time.perf_counter()
    result = what()
    return time.perf_counter() - begin, result


def run_side(side: str, folder: Path) -> None:
    """Run one side in this process and print its figures as JSON."""
    records, others, later = (pl.read_parquet(folder / f"{name}.parquet") for name in PARTS)
    few = others.head(2 * JOBS_PER_TASK)
    warm = make_estimator(side)
    warm.fit(few).conformalize(few).replay(few, levels=LEVELS)  # type: ignore[attr-defined]
    estimator = make_estimator(side)
    cpu = time.process_time()
    fit, _ = timed(lambda: estimator.fit(records))  # type: ignore[attr-defined]
    calibrate, _ = timed(lambda: estimator.conformalize(others))  # type: ignore[attr-defined]
    replay, found = timed(lambda: estimator.replay(later, levels=LEVELS))  # type: ignore[attr-defined]
    cpu = time.process_time() - cpu
    ordered = later.sort("decided_s", "pandaid")
    follow, used = (~ordered["is_scout"]).to_numpy(), ordered["used"].to_numpy()
    held = float((used <= found.at(LEVELS[-1]))[follow].mean())  # type: ignore[attr-defined]
    estimator.update(others)  # type: ignore[attr-defined]
    single = make_records(ONE_BY_ONE, 4, first=3)
    jobs = [single[row] for row in range(single.height)]
    updates = [timed(lambda job=job: estimator.update(job))[0] for job in jobs]  # type: ignore[attr-defined]
    waiting = [job.with_columns(pandaid=pl.col("pandaid") + 10**6) for job in jobs]
    asked = [timed(lambda job=job: estimator.predict(job, levels=LEVELS))[0] for job in waiting]  # type: ignore[attr-defined]
    figures = {
        "fit_s": fit,
        "calibrate_s": calibrate,
        "replay_s": replay,
        "cpu_s": cpu,
        "held": held,
        "update_ms": 1e3 * float(np.median(updates)),
        "slow_update_ms": 1e3 * float(np.quantile(updates, 0.99)),
        "predict_ms": 1e3 * float(np.median(asked)),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }
    print(json.dumps(figures))


def measure(side: str, folder: Path) -> dict[str, float]:
    """Run one side in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.estimator_speed", "--side", side, "--folder", str(folder)]  # fmt: skip
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def main() -> None:
    """Print the figures of every side and their ratios to the deployed rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--folder", type=Path)
    options, _ = parser.parse_known_args()
    if options.side:
        run_side(options.side, options.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        records = make_records(options.jobs, 1)
        records.write_parquet(folder / "jobs.parquet")
        make_records(options.jobs // 4, 2, first=1).write_parquet(folder / "others.parquet")
        make_records(options.jobs, 3, first=2).write_parquet(folder / "later.parquet")
        print(
            f"memory of {records.height:,} synthetic jobs of {records['jeditaskid'].n_unique():,} tasks"
        )
        figures = {side: measure(side, folder) for side in options.sides}
    for side, row in figures.items():
        print(
            f"{side:9} fit {row['fit_s']:6.1f} s  calibrate {row['calibrate_s']:5.1f} s  replay {row['replay_s']:6.1f} s"
            f"  (cpu {row['cpu_s']:6.1f} s)  peak {row['peak_gb']:4.1f} GB  95 % bound holds {100 * row['held']:.1f} %\n"
            f"{'':9} one update {row['update_ms']:.2f} ms (99 % within {row['slow_update_ms']:.2f} ms), one prediction {row['predict_ms']:.1f} ms"
        )
    rule = figures.get("rule")
    for side, row in figures.items():
        if rule and side != "rule":
            whole = sum(row[part] for part in ("fit_s", "calibrate_s", "replay_s"))
            base = sum(rule[part] for part in ("fit_s", "calibrate_s", "replay_s"))
            print(
                f"{side} / rule: fit, calibration and replay {whole / base:.1f}, update {row['update_ms'] / rule['update_ms']:.2f}"
            )


if __name__ == "__main__":
    main()
