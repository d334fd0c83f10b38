"""Two orders kept while the queue runs: running jobs by an instant, and the waiting line."""

from __future__ import annotations

import numpy as np

from brokerlab.compiled import compiled_in_place
from brokerlab.numerics import IntArray
from brokerlab.workflows.batch.state import FIRST, LAST, NOBODY, Records

STRIDE = 8  # places that a search goes over at once


@compiled_in_place
def enter(times: IntArray, members: IntArray, size: int, time: int, job: int) -> None:
    """Put a job into a list with the latest time first; what comes next is at the end, where it is cheap to take."""
    place = size
    while place >= STRIDE and times[place - STRIDE] < time:
        place -= STRIDE
    while place > 0 and times[place - 1] < time:
        place -= 1
    for behind in range(place, size + 1):
        at = np.uint64(behind)  # cannot be negative, which would be looked at for every step
        times[at], time = time, times[at]
        members[at], job = job, members[at]


@compiled_in_place
def leave(times: IntArray, members: IntArray, size: int, job: int) -> None:
    """Take a job out of such a list."""
    place = size - 1
    while members[place] != job:
        place -= 1
    for later in range(place, size - 1):
        times[later], members[later] = times[later + 1], members[later + 1]


@compiled_in_place
def join_line(jobs: Records, counters: IntArray, job: int) -> None:
    """Put a job into the waiting line: behind everybody whose key is not larger."""
    ahead, behind = counters[LAST], NOBODY
    while ahead != NOBODY and jobs["key"][ahead] > jobs["key"][job]:
        ahead, behind = jobs["ahead"][ahead], ahead
    jobs["ahead"][job], jobs["behind"][job] = ahead, behind
    if ahead == NOBODY:
        counters[FIRST] = job
    else:
        jobs["behind"][ahead] = job
    if behind == NOBODY:
        counters[LAST] = job
    else:
        jobs["ahead"][behind] = job


@compiled_in_place
def leave_line(jobs: Records, counters: IntArray, job: int) -> None:
    """Take a job out of the waiting line; it still knows who was behind it."""
    ahead, behind = jobs["ahead"][job], jobs["behind"][job]
    if ahead == NOBODY:
        counters[FIRST] = behind
    else:
        jobs["behind"][ahead] = behind
    if behind == NOBODY:
        counters[LAST] = ahead
    else:
        jobs["ahead"][behind] = ahead
