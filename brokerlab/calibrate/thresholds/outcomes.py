"""What a simulation must say for a setting to be judged, and what settings are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

from brokerlab.calibrate import simulation
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray


class Period(NamedTuple):
    """A half-open span of time, UTC without zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Quantity:
    """Something that anyone could care about; less is better for all of them.

    Attributes:
        label: In words.
        unit: Of the value as shown.
        least: Smallest value that can be told from nothing [unit]: no change is given in per cent of less.
        column: Of a simulation's tasks; empty: it is of the whole system.
        per: Units of that column in one unit.
        total: Shown as the sum over tasks, else as the mean per task.
    """

    name: str
    label: str
    unit: str
    least: float
    column: str
    per: float
    total: bool = False


SECOND_H = 1 / 3600
"""A second [h]."""
HOUR_S = 3600.0
BYTES_PER_TB = 1e12
QUANTITIES: tuple[Quantity, ...] = (
    Quantity("turnaround_h", "Mean turnaround of a task", "h", SECOND_H, "turnaround_s", HOUR_S),
    Quantity("waiting_h", "Mean wait of a task's jobs", "h", SECOND_H, "mean_waiting_s", HOUR_S),
    Quantity("moved_tb", "Bytes moved", "TB", 1e-6, "transferred_bytes", BYTES_PER_TB, total=True),
    Quantity(
        "lost_core_h",
        "Lost core-hours (killed attempts)",
        "core h",
        SECOND_H,
        "lost_core_s",
        HOUR_S,
        total=True,
    ),
    Quantity("unfinished", "Tasks not over at the end", "share of tasks", 1e-6, "censored", 1.0),
    Quantity("unfairness", "Unfairness between shares (1 - Jain)", "1", 1e-6, "", 1.0),
)
"""What every setting is judged by, in order."""


def quantity_of(name: str) -> Quantity:
    """Return a quantity by its name."""
    return next(quantity for quantity in QUANTITIES if quantity.name == name)


@dataclass(frozen=True)
class Limited:
    """A quantity that may get worse only so far, against the current setting.

    Attributes:
        quantity: Of `QUANTITIES`.
        most: Default limit.
        of: What it is in per cent of: a column of the current setting's tasks. Both are then those of the same work, see
            `same_work`: a setting that lets more be done may move more bytes for it. Empty: in the quantity's unit.
        unit: Of the limit, in words.
    """

    quantity: str
    most: float
    of: str = ""
    unit: str = ""


USED = "used_core_h"
"""Of a task: core-hours of all its attempts."""
LIMITS: dict[str, Limited] = {
    "moved_pct": Limited("moved_tb", 5.0, "moved_tb", "% of now"),
    "lost_pct": Limited("lost_core_h", 1.0, USED, "% of the core-hours used"),
    "unfairness": Limited("unfairness", 0.02),
    "unfinished": Limited("unfinished", 0.01),
}
"""Name of a limit to what it is on. A setting must not look fast by leaving work: hence the one on unfinished tasks."""
DONE = "n_finished"
"""Of a task: jobs that it has finished."""


@dataclass(frozen=True)
class Outcome:
    """What one setting led to in one replication, in the units in which it is judged.

    Attributes:
        tasks: One row per task, sorted: ``jeditaskid, gshare, user_class, created_at`` and `QUANTITIES`: ``unfinished`` 0 or 1,
            ``unfairness`` that of the whole system (null: shares are not known); `DONE` and `USED`.
        queues: One row per queue, sorted: ``panda_queue, n_jobs, used_core_h, capacity_core_h``.
    """

    tasks: pl.DataFrame
    queues: pl.DataFrame

    @classmethod
    def by_seed(cls, simulated: simulation.Outcome) -> dict[int, Outcome]:
        """Read what a simulation says, by seed; a turnaround that is censored counts up to the end."""
        queues = simulated.queues.select(
            *("seed", "panda_queue", "n_jobs"),
            used_core_h=pl.col("used_core_s") / pl.lit(HOUR_S),
            capacity_core_h=pl.col("capacity_core_s") / pl.lit(HOUR_S),
        )
        of_shares = simulated.fairness.filter(by="gshare")
        unfairness = of_shares.select("seed", unfairness=1 - pl.col("jain").fill_nan(None))
        tasks = simulated.tasks.select(
            *("seed", "jeditaskid", "gshare", "user_class", "created_at"),
            pl.col(DONE).cast(pl.Float64),
            (pl.col("used_core_s") / pl.lit(HOUR_S)).alias(USED),
            *(
                (pl.col(one.column).cast(pl.Float64) / pl.lit(one.per)).alias(one.name)
                for one in QUANTITIES
                if one.column
            ),
        ).join(unfairness, on="seed", how="left", maintain_order="left")
        return {
            seed: cls(rows.drop("seed"), queues.filter(seed=seed).drop("seed"))
            for (seed,), rows in tasks.partition_by("seed", as_dict=True).items()
        }


def same_work(
    before: pl.DataFrame, after: pl.DataFrame, name: str
) -> tuple[FloatArray, FloatArray]:
    """Return what every task took (a column) before and after, for as many jobs as it finished under both.

    Where one side finished more jobs of a task, its part for the number of the other one counts. What a task takes without
    finishing anything counts whole; before, only where it finishes nothing after either: nothing is set off against it.

    Example:
        >>> before = pl.DataFrame({"n_finished": [10.0, 0.0, 8.0], "moved_tb": [1.0, 3.0, 4.0]})
        >>> after = pl.DataFrame({"n_finished": [40.0, 5.0, 0.0], "moved_tb": [5.0, 9.0, 2.0]})
        >>> [side.tolist() for side in same_work(before, after, "moved_tb")]
        [[1.0, 0.0, 0.0], [1.25, 0.0, 2.0]]
    """
    done = [side[DONE].to_numpy() for side in (before, after)]
    fewer = np.minimum(*done)
    parts = [np.where(n > fewer, fewer / np.maximum(n, 1.0), 1.0) for n in done]
    parts[0][(done[0] == 0) & (done[1] > 0)] = 0.0
    took = [side[name].to_numpy() for side in (before, after)]
    return took[0] * parts[0], took[1] * parts[1]


class WhatIf(Protocol):
    """A simulation of a period under several configurations, side by side where that is cheaper.

    The same seed gives every job the same draws under every configuration (common random numbers), whichever others are
    asked with it. One with an attribute ``digest`` (text that changes whenever its answers may) can be kept in a store.
    """

    def __call__(
        self, configs: Sequence[Config], seeds: tuple[int, ...], period: Period
    ) -> Iterable[simulation.Outcome]:
        """Simulate under each configuration, in order."""

    def unknown(self) -> tuple[str, ...]:
        """Return the queues of which only a lower bound of the slots is known."""

    def larger(self, most: float) -> WhatIf:
        """Return the simulation with so many times as many slots there, see ``simulation.of_archive``."""
