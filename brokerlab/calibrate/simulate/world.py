"""The arrays that the compiled event loop works on; times and durations are whole microseconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brokerlab.numerics import FloatArray, IntArray

NEVER = 2**62
"""A time that does not come, and a limit that does not bind."""

UNPLACED, WAITING, RUNNING, DONE = range(4)  # status of a job
FINISHED, KILLED_WALLTIME, KILLED_MEMORY = range(3)  # outcome of an attempt
HEAP, LOG, OPEN, LINED, CLOCK = range(5)  # places of the counters


Records = npt.NDArray[np.void]
"""An array of one of the records below: what belongs together lies together."""

WORK = np.dtype(
    [
        ("pandaid", np.int64),
        ("wall", np.int64),
        ("cores", np.int64),
        ("width", np.int64),  # number of its core count among the different ones
        ("priority", np.int64),
        ("peak_mb", np.float64),  # NaN where unknown
        ("wall_limit", np.int64),
        ("home", np.int64),  # queue it came with, -1 where it is placed later
    ]
)
"""What a job needs; a job is its row, rows are in the order of pandaid."""
ATTEMPT = np.dtype(
    [
        ("status", np.int64),
        ("queue", np.int64),
        ("number", np.int64),  # from 1
        ("ready", np.int64),
        ("start", np.int64),
        ("outcome", np.int64),
        ("limit_mb", np.float64),  # infinite where there is none
        ("child", np.int64),
        ("sibling", np.int64),
        ("moves", np.int64),  # times it was taken back while it waited
    ]
)
"""The present attempt of a job, and its links in the waiting line."""
QUEUE = np.dtype(
    [
        ("slots", np.int64),  # cores that may run now
        ("most_slots", np.int64),  # most that it ever has
        ("in_use", np.int64),  # cores running
        ("maxtime", np.int64),
        ("maxrss", np.float64),  # [MB]
        ("first_delay", np.int64),  # where its start-up delays begin
        ("n_delays", np.int64),
    ]
)
"""A queue; ``slots`` and ``in_use`` change with time."""
LOGGED = np.dtype(
    [(name, np.int64) for name in ("job", "number", "queue", "ready", "start", "end", "outcome")]
)
"""An attempt that has ended."""


class Places(NamedTuple):
    """Queues and their waiting lines.

    Attributes:
        queues: Of `QUEUE`.
        delay: Start-up delays of all queues, ascending inside a queue.
        widths: The different core counts of the jobs, ascending.
        change_queue: Queue of each change of slots ...
        change_slots: ... and its new slots.
        waiting: (n_queues * n_widths,) job at the head of each waiting line, -1 where it is empty.
    """

    queues: Records
    delay: IntArray
    widths: IntArray
    change_queue: IntArray
    change_slots: IntArray
    waiting: IntArray


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
    placed_again: bool
    ladder_mb: FloatArray


class World(NamedTuple):
    """Everything the event loop knows."""

    work: Records
    places: Places
    attempt: Records
    log: Records
    events: Events
    settings: Settings
