"""When a job submitted now would start, if every job lasted its whole request and nobody else came."""

from __future__ import annotations

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import IntArray
from brokerlab.workflows.batch.kernel import begin, complete, line_up, start_jobs
from brokerlab.workflows.batch.lists import join_line
from brokerlab.workflows.batch.profile import earliest
from brokerlab.workflows.batch.state import (
    CONSERVATIVE,
    DUE,
    EXTRA,
    FCFS,
    FIRST,
    FREE,
    HOSTS,
    JOB,
    N_RUNNING,
    NEVER,
    NEXT_ARRIVAL,
    NOBODY,
    NOW,
    POLICY,
    SHADOW,
    WAITING,
    State,
    blank,
)

TIME, HOSTS_FREE, IN_TIME, BESIDE = range(4)
"""Columns of a pass: when; free hosts after it; a job starts if it ends by then, or if it needs no more hosts."""


@compiled
def _forward(state: State, n_more: int) -> State:
    """Copy what runs and waits, with every job lasting its whole request, and room for more jobs."""
    jobs, counters = state.jobs, state.counters
    waiting, job = 0, counters[FIRST]
    while job != NOBODY:
        waiting, job = waiting + 1, jobs["behind"][job]
    n_jobs = counters[N_RUNNING] + waiting
    room = n_jobs + n_more
    copy = blank(np.zeros(room, JOB), room, counters[HOSTS], counters[POLICY])
    copy.counters[NOW], copy.counters[NEXT_ARRIVAL] = counters[NOW], room
    for row in range(counters[N_RUNNING]):
        job = state.end_job[row]
        left = jobs["start"][job] + jobs["request"][job] - counters[NOW]
        copy.jobs["hosts"][row] = jobs["hosts"][job]
        copy.jobs["request"][row] = copy.jobs["run"][row] = left
        join_line(copy.jobs, copy.counters, row)
        begin(copy, row, left)
    job = counters[FIRST]
    for row in range(counters[N_RUNNING], n_jobs):
        copy.jobs["hosts"][row] = jobs["hosts"][job]
        copy.jobs["request"][row] = copy.jobs["run"][row] = jobs["request"][job]
        copy.jobs["key"][row] = jobs["key"][job]
        line_up(copy, row)
        job = jobs["behind"][job]
    copy.counters[DUE] = 1
    return copy


@compiled
def passes(state: State) -> IntArray:
    """Carry the queue forward until it is empty: what each scheduling pass leaves to a job at the end of the line.

    Such a job changes nobody else's start, so one forward run answers for jobs of every size. Not for conservative
    backfilling, whose profile is the answer.
    """
    copy = _forward(state, 0)
    counters = copy.counters
    left = np.empty((2 * len(copy.jobs) + 2, 4), np.int64)
    n_passes = 0
    while True:
        start_jobs(copy)
        left[n_passes, TIME], left[n_passes, HOSTS_FREE] = counters[NOW], counters[FREE]
        left[n_passes, IN_TIME], left[n_passes, BESIDE] = counters[SHADOW], counters[EXTRA]
        if counters[FIRST] == NOBODY:
            left[n_passes, IN_TIME] = NEVER
        elif counters[POLICY] == FCFS:
            left[n_passes, IN_TIME], left[n_passes, BESIDE] = -NEVER, 0
        n_passes += 1
        complete(copy)
        if counters[DUE]:
            continue
        if not counters[N_RUNNING]:
            return left[:n_passes]
        counters[NOW] = copy.end_time[counters[N_RUNNING] - 1]
        complete(copy)


@compiled
def starts(state: State, left: IntArray, hosts: IntArray, requests: IntArray) -> IntArray:
    """Tell when jobs would start, each asked for by itself."""
    result = np.empty(len(hosts), np.int64)
    for ask in range(len(hosts)):
        if state.counters[POLICY] == CONSERVATIVE:
            result[ask] = earliest(state, hosts[ask], requests[ask], NEVER)
            continue
        place = 0
        while hosts[ask] > left[place, HOSTS_FREE] or (
            left[place, TIME] + requests[ask] > left[place, IN_TIME]
            and hosts[ask] > left[place, BESIDE]
        ):
            place += 1
        result[ask] = left[place, TIME]
    return result


@compiled
def starts_in_line(state: State, hosts: IntArray, requests: IntArray, keys: IntArray) -> IntArray:
    """Tell when jobs would start that do not go to the end of the line, each asked for by itself.

    Who stands behind such a job may start later for it, so the queue is carried forward for each anew.
    """
    result = np.empty(len(hosts), np.int64)
    for ask in range(len(hosts)):
        copy = _forward(state, 1)
        jobs, counters = copy.jobs, copy.counters
        row = len(jobs) - 1
        jobs["hosts"][row], jobs["key"][row] = hosts[ask], keys[ask]
        jobs["request"][row] = jobs["run"][row] = requests[ask]
        line_up(copy, row)
        while jobs["status"][row] == WAITING:
            start_jobs(copy)
            result[ask] = counters[NOW]
            complete(copy)
            if not counters[DUE]:
                counters[NOW] = copy.end_time[counters[N_RUNNING] - 1]
                complete(copy)
    return result
