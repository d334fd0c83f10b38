"""From what a job may need to what it should be given: the allocation of least expected cost.

An estimator tells quantiles; a ladder says what follows a kill, prices what over-allocation, kills and waiting cost;
``cheapest`` weighs one against the other, job by job, instead of a fixed percentile for all.
"""

from brokerlab.estimators.allocation.cheapest import Allocations, cheapest
from brokerlab.estimators.allocation.distribution import GRID, Tail
from brokerlab.estimators.allocation.ladder import PANDA_RUNGS_MB, Ladder
from brokerlab.estimators.allocation.prices import Prices, amount_per_unit

__all__ = [
    "GRID",
    "PANDA_RUNGS_MB",
    "Allocations",
    "Ladder",
    "Prices",
    "Tail",
    "amount_per_unit",
    "cheapest",
]
