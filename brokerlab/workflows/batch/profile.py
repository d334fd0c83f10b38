"""The profile of conservative backfilling: how many hosts are free from when to when, by requests."""

from __future__ import annotations

from brokerlab.compiled import compiled_in_place
from brokerlab.workflows.batch.state import (
    FIRST,
    LOOSE,
    N_STEPS,
    NEVER,
    NEXT_START,
    NOBODY,
    NOW,
    State,
)


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
