"""A batch queue in steps, and in one go.

Source: workflows.md section 5.
"""

from __future__ import annotations

import math
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.archive.contracts._columns import f64
from brokerlab.compiled import compiled
from brokerlab.errors import ConfigError, DataError, nearest
from brokerlab.frames import polars_frame, prepared
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.workflows.batch import kernel
from brokerlab.workflows.batch.held import (
    STATUS,
    US,
    Priority,
    Simulation,
    check_ask,
    micros,
    results,
    seconds,
    status,
)
from brokerlab.workflows.batch.kernel import begin, complete, line_up, start_jobs
from brokerlab.workflows.batch.state import (
    CONSERVATIVE,
    DUE,
    EASY,
    EXACT,
    EXTRA,
    FCFS,
    FIRST,
    FREE,
    HOSTS,
    JOB,
    N_BACKGROUND,
    N_JOBS,
    N_RUNNING,
    NEVER,
    NEXT_ARRIVAL,
    NOBODY,
    NOW,
    OVERFULL,
    POLICY,
    REPLAY,
    RUNNING,
    SHADOW,
    WAITING,
    State,
    blank,
    earliest,
    join_line,
)
from brokerlab.workflows.load import LONGEST_S, BatchJobs, check_jobs

POLICIES = {
    "fcfs": FCFS,
    "easy": EASY,
    "conservative": CONSERVATIVE,
    "large_first": EASY,
    "small_first": EASY,
}
"""Names of the policies; the last two are EASY with another order of the line."""
_ORDERED = {"large_first": Priority("large"), "small_first": Priority("small")}
_SPARE = 512
"""Jobs submitted by hand that there is room for at first; for more, all jobs of the load are copied once more."""


def start(
    background: Any = None,
    *,
    hosts: int,
    policy: str = "easy",
    priority: Priority | None = None,
    replay: bool = False,
) -> Simulation:
    """Make the queue of a machine, before the first job of its background load (workflows.md section 5).

    ``background``, one row per job: ``job_id`` (unique), ``submit_s, run_s, requested_s`` [s], ``hosts``; equal submissions keep the
    order of the rows; None: an empty machine. ``policy``: ``fcfs``, ``easy``, ``conservative``; ``large_first, small_first``: EASY in the
    order of a ``priority`` of size and waiting time (None: a day's wait for the whole machine). With ``replay`` jobs start at their
    ``start_s`` [s]. An unknown policy, a priority that is another one's, or no host are a ConfigError; missing columns, other types
    and nulls a SchemaError; values that no job can have, and jobs wider than the machine, a DataError.
    """
    order = _order(policy, priority, hosts)
    if replay and background is not None:
        background = _replay(background)
    jobs = check_jobs(background, hosts).sort("submit_s", maintain_order=True)
    table = np.zeros(len(jobs) + _SPARE, JOB)
    for name, column in (("submit", "submit_s"), ("request", "requested_s"), ("run", "run_s")):
        table[name][: len(jobs)] = np.round(jobs[column].to_numpy() * US)
    table["hosts"][: len(jobs)] = jobs["hosts"].to_numpy()
    if order is not None:
        table["key"] = table["submit"] - order.earlier_us(table["hosts"], hosts)
    state = blank(table, len(jobs), hosts, POLICIES[policy])
    state.counters[REPLAY] = replay
    return Simulation(state, jobs["job_id"], order)


def advance(sim: Simulation, until_s: float | None = None, *, watch: bool = False) -> float:
    """Let everything happen before an instant, and at it what ends then.

    At the instant itself submissions and starts are still to come: `release` and `cancel` first, then `arrive`,
    `submit`, and `settle`; or the next `advance`, which does what is left.

    ``until_s`` [s] is the instant; None: until nothing happens any more. ``watch`` stops early where a job submitted by hand starts or
    ends: after an end the submissions of that instant are still to come, after a start it is settled. Returned is the instant
    reached [s]. An instant that is past, or none, is a ConfigError, a replayed log that needs more hosts than there are a DataError.
    """
    if until_s is not None and not abs(until_s) < NEVER / US:
        raise ConfigError(f"until_s: {until_s}, allowed: a number of seconds; None: to the end")
    until = NEVER if until_s is None else micros(until_s)
    if until < sim.state.counters[NOW]:
        raise ConfigError(f"until_s: {until_s} is before the present instant {sim.now_s}")
    sim.ahead = None
    kernel.advance(sim.state, until, watch)
    _check_full(sim)
    return sim.now_s


def arrive(sim: Simulation) -> None:
    """Compress reservations where jobs have just ended, and submit the background of this instant.

    Jobs released after this count as released after those submissions.
    """
    sim.ahead = None
    kernel.arrive(sim.state)
    _check_full(sim)


def settle(sim: Simulation) -> None:
    """Bring the present instant to its end: submissions still to come, then the starts."""
    sim.ahead = None
    kernel.settle(sim.state)
    _check_full(sim)


def submit(sim: Simulation, hosts: int, requested_s: float, run_s: float | None = None) -> int:
    """Submit a job now, behind the background of this instant.

    It needs ``hosts``, is killed after ``requested_s`` [s] and lasts ``run_s`` [s] if nothing ends it; None: to its limit, or
    until `release`. Impossible values, or no instant yet, are a ConfigError.
    """
    check_ask(sim, hosts, requested_s)
    lasts = requested_s if run_s is None else run_s
    if not 0 <= lasts <= LONGEST_S:
        raise ConfigError(f"run_s: {run_s}, allowed: 0 to {LONGEST_S:g}")
    if sim.state.counters[N_JOBS] == len(sim.state.jobs):
        sim.state = _grown(sim.state)
    sim.ahead, wide = None, int(hosts)
    number = kernel.submit(sim.state, wide, micros(requested_s), micros(lasts), _key(sim, wide))
    _check_full(sim)
    return number


def cancel(sim: Simulation, number: int) -> None:
    """Take a waiting job out of the queue."""
    _expect(sim, number, WAITING)
    sim.ahead = None
    kernel.cancel(sim.state, number)


def release(sim: Simulation, number: int) -> None:
    """End a running job now; its hosts are free at once."""
    _expect(sim, number, RUNNING)
    sim.ahead = None
    kernel.release(sim.state, number)


def next_event(sim: Simulation) -> float:
    """Tell when something happens next by itself."""
    return seconds(kernel.next_event(sim.state))


def run(
    jobs: Any, *, hosts: int, policy: str = "easy", priority: Priority | None = None
) -> pl.DataFrame:
    """Simulate a log from its first job to its last.

    Args:
        jobs: As for `start`.
        hosts: Identical hosts of the machine.
        policy: As for `start`.
        priority: As for `start`.

    Returns:
        One row per job, in the order of submission: ``job_id, submit_s, run_s, requested_s, hosts, start_s, end_s,
        wait_s`` [s], ``killed`` (at its limit).

    Raises:
        ConfigError, SchemaError, DataError: As `start`.

    Source: workflows.md section 5.

    Example:
        >>> import polars as pl
        >>> jobs = pl.DataFrame({"job_id": ["A", "B", "C"], "submit_s": [0, 1, 2], "run_s": [100, 50, 90],
        ...                      "requested_s": [100, 50, 98], "hosts": [6, 8, 4]})
        >>> run(jobs, hosts=10, policy="easy")["start_s"].to_list()
        [0.0, 100.0, 2.0]
    """
    sim = start(jobs, hosts=hosts, policy=policy, priority=priority)
    advance(sim)
    return results(sim)


def run_asking(sim: Simulation, since_s: float = -math.inf) -> FloatArray:
    """Let a queue that has not begun run to its end, and estimate the start of each job just before it is submitted.

    One estimate per job of the background [s], in the order of submission, as `estimate_start`; infinite for jobs submitted
    before ``since_s`` [s], for which nobody asked.
    """
    asked = _run_asking(sim.state, micros(max(since_s, -NEVER / US)))
    return np.where(asked == NEVER, math.inf, asked / US)


def _order(policy: str, priority: Priority | None, hosts: int) -> Priority | None:
    """Return the order of the line that a policy stands for; None: that of submission."""
    problems = []
    if policy not in POLICIES:
        problems.append(f"policy: unknown '{policy}': {nearest(policy, POLICIES)}")
    if not isinstance(hosts, int | np.integer) or hosts < 1:
        problems.append(f"hosts: {hosts}, the machine needs a whole number of them, at least 1")
    order = _ORDERED.get(policy)
    if priority is not None and (order is None or priority.favour != order.favour):
        problems.append(f"priority: policy '{policy}' has none that favours {priority.favour} jobs")
    if problems:
        raise ConfigError("; ".join(problems))
    return priority or order


class _Started(dy.Schema):
    """What a replayed log needs of every job, beside `BatchJobs`."""

    start_s = f64("when it started", "s", required=True)


def _replay(jobs: Any) -> pl.DataFrame:
    """Return jobs that are submitted when they started."""
    started = prepared({"jobs": jobs}, {"jobs": _Started})["jobs"]
    return polars_frame(jobs, BatchJobs).with_columns(submit_s=started["start_s"])


def _check_full(sim: Simulation) -> None:
    """Refuse to go on with more hosts in use than there are."""
    if sim.state.counters[OVERFULL]:
        raise DataError(
            f"replayed jobs need {sim.hosts - sim.free_hosts} hosts at {sim.now_s} s, the machine has {sim.hosts}: "
            "give it more hosts, or let the policy start the jobs (replay=False)"
        )


def _grown(state: State) -> State:
    """Return the same state with room for more jobs submitted by hand."""
    more = len(state.jobs) - int(state.counters[N_BACKGROUND])
    table = np.concatenate([state.jobs, np.zeros(more, JOB)])
    counters = state.counters
    larger = blank(table, int(counters[N_BACKGROUND]), int(counters[HOSTS]), int(counters[POLICY]))
    for old, new in zip(state[1:], larger[1:], strict=True):
        new[: len(old)] = old
    return larger


def _expect(sim: Simulation, number: int, wanted: int) -> None:
    """Refuse to act on a job that is something else."""
    result = status(sim, number)
    if result != STATUS[wanted]:
        raise ConfigError(f"job {number} is {result}, not {STATUS[wanted]}")


def estimate_start(sim: Simulation, hosts: int, requested_s: float) -> float:
    """Estimate when a job submitted now would start; asking changes nothing.

    The queue is carried forward under its policy, every job lasting its whole request, without later arrivals. Under
    ``fcfs`` and ``conservative`` the real start is no later, under ``easy`` it may be.

    Source: workflows.md section 4.1.
    """
    check_ask(sim, hosts, requested_s)
    wide, request = int(hosts), micros(requested_s)
    if kernel.has_arrivals(sim.state):
        sim = sim.copy()
        kernel.arrive(sim.state)
    if sim.state.counters[POLICY] == CONSERVATIVE:
        return earliest(sim.state, wide, request, NEVER) / US
    if sim.priority is not None:
        return _start_in_line(sim.state, wide, request, _key(sim, wide)) / US
    if sim.ahead is None:
        sim.ahead = passes(sim.state)
    return _start_behind(sim.ahead, wide, request) / US


def _key(sim: Simulation, hosts: int) -> int:
    """Return the place in the line of a job submitted now."""
    if sim.priority is None:
        return 0
    earlier = sim.priority.earlier_us(np.array([hosts]), sim.hosts)[0]
    return int(sim.state.counters[NOW] - earlier)


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
    copy.counters[EXACT] = 1
    running = state.limit_job if counters[POLICY] == EASY and not counters[EXACT] else state.end_job
    for row in range(counters[N_RUNNING]):
        job = running[row]
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
def _start_behind(left: IntArray, hosts: int, request: int) -> int:
    """Tell when a job at the end of the line would start."""
    place = 0
    while hosts > left[place, HOSTS_FREE] or (
        left[place, TIME] + request > left[place, IN_TIME] and hosts > left[place, BESIDE]
    ):
        place += 1
    return int(left[place, TIME])


@compiled
def _start_in_line(state: State, hosts: int, request: int, key: int) -> int:
    """Tell when a job would start that stands in the line by its key: who is behind it may start later for it."""
    copy = _forward(state, 1)
    jobs, counters = copy.jobs, copy.counters
    row = len(jobs) - 1
    jobs["hosts"][row], jobs["key"][row] = hosts, key
    jobs["request"][row] = jobs["run"][row] = request
    line_up(copy, row)
    while True:
        start_jobs(copy)
        if jobs["status"][row] != WAITING:
            return int(jobs["start"][row])
        complete(copy)
        if not counters[DUE]:
            counters[NOW] = copy.end_time[counters[N_RUNNING] - 1]
            complete(copy)


@compiled
def _run_asking(state: State, since: int) -> IntArray:
    """Do what `run_asking` does; `NEVER` where nobody asked."""
    jobs, counters = state.jobs, state.counters
    last = counters[N_BACKGROUND]
    result = np.full(last, NEVER)
    for job in range(last):
        counters[N_BACKGROUND] = job  # nobody knows of those that come later
        kernel.advance(state, jobs["submit"][job], False)  # noqa: FBT003
        kernel.arrive(state)
        if jobs["submit"][job] < since:
            continue
        hosts, request, key = jobs["hosts"][job], jobs["request"][job], jobs["key"][job]
        if counters[POLICY] == CONSERVATIVE:
            result[job] = earliest(state, hosts, request, NEVER)
        else:
            result[job] = _start_in_line(state, hosts, request, key)
    counters[N_BACKGROUND] = last
    kernel.advance(state, NEVER, False)  # noqa: FBT003
    return result
