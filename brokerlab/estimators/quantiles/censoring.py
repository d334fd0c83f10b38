"""Killed jobs in quantile regression: they would have used more, nobody knows how much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from brokerlab.numerics import BoolArray, FloatArray, IntArray

LEAST = 30  # jobs of a group, one of them not killed, for a curve of its own
BEYOND = (
    3.0  # how far above all others the part of a killed job is put that lies above the quantile
)


class Weighted(NamedTuple):
    """Rows of a weighted quantile regression."""

    row: IntArray  # (m,) rows of the input; a killed job may be there twice
    value: FloatArray  # (m,) what they are counted with
    weight: FloatArray  # (m,) how much


def reached(value: FloatArray, censored: BoolArray, group: IntArray) -> FloatArray:
    """Return the probability that a job of its group uses at most what a killed one had used."""
    result = np.full(value.size, np.nan)
    if not censored.any():
        return result
    everyone = _curve(value, censored)
    size = np.bincount(group)
    finished = np.bincount(group, ~censored)
    for each in np.unique(group[censored]):
        rows = np.flatnonzero(group == each)
        own = size[each] >= LEAST and finished[each] > 0
        times, shares = _curve(value[rows], censored[rows]) if own else everyone
        killed = rows[censored[rows]]
        place = np.searchsorted(times, value[killed], side="right")
        result[killed] = np.concatenate(([0.0], shares))[place]
    return result


def redistribute(
    value: FloatArray, censored: BoolArray, known: FloatArray, weight: FloatArray, level: float
) -> Weighted:
    """Move the part of each killed job that lies above a quantile to where it is surely above.

    A job killed at c counts (level - F(c)) / (1 - F(c)) at c and the rest beyond all others, if
    F(c) is below the level; else it counts at c, being above the quantile there already.

    Source: Wang and Wang, JASA 104 (2009) 1117, doi:10.1198/jasa.2009.tm08230.
    """
    rows = np.arange(value.size)
    split = np.flatnonzero(censored & (known < level))
    stays = np.ones(value.size)
    stays[split] = (level - known[split]) / (1 - known[split])
    beyond = value.max() + BEYOND if value.size else 0.0
    return Weighted(
        np.concatenate([rows, split]),
        np.concatenate([value, np.full(split.size, beyond)]),
        np.concatenate([weight * stays, weight[split] * (1 - stays[split])]),
    )


def _curve(value: FloatArray, censored: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the values at which jobs finished, ascending, and the share that uses at most each."""
    if censored.all():
        return np.empty(0), np.empty(0)
    from statsmodels.duration.survfunc import SurvfuncRight

    curve = SurvfuncRight(value, (~censored).astype(np.int64))
    return np.asarray(curve.surv_times), 1 - np.asarray(curve.surv_prob)
