"""The arrays that the compiled event loop works on; times and durations are whole microseconds."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.numerics import FloatArray, IntArray

if TYPE_CHECKING:
    from brokerlab.calibrate.simulation.world import World

NEVER = 2**62
"""A time that does not come, and a limit that does not bind."""
SECOND = 1_000_000

UNPLACED, WAITING, RUNNING, DONE = range(4)  # status of a job
FINISHED, KILLED_WALLTIME, KILLED_MEMORY = range(3)  # outcome of an attempt
HEAP, LOG, OPEN, LINED, CLOCK = range(5)  # places of the counters
END, CHANGE, RELEASE = range(3)  # kinds of events, at one time in this order
KIND = 2**40

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
        ("home", np.int64),  # queue it came with, -1 where the brokerage places it
        ("fate", np.int64),  # outcome of the attempt if no limit ends it
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
    ladder_mb: FloatArray


class State(NamedTuple):
    """Everything the event loop knows."""

    work: Records
    places: Places
    attempt: Records
    log: Records
    events: Events
    settings: Settings


def state_of(world: World, seed: int) -> State:
    """Build the arrays of a run that has not begun; its clock stands at the beginning, or at the first ready time before it.

    Args:
        world: Jobs, queues and options.
        seed: Of all draws.
    """
    jobs, n, rules = world.jobs, world.jobs.height, world.queueing
    ready = jobs["readytime"].to_physical().fill_null(NEVER).to_numpy()
    begin = int(ready.min(initial=micros(world.begin)))
    widths, width = np.unique(jobs["corecount"].to_numpy(), return_inverse=True)
    home = codes(jobs["computingsite"], world.queues["panda_queue"])
    work = _records(
        WORK,
        pandaid=jobs["pandaid"],
        wall=durations(jobs["walltime_s"], 0),
        cores=jobs["corecount"],
        width=width,
        priority=jobs["currentpriority"],
        peak_mb=jobs["peak_memory_mb"].fill_null(np.nan),
        wall_limit=durations(jobs["walltime_limit_s"], NEVER),
        home=home,
        fate=np.full(n, FINISHED),
    )
    places, changes = _places(world, widths, begin)
    attempt = _records(
        ATTEMPT,
        status=np.full(n, UNPLACED),
        queue=home,
        number=np.ones(n),
        ready=ready,
        start=np.full(n, NEVER),
        outcome=np.zeros(n),
        limit_mb=jobs["memory_limit_mb"].fill_null(np.inf),
        child=np.full(n, -1),
        sibling=np.full(n, -1),
        moves=np.zeros(n),
    )
    counters = np.zeros(5, np.int64)
    counters[HEAP], counters[CLOCK] = len(changes), begin
    room = np.empty((2, n + len(changes)), np.int64)
    room[0, : len(changes)] = changes
    room[1, : len(changes)] = CHANGE * KIND + np.arange(len(changes))
    settings = Settings(
        seed,
        rules.fit == "first",
        rules.attempts,
        round(rules.retry_delay_s * SECOND),
        np.array(rules.memory_ladder_mb, np.float64),
    )
    log = np.empty(n * rules.attempts, LOGGED)
    return State(work, places, attempt, log, Events(room[0], room[1], counters), settings)


def micros(instant: datetime) -> int:
    """Return an instant in whole microseconds since 1970."""
    return int(pl.Series([instant], dtype=pl.Datetime("us")).to_physical()[0])


def instants(micros: npt.ArrayLike) -> pl.Series:
    """Return microseconds since 1970 as instants, null for `NEVER`."""
    time = pl.col("time")
    frame = pl.DataFrame({"time": np.asarray(micros, np.int64)})
    return frame.select(pl.when(time < NEVER).then(time).cast(pl.Datetime("us"))).to_series()


def durations(seconds: pl.Series, null: int) -> IntArray:
    """Return durations in whole microseconds."""
    rounded = (seconds.cast(pl.Float64) * SECOND).round().cast(pl.Int64)
    return rounded.fill_null(null).to_numpy(writable=True)


def codes(values: pl.Series, names: pl.Series) -> IntArray:
    """Return the place of every value among different names, -1 for none."""
    numbered = pl.DataFrame({"name": names}).with_columns(code=pl.int_range(pl.len()))
    found = values.to_frame("name").join(numbered, on="name", how="left", maintain_order="left")
    return found["code"].fill_null(-1).to_numpy(writable=True)


def _records(dtype: np.dtype[np.void], **columns: npt.ArrayLike) -> Records:
    """Lay columns side by side."""
    records = np.empty(len(np.asarray(next(iter(columns.values())))), dtype)
    for name, column in columns.items():
        records[name] = column
    return records


def _places(world: World, widths: IntArray, begin: int) -> tuple[Places, IntArray]:
    """Return the queues as they are at the beginning, and the times at which their slots change, ascending."""
    queues, names = world.queues, world.queues["panda_queue"]
    slots = slots_from(world, begin)
    changes = slots.filter(pl.col("time") > begin).sort("time", "queue")
    drawn = world.delays.select(
        queue=pl.Series(codes(world.delays["panda_queue"], names)), delay_s="delay_s"
    )
    constant = queues.select(
        queue=pl.int_range(pl.len()), delay_s=pl.col("startup_s").fill_null(0.0)
    ).join(drawn, on="queue", how="anti")
    delays = pl.concat([drawn, constant]).sort("queue", "delay_s")
    counts = np.bincount(delays["queue"].to_numpy(), minlength=len(names))
    maxrss = queues["maxrss"].replace(0, None).cast(pl.Float64)
    held = _records(
        QUEUE,
        slots=slots.filter(pl.col("time") == begin)["slots"],
        most_slots=slots.group_by("queue", maintain_order=True).agg(pl.col("slots").max())["slots"],
        in_use=np.zeros(len(names)),
        maxtime=durations(queues["maxtime"].replace(0, None), NEVER),
        maxrss=maxrss.fill_null(np.inf),
        first_delay=np.cumsum(counts) - counts,
        n_delays=counts,
    )
    return Places(
        queues=held,
        delay=durations(delays["delay_s"], 0),
        widths=widths,
        change_queue=changes["queue"].to_numpy(writable=True),
        change_slots=changes["slots"].to_numpy(writable=True),
        waiting=np.full(len(names) * len(widths), -1, np.int64),
    ), changes["time"].to_numpy(writable=True)


def slots_from(world: World, begin: int) -> pl.DataFrame:
    """Return when each queue had how many slots, from ``begin`` on: ``queue`` (its row), ``time`` [us], ``slots``; sorted."""
    names = world.queues["panda_queue"]
    base = world.queues.select(
        queue=pl.int_range(pl.len()), time=pl.lit(-NEVER, pl.Int64), slots="slots"
    )
    changes = world.capacity.select(
        queue=pl.Series(codes(world.capacity["panda_queue"], names)),
        time=pl.col("ts").to_physical(),
        slots="slots",
    )
    return (
        pl.concat([base, changes])
        .with_columns(time=pl.col("time").clip(begin))
        .sort("queue", "time", maintain_order=True)
        .unique(["queue", "time"], keep="last", maintain_order=True)
    )
