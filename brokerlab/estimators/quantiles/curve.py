"""A job's distribution from three quantiles: straight between them on the scale of normal scores."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from brokerlab.numerics import FloatArray

KNOTS = (0.5, 0.8, 0.95)
"""Levels that the models are fitted at."""
NARROWEST = 0.01
"""Least difference of the logarithms at neighbouring knots: requests are hardly told apart below a percent."""

_Z = np.array([NormalDist().inv_cdf(level) for level in KNOTS])


def normal_score(level: float) -> float:
    """Return the standard normal quantile of a level."""
    return NormalDist().inv_cdf(level)


def rearranged(quantiles: FloatArray) -> FloatArray:
    """Return fitted (n, 3) quantiles in ascending order, apart by :data:`NARROWEST` at least.

    Source: Chernozhukov, Fernández-Val, Galichon, Econometrica 78 (2010) 1093, doi:10.3982/ECTA7880, on
    sorting quantiles that cross.
    """
    ordered = np.sort(quantiles, axis=1)
    for knot in range(1, len(KNOTS)):
        ordered[:, knot] = np.maximum(ordered[:, knot], ordered[:, knot - 1] + NARROWEST)
    return ordered


def value_at(quantiles: FloatArray, z: FloatArray) -> FloatArray:
    """Return the value at a normal score.

    Args:
        quantiles: (n, 3) as :func:`rearranged` returns them.
        z: (n,) scores; infinite ones give infinite values. Below the median the line of the first two
            knots goes on, above the last knot that of the last two.
    """
    low, middle, high = quantiles.T
    first, last = (middle - low) / (_Z[1] - _Z[0]), (high - middle) / (_Z[2] - _Z[1])
    result: FloatArray = np.where(
        z <= _Z[1], low + first * (z - _Z[0]), middle + last * (z - _Z[1])
    )
    return result


def score_of(quantiles: FloatArray, value: FloatArray) -> FloatArray:
    """Return the normal score of a value: the inverse of :func:`value_at`."""
    low, middle, high = quantiles.T
    first, last = (_Z[1] - _Z[0]) / (middle - low), (_Z[2] - _Z[1]) / (high - middle)
    result: FloatArray = np.where(
        value <= middle, _Z[0] + first * (value - low), _Z[1] + last * (value - middle)
    )
    return result
