"""A batch queue as it is held between two steps, and another order of its line."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.numerics import IntArray
from brokerlab.units import DAY_S
from brokerlab.workflows.batch.state import (
    FINISHED,
    FREE,
    HOSTS,
    KILLED,
    N_BACKGROUND,
    N_JOBS,
    N_LOGGED,
    NEVER,
    NEXT_ARRIVAL,
    NOW,
    RELEASED,
    RUNNING,
    State,
)
from brokerlab.workflows.load import LONGEST_S

FAVOURED = ("large", "small")  # which jobs a priority can favour
_US = 1_000_000


@dataclass(frozen=True)
class Priority:
    """A priority that is the sum of a capped term of size and an uncapped one of waiting time.

    All jobs age alike, so the order of two jobs never changes: a job stands as if it had been submitted earlier by what
    its size is worth. The first job that does not fit is then protected as under EASY.

    Source: workflows.md section 5 (FL and FS). The paper gives neither weights nor caps: these are ours.
    """

    favour: str  # "large" or "small"
    worth_s: float = DAY_S  # waiting time that the full term of size is worth [s]
    # size from which on a job counts no larger [hosts]; None: the whole machine
    cap_hosts: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, all at once."""
        problems = []
        if self.favour not in FAVOURED:
            problems.append(f"favour: unknown '{self.favour}': {nearest(self.favour, FAVOURED)}")
        if not 0 <= self.worth_s < float("inf"):
            problems.append(f"worth_s: {self.worth_s}, allowed: a number of seconds >= 0")
        if self.cap_hosts is not None and self.cap_hosts < 1:
            problems.append(f"cap_hosts: {self.cap_hosts}, allowed: 1 or more")
        if problems:
            raise ConfigError("priority: " + "; ".join(problems))

    def earlier_us(self, hosts: IntArray, machine: int) -> IntArray:
        """Return by how much earlier jobs stand [µs]."""
        cap = machine if self.cap_hosts is None else self.cap_hosts
        part = np.minimum(hosts, cap) / cap
        part = part if self.favour == "large" else 1 - part
        return np.round(part * self.worth_s * _US).astype(np.int64)


STATUS = ("future", "waiting", "running", "finished", "killed", "cancelled", "released")
"""Names of what a job can be."""
US = 1_000_000  # microseconds in a second


@dataclass
class Simulation:
    """A batch queue at an instant; made by `start`, changed by the functions of this package."""

    state: State  # the arrays of the compiled loop
    job_ids: pl.Series  # names of the background's jobs, in the order of their rows
    priority: Priority | None = None  # the order of the line, where it is not that of submission
    told: int = 0  # entries of the log that `changes` has told
    # the queue carried forward from the present state, once somebody asked
    ahead: IntArray | None = field(default=None, repr=False)

    def copy(self, spent: Simulation | None = None) -> Simulation:
        """Return an independent queue in the same state: warm up once, go on many times.

        ``spent`` is an earlier copy of this very state that nobody needs any more: its table of jobs is taken over, and only
        those of its rows are written that it has changed.
        """
        jobs, *others = self.state
        if spent is None or len(spent.state.jobs) > len(jobs):
            table = jobs.copy()
        else:
            table, later = spent.state.jobs, spent.state.counters
            open_rows = slice(int(np.argmax(jobs["status"] < FINISHED)), later[NEXT_ARRIVAL])
            own_rows = slice(later[N_BACKGROUND], later[N_JOBS])
            for rows in (open_rows, own_rows):
                table[rows] = jobs[rows]
        state = State(table, *(array.copy() for array in others))
        return Simulation(state, self.job_ids, self.priority, self.told)

    @property
    def now_s(self) -> float:
        """The present instant [s]; minus infinity before the first `advance`."""
        return seconds(int(self.state.counters[NOW]))

    @property
    def hosts(self) -> int:
        """Hosts of the machine."""
        return int(self.state.counters[HOSTS])

    @property
    def free_hosts(self) -> int:
        """Hosts free now."""
        return int(self.state.counters[FREE])


def record(sim: Simulation, number: int) -> Any:
    """Return the record of a job."""
    if not 0 <= number < sim.state.counters[N_JOBS]:
        raise ConfigError(f"number: no job {number}; there are {sim.state.counters[N_JOBS]}")
    return sim.state.jobs[number]


def check_ask(sim: Simulation, hosts: float, requested_s: float) -> None:
    """Refuse a job that the machine could not run."""
    problems = []
    if not 1 <= hosts <= sim.hosts or hosts != int(hosts):
        problems.append(f"hosts: {hosts}, allowed: whole numbers from 1 to {sim.hosts}")
    if not 0 <= requested_s <= LONGEST_S:
        problems.append(f"requested_s: {requested_s}, allowed: 0 to {LONGEST_S:g}")
    if sim.state.counters[NOW] == -NEVER:
        problems.append("the queue has no present instant: advance it to one first")
    if problems:
        raise ConfigError("; ".join(problems))


def micros(value: float) -> int:
    """Return seconds as whole microseconds."""
    return round(value * US)


def seconds(value: int) -> float:
    """Return microseconds as seconds; infinite where it does not come."""
    return math.copysign(math.inf, value) if abs(value) >= NEVER else value / US


_STARTED = (RUNNING, FINISHED, KILLED, RELEASED)


def changes(sim: Simulation) -> list[tuple[int, str]]:
    """Return what happened to jobs submitted by hand since this was last asked."""
    log = sim.state.log[sim.told : sim.state.counters[N_LOGGED]].tolist()
    sim.told += len(log)
    return [(entry // 2, ("started", "ended")[entry % 2]) for entry in log]


def status(sim: Simulation, number: int) -> str:
    """Return what a job is now: one of `STATUS`."""
    return STATUS[int(record(sim, number)["status"])]


def started(sim: Simulation, number: int) -> float | None:
    """Return when a job started [s]; None where it did not."""
    job = record(sim, number)
    return int(job["start"]) / US if job["status"] in _STARTED else None


def ended(sim: Simulation, number: int) -> float | None:
    """Return when a job ended or was cancelled [s]; None where it did not."""
    job = record(sim, number)
    return int(job["end"]) / US if job["status"] >= FINISHED else None


def results(sim: Simulation) -> pl.DataFrame:
    """Return the background's jobs as they are now.

    One row per job, in the order of submission: ``job_id, submit_s, run_s, requested_s, hosts, start_s, end_s,
    wait_s`` [s; null where it has not come to that], ``killed`` (at its limit).
    """
    jobs = sim.state.jobs[: sim.state.counters[N_BACKGROUND]]
    status = jobs["status"]
    seconds = {
        f"{name}_s": jobs[field] / US
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
        wait_s=pl.Series((jobs["start"] - jobs["submit"]) / US).set(~did_start, None),
        killed=pl.Series(status == KILLED),
    )
