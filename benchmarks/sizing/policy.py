"""From a predictive distribution to allocations: the ladder of attempts of least expected cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.errors import ConfigError
from brokerlab.estimators import allocation
from brokerlab.estimators.mixture import Distribution
from brokerlab.numerics import FloatArray, IntArray


@dataclass(frozen=True)
class Ladder:
    """First allocation and what follows each failure.

    Attributes:
        allocations: (g,) candidates, ascending [bytes].
        steps: (g + 1,) candidate tried first, and after candidate k - 1 failed; -1: beyond all.
        cost: Expected cost of the attempts [bytes]: allocations and prices, the use not subtracted.
    """

    allocations: FloatArray
    steps: IntArray
    cost: float

    @property
    def first_b(self) -> float:
        """Return the first allocation [bytes]."""
        return float(self.allocations[self.steps[0]])

    def after(self, failed_b: float) -> float:
        """Return the allocation that follows a failed one; beyond the last candidate twice as much."""
        place = int(np.searchsorted(self.allocations, failed_b, side="right"))
        step = int(self.steps[place])
        return float(self.allocations[step]) if step >= 0 else 2 * failed_b


def cheapest_ladder(distribution: Distribution, *, price_b: float) -> Ladder:
    r"""Choose all attempts at once so that expected waste and failures cost least.

    Each attempt is paid whole, whether it fails or not; each failure costs its price on top:

    .. math:: V(a) = S(a) \min_{a' > a} \{ a' + ... \}, \quad
              \min_{a_1 < a_2 < \dots} \sum_k a_k S(a_{k-1}) + p \sum_k S(a_k)

    with S the probability to need more and :math:`S(a_0) = 1`; solved exactly over the ends of the
    cells, from the largest down. Beyond the largest the last allocation is doubled.

    Args:
        distribution: Of the memory of a run.
        price_b: p, price of a failed attempt [bytes, for the time of one attempt]; 0 or more.

    Raises:
        ConfigError: The price is negative.

    Source: own; with two attempts and p = 0 it is the rule of Tovar et al., IEEE TPDS 29 (2018) 240,
    doi:10.1109/TPDS.2017.2762310, with the second attempt chosen too.
    """
    if not price_b >= 0:
        raise ConfigError(f"price of a failure {price_b} bytes: allowed is 0 or more")
    steps = np.empty(distribution.memory_b.size + 1, dtype=np.int64)
    price, beyond = float(price_b), 2 * float(distribution.memory_b[-1]) + float(price_b)
    exceeded = distribution.exceeded()
    cost = allocation.plan(distribution.memory_b, exceeded, 1.0, 0.0, price, beyond, steps)
    return Ladder(distribution.memory_b, steps, float(cost))
