"""What a simulation must say for a setting to be judged, what settings are judged by, and the grid simulator as such a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from brokerlab.archive.store import open_archive
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation.capacity import read_capacity
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray
from brokerlab.rulesets import RuleSetName, differences
from brokerlab.schemas import digest_of
from brokerlab.times import duration_us
from brokerlab.units import HOUR_S

if TYPE_CHECKING:
    from brokerlab.archive import Archive


class Period(NamedTuple):
    """A half-open span of time, UTC without zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Quantity:
    """Something that anyone could care about; less is better for all of them.

    Attributes:
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


SECOND_H = 1 / HOUR_S
"""A second [h]."""
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
    asked with it. One with an attribute ``digest`` (text that changes whenever its answers may) can be kept in a store; one with
    ``together`` (of the number of seeds and the period: how many settings it simulates side by side) is asked so many first.
    """

    def __call__(
        self, configs: Sequence[Config], seeds: tuple[int, ...], period: Period
    ) -> Iterable[simulation.Outcome]:
        """Simulate under each configuration, in order."""

    def unknown(self) -> tuple[str, ...]:
        """Return the queues of which only a lower bound of the slots is known."""

    def larger(self, most: float) -> WhatIf:
        """Return the simulation with so many times as many slots there, see ``simulation.of_archive``."""


# --- the grid simulator -----------------------------------------------------------------------------------------------


MOST_JOBS = 5_000_000
"""Jobs of all worlds that are simulated side by side at most; each takes some 400 bytes."""
VERSION = 8
"""Changes when the simulator's answers do, other than by a switch of its rule sets: kept results are then not found."""


@dataclass(frozen=True)
class GridWhatIf:
    """Simulations of an archive's periods, see :func:`of_archive`; ``worlds`` are read as far as they are needed.

    Another process reads the worlds itself: they are larger than what they are read from. ``digest`` is of the archive, the rules
    that decide and everything the worlds depend on; ``given`` the file of known slots, empty: none.
    """

    path: Path
    periods: tuple[Period, ...]
    drain: str
    options: dict[str, Any]
    digest: str
    given: str = ""
    worlds: dict[Period, simulation.World] = field(default_factory=dict, repr=False, compare=False)

    def __call__(
        self, configs: Sequence[Config], seeds: tuple[int, ...], period: Period
    ) -> Iterator[simulation.Outcome]:
        """Simulate a period under several settings, as many side by side as fit into memory."""
        world, together = self.world(period), self.together(len(seeds), period)
        for first in range(0, len(configs), together):
            yield from simulation.run_each(world, configs[first:][:together], seeds=seeds)

    def together(self, n_seeds: int, period: Period) -> int:
        """Return how many settings are simulated side by side."""
        return max(MOST_JOBS // max(n_seeds * self.world(period).jobs.height, 1), 1)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the worlds behind."""
        return {**vars(self), "worlds": {}}

    def world(self, period: Period) -> simulation.World:
        """Return the world of a period, read once."""
        if period not in self.worlds:
            left = timedelta(microseconds=duration_us(self.drain, "drain"))
            self.worlds[period] = simulation.of_archive(
                open_archive(self.path), start=period.start, end=period.end - left, drain=self.drain,
                **self.options,
            )  # fmt: skip
        return self.worlds[period]

    @property
    def cycle(self) -> str:
        """From one brokerage to the next."""
        return str(self.options["cycle"])

    @property
    def conditions(self) -> dict[str, str]:
        """What a proposal says of the simulation, so that a later archive can be simulated under the same conditions."""
        known = {"capacity": self.given} if self.given else {}
        return {"stage": self.options.get("stage", "jobs"), "cycle": self.cycle, **known}

    def sources(self) -> pl.DataFrame:
        """Return ``panda_queue``, ``source`` of the slots in the first world that was read, see ``simulation.capacity``."""
        worlds = [self.worlds[period] for period in self.periods if period in self.worlds]
        return worlds[0].sources if worlds else pl.DataFrame()

    @property
    def n_unmade(self) -> int:
        """Jobs of the worlds that were read that the archive never made."""
        return sum(world.n_unmade for world in self.worlds.values())

    def unknown(self) -> tuple[str, ...]:
        """Return the queues of which only a lower bound of the slots is known in some period."""
        names = {name for period in self.periods for name in self.world(period).unknown}
        return tuple(sorted(names))

    def larger(self, most: float) -> GridWhatIf:
        """Return the simulation with so many times as many slots where they are a lower bound."""
        options = {**self.options, "capacity_most": most}
        return replace(self, options=options, digest=digest_of([self.digest, most]), worlds={})

    def validate(self, period: Period, **options: Any) -> simulation.Validation:
        """Compare a period, as it was set, with what was seen; see :func:`simulation.validate`."""
        return simulation.validate(self.world(period), **options)


def of_archive(
    archive: Archive,
    periods: Sequence[Period],
    *,
    drain: str = "1d",
    cycle: str = "",
    capacity: pl.DataFrame | str | Path | None = None,
    rules: RuleSetName = "document",
    **options: Any,
) -> GridWhatIf:
    """Simulate some periods of an archive.

    The tasks that are judged are made in a period but its last ``drain``, in which they may end: nothing after the period
    is looked at but how long jobs that were made in it took, so that what is chosen on one knows nothing of a later one.
    An empty ``cycle`` is what the archive shows; ``capacity`` are known slots (:func:`read_capacity`; null or an empty
    text: none but the archive's); further options are those of :func:`simulation.of_archive`.

    Raises:
        ConfigError: A period that is not longer than ``drain``; no such file of slots.
        DataError: What is given as slots is none.
    """
    left = timedelta(microseconds=duration_us(drain, "drain"))
    short = [
        f"{period.start} to {period.end}" for period in periods if period.end - period.start <= left
    ]
    if short:
        raise ConfigError(f"periods {'; '.join(short)}: must be longer than drain={drain}")
    given = None if isinstance(capacity, str) and not capacity else capacity
    known = None if given is None else read_capacity(given)
    options |= {"cycle": cycle or simulation.cycle_seen(archive, options.get("stage", "jobs"))}
    about = {name: repr(value) for name, value in sorted(options.items())}
    slots = "" if known is None else known.write_csv()
    switches = differences().select("chapter", "switch", rules).rows()
    digest = digest_of([VERSION, switches, archive.digest, drain, about, slots])
    options |= {"capacity": known, "rules": rules}
    source = "a frame, not a file" if isinstance(given, pl.DataFrame) else str(given or "")
    return GridWhatIf(archive.path, tuple(periods), drain, options, digest, source)
