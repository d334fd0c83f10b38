"""Tasks whose jobs use what is planted: by kind, task, cores and queue."""

from __future__ import annotations

import numpy as np
import polars as pl


def tasks(n_tasks, size, *, seed, first=0, limit=None):
    """Return records of tasks, and what their jobs would use without a limit.

    Ten scouts run first; ``limit`` kills jobs that would use more than exp(limit) times the usual.
    """
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), size)
    k = np.tile(np.arange(size), n_tasks)
    kind = rng.integers(0, 4, n_tasks)
    level = 7 + 0.2 * kind + rng.normal(0, 0.3, n_tasks)
    cores = rng.choice([1, 8], task.size)
    queue = rng.integers(0, 6, task.size)
    usual = level[task] + 0.8 * np.log(cores) + rng.normal(0, 0.08, 6)[queue]
    would = np.exp(usual + rng.normal(0, 0.15, task.size))
    most = np.inf if limit is None else np.exp(usual + limit)
    scout = k < 10
    decided = rng.uniform(0, 1e6, n_tasks)[task] + np.where(scout, 0, 4000) + k * 0.1
    wall = rng.lognormal(7.5, 0.4, task.size)
    records = pl.DataFrame(
        {
            "pandaid": first * 1_000_000 + np.arange(task.size),
            "jeditaskid": first * 100_000 + task,
            "kind": [f"k{each}" for each in kind[task]],
            "queue": [f"q{each}" for each in queue],
            "cores": cores,
            "events": rng.integers(100, 2000, task.size),
            "input_mb": rng.lognormal(5, 1, task.size),
            "corepower": 10.0 + queue,
            "requested": 3000.0 * cores,
            "sent": 2000.0 * cores,
            "is_scout": scout,
            "decided_s": decided,
            "ended_s": decided + wall,
            "used": np.minimum(would, most),
            "censored": would > most,
            "wall_s": wall,
        }
    )
    return records, would
