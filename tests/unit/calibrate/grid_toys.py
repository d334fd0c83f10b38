"""A small grid: tasks of equal jobs that come over some hours, queues of a few slots, one epoch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from brokerlab.calibrate import simulation
from tests.brokerage_toys import AT, NUCLEUS, SHARE, World

HOUR = timedelta(hours=1)
SLOTS = {"A_Q": 80, "B_Q": 40, "C_Q": 240}
TASKS = 6


def tables(
    queues: Mapping[str, int] = SLOTS, *, data: Mapping[int, Mapping[str, int]] | None = None
) -> dict[str, pl.DataFrame]:
    """Return the brokerage's tables: tasks 1 to 6; ``data``: task to files (of ten) at queues."""
    world = World()
    for task in range(2, TASKS + 1):
        world.task(task, workqueue_id=1)
    for name in queues:
        world.queue(name, running=0, activated=0)
    for task, here in (data or {}).items():
        world.data(files=10, here=here, task=task)
    return world.frames()


def jobs(n: int = 300, *, hours: float = 12.0, seed: int = 1, **columns: Any) -> pl.DataFrame:
    """Return jobs of 8 cores and about an hour, spread over the tasks and hours."""
    rng = np.random.default_rng(seed)
    minutes = np.sort(rng.uniform(0, hours * 60, n)).round()
    made = np.datetime64(AT, "us") + minutes.astype("timedelta64[m]")
    frame = pl.DataFrame(
        {
            "pandaid": np.arange(100, 100 + n),
            "jeditaskid": 1 + np.arange(n) % TASKS,
            "creationtime": made,
            "walltime_s": rng.lognormal(8.2, 0.4, n).round(),
            "brokered": True,
            "corecount": 8,
            "gshare": SHARE,
            "produsername": pl.Series(["ann", "bob", "cat"]).gather(np.arange(n) % 3),
            "resource_type": "MCORE",
            "nucleus": NUCLEUS,
            "prodsourcelabel": "managed",
        }
    )
    return frame.with_columns(**columns)


def world(
    frame: pl.DataFrame | None = None, *, queues: Mapping[str, int] = SLOTS, hours: float = 24, **more: Any
) -> simulation.World:  # fmt: skip
    """Return the grid; all jobs are judged."""
    own = more.pop("tables", None) or tables(queues)
    slots = pl.DataFrame({"panda_queue": list(queues), "slots": list(queues.values())})
    epochs = pl.DataFrame({"snapshot": [0], "at": [AT]})
    whole = {"start": AT, "end": AT + hours * HOUR} | more
    return simulation.of_tables(jobs() if frame is None else frame, slots, own, epochs, **whole)
