"""The event loop: what happens at the queues up to an instant, compiled.

Every start depends on all ends before it, so there is no form with grouping and joins. At one instant the order is:
ends of attempts, changes of slots, jobs that are ready (each by pandaid), pilots that come, then starts. A pilot is sent for
every job that is ready and comes after a start-up delay; it takes the first job in turn, whichever it was sent for.

Events are a binary heap by time. Waiting jobs stand in one pairing heap per queue and core count, linked through the jobs
themselves: nothing is allocated while the loop runs, and the first job of every width is at hand, which is all that either
way of fitting needs.

Two settings are compared on common random numbers: the draw of (seed, pandaid, attempt, purpose) is a hash of these
four, so that neither the order of events nor another job changes it.

Source: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap, Algorithmica 1 (1986) 111, doi:10.1007/BF01840439; Steele, Lea,
Flood, Fast splittable pseudorandom number generators, OOPSLA 2014, doi:10.1145/2660193.2660195 (SplitMix64, with Stafford's
variant 13 of the mixing function).
"""

from __future__ import annotations

import numpy as np

from brokerlab.calibrate.simulation.state import (
    CHANGE,
    CLOCK,
    DONE,
    END,
    FINISHED,
    HEAP,
    KILLED_MEMORY,
    KILLED_WALLTIME,
    KIND,
    LOG,
    PILOT,
    READY,
    RUNNING,
    UNPLACED,
    WAITING,
    Events,
    Records,
    State,
)
from brokerlab.compiled import compiled, compiled_in_place
from brokerlab.numerics import BoolArray, FloatArray, IntArray

# --- random numbers that belong to an attempt -------------------------------------------------------------------------


STARTUP, MEMORY, PLACEMENT = 1, 2, 3  # purposes


@compiled
def mix(word: np.uint64) -> np.uint64:
    """Return the word with every bit depending on every bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def uniform(seed: int, pandaid: int, attempt: int, purpose: int) -> float:
    """Return a number of [0, 1), the same for the same four numbers."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    word = mix(np.uint64(seed) + golden)
    word = mix((word ^ np.uint64(pandaid)) + golden)
    word = mix((word ^ np.uint64(attempt)) + golden)
    word = mix((word ^ np.uint64(purpose)) + golden)
    return float(word >> np.uint64(11)) * 2.0**-53


@compiled
def placements(seed: int, pandaid: IntArray, number: IntArray) -> FloatArray:
    """Return the draw of every placement: of seed, pandaid and how often the job was placed."""
    drawn = np.empty(len(pandaid))
    for row in range(len(pandaid)):
        drawn[row] = uniform(seed, pandaid[row], number[row], PLACEMENT)
    return drawn


@compiled_in_place
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


@compiled_in_place
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


@compiled_in_place
def goes_before(attempt: Records, work: Records, one: int, other: int) -> bool:
    """Tell whether a job's turn comes first: higher priority, ready earlier, lower pandaid."""
    if work["priority"][one] != work["priority"][other]:
        return bool(work["priority"][one] > work["priority"][other])
    if attempt["ready"][one] != attempt["ready"][other]:
        return bool(attempt["ready"][one] < attempt["ready"][other])
    return one < other


@compiled_in_place
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


@compiled_in_place
def join_line(attempt: Records, work: Records, waiting: IntArray, line: int, job: int) -> None:
    """Put a job into a waiting line."""
    attempt["child"][job] = attempt["sibling"][job] = -1
    waiting[line] = _meld(attempt, work, waiting[line], job)


@compiled_in_place
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


@compiled_in_place
def thin_line(
    attempt: Records, work: Records, waiting: IntArray, line: int, leaves: BoolArray
) -> None:
    """Take every job that leaves out of a waiting line, wherever it stands."""
    rest, waiting[line] = waiting[line], -1
    while rest >= 0:  # what is still to be looked at is a list through the siblings
        job, below = rest, attempt["child"][rest]
        rest = attempt["sibling"][rest]
        while below >= 0:
            following = attempt["sibling"][below]
            attempt["sibling"][below] = rest
            rest, below = below, following
        if not leaves[job]:
            join_line(attempt, work, waiting, line, job)


@compiled_in_place
def _line(state: State, job: int) -> int:
    """Return the line that a job waits in."""
    places = state.places
    return int(state.attempt["queue"][job] * len(places.widths) + state.work["width"][job])


@compiled_in_place
def _comes(state: State, job: int) -> int:
    """Return when the pilot comes that is sent for a job: the job is ready, and the start-up delay of its attempt later."""
    places, attempt = state.places, state.attempt
    queue = attempt["queue"][job]
    first, n_delays = places.queues["first_delay"][queue], places.queues["n_delays"][queue]
    delay = 0
    if n_delays > 0:
        drawn = uniform(
            state.settings.seed, state.work["pandaid"][job], attempt["number"][job], STARTUP
        )
        delay = places.delay[first + int(drawn * n_delays)]
    return int(attempt["ready"][job] + delay)


@compiled_in_place
def announce(state: State, job: int) -> None:
    """Let a job wait at its queue from its ready time on."""
    state.attempt["status"][job] = WAITING
    push(state.events, state.attempt["ready"][job], READY * KIND + job)


@compiled_in_place
def announce_all(state: State, jobs: IntArray) -> None:
    """Announce several jobs."""
    for job in jobs:
        announce(state, job)


@compiled_in_place
def _begin(state: State, job: int, now: int) -> None:
    """Start a job: when and how the attempt will end is known from here."""
    work, places, attempt = state.work, state.places, state.attempt
    queue = attempt["queue"][job]
    lasts, outcome = work["wall"][job], work["fate"][job]
    if work["peak_mb"][job] > min(attempt["limit_mb"][job], places.queues["maxrss"][queue]):
        drawn = uniform(state.settings.seed, work["pandaid"][job], attempt["number"][job], MEMORY)
        lasts, outcome = int(drawn * work["wall"][job]), KILLED_MEMORY
    limit = min(work["wall_limit"][job], places.queues["maxtime"][queue])
    if limit < lasts:
        lasts, outcome = limit, KILLED_WALLTIME
    attempt["status"][job], attempt["start"][job], attempt["outcome"][job] = RUNNING, now, outcome
    places.queues["in_use"][queue] += work["cores"][job]
    push(state.events, now + lasts, END * KIND + job)


@compiled_in_place
def _fill(state: State, queue: int, now: int) -> None:
    """Start what can start at a queue."""
    places, attempt, work = state.places, state.attempt, state.work
    n_widths = len(places.widths)
    while places.queues["in_use"][queue] < places.queues["slots"][queue]:
        free = places.queues["slots"][queue] - places.queues["in_use"][queue]
        first, line = -1, -1
        for width in range(n_widths):
            head = places.waiting[queue * n_widths + width]
            if head < 0 or places.pilots[queue * n_widths + width] == 0:
                continue
            if state.settings.first_fit and places.widths[width] > free:
                continue
            if first < 0 or goes_before(attempt, work, head, first):
                first, line = head, queue * n_widths + width
        if first < 0 or work["cores"][first] > free:
            return
        leave_line(attempt, work, places.waiting, line)
        places.pilots[line] -= 1
        _begin(state, first, now)


@compiled_in_place
def _finish(state: State, job: int, now: int) -> None:
    """End an attempt, write it down, and let a killed job try again."""
    attempt, log, settings = state.attempt, state.log, state.settings
    queue, outcome = attempt["queue"][job], attempt["outcome"][job]
    state.places.queues["in_use"][queue] -= state.work["cores"][job]
    place = state.events.counters[LOG]
    state.events.counters[LOG] += 1
    log["job"][place], log["number"][place], log["queue"][place] = (
        job,
        attempt["number"][job],
        queue,
    )
    log["ready"][place], log["start"][place] = attempt["ready"][job], attempt["start"][job]
    log["end"][place], log["outcome"][place] = now, outcome
    if outcome == FINISHED or attempt["number"][job] >= settings.attempts:
        attempt["status"][job] = DONE
        return
    if outcome == KILLED_MEMORY:
        limit = min(attempt["limit_mb"][job], state.places.queues["maxrss"][queue])
        for rung in settings.ladder_mb:
            if rung > limit:
                attempt["limit_mb"][job] = rung
                break
    attempt["number"][job] += 1
    attempt["ready"][job] = now
    if state.work["home"][job] < 0:
        attempt["status"][job], attempt["queue"][job] = UNPLACED, -1
    else:
        announce(state, job)


@compiled_in_place
def _fits(state: State, job: int) -> bool:
    """Tell whether a job can ever run at its queue; who cannot waits for ever, but holds nobody up."""
    most = state.places.queues["most_slots"][state.attempt["queue"][job]]
    return bool(state.work["cores"][job] <= most)


@compiled_in_place
def _happen(state: State, now: int, what: int) -> int:
    """Let an event happen; returns the queue where jobs may start now, -1 for none."""
    work, places = state.work, state.places
    kind, row = what // KIND, what % KIND
    if kind == CHANGE:
        queue = places.change_queue[row]
        places.queues["slots"][queue] = places.change_slots[row]
        return int(queue)
    if kind == PILOT:
        places.pilots[row] += 1
        return int(row // len(places.widths))
    queue = state.attempt["queue"][row]
    if kind == END:
        _finish(state, row, now)
        return int(queue)
    if _fits(state, row):
        join_line(state.attempt, work, places.waiting, _line(state, row), row)
        push(state.events, _comes(state, row), PILOT * KIND + _line(state, row))
    return -1


@compiled
def advance(state: State, until: int) -> None:
    """Let everything happen that happens before an instant."""
    places, events = state.places, state.events
    touched = np.empty(len(places.queues), np.int64)
    marked = np.zeros(len(places.queues), np.bool_)
    while events.counters[HEAP] > 0 and events.time[0] < until:
        now, n_touched = events.time[0], 0
        while events.counters[HEAP] > 0 and events.time[0] == now:
            queue = _happen(state, now, pop(events)[1])
            if queue >= 0 and not marked[queue]:
                marked[queue] = True
                touched[n_touched] = queue
                n_touched += 1
        for place in range(n_touched):
            queue = touched[place]
            marked[queue] = False
            _fill(state, queue, now)
    events.counters[CLOCK] = until


@compiled
def withdraw(state: State, jobs: IntArray, now: int) -> None:
    """Take waiting jobs back from their queues, and as many pilots, those that are there first; who is not yet ready out of the events."""
    places, attempt, events = state.places, state.attempt, state.events
    leaves = np.zeros(len(attempt), np.bool_)
    too_many = np.zeros(len(places.waiting), np.int64)
    lines = np.zeros(len(places.waiting), np.bool_)
    announced = False
    for job in jobs:
        leaves[job] = True
        if attempt["ready"][job] >= events.counters[CLOCK]:
            announced = True
        elif _fits(state, job):
            line = _line(state, job)
            lines[line] = True
            if places.pilots[line] > 0:
                places.pilots[line] -= 1
            else:
                too_many[line] += 1
    n_events = events.counters[HEAP] if announced or too_many.any() else 0
    if n_events > 0:
        events.counters[HEAP] = 0
    for place in range(n_events):  # the heap grows again behind the place that is read
        time, what = events.time[place], events.what[place]
        kind, row = what // KIND, what % KIND
        if kind == PILOT and too_many[row] > 0:
            too_many[row] -= 1
        elif kind != READY or not leaves[row]:
            push(events, time, what)
    for line in range(len(lines)):
        if lines[line]:
            thin_line(attempt, state.work, places.waiting, line, leaves)
    for job in jobs:
        attempt["status"][job], attempt["queue"][job] = UNPLACED, -1
        attempt["ready"][job] = now
        attempt["moves"][job] += 1
