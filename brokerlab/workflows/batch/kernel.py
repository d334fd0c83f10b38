"""The event loop of a batch queue, compiled.

At one instant, in this order: ends and releases; under conservative backfilling one compression pass; submissions, the
background's first; one scheduling pass. A job of length 0 ends in the same instant and brings a further round.

Source: workflows.md section 5.
"""

from __future__ import annotations

from brokerlab.compiled import compiled_in_place
from brokerlab.workflows.batch.state import (
    CANCELLED,
    CONSERVATIVE,
    DUE,
    EASY,
    ENDED,
    EXACT,
    EXTRA,
    FCFS,
    FINISHED,
    FIRST,
    FREE,
    FRESH,
    KILLED,
    LOOSE,
    N_BACKGROUND,
    N_JOBS,
    N_LIMITS,
    N_LOGGED,
    N_RUNNING,
    NEVER,
    NEXT_ARRIVAL,
    NEXT_START,
    NOBODY,
    NOW,
    OVERFULL,
    POLICY,
    RELEASED,
    REPLAY,
    RESCAN,
    RUNNING,
    SHADOW,
    STARTED,
    VACATED,
    WAITING,
    State,
    compress,
    enter,
    forget_past,
    join_line,
    leave,
    leave_line,
    reserve,
    take,
)


@compiled_in_place
def _log(state: State, job: int, what: int) -> None:
    """Write down what happened to a job submitted by hand."""
    if job >= state.counters[N_BACKGROUND]:
        state.log[state.counters[N_LOGGED]] = 2 * job + what
        state.counters[N_LOGGED] += 1


@compiled_in_place
def begin(state: State, job: int, lasts: int) -> None:
    """Start a waiting job now; it will end by itself after some time."""
    jobs, counters = state.jobs, state.counters
    now = counters[NOW]
    leave_line(jobs, counters, job)
    jobs["status"][job], jobs["start"][job] = RUNNING, now
    counters[FREE] -= jobs["hosts"][job]
    if counters[FREE] < 0:
        counters[OVERFULL] = 1
    enter(state.end_time, state.end_job, counters[N_RUNNING], now + lasts, job)
    counters[N_RUNNING] += 1
    if counters[POLICY] == EASY and not counters[EXACT]:
        limit = now + jobs["request"][job]
        enter(state.limit_time, state.limit_job, counters[N_LIMITS], limit, job)
        counters[N_LIMITS] += 1
    _log(state, job, STARTED)


@compiled_in_place
def _vacate(state: State, job: int, status: int) -> None:
    """End a running job now; its hosts are free at once."""
    jobs, counters = state.jobs, state.counters
    now, limit = counters[NOW], jobs["start"][job] + jobs["request"][job]
    jobs["status"][job], jobs["end"][job] = status, now
    counters[FREE] += jobs["hosts"][job]
    counters[DUE] = counters[RESCAN] = counters[VACATED] = 1
    if counters[POLICY] == EASY and not counters[EXACT]:
        leave(state.limit_time, state.limit_job, counters[N_LIMITS], job)
        counters[N_LIMITS] -= 1
    if counters[POLICY] == CONSERVATIVE and now < limit:
        take(state, now, limit, -jobs["hosts"][job])
        counters[LOOSE] = 1
    _log(state, job, ENDED)


@compiled_in_place
def complete(state: State) -> None:
    """End the running jobs whose time has come."""
    jobs, counters = state.jobs, state.counters
    while counters[N_RUNNING] and state.end_time[counters[N_RUNNING] - 1] <= counters[NOW]:
        counters[N_RUNNING] -= 1
        job = state.end_job[counters[N_RUNNING]]
        _vacate(state, job, KILLED if jobs["request"][job] < jobs["run"][job] else FINISHED)


@compiled_in_place
def release(state: State, job: int) -> None:
    """End a running job before its time."""
    counters = state.counters
    leave(state.end_time, state.end_job, counters[N_RUNNING], job)
    counters[N_RUNNING] -= 1
    _vacate(state, job, RELEASED)


@compiled_in_place
def cancel(state: State, job: int) -> None:
    """Take a waiting job out of the line."""
    jobs, counters = state.jobs, state.counters
    leave_line(jobs, counters, job)
    jobs["status"][job], jobs["end"][job] = CANCELLED, counters[NOW]
    counters[DUE] = counters[RESCAN] = counters[VACATED] = 1
    if counters[POLICY] == CONSERVATIVE and jobs["request"][job] > 0:
        reserved = jobs["reserved"][job]
        take(state, reserved, reserved + jobs["request"][job], -jobs["hosts"][job])
        counters[LOOSE] = 1


@compiled_in_place
def line_up(state: State, job: int) -> None:
    """Let a job wait from now on."""
    jobs, counters = state.jobs, state.counters
    jobs["status"][job] = WAITING
    join_line(jobs, counters, job)
    counters[DUE] = 1
    if jobs["behind"][job] != NOBODY:
        counters[RESCAN] = 1
    elif counters[FRESH] == NOBODY:
        counters[FRESH] = job
    if counters[POLICY] == CONSERVATIVE:
        reserve(state, job)


@compiled_in_place
def _force(state: State, job: int) -> None:
    """Start a job of a replayed log, whoever waits."""
    jobs, counters = state.jobs, state.counters
    request = jobs["request"][job]
    join_line(jobs, counters, job)
    begin(state, job, min(jobs["run"][job], request))
    counters[DUE] = counters[RESCAN] = 1
    if counters[POLICY] == CONSERVATIVE:
        take(state, counters[NOW], counters[NOW] + request, jobs["hosts"][job])


@compiled_in_place
def arrive(state: State) -> None:
    """Compress the reservations where jobs ended, then submit the background that comes now."""
    jobs, counters = state.jobs, state.counters
    if counters[VACATED] and counters[POLICY] == CONSERVATIVE:
        compress(state)
    counters[VACATED] = 0
    while counters[NEXT_ARRIVAL] < counters[N_BACKGROUND]:
        job = counters[NEXT_ARRIVAL]
        if jobs["submit"][job] > counters[NOW]:
            return
        counters[NEXT_ARRIVAL] += 1
        if counters[REPLAY]:
            _force(state, job)
        else:
            line_up(state, job)


@compiled_in_place
def submit(state: State, hosts: int, request: int, run: int, key: int) -> int:
    """Let a job wait behind the background that comes now; there is a row left for it."""
    arrive(state)
    jobs, counters = state.jobs, state.counters
    job = counters[N_JOBS]
    counters[N_JOBS] += 1
    jobs["submit"][job], jobs["hosts"][job] = counters[NOW], hosts
    jobs["request"][job], jobs["run"][job], jobs["key"][job] = request, run, key
    line_up(state, job)
    return int(job)


@compiled_in_place
def _start_reserved(state: State) -> None:
    """Start the jobs whose reservation has come."""
    jobs, counters = state.jobs, state.counters
    if counters[NEXT_START] > counters[NOW]:
        return
    counters[NEXT_START] = NEVER
    job = counters[FIRST]
    while job != NOBODY:
        hosts, request = jobs["hosts"][job], jobs["request"][job]
        come = jobs["reserved"][job] <= counters[NOW]
        if come and hosts <= counters[FREE]:
            begin(state, job, min(jobs["run"][job], request))
        else:
            if come and (not request or counters[REPLAY]):
                # nothing holds a place of no length, nor any place against a replayed log: others may be there
                take(state, counters[NOW], jobs["reserved"][job] + request, -hosts)
                reserve(state, job)
            counters[NEXT_START] = min(counters[NEXT_START], jobs["reserved"][job])
        job = jobs["behind"][job]


@compiled_in_place
def _find_shadow(state: State, head: int) -> None:
    """Find when the blocked head can start at the latest, and what it leaves free then."""
    jobs, counters = state.jobs, state.counters
    free, place, times, members = (
        counters[FREE],
        counters[N_LIMITS],
        state.limit_time,
        state.limit_job,
    )
    if counters[EXACT]:
        place, times, members = counters[N_RUNNING], state.end_time, state.end_job
    while free < jobs["hosts"][head]:
        place -= 1
        free += jobs["hosts"][members[place]]
    shadow = times[place]
    while place and times[place - 1] == shadow:
        place -= 1
        free += jobs["hosts"][members[place]]
    counters[SHADOW], counters[EXTRA] = shadow, free - jobs["hosts"][head]


@compiled_in_place
def _backfill(state: State, job: int) -> None:
    """Start what does not delay the head, from a job of the line on."""
    jobs, counters = state.jobs, state.counters
    now = counters[NOW]
    while job != NOBODY and counters[FREE]:
        hosts, request = jobs["hosts"][job], jobs["request"][job]
        if hosts <= counters[FREE]:
            in_time = now + request <= counters[SHADOW]
            if in_time or hosts <= counters[EXTRA]:
                begin(state, job, min(jobs["run"][job], request))
                if not in_time:
                    counters[EXTRA] -= hosts
        job = jobs["behind"][job]


@compiled_in_place
def _start_in_order(state: State) -> None:
    """Start the head while it fits; under EASY backfill behind it.

    While no job ends and the line changes at its end only, shadow and extra are those of the last pass, and who could
    not start then cannot now: only who is new is looked at.
    """
    jobs, counters = state.jobs, state.counters
    head, fresh = counters[FIRST], counters[FRESH]
    counters[FRESH] = NOBODY
    if not counters[RESCAN] and head != fresh:
        if counters[POLICY] == EASY:
            _backfill(state, fresh)
        return
    counters[RESCAN] = 0
    while head != NOBODY and jobs["hosts"][head] <= counters[FREE]:
        begin(state, head, min(jobs["run"][head], jobs["request"][head]))
        head = counters[FIRST]
    if head != NOBODY and counters[POLICY] != FCFS:
        _find_shadow(state, head)
        _backfill(state, jobs["behind"][head])


@compiled_in_place
def start_jobs(state: State) -> None:
    """Make one scheduling pass."""
    if state.counters[POLICY] == CONSERVATIVE:
        _start_reserved(state)
    elif state.counters[DUE]:
        _start_in_order(state)
    state.counters[DUE] = 0


@compiled_in_place
def settle(state: State) -> None:
    """Bring the present instant to its end: submissions, scheduling, and again while jobs of length 0 end."""
    counters = state.counters
    while True:
        arrive(state)
        start_jobs(state)
        complete(state)
        if not counters[DUE]:
            return


@compiled_in_place
def next_event(state: State) -> int:
    """Tell when something happens next by itself; now if the present instant is not at its end."""
    counters = state.counters
    if counters[DUE] or counters[VACATED]:
        return int(counters[NOW])
    time = NEVER
    if counters[NEXT_ARRIVAL] < counters[N_BACKGROUND]:
        time = state.jobs["submit"][counters[NEXT_ARRIVAL]]
    if counters[N_RUNNING]:
        time = min(time, state.end_time[counters[N_RUNNING] - 1])
    if counters[POLICY] == CONSERVATIVE:
        time = min(time, counters[NEXT_START])
    return int(max(time, counters[NOW]))


@compiled_in_place
def advance(state: State, until: int, watch: bool) -> None:  # noqa: FBT001
    """Let everything happen before an instant, and at it what ends then; stop early where a watched job starts or ends.

    An early stop for an end is before the submissions of that instant, one for a start is at the end of the instant.
    """
    counters = state.counters
    seen = counters[N_LOGGED]
    while next_event(state) < until and not counters[OVERFULL]:
        counters[NOW] = next_event(state)
        forget_past(state)
        complete(state)
        if watch and counters[N_LOGGED] > seen:
            return
        settle(state)
        if watch and counters[N_LOGGED] > seen:
            return
    if counters[NOW] < until < NEVER:
        counters[NOW] = until
        forget_past(state)
        complete(state)


@compiled_in_place
def has_arrivals(state: State) -> bool:
    """Tell whether compression or submissions of this instant are still to come."""
    counters, coming = state.counters, state.counters[NEXT_ARRIVAL]
    return bool(
        (counters[VACATED] and counters[POLICY] == CONSERVATIVE)
        or (coming < counters[N_BACKGROUND] and state.jobs["submit"][coming] <= counters[NOW])
    )
