"""Worlds without brokerage, where jobs wait at queues that they came with; and the event loop of such a world in steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation import kernel
from brokerlab.calibrate.simulation.loop import Copy, Loop
from brokerlab.calibrate.simulation.outcome import attempts as tried
from brokerlab.calibrate.simulation.outcome import names_of
from brokerlab.calibrate.simulation.state import (
    CLOCK,
    DONE,
    NEVER,
    instant,
    instants,
    micros,
)
from brokerlab.units import SECOND_US

LONG = timedelta(days=90)
"""All jobs are over by then that will ever be."""
ENDS = ("finished", "killed_walltime", "killed_memory", "running", "waiting", "travelling")
"""Outcomes of attempts; the last three are those of attempts still open at the end of the simulation."""
_TRAVELS = 5


def world(
    jobs: pl.DataFrame, queues: pl.DataFrame, *, at: datetime | None = None, **more: Any
) -> simulation.World:
    """Return the world; jobs are made when they are ready, those without a queue are placed by hand (:class:`Steps`)."""
    begin = at or jobs["readytime"].min()
    later = pl.col("computingsite").is_null()
    made = jobs.with_columns(
        creationtime=pl.col("readytime").fill_null(begin), brokered=later, jeditaskid=pl.lit(1)
    )
    known = {"tasks": pl.DataFrame({"jeditaskid": [1], "snapshot": [0]})}
    epochs = pl.DataFrame({"snapshot": [0], "at": [begin]})
    more.setdefault("end", begin + LONG)
    return simulation.of_tables(made, queues, known, epochs, start=begin, **more)


def attempts(*tables: pl.DataFrame, seed: int = 0, **more: Any) -> pl.DataFrame:
    """Return every attempt of such a world."""
    made = world(*tables, **more)
    loop = Loop(made, seeds=(seed,))
    loop.run()
    return attempts_of(made, loop.copies[0])


def attempts_of(world: simulation.World, copy: Copy) -> pl.DataFrame:
    """Return every attempt of a simulated world, sorted by pandaid and attempt; jobs without a place have none.

    Returns:
        ``pandaid``, ``attempt`` (from 1), ``computingsite``, ``readytime`` (null: inputs still travel), ``starttime`` (null:
        not started), ``endtime`` (null: not ended), ``overtime`` (of a job's last attempt: outputs have arrived),
        ``outcome`` (see :data:`ENDS`), ``waiting_s`` (from ready to start, or to the end of the simulation), ``corecount``.
    """
    now, end = copy.state.attempt, int(copy.state.events.counters[CLOCK])
    here, ready = pl.col("queue") >= 0, pl.col("ready") <= end
    every = tried(copy)
    every = every.filter(here & (ready | pl.Series(world.created[every["job"]] < end)))
    job = every["job"].to_numpy()
    over = (now["status"][job] == DONE) & (now["number"][job] == every["number"].to_numpy())
    over &= copy.gone[job] <= end
    started = pl.min_horizontal("start", pl.lit(end))
    return every.select(
        pandaid=copy.state.work["pandaid"][job],
        attempt="number",
        computingsite=names_of(world, every["queue"]),
        readytime=pl.when(ready).then(instant(pl.col("ready"))),
        starttime=instant(pl.col("start")),
        endtime=instant(pl.col("end")),
        overtime=instants(np.where(over, copy.gone[job], NEVER)),
        outcome=pl.Series(ENDS).gather(
            every.select(pl.when(ready).then("outcome").otherwise(_TRAVELS)).to_series()
        ),
        corecount=copy.state.work["cores"][job],
        waiting_s=pl.when(ready).then((started - pl.col("ready")) / SECOND_US),
    ).sort("pandaid", "attempt")


class Steps:
    """A world in steps."""

    def __init__(self, made: simulation.World, seed: int = 0) -> None:
        self.world, self.copy = made, Copy.of(made, seed)
        self.state, self.now = self.copy.state, micros(made.begin)

    def advance(self, until: datetime) -> None:
        """Let everything happen before an instant; its own events are left for the next step."""
        self.now = micros(until)
        self.copy.advance(self.now)

    def place(self, placements: pl.DataFrame, *, stay: bool = False) -> None:
        """Send jobs without a queue to one: ``pandaid``, ``computingsite``, ``readytime``; if they stay, for all attempts."""
        rows = self._rows(placements["pandaid"])
        names = self.world.queues["panda_queue"].to_list()
        self.state.attempt["queue"][rows] = [names.index(q) for q in placements["computingsite"]]
        if stay:
            self.state.work["home"][rows] = self.state.attempt["queue"][rows]
        self.state.attempt["ready"][rows] = placements["readytime"].to_physical()
        kernel.announce_all(self.state, np.sort(rows))

    def withdraw(self, pandaids: Sequence[int]) -> None:
        """Take jobs back that wait."""
        kernel.withdraw(self.state, np.sort(self._rows(pandaids)), self.now)

    def attempts(self) -> pl.DataFrame:
        """Return what happened so far."""
        return attempts_of(self.world, self.copy)

    def _rows(self, pandaids: Any) -> np.ndarray:
        return np.searchsorted(self.state.work["pandaid"], np.asarray(pandaids, np.int64))
