"""What n scouts can promise, whatever the jobs look like: the distribution of an order statistic's coverage.

If the scouts and a later job are exchangeable (and ties are broken), the share of jobs not above the k-th
smallest of n scouts follows Beta(k, n+1-k), for every distribution of the jobs. No margin is needed for
this, and no margin can be credited for it.

Sources: Wilks, Ann. Math. Statist. 12 (1941) 91, doi:10.1214/aoms/1177731788; David and Nagaraja, Order
Statistics, 3rd edition (2003), section 2; Vovk, Gammerman and Shafer, Algorithmic Learning in a Random
World (2005), section 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from brokerlab.errors import ConfigError


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
    _check(n_scouts)
    if not 0 < alpha < 1:
        raise ConfigError(f"alpha={alpha}: allowed is a share between 0 and 1")
    order = -((-(n_scouts + 1) * (1 - Fraction(str(alpha)))) // 1)
    return int(order) if order <= n_scouts else None


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
    _check(n_scouts)
    if not 0 <= rank <= 100:
        raise ConfigError(f"rank={rank}: allowed is 0 to 100")
    position = (n_scouts - 1) * rank / 100
    lower, upper = int(np.floor(position)) + 1, int(np.ceil(position)) + 1
    return lower / (n_scouts + 1), (position + 1) / (n_scouts + 1), upper / (n_scouts + 1)


def _check(n_scouts: int) -> None:
    """Refuse impossible numbers of scouts."""
    if n_scouts < 1:
        raise ConfigError(f"n_scouts={n_scouts}: allowed is at least 1")
