"""A job's distribution from three quantiles: straight between them on the scale of normal scores."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np

from brokerlab.numerics import FloatArray

KNOTS = (0.5, 0.8, 0.95)  # levels that the models are fitted at
NARROWEST = 0.01
"""Least difference of logarithms at neighbouring knots: requests are hardly told apart below a percent."""
NARROWER = 0.1
"""Least share of the difference that all jobs together have: models are surer of themselves than they should be."""

_Z = np.array([NormalDist().inv_cdf(level) for level in KNOTS])


def normal_score(level: float) -> float:
    """Return the standard normal quantile of a level."""
    return NormalDist().inv_cdf(level)


@dataclass(frozen=True)
class Apart:
    """How far neighbouring knots may be from each other."""

    least: FloatArray  # (2,) differences of logarithms at least
    most: FloatArray  # (2,) at most

    @classmethod
    def of(cls, overall: FloatArray, *, learnt: bool) -> Self:
        """Return the limits from the quantiles of all jobs."""
        gaps = np.maximum(NARROWEST, np.diff(overall))
        if not learnt:
            return cls(gaps, gaps)
        return cls(np.maximum(NARROWEST, NARROWER * gaps), np.full(gaps.size, np.inf))

    def rearranged(self, quantiles: FloatArray) -> FloatArray:
        """Return fitted (n, 3) quantiles in ascending order, neighbours apart as they may be.

        Source: Chernozhukov, Fernández-Val, Galichon, Econometrica 78 (2010) 1093, doi:10.3982/ECTA7880,
        on sorting quantiles that cross.
        """
        ordered = np.sort(quantiles, axis=1)
        gaps = np.clip(np.diff(ordered, axis=1), self.least, self.most)
        return np.cumsum(np.column_stack([ordered[:, 0], gaps]), axis=1)

    def state(self) -> dict[str, FloatArray]:
        """Return the arrays."""
        return {"least": self.least, "most": self.most}


def value_at(quantiles: FloatArray, z: FloatArray) -> FloatArray:
    """Return the value at a normal score."""
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
