"""A simulation in closed form: the turnaround of every task is a curve of the keys, with luck that settings share."""

from __future__ import annotations

import math
import os
import signal
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl

from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config

EARLY = (datetime(2026, 3, 1), datetime(2026, 3, 11))
LATE = (datetime(2026, 3, 11), datetime(2026, 3, 21))
CREATED = datetime(2026, 4, 1)
CAP, CUTOFF = "NQUEUED_SAT_CAP", "SIZE_CUTOFF_TO_MOVE_INPUT"
SHARES = ("Express", "MC 16 simul", "Group production")


@dataclass(frozen=True)
class Toy:
    """Tasks whose mean turnaround is ``base (1 + sum of depth log(value / best)^2)``.

    Attributes:
        best: Key to the value at which the turnaround is least.
        depth: How steep the curves are.
        moved: Bytes moved grow by this part with every factor e of the first key.
        n_tasks: Tasks in a period.
        luck: Spread of a task's own luck, which all settings share.
        noise: Spread of what settings do not share: of a task, and of a replication as a whole.
        world: Other tasks.
        fails: Values of the first key at which the simulation raises an error.
        kills: Values of the first key at which the process is killed, if it is not the main one.
        digest: For the store.
    """

    best: dict[str, float] = field(default_factory=lambda: {CAP: 800.0})
    depth: float = 0.05
    moved: float = 0.0
    n_tasks: int = 60
    luck: float = 0.3
    noise: tuple[float, float] = (0.05, 0.002)
    world: int = 0
    fails: tuple[int, ...] = ()
    kills: tuple[int, ...] = ()
    digest: str = "toy"
    log: str = ""

    def excess(self, config: Config) -> float:
        """How much longer tasks take than at best, as a part."""
        return sum(
            self.depth * math.log(max(config.get(key), 0.1) / best) ** 2
            for key, best in self.best.items()
        )

    def __call__(self, config, seeds, period):
        first = config.get(next(iter(self.best), CAP))
        if first in self.fails:
            raise DataError(f"no simulation at {first}")
        if first in self.kills and os.environ.get("BROKERLAB_TOY_MAIN") != str(os.getpid()):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.log:
            with Path(self.log).open("a") as file:
                file.writelines(f"{config.digest} {seed}\n" for seed in seeds)
        parts = [self._one(config, seed, period, first) for seed in seeds]
        return SimpleNamespace(
            **{
                name: pl.concat([part[name] for part in parts])
                for name in ("tasks", "fairness", "queues")
            }
        )

    def _one(self, config, seed, period, first):
        n = self.n_tasks
        late = int(period[0].timestamp()) // 86_400
        rng = np.random.default_rng([self.world, late])
        base = rng.lognormal(2.0, 0.6, n)
        share = rng.integers(len(SHARES), size=n)
        hours = np.sort(rng.uniform(0, (period[1] - period[0]) / timedelta(hours=1), n))
        shared = np.random.default_rng([self.world, late, seed]).normal(0, self.luck, n)
        own = np.random.default_rng([self.world, late, seed, int(config.digest[7:15], 16)])
        factor = (
            1
            + self.excess(config)
            + shared
            + own.normal(0, self.noise[0], n)
            + own.normal(0, self.noise[1])
        )
        tasks = pl.DataFrame(
            {
                "seed": np.full(n, seed),
                "jeditaskid": np.arange(n) + 1000 * (late % 1000),
                "gshare": np.array(SHARES)[share],
                "created_at": [period[0] + timedelta(hours=float(hour)) for hour in hours],
                "n_jobs": np.full(n, 10),
                "turnaround_s": 3600 * base * np.maximum(factor, 0.05),
                "censored": np.zeros(n, bool),
                "mean_waiting_s": 360 * base * np.maximum(factor, 0.05),
                "transferred_bytes": 1e12 * base * (1 + self.moved * math.log(first / 150)),
                "lost_core_s": np.zeros(n),
            }
        )
        fairness = pl.DataFrame(
            {"seed": [seed], "by": ["gshare"], "measure": ["speed"], "jain": [0.9]}
        )
        queues = pl.DataFrame(
            {
                "seed": [seed] * 2, "panda_queue": ["A", "B"], "used_core_s": [3600.0 * first, 7200.0],
                "capacity_core_s": [3.6e7, 3.6e7], "n_jobs": [10, 20],
            }
        )  # fmt: skip
        return {"tasks": tasks, "fairness": fairness, "queues": queues}

    def other(self, world: int) -> Toy:
        """Return the same curve with other tasks."""
        return replace(self, world=world)
