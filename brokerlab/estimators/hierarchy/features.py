"""What of a job enters the model, known at its submission."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.estimators.records import Quantity
from brokerlab.numerics import FloatArray, IntArray

FEATURES: dict[Quantity, tuple[str, ...]] = {
    "memory": ("cores", "events", "input_mb"),
    "walltime": ("cores", "events", "input_mb", "corepower"),
}


def logarithms(records: pl.DataFrame, quantity: Quantity) -> FloatArray:
    """Return the (n, d - 1) logarithms of the features; NaN where not known, infinite or not above 0."""
    given = [records[name].to_numpy().astype(np.float64) for name in FEATURES[quantity]]
    known = np.column_stack(given)
    said = np.isfinite(known) & (known > 0)
    return np.log(known, out=np.full_like(known, np.nan), where=said)


def first_known(known: FloatArray, task: IntArray, origin: FloatArray) -> None:
    """Fill, in place, what is not known of origins with what is known first of a job of the task."""
    news = np.isfinite(known) & np.isnan(origin[task])
    for feature in np.flatnonzero(news.any(axis=0)):
        told = np.flatnonzero(news[:, feature])
        tasks, first = np.unique(task[told], return_index=True)
        origin[tasks, feature] = known[told[first], feature]


def design(known: FloatArray, task: IntArray, origin: FloatArray) -> FloatArray:
    """Return the (n, d) rows of the linear model."""
    apart = known - origin[task]
    return np.column_stack([np.ones(len(known)), np.where(np.isfinite(apart), apart, 0.0)])
