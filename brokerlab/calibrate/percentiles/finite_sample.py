"""What n scouts can promise, whatever the jobs look like: the distribution of an order statistic's coverage.

If the scouts and a later job are exchangeable (and ties are broken), the share of jobs not above the k-th
smallest of n scouts follows Beta(k, n+1-k), for every distribution of the jobs. No margin is needed for
this, and no margin can be credited for it.

Sources: Wilks, Ann. Math. Statist. 12 (1941) 91, doi:10.1214/aoms/1177731788; David and Nagaraja, Order
Statistics, 3rd edition (2003), section 2; Vovk, Gammerman and Shafer, Algorithmic Learning in a Random
World (2005), section 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import polars as pl
from scipy import stats

from brokerlab.errors import ConfigError


def expected_coverage(order: int, n_scouts: int) -> float:
    """Return the expected share of jobs not above the order-th smallest scout: k/(n+1).

    Args:
        order: k, 1 for the smallest scout; above n there is no such scout and nothing exceeds it.
        n_scouts: n, at least 1.

    Raises:
        ConfigError: order or n below 1.

    Source: Wilks (1941), equation 8; Vovk et al. (2005), proposition 2.3.

    Example:
        >>> expected_coverage(5, 5)
        0.8333333333333334
    """
    _check(order, n_scouts)
    return 1.0 if order > n_scouts else order / (n_scouts + 1)


def coverage_quantile(order: int, n_scouts: int, probability: float) -> float:
    """Return the quantile of the coverage of the order-th smallest of n scouts: Beta(k, n+1-k).

    ``coverage_quantile(k, n, 1 - confidence)`` is the coverage reached with that confidence (a one-sided
    tolerance bound).

    Args:
        order: k.
        n_scouts: n.
        probability: Of the coverage being at most the result.

    Source: Wilks (1941); David and Nagaraja (2003), section 7.2.

    Example:
        >>> round(coverage_quantile(10, 10, 0.05), 3)
        0.741
    """
    _check(order, n_scouts)
    if order > n_scouts:
        return 1.0
    return float(stats.beta.ppf(probability, order, n_scouts + 1 - order))


def conformal_order(n_scouts: int, alpha: float) -> int | None:
    """Return the order statistic that promises coverage 1 - alpha: ceil((n+1)(1-alpha)).

    Computed in fractions of the decimal that was written, so that 0.1 means a tenth.

    Args:
        n_scouts: n, at least 1.
        alpha: Accepted share of jobs above, between 0 and 1.

    Returns:
        k, or None when it is beyond n: then no scout value promises that much (infinite bound).

    Source: Vovk, Gammerman and Shafer (2005), section 2.2.

    Example:
        >>> conformal_order(19, 0.05), conformal_order(10, 0.05)
        (19, None)
    """
    _check(1, n_scouts)
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha={alpha}: allowed is a share between 0 and 1")
    order = -((-(n_scouts + 1) * (1 - Fraction(str(alpha)))) // 1)
    return int(order) if order <= n_scouts else None


def scouts_needed(alpha: float) -> int:
    """Return the fewest scouts whose largest value promises coverage 1 - alpha: ceil(1/alpha) - 1.

    Example:
        >>> scouts_needed(0.02)
        49
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha={alpha}: allowed is a share between 0 and 1")
    return int(-((-1 / Fraction(str(alpha))) // 1)) - 1


def conformal_rank(n_scouts: int, alpha: float) -> float | None:
    """Return the percentile rank that lands on the conformal order statistic; None where there is none.

    With one scout every rank is that scout, so the answer is 0 (any rank).

    Example:
        >>> conformal_rank(19, 0.1)
        94.44444444444444
    """
    order = conformal_order(n_scouts, alpha)
    if order is None:
        return None
    return 0.0 if n_scouts == 1 else 100 * (order - 1) / (n_scouts - 1)


def percentile_coverage(n_scouts: int, rank: float) -> tuple[float, float, float]:
    """Return lower bound, interpolation and upper bound of the expected coverage of the percentile rule.

    The rule interpolates between two order statistics, so its coverage lies between theirs; the middle
    value is linear in between (exact for uniformly distributed jobs). No margin.

    Args:
        n_scouts: n.
        rank: Percentile rank 0..100.

    Source: scouts.md section 4 for the rule; David and Nagaraja (2003), section 7.1 for the bounds.

    Example:
        >>> [round(c, 3) for c in percentile_coverage(10, 75)]
        [0.636, 0.705, 0.727]
    """
    _check(1, n_scouts)
    if not 0 <= rank <= 100:
        raise ConfigError(f"rank={rank}: allowed is 0 to 100")
    position = (n_scouts - 1) * rank / 100
    lower, upper = int(np.floor(position)) + 1, int(np.ceil(position)) + 1
    return lower / (n_scouts + 1), (position + 1) / (n_scouts + 1), upper / (n_scouts + 1)


def promise_table(
    n_scouts: Iterable[int], ranks: Iterable[int], *, alpha: float, confidence: float = 0.95
) -> pl.DataFrame:
    """Lay out what each number of scouts can promise at each rank, beside the rank that would be needed.

    Args:
        n_scouts: Numbers of scouts.
        ranks: Percentile ranks.
        alpha: Accepted share of jobs above.
        confidence: One-sided, for ``coverage_with_confidence``.

    Returns:
        One row per (n_scouts, rank), sorted: ``expected_lo, expected, expected_hi`` (shares, no margin),
        ``coverage_with_confidence`` (of the lower order statistic), ``conformal_order`` and
        ``conformal_rank`` (null: no scout value promises 1 - alpha), ``promises`` (expected_lo >= 1-alpha).
    """
    rows = []
    target = 1 - Fraction(str(alpha))
    for n in sorted(set(n_scouts)):
        for rank in sorted(set(ranks)):
            low, middle, high = percentile_coverage(n, rank)
            order = round(low * (n + 1))
            rows.append(
                {
                    "n_scouts": n,
                    "rank": rank,
                    "expected_lo": low,
                    "expected": middle,
                    "expected_hi": high,
                    "coverage_with_confidence": coverage_quantile(order, n, 1 - confidence),
                    "conformal_order": conformal_order(n, alpha),
                    "conformal_rank": conformal_rank(n, alpha),
                    "promises": Fraction(order, n + 1) >= target,
                }
            )
    integers = {"n_scouts": pl.Int64, "rank": pl.Int64, "conformal_order": pl.Int64}
    return pl.DataFrame(rows, schema_overrides={**integers, "conformal_rank": pl.Float64})


def _check(order: int, n_scouts: int) -> None:
    """Refuse impossible numbers of scouts."""
    if n_scouts < 1 or order < 1:
        raise ConfigError(f"order={order}, n_scouts={n_scouts}: both must be at least 1")
