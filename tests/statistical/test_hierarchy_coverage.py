"""Bounds of the hierarchical estimate hold their level where residuals are nothing like what it assumes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.estimators.hierarchy import Hierarchy

LEVELS = (0.5, 0.8, 0.95)
RESIDUALS = {
    "long tail up": lambda rng, n: rng.gamma(1.0, 1.0, n) - 1,
    "long tail down": lambda rng, n: 0.84 - rng.gamma(0.6, 1.4, n),
    "two humps": lambda rng, n: np.where(rng.random(n) < 0.2, 4, 0) + rng.normal(0, 0.5, n),
    "heavy tails": lambda rng, n: rng.standard_t(2.5, n),
}


def world(residuals, tasks, first, rng):
    """Tasks of 15 to 300 jobs, queues of their own weight and effect; ten scouts at one queue, first."""
    parts = []
    for task in range(first, first + tasks):
        n, queues = int(np.exp(rng.uniform(np.log(15), np.log(300)))), rng.integers(2, 12)
        row = np.arange(n)
        queue = np.where(
            row < 10, rng.integers(queues), rng.choice(queues, n, p=rng.dirichlet(np.ones(queues)))
        )
        cores = np.where(queue % 2, 8, 4)
        spread = 0.1 * np.sqrt(3 / rng.gamma(3.0))
        level = rng.normal(7, 0.6) + rng.normal(0.75, 0.1) * np.log(cores)
        used = level + rng.normal(0, 0.08, queues)[queue] + spread * residuals(rng, n)
        decided = task * 1e6 + np.where(row < 10, 0, 9000 + 30.0 * row)
        parts.append(
            {
                "pandaid": task * 1000 + row,
                "jeditaskid": np.full(n, task),
                "queue": [f"Q{each}" for each in queue],
                "cores": cores,
                "is_scout": row < 10,
                "decided_s": decided,
                "ended_s": decided + rng.lognormal(7, 0.5, n),
                "used": np.exp(used),
                "censored": np.zeros(n, dtype=bool),
                "wall_s": np.ones(n),
            }
        )
    return pl.concat([pl.DataFrame(each) for each in parts])


@pytest.mark.parametrize(
    ("name", "tasks"),
    [("two humps", 20), *(pytest.param(name, 60, marks=pytest.mark.long) for name in RESIDUALS)],
)
def test_bounds_hold_their_level_whatever_the_residuals(name, tasks):
    rng = np.random.default_rng(sorted(RESIDUALS).index(name))
    residuals = RESIDUALS[name]
    model = Hierarchy("memory").fit(world(residuals, tasks, 0, rng))
    model.conformalize(world(residuals, tasks, 100, rng))
    records = world(residuals, 2 * tasks, 200, rng).sort("decided_s", "pandaid")
    found = model.replay(records, levels=LEVELS)
    assert np.isfinite(found.bounds).all()
    judged = records.with_columns(seen=pl.Series(found.seen))
    used = records["used"].to_numpy()
    for level in LEVELS:
        table = judged.with_columns(kept=pl.Series(used <= found.at(level)).cast(pl.Float64))
        for least, most in ((0, 30), (30, 300)):  # just after the scouts, and later
            part = table.filter(~pl.col("is_scout"), pl.col("seen").is_between(least, most - 1))
            kept = part.group_by("jeditaskid").agg(pl.col("kept").mean())["kept"].to_numpy()
            allowed = 3.5 * kept.std() / np.sqrt(kept.size) + 0.02
            assert abs(kept.mean() - level) < allowed, (level, least)
