"""The arrays that the compiled batch queue works on; times and durations are whole microseconds.

Whole numbers, so that equal instants are equal: whether a job ends exactly where a reservation begins decides starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brokerlab.compiled import compiled
from brokerlab.numerics import IntArray

NEVER = 2**62  # A time that does not come
NOBODY = -1  # no job

FCFS, EASY, CONSERVATIVE = range(3)
FUTURE, WAITING, RUNNING, FINISHED, KILLED, CANCELLED, RELEASED = range(7)  # status of a job
STARTED, ENDED = range(2)  # what the log tells of a watched job

(
    POLICY,
    HOSTS,
    NOW,
    FREE,
    N_BACKGROUND,
    N_JOBS,
    NEXT_ARRIVAL,  # row of the first background job not yet submitted
    FIRST,  # of the waiting line
    LAST,
    N_RUNNING,
    N_LIMITS,
    N_LOGGED,
    DUE,  # 1: something happened that the next scheduling pass has to look at
    RESCAN,  # 1: the pass has to look at the whole line, not only at who is new in it
    FRESH,  # first job that joined the line since the last pass
    SHADOW,  # EASY: the blocked head starts then at the latest ...
    EXTRA,  # ... and leaves so many hosts free
    N_STEPS,  # of the profile
    VACATED,  # 1: jobs ended at this instant and the reservations were not yet compressed
    LOOSE,  # 1: some reservation may have become movable
    NEXT_START,  # earliest reservation
    REPLAY,  # 1: the background starts when it is submitted, whatever waits
    OVERFULL,  # 1: more hosts are in use than there are
    EXACT,  # 1: every job lasts its whole request, so that ends are limits
    N_COUNTERS,
) = range(25)
"""Places of the counters."""

Records = npt.NDArray[np.void]

JOB = np.dtype(
    [
        (name, np.int64)
        for name in (
            "submit",
            "hosts",
            "request",
            "run",
            "start",
            "end",
            "reserved",
            "status",
            "key",  # its place in the line goes by this, then by its row
            "ahead",  # neighbours in the line
            "behind",
        )
    ]
)
"""A job; the background's rows are in the order of submission, those submitted by hand follow."""


class State(NamedTuple):
    """Everything the queue knows."""

    jobs: Records  # of `JOB`
    end_time: IntArray  # running jobs by the instant at which they will end, latest first
    end_job: IntArray
    # running jobs by the end of their request, latest first (kept for EASY alone, and not where it is their end)
    limit_time: IntArray
    limit_job: IntArray
    # free hosts from each step's time to the next one's: what running jobs and reservations leave, by their
    # requests (kept for conservative backfilling alone)
    step_time: IntArray
    step_free: IntArray
    log: IntArray  # what happened to jobs submitted by hand, in order: 2 * row + STARTED or ENDED
    counters: IntArray  # by the names above


@compiled
def blank(jobs: Records, n_background: int, hosts: int, policy: int) -> State:
    """Return an idle machine before its first job; ``jobs`` is taken over, rows from ``n_background`` on are spare."""
    most = min(hosts, len(jobs)) + 1
    steps = 2 * len(jobs) + 4 if policy == CONSERVATIVE else 1
    limits = most if policy == EASY else 1
    counters = np.zeros(N_COUNTERS, np.int64)
    counters[POLICY], counters[HOSTS], counters[FREE] = policy, hosts, hosts
    counters[N_BACKGROUND] = counters[N_JOBS] = n_background
    counters[NOW] = -NEVER
    counters[FIRST] = counters[LAST] = counters[FRESH] = NOBODY
    counters[NEXT_START] = NEVER
    counters[N_STEPS] = 1
    step_time, step_free = np.empty(steps, np.int64), np.empty(steps, np.int64)
    step_time[0], step_free[0] = -NEVER, hosts
    return State(
        jobs,
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(limits, np.int64),
        np.empty(limits, np.int64),
        step_time,
        step_free,
        np.empty(2 * (len(jobs) - n_background), np.int64),
        counters,
    )
