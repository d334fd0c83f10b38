"""Records whose distribution is known, and what a model that knows it, or not, expects of them."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from brokerlab.estimators.estimator import Predicted

LEVELS = (0.5, 0.75, 0.9, 0.95)


def records(n=1000, *, tasks=1, seed=0, shift=0.0, scouts=10, **changed):
    """Jobs of log-normal use, one decided a second; ``shift`` is added to ln(use)."""
    rng = np.random.default_rng(seed)
    row = np.arange(n)
    columns = {
        "pandaid": row + 1,
        "jeditaskid": 1 + row % tasks,
        "kind": ["reco"] * n,
        "queue": np.where(row % 2, "A", "B"),
        "cores": np.where(row % 3, 8, 1),
        "events": np.full(n, 100),
        "input_mb": rng.uniform(10, 20, n),
        "corepower": np.full(n, 10.0),
        "requested": np.full(n, 4000.0),
        "sent": np.full(n, 4000.0),
        "is_scout": row // tasks < scouts,
        "decided_s": row.astype(float),
        "ended_s": row + 0.5,
        "used": np.exp(7 + 0.1 * rng.standard_normal(n) + shift),
        "censored": np.zeros(n, bool),
        "wall_s": np.full(n, 0.5),
    }
    return pl.DataFrame(columns | changed)


def expected(frame, *, levels=LEVELS, ln_mean=7.0, ln_sd=0.1):
    """What a model expects that takes every use as log-normal with this mean and deviation."""
    frame = frame.sort("decided_s", "pandaid")
    n = frame.height
    bounds = np.exp(ln_mean + ln_sd * stats.norm.ppf(levels))
    return Predicted(
        pandaid=frame["pandaid"].to_numpy(),
        seen=np.arange(n),
        levels=tuple(levels),
        bounds=np.broadcast_to(bounds, (n, len(levels))).copy(),
        point=np.full(n, np.exp(ln_mean)),
    )
