"""The loops of the grid that have no form with grouping and joins, compiled: census, draws, choices, links."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from brokerlab.calibrate.simulate.draws import uniform
from brokerlab.calibrate.simulate.world import DONE, RUNNING, WAITING, Records
from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

PLACEMENT = 3
"""Purpose of the draw that chooses among candidates, beside those of the queue core."""
ASSIGNED, ACTIVATED, MOVING_OUT, IN_SLOTS, UNBROKERED = range(5)


@compiled
def census(
    attempt: Records,
    order: IntArray,
    created: IntArray,
    brokered: npt.NDArray[np.bool_],
    gone: IntArray,
    first: int,
    last: int,
    now: int,
    jobs: IntArray,
    states: IntArray,
) -> tuple[int, int]:
    """Write down the jobs of an instant that are not over, and their state.

    Args:
        attempt: Of the queue core.
        order: Rows in the order of making.
        created: When each was made [us].
        brokered: Whether the brokerage places it.
        gone: When its outputs have arrived, for jobs that are done [us].
        first: Place in the order before which all are over.
        last: Place in the order from which on none is looked at.
        now: The instant [us].
        jobs: Filled with rows.
        states: Filled with their states.

    Returns:
        How many were written, and the next ``first``.
    """
    n, begin = 0, -1
    for place in range(first, last):
        job = order[place]
        status = attempt["status"][job]
        if status == DONE:
            if gone[job] <= now:
                continue
            state = MOVING_OUT
        elif status == RUNNING:
            state = IN_SLOTS
        elif status == WAITING:
            if created[job] > now:
                state = -1
            else:
                state = ACTIVATED if attempt["ready"][job] <= now else ASSIGNED
        else:
            state = UNBROKERED if brokered[job] else -1
        if begin < 0:
            begin = place
        if state >= 0:
            jobs[n], states[n] = job, state
            n += 1
    return n, last if begin < 0 else begin


@compiled
def draws(seed: int, pandaid: IntArray, number: IntArray) -> FloatArray:
    """Return the draw of every placement: of seed, pandaid and how often the job was placed."""
    drawn = np.empty(len(pandaid))
    for row in range(len(pandaid)):
        drawn[row] = uniform(seed, pandaid[row], number[row], PLACEMENT)
    return drawn


@compiled
def choose(drawn: FloatArray, first: IntArray, last: IntArray, share: FloatArray) -> IntArray:
    """Return for every job the candidate whose part of [0, 1) its draw falls into; -1 without candidates.

    Args:
        drawn: (jobs,).
        first: (jobs,) its first candidate.
        last: (jobs,) behind its last one.
        share: (candidates,) adds up to 1 over those of a task.
    """
    chosen = np.full(len(drawn), -1, np.int64)
    for row in range(len(drawn)):
        up_to = 0.0
        for candidate in range(first[row], last[row]):
            if share[candidate] <= 0.0:
                continue
            chosen[row] = candidate  # the last one, where the shares add up to a little less than 1
            up_to += share[candidate]
            if drawn[row] < up_to:
                break
    return chosen


@compiled
def queue_up(link: IntArray, asked: IntArray, lasts: IntArray, free: IntArray) -> IntArray:
    """Let transfers pass their links one after the other: ``end = max(asked, end before) + lasts``.

    Args:
        link: Of each transfer, in the order in which they are served.
        asked: When each could begin [us].
        lasts: How long each takes [us].
        free: (links,) from when on each is free [us]; changed.

    Returns:
        When each is through [us].
    """
    end = np.empty(len(link), np.int64)
    for row in range(len(link)):
        begin = max(asked[row], free[link[row]])
        end[row] = begin + lasts[row]
        free[link[row]] = end[row]
    return end
