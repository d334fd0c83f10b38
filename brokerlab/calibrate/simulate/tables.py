"""Check the tables of a simulation and turn them into the arrays of the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from brokerlab.calibrate.simulate.contracts import TABLES
from brokerlab.calibrate.simulate.heaps import CHANGE, KIND
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.world import (
    ATTEMPT,
    CLOCK,
    HEAP,
    LOGGED,
    NEVER,
    QUEUE,
    UNPLACED,
    WORK,
    Events,
    Places,
    Records,
    Settings,
    World,
)
from brokerlab.errors import DataError
from brokerlab.frames import prepared
from brokerlab.numerics import IntArray

_SHOWN = 5
_MOST_S = 1e9  # 31 years; longer is misread


@dataclass(frozen=True)
class Tables:
    """The input in the order of its keys: jobs by pandaid, queues by name, the others by queue and time."""

    jobs: pl.DataFrame
    queues: pl.DataFrame
    capacity: pl.DataFrame
    delays: pl.DataFrame


def checked(jobs: Any, queues: Any, capacity: Any | None, delays: Any | None) -> Tables:
    """Hold the tables to their contracts.

    Raises:
        SchemaError: Columns are missing or of another type.
        DataError: Keys repeat, queues are unknown, numbers are out of range.
    """
    given = {"jobs": jobs, "queues": queues, "capacity": capacity, "delays": delays}
    tables = prepared({n: frame for n, frame in given.items() if frame is not None}, TABLES)
    problems = [*_repeated(tables), *_unknown(tables), *_out_of_range(tables)]
    if problems:
        raise DataError("simulation: " + "; ".join(problems))
    width = pl.col("corecount").fill_null(1).replace(0, 1)
    return Tables(
        tables["jobs"].with_columns(width, pl.col("currentpriority").fill_null(0)).sort("pandaid"),
        tables["queues"].sort("panda_queue"),
        tables["capacity"].sort("panda_queue", "ts"),
        tables["delays"].sort("panda_queue", "delay_s"),
    )


def _said(table: str, what: str, rows: pl.DataFrame, key: str, do: str) -> list[str]:
    """Return the problem with its count and some of its keys, nothing if there is none."""
    if rows.is_empty():
        return []
    shown = ", ".join(str(value) for value in rows[key].unique().sort().head(_SHOWN))
    return [f"{table}: {what} in {rows.height} rows ({key} {shown}): {do}"]


def _repeated(tables: dict[str, pl.DataFrame]) -> list[str]:
    keys = {"jobs": ["pandaid"], "queues": ["panda_queue"], "capacity": ["panda_queue", "ts"]}
    problems = []
    for table, key in keys.items():
        again = tables[table].filter(~pl.struct(key).is_first_distinct())
        problems += _said(
            table, f"{', '.join(key)} repeats", again, key[0], "keep one row for each"
        )
    return problems


def _unknown(tables: dict[str, pl.DataFrame]) -> list[str]:
    known = tables["queues"]["panda_queue"].implode()
    problems = []
    for table, column in (
        ("jobs", "computingsite"),
        ("capacity", "panda_queue"),
        ("delays", "panda_queue"),
    ):
        rows = tables[table].filter(~pl.col(column).is_in(known))
        problems += _said(table, "queue is not in queues", rows, column, "add it there")
    halves = tables["jobs"].filter(
        pl.col("computingsite").is_null() != pl.col("readytime").is_null()
    )
    return problems + _said(
        "jobs",
        "only one of computingsite and readytime is known",
        halves,
        "pandaid",
        "give both, or neither and place the job later",
    )


def _out_of_range(tables: dict[str, pl.DataFrame]) -> list[str]:
    seconds = f"must be 0 to {_MOST_S:.0e} s"
    rules = [
        ("jobs", "walltime_s", "pandaid", 0.0, _MOST_S, seconds),
        ("jobs", "walltime_limit_s", "pandaid", 0.0, _MOST_S, seconds),
        ("jobs", "corecount", "pandaid", 0, 2**20, "must be 0 to 2^20 cores"),
        ("jobs", "peak_memory_mb", "pandaid", 0.0, np.inf, "must be 0 or more"),
        ("jobs", "memory_limit_mb", "pandaid", 0.0, np.inf, "must be 0 or more"),
        ("jobs", "pandaid", "pandaid", 0, 2**62, "must be 0 or more"),
        ("queues", "slots", "panda_queue", 0, 2**40, "must be 0 or more"),
        ("queues", "startup_s", "panda_queue", 0.0, _MOST_S, seconds),
        ("queues", "maxtime", "panda_queue", 0, int(_MOST_S), seconds),
        ("queues", "maxrss", "panda_queue", 0, 2**40, "must be 0 or more"),
        ("capacity", "slots", "panda_queue", 0, 2**40, "must be 0 or more"),
        ("delays", "delay_s", "panda_queue", 0.0, _MOST_S, seconds),
    ]
    problems = []
    for table, column, key, low, high, do in rules:
        wrong = tables[table].filter(~pl.col(column).is_between(low, high))
        problems += _said(table, f"{column} is out of range", wrong, key, do)
    return problems


def micros(seconds: pl.Series, null: int) -> IntArray:
    """Return durations in whole microseconds."""
    rounded = (seconds.cast(pl.Float64) * 1e6).round().cast(pl.Int64)
    return rounded.fill_null(null).to_numpy(writable=True)


def world_of(tables: Tables, rules: QueueRules, seed: int, begin: int) -> World:
    """Build the arrays of a run that has not begun.

    Args:
        tables: The checked input.
        rules: Options of the queues.
        seed: Of all draws.
        begin: The clock's first time [us since 1970].
    """
    jobs, n = tables.jobs, tables.jobs.height
    widths, width = np.unique(jobs["corecount"].to_numpy(), return_inverse=True)
    work = _records(
        WORK,
        pandaid=jobs["pandaid"],
        wall=micros(jobs["walltime_s"], 0),
        cores=jobs["corecount"],
        width=width,
        priority=jobs["currentpriority"],
        peak_mb=jobs["peak_memory_mb"].fill_null(np.nan),
        wall_limit=micros(jobs["walltime_limit_s"], NEVER),
        home=number_of(jobs["computingsite"], tables.queues),
    )
    places, changes = _places(tables, widths, begin)
    attempt = _records(
        ATTEMPT,
        status=np.full(n, UNPLACED),
        queue=number_of(jobs["computingsite"], tables.queues),
        number=np.ones(n),
        ready=jobs["readytime"].to_physical().fill_null(NEVER),
        start=np.full(n, NEVER),
        outcome=np.zeros(n),
        limit_mb=jobs["memory_limit_mb"].fill_null(np.inf),
        child=np.full(n, -1),
        sibling=np.full(n, -1),
        moves=np.zeros(n),
    )
    log = np.empty(n * rules.attempts, LOGGED)
    counters = np.zeros(5, np.int64)
    counters[HEAP], counters[CLOCK] = len(changes), begin
    room = np.empty((2, n + len(changes)), np.int64)
    room[0, : len(changes)] = changes
    room[1, : len(changes)] = CHANGE * KIND + np.arange(len(changes))
    settings = Settings(
        seed,
        rules.fit == "first",
        rules.attempts,
        round(rules.retry_delay_s * 1e6),
        rules.retry == "brokerage",
        np.array(rules.memory_ladder_mb, np.float64),
    )
    return World(work, places, attempt, log, Events(room[0], room[1], counters), settings)


def number_of(names: pl.Series, queues: pl.DataFrame) -> IntArray:
    """Return the row of each queue name, -1 where it is null."""
    numbers = queues.select("panda_queue", number=pl.int_range(pl.len()))
    found = names.to_frame("panda_queue").join(
        numbers, on="panda_queue", how="left", maintain_order="left"
    )
    return found["number"].fill_null(-1).to_numpy(writable=True)


def slots_over_time(tables: Tables, begin: int) -> pl.DataFrame:
    """Return when each queue had how many slots: ``queue`` (number), ``time`` [us], ``slots``, from ``begin`` on."""
    base = tables.queues.select(
        queue=pl.int_range(pl.len()), time=pl.lit(-NEVER, pl.Int64), slots="slots"
    )
    changes = tables.capacity.select(
        queue=pl.Series(number_of(tables.capacity["panda_queue"], tables.queues)),
        time=pl.col("ts").to_physical(),
        slots="slots",
    )
    return (
        pl.concat([base, changes])
        .with_columns(time=pl.col("time").clip(begin))
        .sort("queue", "time", maintain_order=True)
        .unique(["queue", "time"], keep="last", maintain_order=True)
    )


def _records(dtype: np.dtype[np.void], **columns: npt.ArrayLike) -> Records:
    """Lay columns side by side."""
    records = np.empty(len(np.asarray(next(iter(columns.values())))), dtype)
    for name, column in columns.items():
        records[name] = column
    return records


def _places(tables: Tables, widths: IntArray, begin: int) -> tuple[Places, IntArray]:
    """Return the queues as they are at the beginning, and the times at which their slots change, ascending."""
    queues, n = tables.queues, tables.queues.height
    slots = slots_over_time(tables, begin)
    most = slots.group_by("queue", maintain_order=True).agg(pl.col("slots").max())["slots"]
    changes = slots.filter(pl.col("time") > begin).sort("time", "queue")
    drawn = tables.delays.select(
        queue=pl.Series(number_of(tables.delays["panda_queue"], queues)), delay_s="delay_s"
    )
    constant = queues.select(
        queue=pl.int_range(pl.len()), delay_s=pl.col("startup_s").fill_null(0.0)
    ).join(drawn, on="queue", how="anti")
    delays = pl.concat([drawn, constant]).sort("queue", "delay_s")
    counts = np.bincount(delays["queue"].to_numpy(), minlength=n)
    maxtime = queues["maxtime"].replace(0, None)
    maxrss = queues["maxrss"].replace(0, None).cast(pl.Float64)
    held = _records(
        QUEUE,
        slots=slots.filter(pl.col("time") == begin)["slots"],
        most_slots=most,
        in_use=np.zeros(n),
        maxtime=micros(maxtime, NEVER),
        maxrss=maxrss.fill_null(np.inf),
        first_delay=np.cumsum(counts) - counts,
        n_delays=counts,
    )
    return Places(
        queues=held,
        delay=micros(delays["delay_s"], 0),
        widths=widths,
        change_queue=changes["queue"].to_numpy(writable=True),
        change_slots=changes["slots"].to_numpy(writable=True),
        waiting=np.full(n * len(widths), -1, np.int64),
    ), changes["time"].to_numpy(writable=True)
