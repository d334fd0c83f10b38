"""The arrays of a batch queue, its two orders (running jobs by an instant, the waiting line), and the profile of conservative backfilling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brokerlab.compiled import compiled, compiled_in_place
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


@compiled_in_place
def forget_past(state: State) -> None:
    """Drop the steps that end by now; the first one left holds now."""
    times, free, counters = state.step_time, state.step_free, state.counters
    size, past = counters[N_STEPS], 0
    while past + 1 < size and times[past + 1] <= counters[NOW]:
        past += 1
    if past:
        for step in range(past, size):
            times[step - past], free[step - past] = times[step], free[step]
        counters[N_STEPS] = size - past


@compiled_in_place
def earliest(state: State, hosts: int, request: int, before: int) -> int:
    """Find the earliest instant, before another one, from which hosts are free for a whole request.

    Whoever holds the hosts from ``before`` on does so for the same request, so from there on they are free for it.
    Returns ``before`` where there is none earlier.
    """
    times, free, size = state.step_time, state.step_free, state.counters[N_STEPS]
    since = state.counters[NOW]
    for step in range(size):
        if step and times[step] >= before:
            break
        until = times[step + 1] if step + 1 < size else NEVER
        if free[step] < hosts:
            since = until
        elif until - since >= request:
            break
    return int(min(since, before))


@compiled_in_place
def _cut(state: State, at: int, first: int) -> int:
    """Return the step that begins at an instant, made where there is none; ``first`` begins no later."""
    times, free, counters = state.step_time, state.step_free, state.counters
    size, step = counters[N_STEPS], first
    while step < size and times[step] < at:
        step += 1
    if step < size and times[step] == at:
        return step
    for later in range(size, step, -1):
        times[later], free[later] = times[later - 1], free[later - 1]
    times[step], free[step] = at, free[step - 1]
    counters[N_STEPS] = size + 1
    return step


@compiled_in_place
def _join(state: State, step: int) -> None:
    """Drop a step that is as free as the one before it."""
    times, free, counters = state.step_time, state.step_free, state.counters
    size = counters[N_STEPS]
    if 0 < step < size and free[step] == free[step - 1]:
        for later in range(step + 1, size):
            times[later - 1], free[later - 1] = times[later], free[later]
        counters[N_STEPS] = size - 1


@compiled_in_place
def take(state: State, since: int, until: int, hosts: int) -> None:
    """Take hosts from an instant to another one; a negative number gives them back."""
    if until <= since:
        return
    first = _cut(state, since, 0)
    last = _cut(state, until, first)
    for step in range(first, last):
        state.step_free[step] -= hosts
    _join(state, last)
    _join(state, first)


@compiled_in_place
def reserve(state: State, job: int) -> None:
    """Give a job the earliest place that what is promised leaves."""
    jobs, counters = state.jobs, state.counters
    hosts, request = jobs["hosts"][job], jobs["request"][job]
    start = earliest(state, hosts, request, NEVER)
    jobs["reserved"][job] = start
    take(state, start, start + request, hosts)
    counters[NEXT_START] = min(counters[NEXT_START], start)


@compiled_in_place
def compress(state: State) -> None:
    """Move reservations forward, once in the order of the line; none moves back.

    A pass in which nobody moves leaves everybody at his earliest place, and only hosts given back change that: without
    them the next pass would move nobody and is left out.
    """
    jobs, counters = state.jobs, state.counters
    now, moved = counters[NOW], 0
    if not counters[LOOSE]:
        return
    counters[NEXT_START] = NEVER
    job = counters[FIRST]
    while job != NOBODY:
        reserved = jobs["reserved"][job]
        if reserved > now:
            hosts, request = jobs["hosts"][job], jobs["request"][job]
            start = earliest(state, hosts, request, reserved)
            if start < reserved:
                take(state, reserved, reserved + request, -hosts)
                take(state, start, start + request, hosts)
                jobs["reserved"][job] = reserved = start
                moved = 1
        counters[NEXT_START] = min(counters[NEXT_START], reserved)
        job = jobs["behind"][job]
    counters[LOOSE] = moved
