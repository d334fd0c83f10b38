"""The world of a grid simulation: what does not depend on the settings that are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

import polars as pl

from brokerlab.calibrate.simulate.capacity import LOWER
from brokerlab.calibrate.simulate.grid.arrays import Arrays, arrays_of
from brokerlab.calibrate.simulate.grid.contracts import TABLES
from brokerlab.calibrate.simulate.grid.options import Transfers
from brokerlab.calibrate.simulate.options import QueueRules
from brokerlab.calibrate.simulate.tables import Tables, checked
from brokerlab.errors import ConfigError, DataError
from brokerlab.frames import prepared
from brokerlab.gdpconfig import Config

STAGES = ("jobs", "analysis")
"""Brokerages that can place jobs: of production, of users."""
NOTHING: Mapping[str, pl.DataFrame] = MappingProxyType({})


@dataclass(frozen=True)
class GridWorld:
    """Jobs, queues, data and links of a period, and what the brokerage reads that no decision changes.

    Attributes:
        jobs: As ``contracts.GridJobs``, by pandaid.
        queues: As ``simulate.contracts.Queues``.
        capacity: As ``simulate.contracts.Capacity``.
        delays: As ``simulate.contracts.Delays``.
        tables: Input tables of the brokerage by the chapters' names; ``tasks`` has a row per task and epoch, other tables
            with ``snapshot`` hold for an epoch. Numbers of jobs in them are replaced by those of the simulation.
        epochs: ``snapshot``, ``at``: from when on its tables hold.
        data: ``places``, ``links``, ``sources``, ``present`` as in ``contracts``.
        stage: ``jobs`` (production) or ``analysis``.
        begin: First instant of the simulation.
        start: Jobs made from here on are judged.
        end: Jobs made from here on are not.
        until: Last instant; jobs come until then.
        cycle: From one brokerage to the next.
        rules: Options of the queues.
        transfers: How data move.
        config: The settings that ruled, used where a run names none.
        shares: Tree of the global shares (``name, value, parent``), for the brokerage of users; empty: not known.
        notes: What was approximated, and what is missing, in sentences.
        left_out: ``reason``, ``n_jobs``: jobs of the archive that the simulation does not have.
        seen: What the archive saw of the jobs, and of retries that the simulation makes itself: ``pandaid``,
            ``observed_start``, ``observed_end``, ``observed_outcome``, ``observed_site``, ``observed_ready``,
            ``observed_cores``; empty where there is no archive.
        sources: ``panda_queue``, ``source``: where the slots of the queues come from, also of those that ran nothing, see
            ``capacity.KNOWN`` and ``LOWER``; empty where there is no archive.
        archive_digest: Digest of the archive; empty without one.
        synthetic: The jobs were generated.
    """

    jobs: pl.DataFrame
    queues: pl.DataFrame
    capacity: pl.DataFrame
    delays: pl.DataFrame
    tables: Mapping[str, pl.DataFrame]
    epochs: pl.DataFrame
    data: Mapping[str, pl.DataFrame]
    stage: str
    begin: datetime
    start: datetime
    end: datetime
    until: datetime
    cycle: timedelta
    rules: QueueRules
    transfers: Transfers
    config: Config
    shares: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: tuple[str, ...] = ()
    left_out: pl.DataFrame = field(default_factory=pl.DataFrame)
    seen: pl.DataFrame = field(default_factory=pl.DataFrame)
    sources: pl.DataFrame = field(default_factory=pl.DataFrame)
    archive_digest: str = ""
    synthetic: bool = True

    @cached_property
    def arrays(self) -> Arrays:
        """What the loop works on, made once."""
        return arrays_of(self)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Queues of which only a lower bound of the slots is known."""
        if self.sources.is_empty():
            return ()
        return tuple(self.sources.filter(pl.col("source").is_in(LOWER))["panda_queue"])

    @cached_property
    def checked_tables(self) -> Tables:
        """The queue core's tables, checked once."""
        return checked(self.jobs, self.queues, self.capacity, self.delays)

    @cached_property
    def standing(self) -> Any:
        """The brokerage over the static tables, prepared once; settings are changed on it."""
        from brokerlab.brokerage import live  # heavy, and not needed to look at a world

        return live.prepare(dict(self.tables), stage=self.stage, config=self.config)

    def _repr_html_(self) -> str:
        n = int(self.jobs["brokered"].sum())
        return (
            f"<p>{self.jobs.height:,} jobs, {n:,} of them placed by the brokerage ({self.stage}) every {self.cycle}, at "
            f"{self.queues.height} queues, from {self.begin} to {self.until}</p>"
        )


def of_tables(
    jobs: Any,
    queues: Any,
    tables: Mapping[str, pl.DataFrame],
    epochs: pl.DataFrame,
    *,
    start: datetime,
    end: datetime,
    stage: str = "jobs",
    cycle: timedelta = timedelta(hours=1),
    begin: datetime | None = None,
    until: datetime | None = None,
    capacity: Any | None = None,
    delays: Any | None = None,
    data: Mapping[str, pl.DataFrame] = NOTHING,
    rules: QueueRules | None = None,
    transfers: Transfers | None = None,
    config: Config | None = None,
    shares: pl.DataFrame | None = None,
) -> GridWorld:
    """Make a world of tables; :func:`of_archive` makes one of an archive.

    Args:
        jobs: ``contracts.GridJobs``. Those not ``brokered`` need ``computingsite`` and ``readytime``.
        queues: ``simulate.contracts.Queues``, parents of pseudo-queues.
        tables: Input tables of the brokerage, see :class:`GridWorld`.
        epochs: ``snapshot``, ``at``.
        start: Jobs made from here on are judged ...
        end: ... up to here.
        stage: ``jobs`` or ``analysis``.
        cycle: From one brokerage to the next.
        begin: First instant; default ``start``.
        until: Last instant; default ``end``.
        capacity: ``simulate.contracts.Capacity``.
        delays: ``simulate.contracts.Delays``.
        data: ``places``, ``links``, ``sources``, ``present``; without ``places`` the queues of ``tables`` say where they
            are.
        rules: Options of the queues; default: killed jobs are brokered again, three attempts.
        transfers: How data move.
        config: Settings that ruled.
        shares: Tree of the global shares, for ``analysis``.

    Returns:
        The world.

    Raises:
        SchemaError: Columns are missing or of another type.
        ConfigError: The period is empty, the stage unknown, the cycle shorter than a minute.
        DataError: Keys repeat, queues are unknown, numbers are out of range.
    """
    first, last = begin or start, until or end
    problems = []
    if stage not in STAGES:
        problems.append(f"stage is '{stage}', allowed: {', '.join(STAGES)}")
    if not first <= start < end <= last:
        problems.append(f"begin {first}, start {start}, end {end}, until {last} are not in order")
    if cycle < timedelta(minutes=1):
        problems.append(f"cycle is {cycle}, at least a minute")
    if problems:
        raise ConfigError("grid simulation: " + "; ".join(problems))
    if epochs.is_empty():
        raise DataError("epochs: no row; at least one snapshot is needed")
    given = {"places": places_of(tables), **data}
    held = prepared({**given, "jobs": jobs}, TABLES)
    queue_frames = checked(held["jobs"], queues, capacity, delays)
    return GridWorld(
        jobs=held.pop("jobs").sort("pandaid"),
        queues=queue_frames.queues,
        capacity=queue_frames.capacity,
        delays=queue_frames.delays,
        tables=MappingProxyType(dict(tables)),
        epochs=epochs.sort("at", "snapshot"),
        data=MappingProxyType(held),
        stage=stage,
        begin=first,
        start=start,
        end=end,
        until=last,
        cycle=cycle,
        rules=rules or QueueRules(retry="brokerage"),
        transfers=transfers or Transfers(),
        config=config or Config.empty(),
        shares=pl.DataFrame() if shares is None else shares,
    )


def places_of(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return queue, parent and site of the brokerage's table of queues, as they are last."""
    queues = tables["queues"]
    missing = [
        pl.lit(None, pl.String).alias(name)
        for name in ("unified_name", "pandasite")
        if name not in queues.columns
    ]
    last = queues.with_columns(missing).unique("panda_queue", keep="last", maintain_order=True)
    return last.select("panda_queue", "unified_name", site="pandasite").sort("panda_queue")


def with_capacity(world: GridWorld, capacity: Any) -> GridWorld:
    """Return the world with other slots over time (``simulate.contracts.Capacity``).

    Raises:
        SchemaError: Columns are missing or of another type.
        DataError: Keys repeat, queues are unknown, numbers are out of range.
    """
    held = checked(world.jobs, world.queues, capacity, world.delays)
    return replace(world, capacity=held.capacity)
