"""The grid simulator: what would have happened under other settings.

* ``queues``: the queue core, in steps or in one go; ``options``: how slots are filled and killed jobs tried again;
* ``summaries``: waiting by queue and share, fairness between users and shares;
* ``contracts``: the tables it reads; ``outcome``: the tables it gives;
* inside: ``tables`` (checks, arrays), ``world`` (the arrays), ``kernel`` (the event loop), ``heaps`` (its two orders),
  ``draws`` (random numbers that belong to an attempt).
"""

from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.outcome import Simulated
from brokerlab.calibrate.simulate.queues import State, advance, counts, place, results, run, start
from brokerlab.calibrate.simulate.summaries import fairness, jain, waiting_quantiles

__all__ = [
    "QueueRules",
    "Simulated",
    "State",
    "advance",
    "counts",
    "fairness",
    "jain",
    "place",
    "results",
    "run",
    "start",
    "waiting_quantiles",
]
