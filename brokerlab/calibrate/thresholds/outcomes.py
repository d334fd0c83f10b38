"""What a simulation must say for a setting to be judged, and what settings are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import polars as pl

from brokerlab.errors import SchemaError, nearest
from brokerlab.gdpconfig import Config


class Period(NamedTuple):
    """A half-open span of time, UTC without zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Quantity:
    """Something that anyone could care about; less is better for all of them.

    Attributes:
        name: Column of the tasks, or ``unfairness``.
        label: In words.
        unit: Of the value as shown.
        least: Smallest value that can be told from nothing [unit]: no change is given in per cent of less.
        total: Shown as the sum over tasks, else as the mean per task.
    """

    name: str
    label: str
    unit: str
    least: float
    total: bool = False


SECOND_H = 1 / 3600
"""A second [h]."""
QUANTITIES: tuple[Quantity, ...] = (
    Quantity("turnaround_h", "Mean turnaround of a task", "h", SECOND_H),
    Quantity("waiting_h", "Mean wait of a task's jobs", "h", SECOND_H),
    Quantity("moved_tb", "Bytes moved", "TB", 1e-6, total=True),
    Quantity("lost_core_h", "Lost core-hours (killed attempts)", "core h", SECOND_H, total=True),
    Quantity("unfinished", "Tasks not over at the end", "share of tasks", 1e-6),
    Quantity("unfairness", "Unfairness between shares (1 - Jain)", "1", 1e-6),
)
"""What every setting is judged by, in order."""


def quantity_of(name: str) -> Quantity:
    """Return a quantity by its name.

    Example:
        >>> quantity_of("moved_tb").unit
        'TB'
    """
    return next(quantity for quantity in QUANTITIES if quantity.name == name)


@dataclass(frozen=True)
class Limited:
    """A quantity that may get worse only so far, against the current setting.

    Attributes:
        quantity: Of `QUANTITIES`.
        most: Default limit.
        relative: It is in per cent of the current value, else in the quantity's unit.
    """

    quantity: str
    most: float
    relative: bool = False


LIMITS: dict[str, Limited] = {
    "moved_pct": Limited("moved_tb", 5.0, relative=True),
    "lost_pct": Limited("lost_core_h", 10.0, relative=True),
    "unfairness": Limited("unfairness", 0.02),
    "unfinished": Limited("unfinished", 0.01),
}
"""Name of a limit to what it is on. A setting must not look fast by leaving work: hence the one on unfinished tasks."""
OF_TASKS = tuple(quantity.name for quantity in QUANTITIES if quantity.name != "unfairness")
"""Quantities that every task has."""
OBJECTIVES = ("turnaround_h", "moved_tb", "lost_core_h", "unfairness")
"""Objectives of the Pareto front."""
LABELS: dict[str, Any] = {
    "gshare": pl.String,
    "user_class": pl.String,
    "created_at": pl.Datetime("us"),
}
"""What a task may be known by besides; null where a simulation does not say."""

_TASKS = pl.Schema(
    {
        "seed": pl.Int64,
        "jeditaskid": pl.Int64,
        **LABELS,
        "n_jobs": pl.Int64,
        **dict.fromkeys(OF_TASKS, pl.Float64),
    }
)
_QUEUES = pl.Schema(
    {
        "seed": pl.Int64,
        "panda_queue": pl.String,
        "n_jobs": pl.Int64,
        "used_core_h": pl.Float64,
        "capacity_core_h": pl.Float64,
    }
)
_SYSTEM = pl.Schema({"seed": pl.Int64, "unfairness": pl.Float64})
HOUR_S = 3600.0
BYTES_PER_TB = 1e12


@dataclass(frozen=True)
class Outcome:
    """What one setting led to, in the units in which it is judged.

    Attributes:
        tasks: One row per seed and task, sorted: ``seed, jeditaskid, gshare, user_class, created_at, n_jobs`` and the
            quantities ``turnaround_h, waiting_h, moved_tb, lost_core_h, unfinished`` (0 or 1).
        queues: One row per seed and queue, sorted: ``seed, panda_queue, n_jobs, used_core_h, capacity_core_h``.
        system: One row per seed: ``seed, unfairness``.
    """

    tasks: pl.DataFrame
    queues: pl.DataFrame
    system: pl.DataFrame

    @classmethod
    def of(cls, simulated: Simulated) -> Outcome:
        """Read what a simulation says.

        Args:
            simulated: With ``tasks`` (``seed, jeditaskid, turnaround_s``; ``gshare, user_class, created_at, n_jobs,
                mean_waiting_s, transferred_bytes, lost_core_s, censored`` where known), and ``queues``
                (``seed, panda_queue, used_core_s, capacity_core_s, n_jobs``), ``fairness`` (``seed, by, jain``) and
                ``jobs`` (``jeditaskid, creationtime``: a task begins with its first) where there are any. A turnaround
                that is censored counts up to the end.

        Raises:
            SchemaError: Columns are missing.
        """
        tasks = _tasks(_dated(simulated.tasks, getattr(simulated, "jobs", None)))
        return cls(
            tasks=tasks,
            queues=_queues(getattr(simulated, "queues", None)),
            system=_system(getattr(simulated, "fairness", None), tasks),
        )

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """Put the replications of one setting together."""
        return cls(
            tasks=pl.concat([part.tasks for part in parts]).sort("seed", "jeditaskid"),
            queues=pl.concat([part.queues for part in parts]).sort("seed", "panda_queue"),
            system=pl.concat([part.system for part in parts]).sort("seed"),
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the replications."""
        return tuple(self.system["seed"].to_list())

    def of_seed(self, seed: int) -> Outcome:
        """Return one replication."""
        here = pl.col("seed") == seed
        return Outcome(self.tasks.filter(here), self.queues.filter(here), self.system.filter(here))


class Simulated(Protocol):
    """What a simulation gives back: ``simulate.grid.GridOutcome``, or anything with its tables."""

    @property
    def tasks(self) -> pl.DataFrame:
        """One row per seed and task."""


class WhatIf(Protocol):
    """A simulation of a period under a configuration.

    The same seed gives every job the same draws under every configuration (common random numbers). One with an attribute
    ``digest`` (text that changes whenever its answers may) can be kept in a store.
    """

    def __call__(self, config: Config, seeds: tuple[int, ...], period: Period) -> Simulated:
        """Simulate."""


@runtime_checkable
class OfCapacity(Protocol):
    """A simulation that knows of which queues the slots are unknown."""

    def unknown(self) -> tuple[str, ...]:
        """Return the queues of which only a lower bound of the slots is known."""

    def larger(self, most: float) -> Self:
        """Return the simulation with so many times as many slots there, see ``simulate.grid.of_archive``."""


def _need(frame: pl.DataFrame, columns: Sequence[str], name: str) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        hints = "; ".join(
            f"{name}.{column}: {nearest(column, frame.columns)}" for column in missing
        )
        raise SchemaError(f"the simulation's tables lack {hints}")


def _dated(tasks: pl.DataFrame, jobs: pl.DataFrame | None) -> pl.DataFrame:
    """Say when tasks begin, where only their jobs tell."""
    if "created_at" in tasks.columns or jobs is None or "creationtime" not in jobs.columns:
        return tasks
    first = jobs.group_by("jeditaskid").agg(created_at=pl.col("creationtime").min())
    return tasks.join(first.drop_nulls("jeditaskid"), on="jeditaskid", how="left")


def _tasks(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks in hours and terabytes."""
    _need(frame, ["seed", "jeditaskid", "turnaround_s"], "tasks")
    sources = {
        "turnaround_h": ("turnaround_s", HOUR_S),
        "waiting_h": ("mean_waiting_s", HOUR_S),
        "moved_tb": ("transferred_bytes", BYTES_PER_TB),
        "lost_core_h": ("lost_core_s", HOUR_S),
        "unfinished": ("censored", 1.0),
    }

    def known(name: str) -> pl.Expr:
        return pl.col(name) if name in frame.columns else pl.lit(None)

    told = {
        name: (known(column).cast(pl.Float64) / pl.lit(unit)).fill_null(0.0)
        for name, (column, unit) in sources.items()
    }
    labels = {name: known(name).cast(kind) for name, kind in LABELS.items()}
    n_jobs = known("n_jobs").cast(pl.Int64).fill_null(1)
    picked = frame.select("seed", "jeditaskid", **labels, n_jobs=n_jobs, **told)
    return picked.select(_TASKS.names()).cast(_TASKS).sort("seed", "jeditaskid")


def _queues(frame: pl.DataFrame | None) -> pl.DataFrame:
    if frame is None or frame.is_empty():
        return pl.DataFrame(schema=_QUEUES)
    _need(frame, ["seed", "panda_queue", "used_core_s", "capacity_core_s", "n_jobs"], "queues")
    return (
        frame.select(
            "seed",
            "panda_queue",
            "n_jobs",
            *(
                (pl.col(f"{name}_core_s") / pl.lit(HOUR_S)).alias(f"{name}_core_h")
                for name in ("used", "capacity")
            ),
        )
        .cast(_QUEUES)
        .sort("seed", "panda_queue")
    )


def _system(frame: pl.DataFrame | None, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return 1 - Jain's index per seed: between shares, of speed where that is measured; null where nothing is known."""
    seeds = tasks.select(pl.col("seed").unique().sort())
    if frame is None or frame.is_empty():
        return seeds.with_columns(unfairness=pl.lit(None, pl.Float64)).cast(_SYSTEM)
    _need(frame, ["seed", "by", "jain"], "fairness")
    of_shares = frame.filter(pl.col("by") == "gshare")
    if "measure" in frame.columns:
        of_shares = of_shares.filter(pl.col("measure") == "speed")
    told = of_shares.select("seed", unfairness=1 - pl.col("jain").fill_nan(None))
    return seeds.join(told.cast(_SYSTEM), on="seed", how="left").cast(_SYSTEM).sort("seed")
