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

from brokerlab.calibrate.thresholds import Options, Period, calibrate, case_of
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config

EARLY = Period(datetime(2026, 3, 1), datetime(2026, 3, 11))
LATE = Period(datetime(2026, 3, 11), datetime(2026, 3, 21))
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

    def __call__(self, configs, seeds, period):
        return [self.one(config, seeds, period) for config in configs]

    def one(self, config, seeds, period):
        first = config.get(next(iter(self.best), CAP))
        if first in self.fails:
            raise DataError(f"no simulation at {first}")
        if first in self.kills and os.environ.get("BROKERLAB_TOY_MAIN") != str(os.getpid()):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.log:
            with Path(self.log).open("a") as file:
                file.writelines(f"{config.digest} {seed}\n" for seed in seeds)
        n, late = self.n_tasks, int(period[0].timestamp()) // 86_400
        rng = np.random.default_rng([self.world, late])
        base = rng.lognormal(2.0, 0.6, n)
        share = np.array(SHARES)[rng.integers(len(SHARES), size=n)]
        hours = np.sort(rng.uniform(0, (period[1] - period[0]) / timedelta(hours=1), n))
        factor = np.concatenate([self._luck(config, seed, late) for seed in seeds])
        k = len(seeds)
        hours_taken = np.tile(base, k) * np.maximum(1 + self.excess(config) + factor, 0.05)
        at = np.datetime64(period[0], "us") + (hours * 3.6e9).astype("timedelta64[us]")
        tasks = pl.DataFrame(
            {
                "seed": np.repeat(seeds, n),
                "jeditaskid": np.tile(np.arange(n) + 1000 * (late % 1000), k),
                "gshare": np.tile(share, k),
                "user_class": [None] * (n * k),
                "created_at": np.tile(at, k),
                "n_jobs": np.full(n * k, 10),
                "n_finished": np.full(n * k, 10),
                "turnaround_s": 3600 * hours_taken,
                "censored": np.zeros(n * k, bool),
                "mean_waiting_s": 360 * hours_taken,
                "transferred_bytes": 1e12 * np.tile(base, k) * (1 + self.moved * math.log(max(first, 0.1) / 150)),
                "lost_core_s": np.zeros(n * k),
                "used_core_s": np.zeros(n * k),
            },
            schema_overrides={"user_class": pl.String},
        )  # fmt: skip
        fairness = pl.DataFrame({"seed": seeds, "by": "gshare", "jain": 0.9})
        queues = pl.DataFrame(
            {
                "seed": np.repeat(seeds, 2), "panda_queue": ["A", "B"] * k, "used_core_s": [3600.0 * first, 7200.0] * k,
                "capacity_core_s": 3.6e7, "n_jobs": [10, 20] * k,
            }
        )  # fmt: skip
        return SimpleNamespace(tasks=tasks, fairness=fairness, queues=queues)

    def unknown(self):
        return ()

    def _luck(self, config, seed, late):
        """Return what chance adds: shared by all settings, and not."""
        shared = np.random.default_rng([self.world, late, seed]).normal(0, self.luck, self.n_tasks)
        own = np.random.default_rng([self.world, late, seed, int(config.digest[7:15], 16)])
        return shared + own.normal(0, self.noise[0], self.n_tasks) + own.normal(0, self.noise[1])

    def other(self, world: int) -> Toy:
        """Return the same curve with other tasks."""
        return replace(self, world=world)


def calibrate_toy(toy: Toy, **what):
    """Calibrate without an archive: fields of `Options`, arguments of `case_of` that differ from these, and of `calibrate`."""
    options = {name: what.pop(name) for name in list(what) if name in Options.model_fields}
    asked = {name: what.pop(name) for name in ("store", "screen", "validation") if name in what}
    given = {"calibration": EARLY, "proof": LATE, "created_at": CREATED, **what}
    return calibrate(case_of(Config.empty(), Options(**options), **given), toy, **asked)
