"""The grid simulator: what would have happened under other settings.

* ``queues``: the queue core, in steps or in one go; ``options``: how slots are filled and killed jobs tried again;
* ``summaries``: waiting by queue and share, Jain's index;
* ``inputs``: a period of an archive, with its queues as they seem to have been (``estimates``, ``capacity``); ``validation``: does the
  simulation give what was seen (``distances``); ``archive_check``: the same of an archive, in one call;
* ``contracts``: the tables it reads; ``outcome``: the tables it gives;
* inside: ``tables`` (checks, arrays), ``world`` (the arrays), ``kernel`` (the event loop), ``heaps`` (its two orders),
  ``draws`` (random numbers that belong to an attempt).
"""

from brokerlab.calibrate.simulate.inputs import Estimation, Inputs, of_archive, of_tables
from brokerlab.calibrate.simulate.limits import Limits
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.outcome import Simulated
from brokerlab.calibrate.simulate.queues import (
    State,
    advance,
    counts,
    place,
    results,
    run,
    start,
    withdraw,
)
from brokerlab.calibrate.simulate.summaries import jain, waiting_quantiles
from brokerlab.calibrate.simulate.validation import Validation, validate

__all__ = [
    "Estimation",
    "Inputs",
    "Limits",
    "QueueRules",
    "Simulated",
    "State",
    "Validation",
    "advance",
    "counts",
    "jain",
    "of_archive",
    "of_tables",
    "place",
    "results",
    "run",
    "start",
    "validate",
    "waiting_quantiles",
    "withdraw",
]
