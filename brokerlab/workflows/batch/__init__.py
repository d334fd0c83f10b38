"""A batch queue: FCFS, EASY and conservative backfilling under background load.

* ``simulation``: the queue in steps or in one go; ``asking``: when a job would start; ``telling``: what became of jobs;
  ``priority``: another order of the line;
* inside: ``held`` (the queue between two steps), ``state`` (the arrays), ``kernel`` (the event loop), ``lists`` (its two
  orders), ``profile`` (reservations), ``outlook`` (the queue carried forward).
"""

from brokerlab.workflows.batch.asking import estimate_start, estimate_starts
from brokerlab.workflows.batch.held import STATUS, Simulation
from brokerlab.workflows.batch.priority import Priority
from brokerlab.workflows.batch.simulation import (
    POLICIES,
    advance,
    arrive,
    cancel,
    next_event,
    release,
    run,
    settle,
    start,
    submit,
)
from brokerlab.workflows.batch.telling import changes, ended, results, started, status

__all__ = [
    "POLICIES",
    "STATUS",
    "Priority",
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
