"""What a simulation says: attempts, queues, and the jobs of an instant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.tables import Tables, slots_over_time
from brokerlab.calibrate.simulate.world import (
    CLOCK,
    LOG,
    NEVER,
    RUNNING,
    WAITING,
    World,
)
from brokerlab.numerics import IntArray

OUTCOMES = ["finished", "killed_walltime", "killed_memory", "running", "waiting"]
_RUNNING, _WAITING = 3, 4


@dataclass(frozen=True)
class Simulated:
    """What happened at the queues.

    Attributes:
        attempts: One row per attempt, sorted by pandaid and attempt: ``pandaid``, ``attempt`` (from 1), ``computingsite``,
            ``readytime``, ``starttime`` (null: not started), ``endtime`` (null: not ended), ``outcome`` (finished,
            killed_walltime, killed_memory; running or waiting at the end), ``waiting_s`` (from ready to start, or to the
            end of the run), ``corecount``, ``gshare``, ``produsername``, ``jeditaskid``. Jobs never placed have no row.
        queues: One row per queue, sorted: ``panda_queue``, ``n_attempts``, ``n_waiting``, ``used_core_s``,
            ``capacity_core_s`` (its slots over the run), ``utilisation`` (null where there was no capacity; above 1
            only where running jobs outlived a shrinking).
        begin: First instant of the run.
        end: Last instant of the run.
        seed: Of the draws.
        rules: Options of the queues.
    """

    attempts: pl.DataFrame
    queues: pl.DataFrame
    begin: datetime
    end: datetime
    seed: int
    rules: QueueRules

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the run as a whole."""
        used, there = (
            float(self.queues[name].sum()) for name in ("used_core_s", "capacity_core_s")
        )
        by = dict(self.attempts["outcome"].value_counts().iter_rows())
        return {
            "begin": self.begin.isoformat(),
            "end": self.end.isoformat(),
            "seed": self.seed,
            "attempts": {name: by.get(name, 0) for name in OUTCOMES},
            "utilisation": used / there if there else None,
        }

    def _repr_html_(self) -> str:
        numbers = self.to_dict()
        said = ", ".join(
            f"{n:,} {name.replace('_', ' ')}" for name, n in numbers["attempts"].items()
        )
        return f"<p>Simulated {numbers['begin']} to {numbers['end']}: attempts {said}.</p>"


def outcome_of(tables: Tables, world: World, begin: int, rules: QueueRules) -> Simulated:
    """Put the log and the attempts still open into tables."""
    end = int(world.events.counters[CLOCK])
    attempts = _attempts(world, end)
    queues = _queues(tables, attempts, begin, end)
    instants = pl.Series([begin, end], dtype=pl.Datetime("us"))
    labels = pl.Enum(OUTCOMES)
    shown = attempts.select(
        tables.jobs["pandaid"].gather(attempts["job"]),
        "attempt",
        computingsite=tables.queues["panda_queue"].gather(attempts["queue"]),
        readytime=_time("ready"),
        starttime=_time("start"),
        endtime=_time("end"),
        outcome=pl.Series(OUTCOMES, dtype=labels).gather(attempts["outcome"]),
        waiting_s=(pl.min_horizontal("start", pl.lit(end)) - pl.col("ready")) / pl.lit(1_000_000),
        **{
            name: tables.jobs[name].gather(attempts["job"])
            for name in ("corecount", "gshare", "produsername", "jeditaskid")
        },
    )
    return Simulated(shown, queues, instants[0], instants[1], int(world.settings.seed), rules)


def _time(column: str) -> pl.Expr:
    return pl.when(pl.col(column) < NEVER).then(column).cast(pl.Datetime("us"))


def _attempts(world: World, end: int) -> pl.DataFrame:
    """Return every attempt in numbers, sorted by job and attempt; one that lies wholly after the end is none."""
    log, now, n = world.log, world.attempt, int(world.events.counters[LOG])
    open_ = np.flatnonzero(
        (now["status"] == RUNNING) | ((now["status"] == WAITING) & (now["ready"] <= end))
    )
    running = now["status"][open_] == RUNNING

    def both(ended: IntArray, still: IntArray) -> IntArray:
        return np.concatenate((ended[:n], still))

    frame = pl.DataFrame(
        {
            "job": both(log["job"], open_),
            "attempt": both(log["number"], now["number"][open_]),
            "queue": both(log["queue"], now["queue"][open_]),
            "ready": both(log["ready"], now["ready"][open_]),
            "start": both(log["start"], np.where(running, now["start"][open_], NEVER)),
            "end": both(log["end"], np.full(len(open_), NEVER)),
            "outcome": both(log["outcome"], np.where(running, _RUNNING, _WAITING)),
            "cores": world.work["cores"][both(log["job"], open_)],
        }
    )
    return frame.sort("job", "attempt")


def _queues(tables: Tables, attempts: pl.DataFrame, begin: int, end: int) -> pl.DataFrame:
    """Add up what was used and what there was; sums of whole numbers per queue, so that they repeat."""
    ran = pl.min_horizontal("end", pl.lit(end)) - pl.min_horizontal("start", pl.lit(end))
    used = attempts.group_by("queue").agg(
        n_attempts=pl.len(),
        n_waiting=(pl.col("outcome") == _WAITING).sum(),
        used=(ran * pl.col("cores")).sum(),
    )
    until = (
        pl.col("time").shift(-1).over("queue", order_by="time").fill_null(end).clip(upper_bound=end)
    )
    there = (
        slots_over_time(tables, begin)
        .with_columns(lasts=(until - pl.col("time")).clip(0))
        .group_by("queue")
        .agg(there=(pl.col("lasts") * pl.col("slots")).sum())
    )
    second = pl.lit(1_000_000)
    return (
        tables.queues.select("panda_queue", queue=pl.int_range(pl.len()))
        .join(there, on="queue")
        .join(used, on="queue", how="left")
        .with_columns(pl.col("n_attempts", "n_waiting", "used").fill_null(0))
        .select(
            "panda_queue",
            "n_attempts",
            "n_waiting",
            used_core_s=pl.col("used") / second,
            capacity_core_s=pl.col("there") / second,
            utilisation=pl.when(pl.col("there") > 0).then(pl.col("used") / pl.col("there")),
        )
        .sort("panda_queue")
    )


def counts_of(tables: Tables, world: World) -> pl.DataFrame:
    """Count waiting and running jobs by queue and share."""
    now, clock = world.attempt, world.events.counters[CLOCK]
    live = np.flatnonzero(
        (now["status"] == RUNNING) | ((now["status"] == WAITING) & (now["ready"] <= clock))
    )
    cores = pl.col("cores")
    running = pl.col("status") == RUNNING
    return (
        pl.DataFrame(
            {
                "computingsite": tables.queues["panda_queue"].gather(now["queue"][live]),
                "gshare": tables.jobs["gshare"].gather(live),
                "status": now["status"][live],
                "cores": world.work["cores"][live],
            }
        )
        .group_by("computingsite", "gshare")
        .agg(
            n_waiting=(~running).sum(),
            n_running=running.sum(),
            cores_waiting=cores.filter(~running).sum(),
            cores_running=cores.filter(running).sum(),
        )
        .sort("computingsite", "gshare")
    )
