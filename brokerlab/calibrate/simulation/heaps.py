"""The two orders of the event loop: events by time, and waiting jobs by their turn.

Waiting jobs stand in one pairing heap per queue and core count, linked through the jobs themselves: nothing is
allocated while the loop runs, and the first job of every width is at hand, which is all that either way of fitting
needs.

Source: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap, Algorithmica 1 (1986) 111, doi:10.1007/BF01840439.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from brokerlab.calibrate.simulation.state import HEAP, Events, Records
from brokerlab.compiled import compiled
from brokerlab.numerics import IntArray


@compiled
def push(events: Events, time: int, what: int) -> None:
    """Add an event."""
    place = events.counters[HEAP]
    events.counters[HEAP] += 1
    while place > 0:
        above = (place - 1) // 2
        later = events.time[above]
        if later < time or (later == time and events.what[above] <= what):
            break
        events.time[place], events.what[place] = later, events.what[above]
        place = above
    events.time[place], events.what[place] = time, what


@compiled
def pop(events: Events) -> tuple[int, int]:
    """Take the first event: its time and what it is."""
    first_time, first_what = events.time[0], events.what[0]
    events.counters[HEAP] -= 1
    size = events.counters[HEAP]
    time, what = events.time[size], events.what[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        other = below + 1
        if other < size and (
            events.time[other] < events.time[below]
            or (
                events.time[other] == events.time[below] and events.what[other] < events.what[below]
            )
        ):
            below = other
        if time < events.time[below] or (time == events.time[below] and what <= events.what[below]):
            break
        events.time[place], events.what[place] = events.time[below], events.what[below]
        place = below
    events.time[place], events.what[place] = time, what
    return first_time, first_what


@compiled
def goes_before(attempt: Records, work: Records, one: int, other: int) -> bool:
    """Tell whether a job's turn comes first: higher priority, ready earlier, lower pandaid."""
    if work["priority"][one] != work["priority"][other]:
        return bool(work["priority"][one] > work["priority"][other])
    if attempt["ready"][one] != attempt["ready"][other]:
        return bool(attempt["ready"][one] < attempt["ready"][other])
    return one < other


@compiled
def _meld(attempt: Records, work: Records, one: int, other: int) -> int:
    """Make one heap of two and return its head; -1 is an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    if goes_before(attempt, work, other, one):
        one, other = other, one
    attempt["sibling"][other] = attempt["child"][one]
    attempt["child"][one] = other
    return one


@compiled
def join_line(attempt: Records, work: Records, waiting: IntArray, line: int, job: int) -> None:
    """Put a job into a waiting line."""
    attempt["child"][job] = attempt["sibling"][job] = -1
    waiting[line] = _meld(attempt, work, waiting[line], job)


@compiled
def leave_line(attempt: Records, work: Records, waiting: IntArray, line: int) -> None:
    """Take the first job out of a waiting line: pair its children from left to right, join the pairs back."""
    rest = attempt["child"][waiting[line]]
    pairs = -1
    while rest >= 0:
        second = attempt["sibling"][rest]
        following = attempt["sibling"][second] if second >= 0 else -1
        attempt["sibling"][rest] = -1
        if second >= 0:
            attempt["sibling"][second] = -1
        pair = _meld(attempt, work, rest, second)
        attempt["sibling"][pair] = pairs
        pairs, rest = pair, following
    head = -1
    while pairs >= 0:
        following = attempt["sibling"][pairs]
        attempt["sibling"][pairs] = -1
        head = _meld(attempt, work, head, pairs)
        pairs = following
    waiting[line] = head


@compiled
def thin_line(
    attempt: Records, work: Records, waiting: IntArray, line: int, leaves: npt.NDArray[np.bool_]
) -> int:
    """Take every job that leaves out of a waiting line, wherever it stands; returns how many did."""
    rest, waiting[line], gone = waiting[line], -1, 0
    while rest >= 0:  # what is still to be looked at is a list through the siblings
        job, below = rest, attempt["child"][rest]
        rest = attempt["sibling"][rest]
        while below >= 0:
            following = attempt["sibling"][below]
            attempt["sibling"][below] = rest
            rest, below = below, following
        if leaves[job]:
            gone += 1
        else:
            join_line(attempt, work, waiting, line, job)
    return gone
