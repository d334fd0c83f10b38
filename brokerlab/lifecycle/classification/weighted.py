"""Weighted mean of waits and the upper limit that one job's wait stays below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from brokerlab.errors import ConfigError, DataError
from brokerlab.lifecycle.classification.kernels import moments
from brokerlab.numerics import FloatArray
from brokerlab.units import HOUR_S

LARGEST_S = 999_999.0  # upper limits are cut here [s]
ROUNDING = 1e-9  # A relative standard deviation below is the rounding of waits that are all equal


def upper_limit(
    mean: FloatArray, stdev: FloatArray, freedom: FloatArray, cl: float = 0.95
) -> FloatArray:
    """Bound one wait from above: ``min(mean + stdev * t_cl(freedom), 999999)``.

    Source: docs/rules/classes.md 2, items 5 to 7.
    """
    spread = (stdev > ROUNDING * np.abs(mean)) & (freedom > 0)
    quantile = special.stdtrit(np.where(spread, freedom, 1.0), cl)
    # the quantile overflows to infinity for tiny degrees of freedom: the cut catches it
    limit = np.minimum(mean + stdev * quantile, LARGEST_S)
    return np.where(spread, limit, np.nan)


@dataclass(frozen=True)
class WeightedLimit:
    """Statistics of the waits of one queue; every one in seconds but for ``n`` and ``sum_of_weights``."""

    n: int  # number of jobs
    sum_of_weights: float  # sum of the weights
    w_mean: float | None  # weighted mean; null without jobs
    w_stdev: float | None  # weighted standard deviation, population form
    # weighted upper limit; null where all waits are equal (``degenerate``) or there are none
    upper: float | None
    mean: float | None
    stdev: float | None  # standard deviation, population form
    median: float | None
    unweighted_upper: float | None  # upper limit from n alone; null for n = 1 or equal waits

    @property
    def degenerate(self) -> bool:
        """All waits are equal: no upper limit exists."""
        return self.n > 0 and self.upper is None


def weighted_upper_limit(
    values: Sequence[float], ages: Sequence[float], *, half_life_hours: float = 6, cl: float = 0.95
) -> WeightedLimit:
    """Weigh waits by their age and bound one job's wait from above.

    ``w = 2 ** (-age / half-life)``; the effective number of jobs is the sum of weights + 1.

    Waits and ages (how long ago each job started) are in s, ages whole seconds; the half-life [h] is above 0, ``cl`` one-sided
    between 0 and 1, else a ConfigError.

    Source: docs/rules/classes.md 2.
    """
    if not half_life_hours > 0 or not 0 < cl < 1:
        raise ConfigError(
            f"half_life_hours={half_life_hours!r}, cl={cl!r}: allowed are a half-life above 0 and a level between 0 and 1"
        )
    if len(values) != len(ages):
        raise DataError(f"{len(values)} values and {len(ages)} ages: one age per value is needed")
    if not len(values):
        return WeightedLimit(0, 0.0, *[None] * 7)
    waits, old = (np.asarray(numbers, dtype=np.float64) for numbers in (values, ages))
    if not (np.isfinite(waits).all() and np.isfinite(old).all()):
        raise DataError("values and ages: NaN, null or infinite ones; leave these jobs out")
    weights = np.exp2(-old / (half_life_hours * HOUR_S))
    total, w_mean, w_stdev, mean, stdev, median = moments(waits, weights)
    numbers = np.array([w_mean, mean]), np.array([w_stdev, stdev])
    upper, unweighted = upper_limit(*numbers, np.array([total, len(values) - 1.0]), cl)
    result = (w_mean, w_stdev, upper, mean, stdev, median, unweighted)
    plain = [None if np.isnan(number) else float(number) for number in result]
    return WeightedLimit(len(values), float(total), *plain)
