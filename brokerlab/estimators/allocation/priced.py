"""Predictive distributions turned into the allocation of least expected cost, for every price of a failed attempt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from brokerlab.estimators.allocation.cheapest import Prices, cheapest
from brokerlab.estimators.estimator import Predicted
from brokerlab.numerics import FloatArray

PRICES = (0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Of a failed attempt, all in all, in uses of the job."""
PRICE = 2.0
"""The one of them where one has to be named: what the attempt held, about one use of the job, and as much for the delay."""


def level_of(price: float) -> float:
    """Return the level that stands for a price: of the bound that costs least where no retry follows."""
    return price / (1 + price)


def allocate_at_prices(predicted: Predicted, *, prices: Sequence[float] = PRICES) -> Predicted:
    """Give each job the first allocation of least expected cost, for each price of a failed attempt in uses of the job.

    The levels of what is returned stand for the prices, `level_of`: they promise no coverage. Costs count in uses of the job as
    it was guessed, so that small and large jobs weigh alike: what is held and not used by the attempt that succeeds, and the
    price of every one that fails. Durations are not known when a job is decided, so that every attempt is taken to last as long.
    """
    known = np.isfinite(predicted.point) & np.isfinite(predicted.bounds[:, 0])
    bounds = np.full((known.size, len(prices)), np.inf)
    for place, price in enumerate(prices) if known.any() else ():
        bounds[known, place] = cheapest(
            predicted.bounds[known],
            levels=predicted.levels,
            prices=Prices(lost=0.0, failure=price),
            amount=1 / predicted.point[known],
        ).first
    # dearer failures never ask for less; equal costs may be told apart by the last bits
    bounds = np.maximum.accumulate(bounds, axis=1)
    levels = tuple(level_of(price) for price in prices)
    return Predicted(predicted.pandaid, predicted.seen, levels, bounds, predicted.point)


def repeat_at_price(allocations: Predicted, price: float, levels: Sequence[float]) -> Predicted:
    """Return the allocations at one price as a rule that says the same at every level."""
    first: FloatArray = allocations.at(level_of(price))
    bounds = np.repeat(first[:, None], len(levels), axis=1)
    return Predicted(allocations.pandaid, allocations.seen, tuple(levels), bounds, first)
