"""The decisions as tables: one row per (task, queue), one row per task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.brokerage.check import Check
from brokerlab.brokerage.production_jobs.facts import World

PENDING_MIN = 60
"""A task without candidates waits as long [min]."""


@dataclass(frozen=True)
class Decisions:
    """What a brokerage decided.

    Attributes:
        queues: One row per (task, queue) that was a candidate at all: ``jeditaskid, snapshot, panda_queue``,
            ``check`` (why it was skipped; null: it was not), ``weight``, ``rank``, their factors, ``failed``.
        tasks: One row per task: ``outcome``, ``stage`` that emptied the list, ``pending_min``.
        checks: The checks of single queues; bit i of ``failed`` belongs to check i.
        world: What was decided on.
    """

    queues: pl.DataFrame
    tasks: pl.DataFrame
    checks: tuple[Check, ...]
    world: World

    @classmethod
    def of(
        cls, world: World, checks: Sequence[Check], parts: Sequence[pl.DataFrame], *, hint: bool
    ) -> Decisions:
        """Name tasks and queues and sum up the tasks."""
        facts = world.facts
        pairs = pl.concat(parts)
        names = facts.queues.select("q", "panda_queue")
        keys = facts.tasks.select("t", "jeditaskid", "snapshot")
        queues = pairs.join(names, on="q").join(keys, on="t").sort("t", "q")
        return cls(queues, queues.select("t").unique(), tuple(checks), world)

    def to_frame(self) -> pl.DataFrame:
        """Return the decisions on queues."""
        return self.queues

    def to_dict(self) -> dict[str, Any]:
        """Return both tables as plain Python values."""
        return {"queues": self.queues.to_dicts(), "tasks": self.tasks.to_dicts()}
