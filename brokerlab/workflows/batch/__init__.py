"""A batch queue: FCFS, EASY and conservative backfilling under background load.

* ``simulation``: the queue in steps or in one go, and when a job would start; ``held``: the queue between two steps, what became
  of its jobs, another order of the line;
* inside: ``state`` (the arrays, orders and reservations), ``kernel`` (the event loop).
"""

from brokerlab.workflows.batch.held import (
    Priority,
    Simulation,
    changes,
    ended,
    results,
    started,
    status,
)
from brokerlab.workflows.batch.simulation import (
    POLICIES,
    advance,
    arrive,
    cancel,
    estimate_start,
    next_event,
    release,
    run,
    run_asking,
    settle,
    start,
    submit,
)

__all__ = [
    "POLICIES",
    "Priority",
    "Simulation",
    "advance",
    "arrive",
    "cancel",
    "changes",
    "ended",
    "estimate_start",
    "next_event",
    "release",
    "results",
    "run",
    "run_asking",
    "settle",
    "start",
    "started",
    "status",
    "submit",
]
