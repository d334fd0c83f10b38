"""Estimators on synthetic jobs: fit, calibration, replay in submission order, one online update.

All jobs are generated here, by lognormal levels of tasks, queues and kinds; none is real. Each side runs in a process of
its own: wall and CPU seconds of fitting all jobs, calibrating on a quarter as many of other tasks, and replaying as many later
jobs at two levels; then 500 updates by one finished job each, on top of what was seen, and as many predictions of one job.

``rule``       PanDA's: percentile x margin of the scouts; has nothing to fit
``hierarchy``  per task, updated by its finished jobs
``boosting``   quantile gradient boosting (at most 100,000 rows are fitted)
``lines``      linear quantile regression (at most 2,500 rows are fitted)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.sides import Figures, Line, main, million

SIZE = 200_000
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


def timed(what: Callable[[], object]) -> tuple[float, object]:
    """Return the wall seconds of a call, and what it gave."""
    begin = time.perf_counter()
    result = what()
    return time.perf_counter() - begin, result


def run_side(side: str, folder: Path) -> Figures:
    """Let one estimator learn, calibrate, replay and be updated."""
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
    return {
        "fit_s": fit,
        "calibrate_s": calibrate,
        "replay_s": replay,
        "cpu_s": cpu,
        "held": held,
        "update_ms": 1e3 * float(np.median(updates)),
        "slow_update_ms": 1e3 * float(np.quantile(updates, 0.99)),
        "predict_ms": 1e3 * float(np.median(asked)),
    }


SIDES = {side: partial(run_side, side) for side in ("rule", "hierarchy", "boosting", "lines")}


def make(folder: Path, jobs: int) -> None:
    """Write records to learn from, to calibrate on and to replay."""
    make_records(jobs, 1).write_parquet(folder / "jobs.parquet")
    make_records(jobs // 4, 2, first=1).write_parquet(folder / "others.parquet")
    make_records(jobs, 3, first=2).write_parquet(folder / "later.parquet")


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Compare each model with the deployed rule."""
    rule = figures["rule"]
    return [
        Line(
            what=f"memory of {million(size)} jobs by {side}: fit, calibrate, replay",
            ours=f"one update {row['update_ms']:.2f} ms, prediction {row['predict_ms']:.1f} ms; 95 % bound holds {100 * row['held']:.1f} %",
            against=f"{side} / the deployed rule",
            ratio=row["cpu_s"] / rule["cpu_s"],
            cpu_s=row["cpu_s"],
            peak_gb=row["peak_gb"],
        )
        for side, row in figures.items()
        if side != "rule"
    ]


if __name__ == "__main__":
    main("benchmarks.estimator_speed", __doc__)
