"""The queue core of the grid simulator: jobs wait at queues, start when there are slots, end, or are killed.

All queues run at once, in steps or in one go::

    state = start(jobs, queues, seed=1)
    advance(state, datetime(2026, 3, 2))      # everything before that instant
    now = counts(state)                       # what a brokerage would look at
    place(state, placements)                  # where it sends the jobs that had no queue yet
    advance(state)                            # to the end
    result = results(state)

``run`` is start, advance and results. A run in steps has the very result of one in one go. Only ``advance``, ``place``
and ``withdraw`` change anything, and only the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.calibrate.simulate import kernel
from brokerlab.calibrate.simulate.contracts import Placements
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.outcome import Simulated, counts_of, outcome_of
from brokerlab.calibrate.simulate.tables import Tables, checked, number_of, world_of
from brokerlab.calibrate.simulate.world import CLOCK, NEVER, UNPLACED, WAITING, World
from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import prepared
from brokerlab.numerics import IntArray

BoolArray = npt.NDArray[np.bool_]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (canonical times are UTC without zone)


@dataclass(frozen=True)
class State:
    """A run at an instant; :func:`advance` and :func:`place` change its arrays.

    Attributes:
        tables: The checked input.
        world: The arrays of the event loop.
        begin: First instant of the run [us since 1970].
        rules: Options of the queues.
    """

    tables: Tables
    world: World
    begin: int
    rules: QueueRules

    @property
    def now(self) -> datetime:
        """The instant up to which everything has happened."""
        return datetime_of(int(self.world.events.counters[CLOCK]))


def start(
    jobs: Any,
    queues: Any,
    *,
    capacity: Any | None = None,
    delays: Any | None = None,
    rules: QueueRules | None = None,
    seed: int = 0,
    at: datetime | None = None,
) -> State:
    """Set up a run; nothing happens yet.

    A job waits from ``readytime`` on, and is offered to the slots of its queue after the start-up delay, which runs while
    it waits and holds no slot. Offered jobs start in the order of priority (higher first), ready time, pandaid, as the
    free cores allow (``rules.fit``). A job that needs more cores than its queue ever has waits for ever and holds nobody
    up. Where a queue shrinks below what is running, running jobs go on and nothing starts.

    An attempt ends after the true wall time, or is killed: at the smaller of the job's and the queue's limit of wall
    time; or, if the job's peak is above the smaller of its and the queue's limit of memory, at a fraction of its wall
    time drawn evenly from 0 to 1; whichever comes first (memory, if both come at once). A killed job tries again.

    Args:
        jobs: One row per job, see ``contracts.Jobs``; those without queue and ready time are placed later. Units: [s],
            [MB], [cores].
        queues: One row per queue, see ``contracts.Queues``.
        capacity: Slots over time, see ``contracts.Capacity``; queues without a row keep ``queues.slots``.
        delays: Start-up delays to draw from, see ``contracts.Delays``; queues without a row take ``queues.startup_s``.
        rules: Options of the queues.
        seed: Of all draws, 0 or more. A draw depends on seed, pandaid and attempt alone (common random numbers).
        at: First instant; default: the first ready time. Needed where no job has one.

    Returns:
        The state, before its first event.

    Raises:
        SchemaError: Columns are missing or of another type.
        DataError: Keys repeat, queues are unknown, numbers are out of range.
        ConfigError: No first instant, or one after a job's ready time; a negative seed.
    """
    chosen = rules or QueueRules()
    tables = checked(jobs, queues, capacity, delays)
    ready = tables.jobs["readytime"].drop_nulls().to_physical()
    first = None if ready.is_empty() else int(ready.to_numpy().min())
    if seed < 0:
        raise ConfigError(f"seed is {seed}, it must be 0 or more")
    begin = first if at is None else micros_of(at)
    if begin is None:
        raise ConfigError("no job has a ready time: say with 'at' when the simulation begins")
    if first is not None and first < begin:
        raise ConfigError(
            f"the simulation begins at {at}, but a job is ready at {datetime_of(first)}: begin earlier"
        )
    state = State(tables, world_of(tables, chosen, seed, begin), begin, chosen)
    kernel.announce_all(state.world, np.flatnonzero(state.world.attempt["queue"] >= 0))
    return state


def advance(state: State, until: datetime | None = None) -> None:
    """Let everything happen that happens before an instant, or everything there is.

    Args:
        state: The run; changed.
        until: Events at this very instant are left for the next step, so that what is placed at it takes part. Default:
            to the end, when no job runs or can start any more.

    Raises:
        ConfigError: The instant is past.
    """
    if until is not None and until < state.now:
        raise ConfigError(f"cannot advance to {until}: the run is at {state.now} already")
    kernel.advance(state.world, NEVER if until is None else micros_of(until))


def place(state: State, placements: Any) -> None:
    """Send jobs that have no queue yet to queues.

    Args:
        state: The run; changed.
        placements: One row per job, see ``contracts.Placements``.

    Raises:
        SchemaError: Columns are missing or of another type.
        DataError: Jobs or queues are unknown, a job has its queue already, or is to be ready in the past.
    """
    chosen = prepared({"placements": placements}, {"placements": Placements})["placements"]
    attempt, wanted = state.world.attempt, chosen["pandaid"].to_numpy()
    rows, known = _rows(state, wanted)
    queue = number_of(chosen["computingsite"], state.tables.queues)
    ready = chosen["readytime"].to_physical().to_numpy()
    problems = {
        "unknown jobs": ~known,
        "rows that repeat a job": ~chosen["pandaid"].is_first_distinct().to_numpy(),
        "unknown queues": queue < 0,
        "ready before the present": ready < state.world.events.counters[CLOCK],
        "jobs that have a queue": known & (_status(state, rows, known) != UNPLACED),
        "ready before the killed attempt's delay": known & (_free(state, rows, known) > ready),
    }
    _refuse(problems, wanted, f"placements at {state.now}")
    attempt["queue"][rows], attempt["ready"][rows] = queue, ready
    kernel.announce_all(state.world, np.sort(rows))


def withdraw(state: State, pandaids: Any) -> None:
    """Take jobs back that wait at a queue, as timeouts and rebrokerage do; they have no queue until placed again.

    Args:
        state: The run; changed.
        pandaids: The jobs, each once.

    Raises:
        DataError: Jobs are unknown, come twice, or do not wait.
    """
    wanted = np.asarray(pandaids, np.int64)
    rows, known = _rows(state, wanted)
    problems = {
        "unknown jobs": ~known,
        "jobs that come twice": ~pl.Series(wanted).is_first_distinct().to_numpy(),
        "jobs that do not wait": known & (_status(state, rows, known) != WAITING),
    }
    _refuse(problems, wanted, f"jobs to withdraw at {state.now}")
    kernel.withdraw(state.world, np.sort(rows), int(state.world.events.counters[CLOCK]))


def counts(state: State) -> pl.DataFrame:
    """Count the jobs of the present instant.

    Returns:
        ``computingsite``, ``gshare``, ``n_waiting`` (ready now or before, not started), ``n_running``, ``cores_waiting``,
        ``cores_running`` [cores]; one row per queue and share that has such a job, sorted by both.
    """
    return counts_of(state.tables, state.world)


def results(state: State) -> Simulated:
    """Return what has happened so far, see :class:`Simulated`."""
    return outcome_of(state.tables, state.world, state.begin, state.rules)


def run(
    jobs: Any,
    queues: Any,
    *,
    capacity: Any | None = None,
    delays: Any | None = None,
    rules: QueueRules | None = None,
    seed: int = 0,
    at: datetime | None = None,
    until: datetime | None = None,
) -> Simulated:
    """Simulate from the beginning to an instant, or to the end; arguments and errors as :func:`start`.

    Example:
        >>> when = [datetime(2026, 3, 1, hour) for hour in (0, 0, 1)]
        >>> jobs = pl.DataFrame(
        ...     {"pandaid": [1, 2, 3], "computingsite": "CERN", "readytime": when, "walltime_s": 7200.0}
        ... )
        >>> done = run(jobs, pl.DataFrame({"panda_queue": ["CERN"], "slots": [1]}))
        >>> done.attempts["waiting_s"].to_list()
        [0.0, 7200.0, 10800.0]
        >>> done.queues["utilisation"].to_list()
        [1.0]
    """
    state = start(jobs, queues, capacity=capacity, delays=delays, rules=rules, seed=seed, at=at)
    advance(state, until)
    return results(state)


def _rows(state: State, pandaids: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the row of every job, and whether it is known."""
    ids = state.world.work["pandaid"]
    rows = np.searchsorted(ids, pandaids)
    known = rows < len(ids)
    known[known] = ids[rows[known]] == pandaids[known]
    return rows, known


def _status(state: State, rows: IntArray, known: BoolArray) -> IntArray:
    """Return the status of known jobs, -1 of others."""
    found = np.full(len(rows), -1)
    found[known] = state.world.attempt["status"][rows[known]]
    return found


def _free(state: State, rows: IntArray, known: BoolArray) -> IntArray:
    """Return from when on a job that had a queue before may have one again [us since 1970]."""
    attempt, found = state.world.attempt, np.full(len(rows), -NEVER)
    times = attempt["ready"][rows[known]]
    found[known] = np.where(times < NEVER, times, -NEVER)
    return found


def _refuse(problems: dict[str, BoolArray], pandaids: IntArray, where: str) -> None:
    """Say all that is wrong with some jobs."""
    said = [
        f"{n.sum()} {what} (pandaid {pandaids[n][0]})" for what, n in problems.items() if n.any()
    ]
    if said:
        raise DataError(f"{where}: " + "; ".join(said) + "; leave them out")


def micros_of(instant: datetime) -> int:
    """Return an instant in whole microseconds since 1970."""
    since = instant - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def datetime_of(micros: int) -> datetime:
    """Return microseconds since 1970 as an instant."""
    return pl.Series([micros], dtype=pl.Datetime("us"))[0]  # type: ignore[no-any-return]
