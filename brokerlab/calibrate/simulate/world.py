"""The arrays that the compiled event loop works on; times and durations are whole microseconds."""

from __future__ import annotations

from typing import NamedTuple

from brokerlab.numerics import FloatArray, IntArray

NEVER = 2**62
"""A time that does not come, and a limit that does not bind."""

UNPLACED, WAITING, RUNNING, DONE = range(4)  # status of a job
FINISHED, KILLED_WALLTIME, KILLED_MEMORY = range(3)  # outcome of an attempt
HEAP, LOG, OPEN, LINED, CLOCK = range(5)  # places of the counters


class Work(NamedTuple):
    """What jobs need, one array each; a job is its row, rows are in the order of pandaid."""

    pandaid: IntArray
    wall: IntArray
    cores: IntArray
    width: IntArray  # number of its core count among the different ones
    priority: IntArray
    peak_mb: FloatArray  # NaN where unknown
    wall_limit: IntArray


class Places(NamedTuple):
    """Queues; ``slots`` and ``in_use`` change with time.

    Attributes:
        slots: Cores that may run now.
        most_slots: Most that it ever has.
        in_use: Cores running.
        maxtime: Limit of wall time.
        maxrss: Limit of memory [MB].
        first_delay: Where its delays begin, and their number at the end.
        delay: Start-up delays of all queues, ascending inside a queue.
        widths: The different core counts of the jobs, ascending.
        change_queue: Queue of each change of slots ...
        change_slots: ... and its new slots.
        waiting: (n_queues * n_widths,) job at the head of each waiting line, -1 where it is empty.
    """

    slots: IntArray
    most_slots: IntArray
    in_use: IntArray
    maxtime: IntArray
    maxrss: FloatArray
    first_delay: IntArray
    delay: IntArray
    widths: IntArray
    change_queue: IntArray
    change_slots: IntArray
    waiting: IntArray


class Attempt(NamedTuple):
    """The present attempt of every job, and its links in the waiting line."""

    status: IntArray
    queue: IntArray
    number: IntArray  # from 1
    ready: IntArray
    start: IntArray
    outcome: IntArray
    limit_mb: FloatArray  # infinite where there is none
    child: IntArray
    sibling: IntArray


class Log(NamedTuple):
    """Attempts that have ended, in the order of their ends."""

    job: IntArray
    number: IntArray
    queue: IntArray
    ready: IntArray
    start: IntArray
    end: IntArray
    outcome: IntArray


class Events(NamedTuple):
    """A heap of events by time, then kind, then job; and the counters of the run."""

    time: IntArray
    what: IntArray  # kind * KIND + job or change of slots
    counters: IntArray


class Settings(NamedTuple):
    """The options of the run as numbers."""

    seed: int
    first_fit: bool
    attempts: int
    retry_delay: int
    ladder_mb: FloatArray


class World(NamedTuple):
    """Everything the event loop knows."""

    work: Work
    places: Places
    attempt: Attempt
    log: Log
    events: Events
    settings: Settings
