"""Predictive distributions turned into the allocation of least expected cost."""

from __future__ import annotations

import numpy as np

from brokerlab.estimators.allocation import Ladder, Prices, cheapest
from brokerlab.estimators.estimator import Predicted


def allocated(predicted: Predicted, *, price: float, ladder: Ladder | None = None) -> Predicted:
    """Give each job the first allocation of least expected cost, in place of a fixed level.

    Costs count in uses of the job as it was guessed, so that small and large jobs weigh alike: what is held and not used,
    what a failed attempt held, and the price of its failure. Durations are not known when a job is decided, so that every
    attempt is taken to last as long.

    Args:
        predicted: Bounds at many levels, as :data:`allocation.GRID`; infinite where nothing is known.
        price: Of a failed attempt besides what it held [uses of the job], 0 or more.
        ladder: Of retries; None: any larger allocation may follow.

    Returns:
        The allocation as the bound at every level, and as the point; infinite where nothing is known.
    """
    known = np.isfinite(predicted.point) & np.isfinite(predicted.bounds[:, 0])
    first = np.full(known.size, np.inf)
    if known.any():
        first[known] = cheapest(
            predicted.bounds[known],
            levels=predicted.levels,
            ladder=ladder,
            prices=Prices(failure=price),
            amount=1 / predicted.point[known],
        ).first
    bounds = np.repeat(first[:, None], len(predicted.levels), axis=1)
    return Predicted(predicted.pandaid, predicted.seen, predicted.levels, bounds, first)
