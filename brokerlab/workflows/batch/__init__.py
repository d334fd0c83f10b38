"""A batch queue: FCFS, EASY and conservative backfilling under background load.

* ``simulation``: the queue in steps or in one go, and when a job would start;
* inside: ``state`` (the arrays), ``kernel`` (the event loop), ``lists`` (its two orders), ``profile`` (reservations),
  ``outlook`` (the queue carried forward).
"""

from brokerlab.workflows.batch.simulation import (
    POLICIES,
    STATUS,
    Simulation,
    advance,
    arrive,
    cancel,
    changes,
    ended,
    estimate_start,
    estimate_starts,
    next_event,
    release,
    results,
    run,
    settle,
    start,
    started,
    status,
    submit,
)

__all__ = [
    "POLICIES",
    "STATUS",
    "Simulation",
    "advance",
    "arrive",
    "cancel",
    "changes",
    "ended",
    "estimate_start",
    "estimate_starts",
    "next_event",
    "release",
    "results",
    "run",
    "settle",
    "start",
    "started",
    "status",
    "submit",
]
