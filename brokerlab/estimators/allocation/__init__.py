"""From what a job may need to what it should be given: the allocation of least expected cost.

An estimator tells quantiles, prices say what over-allocation and kills cost; `cheapest` weighs one against the other, job by
job, instead of a fixed percentile for all.
"""

from brokerlab.estimators.allocation.cheapest import Prices, amount_per_unit, cheapest

__all__ = ["Prices", "amount_per_unit", "cheapest"]
