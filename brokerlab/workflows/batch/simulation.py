"""A batch queue in steps, and in one go.

Source: workflow-batch-scheduling.md sections 4.1 and 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.workflows.batch import kernel, outlook
from brokerlab.workflows.batch.state import (
    CONSERVATIVE,
    EASY,
    FCFS,
    FINISHED,
    FREE,
    HOSTS,
    JOB,
    KILLED,
    N_BACKGROUND,
    N_JOBS,
    N_LOGGED,
    NEVER,
    NOW,
    POLICY,
    RELEASED,
    RUNNING,
    WAITING,
    State,
    blank,
)
from brokerlab.workflows.load import checked_jobs

POLICIES = {"fcfs": FCFS, "easy": EASY, "conservative": CONSERVATIVE}
"""Names of the policies."""
STATUS = ("future", "waiting", "running", "finished", "killed", "cancelled", "released")
"""Names of what a job can be."""

_STARTED = (RUNNING, FINISHED, KILLED, RELEASED)
_US = 1_000_000
_SPARE = 64


@dataclass
class Simulation:
    """A batch queue at an instant; made by `start`, changed by the functions of this module.

    Attributes:
        state: The arrays of the compiled loop.
        job_ids: Names of the background's jobs, in the order of their rows.
        told: Entries of the log that `changes` has told.
        ahead: The queue carried forward from the present state, once somebody asked.
    """

    state: State
    job_ids: pl.Series
    told: int = 0
    ahead: IntArray | None = field(default=None, repr=False)

    def copy(self) -> Simulation:
        """Return an independent queue in the same state: warm up once, go on many times."""
        jobs, *others = self.state
        state = State(jobs.copy(), *(array.copy() for array in others))
        return Simulation(state, self.job_ids, self.told)

    @property
    def now_s(self) -> float:
        """The present instant [s]; minus infinity before the first `advance`."""
        return _seconds(int(self.state.counters[NOW]))

    @property
    def free_hosts(self) -> int:
        """Hosts free now."""
        return int(self.state.counters[FREE])


def start(background: Any = None, *, hosts: int, policy: str = "easy") -> Simulation:
    """Make the queue of a machine, before the first job of its background load.

    Args:
        background: One row per job: ``job_id`` (unique), ``submit_s``, ``run_s``, ``requested_s`` [s], ``hosts``. Equal
            submissions keep the order of the rows. None: an empty machine.
        hosts: Identical hosts of the machine.
        policy: ``"fcfs"``, ``"easy"`` or ``"conservative"``.

    Returns:
        The queue, for `advance`.

    Raises:
        ConfigError: Unknown policy, or no host.
        SchemaError: Missing columns, other types, nulls.
        DataError: Values that no job can have; jobs wider than the machine.

    Source:
        workflow-batch-scheduling.md section 5.
    """
    if policy not in POLICIES:
        raise ConfigError(f"policy: unknown '{policy}': {nearest(policy, POLICIES)}")
    if hosts < 1:
        raise ConfigError(f"hosts: {hosts}, the machine needs at least 1")
    jobs = checked_jobs(background, hosts).sort("submit_s", maintain_order=True)
    table = np.zeros(len(jobs) + _SPARE, JOB)
    for name, column in (("submit", "submit_s"), ("request", "requested_s"), ("run", "run_s")):
        table[name][: len(jobs)] = np.round(jobs[column].to_numpy() * _US)
    table["hosts"][: len(jobs)] = jobs["hosts"].to_numpy()
    return Simulation(blank(table, len(jobs), hosts, POLICIES[policy]), jobs["job_id"])


def advance(sim: Simulation, until_s: float | None = None, *, watch: bool = False) -> float:
    """Let everything happen before an instant, and at it what ends then.

    At the instant itself submissions and starts are still to come: `release` and `cancel` first, then `arrive`,
    `submit`, and `settle`; or the next `advance`, which does what is left.

    Args:
        sim: The queue.
        until_s: The instant [s]; None: until nothing happens any more.
        watch: Stop early where a job submitted by hand starts or ends. After an end the submissions of that instant
            are still to come, after a start the instant is settled.

    Returns:
        The instant reached [s].

    Raises:
        ConfigError: The instant is past.
    """
    until = NEVER if until_s is None else _micros(until_s)
    if until < sim.state.counters[NOW]:
        raise ConfigError(f"until_s: {until_s} is before the present instant {sim.now_s}")
    sim.ahead = None
    kernel.advance(sim.state, until, watch)
    return sim.now_s


def arrive(sim: Simulation) -> None:
    """Compress reservations where jobs have just ended, and submit the background of this instant.

    Jobs released after this count as released after those submissions.
    """
    sim.ahead = None
    kernel.arrive(sim.state)


def settle(sim: Simulation) -> None:
    """Bring the present instant to its end: submissions still to come, then the starts."""
    sim.ahead = None
    kernel.settle(sim.state)


def submit(sim: Simulation, hosts: int, requested_s: float, run_s: float | None = None) -> int:
    """Submit a job now, behind the background of this instant.

    Args:
        sim: The queue, advanced to an instant.
        hosts: Hosts it needs.
        requested_s: Its limit: it is killed then [s].
        run_s: How long it lasts if nothing ends it [s]; None: to its limit, or until `release`.

    Returns:
        Its number.

    Raises:
        ConfigError: Impossible values, or no instant yet.
    """
    _check_ask(sim, np.array([hosts]), np.array([requested_s]))
    lasts = requested_s if run_s is None else run_s
    if not 0 <= lasts < math.inf:
        raise ConfigError(f"run_s: {run_s}, allowed: a number of seconds >= 0")
    arrive(sim)
    if sim.state.counters[N_JOBS] == len(sim.state.jobs):
        sim.state = _grown(sim.state)
    number = int(sim.state.counters[N_JOBS])
    sim.state.counters[N_JOBS] += 1
    job = sim.state.jobs[number]
    job["submit"], job["hosts"] = sim.state.counters[NOW], hosts
    job["request"], job["run"] = _micros(requested_s), _micros(lasts)
    kernel.line_up(sim.state, number)
    return number


def cancel(sim: Simulation, number: int) -> None:
    """Take a waiting job out of the queue.

    Raises:
        ConfigError: It does not wait.
    """
    _expect(sim, number, WAITING)
    sim.ahead = None
    kernel.cancel(sim.state, number)


def release(sim: Simulation, number: int) -> None:
    """End a running job now; its hosts are free at once.

    Raises:
        ConfigError: It does not run.
    """
    _expect(sim, number, RUNNING)
    sim.ahead = None
    kernel.release(sim.state, number)


def estimate_start(sim: Simulation, hosts: int, requested_s: float) -> float:
    """Estimate when a job submitted now would start; asking changes nothing.

    The queue is carried forward under its policy, every job lasting its whole request, without later arrivals. Under
    ``fcfs`` and ``conservative`` the real start is no later, under ``easy`` it may be.

    Args:
        sim: The queue, advanced to an instant.
        hosts: Hosts it would need.
        requested_s: Its limit [s].

    Returns:
        The instant [s].

    Raises:
        ConfigError: Impossible values, or no instant yet.

    Source:
        workflow-batch-scheduling.md section 4.1.
    """
    return float(estimate_starts(sim, [hosts], [requested_s])[0])


def estimate_starts(sim: Simulation, hosts: Any, requested_s: Any) -> FloatArray:
    """Estimate starts of several jobs, each as if it alone were submitted now.

    Args:
        sim: The queue, advanced to an instant.
        hosts: (n,) hosts.
        requested_s: (n,) limits [s].

    Returns:
        (n,) instants [s].

    Raises:
        ConfigError: Impossible values, or no instant yet.
    """
    wide, long = np.asarray(hosts, np.int64), np.asarray(requested_s, np.float64)
    _check_ask(sim, wide, long)
    if kernel.has_arrivals(sim.state):
        sim = sim.copy()
        arrive(sim)
    if sim.ahead is None:
        conservative = sim.state.counters[POLICY] == CONSERVATIVE
        sim.ahead = np.empty((0, 4), np.int64) if conservative else outlook.passes(sim.state)
    requests = np.round(long * _US).astype(np.int64)
    return outlook.starts(sim.state, sim.ahead, wide, requests) / _US


def next_event(sim: Simulation) -> float:
    """Tell when something happens next by itself.

    Returns:
        The instant [s]: the present one while it is not settled, infinity if nothing happens any more.
    """
    return _seconds(kernel.next_event(sim.state))


def changes(sim: Simulation) -> list[tuple[int, str]]:
    """Return what happened to jobs submitted by hand since this was last asked.

    Returns:
        (number, ``"started"`` or ``"ended"``), in order.
    """
    log = sim.state.log[sim.told : sim.state.counters[N_LOGGED]].tolist()
    sim.told += len(log)
    return [(entry // 2, ("started", "ended")[entry % 2]) for entry in log]


def status(sim: Simulation, number: int) -> str:
    """Return what a job is now: one of `STATUS`."""
    return STATUS[int(_job(sim, number)["status"])]


def started(sim: Simulation, number: int) -> float | None:
    """Return when a job started [s]; None where it did not."""
    job = _job(sim, number)
    return int(job["start"]) / _US if job["status"] in _STARTED else None


def ended(sim: Simulation, number: int) -> float | None:
    """Return when a job ended or was cancelled [s]; None where it did not."""
    job = _job(sim, number)
    return int(job["end"]) / _US if job["status"] >= FINISHED else None


def run(jobs: Any, *, hosts: int, policy: str = "easy") -> pl.DataFrame:
    """Simulate a log from its first job to its last.

    Args:
        jobs: As for `start`.
        hosts: Identical hosts of the machine.
        policy: ``"fcfs"``, ``"easy"`` or ``"conservative"``.

    Returns:
        One row per job, in the order of submission: ``job_id, submit_s, run_s, requested_s, hosts, start_s, end_s,
        wait_s`` [s], ``killed`` (at its limit).

    Raises:
        ConfigError, SchemaError, DataError: As `start`.

    Source:
        workflow-batch-scheduling.md section 5.

    Example:
        >>> import polars as pl
        >>> jobs = pl.DataFrame({"job_id": ["A", "B", "C"], "submit_s": [0, 1, 2], "run_s": [100, 50, 90],
        ...                      "requested_s": [100, 50, 98], "hosts": [6, 8, 4]})
        >>> run(jobs, hosts=10, policy="easy")["start_s"].to_list()
        [0.0, 100.0, 2.0]
    """
    sim = start(jobs, hosts=hosts, policy=policy)
    advance(sim)
    return results(sim)


def results(sim: Simulation) -> pl.DataFrame:
    """Return the background's jobs as they are now.

    Returns:
        One row per job, in the order of submission: ``job_id, submit_s, run_s, requested_s, hosts, start_s, end_s,
        wait_s`` [s; null where it has not come to that], ``killed`` (at its limit).
    """
    jobs = sim.state.jobs[: sim.state.counters[N_BACKGROUND]]
    status = jobs["status"]
    seconds = {
        f"{name}_s": jobs[field] / _US
        for name, field in (
            ("submit", "submit"),
            ("run", "run"),
            ("requested", "request"),
            ("start", "start"),
            ("end", "end"),
        )
    }
    did_start, did_end = pl.Series(np.isin(status, _STARTED)), pl.Series(status >= FINISHED)
    return pl.DataFrame(
        {
            "job_id": sim.job_ids,
            **{name: seconds[name] for name in ("submit_s", "run_s", "requested_s")},
            "hosts": jobs["hosts"],
            "start_s": pl.Series(seconds["start_s"]).set(~did_start, None),
            "end_s": pl.Series(seconds["end_s"]).set(~did_end, None),
        }
    ).with_columns(
        wait_s=pl.Series((jobs["start"] - jobs["submit"]) / _US).set(~did_start, None),
        killed=pl.Series(status == KILLED),
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


def _check_ask(sim: Simulation, hosts: IntArray, requested_s: FloatArray) -> None:
    """Refuse jobs that no machine could run, all at once."""
    most = int(sim.state.counters[HOSTS])
    problems = [f"hosts: {n}, allowed: 1 to {most}" for n in hosts if not 1 <= n <= most]
    problems += [
        f"requested_s: {r}, allowed: a number of seconds >= 0"
        for r in requested_s
        if not 0 <= r < math.inf
    ]
    if sim.state.counters[NOW] == -NEVER:
        problems.append("the queue has no present instant: advance it to one first")
    if problems:
        raise ConfigError("; ".join(problems))


def _job(sim: Simulation, number: int) -> Any:
    """Return the record of a job."""
    if not 0 <= number < sim.state.counters[N_JOBS]:
        raise ConfigError(f"number: no job {number}; there are {sim.state.counters[N_JOBS]}")
    return sim.state.jobs[number]


def _expect(sim: Simulation, number: int, wanted: int) -> None:
    """Refuse to act on a job that is something else."""
    found = status(sim, number)
    if found != STATUS[wanted]:
        raise ConfigError(f"job {number} is {found}, not {STATUS[wanted]}")


def _micros(seconds: float) -> int:
    return round(seconds * _US)


def _seconds(micros: int) -> float:
    return math.copysign(math.inf, micros) if abs(micros) >= NEVER else micros / _US
