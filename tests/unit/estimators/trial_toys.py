"""Whole tasks with scouts, and a trial of rules and a model on them."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.estimators.deployed import rules
from brokerlab.estimators.evaluation import replay_left_out
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.records import checked
from brokerlab.estimators.trial import run_trial, trial_levels

LEVEL = 0.9


def whole_tasks(n_tasks=4, jobs=30, *, seed=0, apart_s=1.0, scouts=10):
    """Tasks whose scouts end before the others are decided, so far apart; memory differs by task and queue."""
    rng = np.random.default_rng(seed)
    parts = []
    for task in range(n_tasks):
        n = scouts + jobs
        decided = 10_000.0 * task + np.where(
            np.arange(n) < scouts, np.arange(n), 1000.0 + apart_s * np.arange(n)
        )
        level = rng.uniform(500, 4000)
        parts.append(
            pl.DataFrame(
                {
                    "pandaid": np.arange(n) + 1000 * task,
                    "jeditaskid": task,
                    "kind": "reco",
                    "queue": ["A" if i < scouts or i % 2 else "B" for i in range(n)],
                    "cores": 1,
                    "events": 1000,
                    "input_mb": 100.0,
                    "corepower": 10.0,
                    "requested": 5000.0,
                    "sent": 0.9 * level,
                    "is_scout": np.arange(n) < scouts,
                    "decided_s": decided,
                    "ended_s": decided + 500.0,
                    "used": level * rng.lognormal(0, 0.1, n),
                    "censored": False,
                    "wall_s": 500.0,
                }
            )
        )
    return checked(pl.concat(parts))


def tried_on(frame):
    """Rules, and a hierarchy fitted on the other tasks, judged on each task."""
    asked = trial_levels(LEVEL)
    predicted = {each.name: each.replay(frame, levels=asked) for each in rules("memory")}
    predicted["hierarchy"] = replay_left_out(frame, lambda: Hierarchy("memory"), levels=asked)
    return run_trial(
        frame, predicted, at="submit", quantity="memory", level=LEVEL, models=["hierarchy"],
        policies=["hierarchy"], n_boot=100, seed=1,
    )  # fmt: skip
