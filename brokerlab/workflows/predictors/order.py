"""Bounds of a quantile from order statistics, with a confidence.

Source: workflows.md 4.2; Brevik, Nurmi, Wolski, Predicting bounds on queuing delay for batch-scheduled
parallel machines, PPoPP 2006, doi:10.1145/1122971.1122989.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from brokerlab.errors import ConfigError

_NEAR = 1e-9  # probabilities closer than this are compared exactly


def check_probabilities(quantile: float, confidence: float) -> None:
    """Refuse what is no probability, all at once."""
    given = {"quantile": quantile, "confidence": confidence}
    problems = [f"{n}: {p}, allowed: above 0, below 1" for n, p in given.items() if not 0 < p < 1]
    if problems:
        raise ConfigError("; ".join(problems))


@cache
def place_of_bound(m: int, quantile: float, confidence: float) -> int | None:
    """Find which of m sorted values is an upper bound of a quantile.

    The smallest k with P(Binomial(m, quantile) <= k - 1) >= confidence.
    """
    from scipy.stats import binom

    check_probabilities(quantile, confidence)
    k = int(binom.ppf(max(confidence - _NEAR, 0.0), m, quantile)) + 1 if m else 1
    while k <= m and not _covers(k, m, quantile, confidence):
        k += 1
    return k if k <= m else None


def _covers(k: int, m: int, quantile: float, confidence: float) -> bool:
    """Tell whether P(Binomial(m, quantile) <= k - 1) >= confidence; of equal ones, too, for decimals as written."""
    from scipy.stats import binom

    about = float(binom.cdf(k - 1, m, quantile))
    if abs(about - confidence) > _NEAR:
        return about > confidence
    part = Fraction(str(quantile))
    up, down, whole = part.numerator, part.denominator - part.numerator, part.denominator
    ways = sum(math.comb(m, x) * up**x * down ** (m - x) for x in range(k))
    return Fraction(ways, whole**m) >= Fraction(str(confidence))


@cache
def fewest(quantile: float, confidence: float) -> int:
    """Return the smallest number of values that bound a quantile at all."""
    check_probabilities(quantile, confidence)
    m = max(1, math.floor(math.log1p(-confidence) / math.log(quantile)))
    while place_of_bound(m, quantile, confidence) is None:
        m += 1
    return m
