"""Decisions on places, whatever chapter made them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import polars as pl

from brokerlab.brokerage.engine.pairs import matched
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import marks_of, rules_of
from brokerlab.brokerage.engine.world import Part, World
from brokerlab.results import Result, Shows


@dataclass(frozen=True, repr=False)
class PlaceDecisions(Result, ABC):
    """What a brokerage decided.

    Attributes:
        places: One row per (task, place) that was looked at: the key, ``check`` (why it was skipped; null: it was not),
            ``failed`` (i64: bit i is set where check i alone says skip) and more.
        tasks: One row per task.
        world: What was decided on.
    """

    shows = Shows(
        about="decisions of a brokerage, one row per task and place",
        columns={
            "jeditaskid": "",
            "at": "",
            "panda_queue": "",
            "check": "",
            "weight": "",
            "rank": "",
            "outcome": "",
            "nucleus": "",
            "n_nuclei": "",
            "n_passed": "",
        },
        keys=(
            "jeditaskid",
            "snapshot",
            "panda_queue",
        ),
        next=(
            "brokerage.funnel(decisions)",
            "brokerage.explain_task(decisions, jeditaskid=...)",
            "brokerage.what_if(decisions, key, values)",
            "brokerage.compare(decisions, others)",
        ),
    )

    places: pl.DataFrame
    tasks: pl.DataFrame
    world: World

    @classmethod
    @abstractmethod
    def of(cls, world: World, parts: Iterable[Part]) -> Self:
        """Name tasks and queues and sum up the tasks."""

    @cached_property
    def known(self) -> dict[int, pl.DataFrame]:
        """Loop to ``t, q, failed`` of the tasks that went through it, sorted."""
        return {1: matched(self.world.facts).hstack(self.places.select("failed"))}

    @property
    def checks(self) -> tuple[Rule, ...]:
        """The checks of single places, in order."""
        return self.world.checks

    @property
    def reasons(self) -> tuple[Rule, ...]:
        """Every reason for which a place may be skipped, in order; a rule may be there twice, of single places first."""
        return (*self.checks, *rules_of(self.world.steps))

    @property
    def marks(self) -> tuple[Rule, ...]:
        """Why queues are marked problematic."""
        return marks_of(self.world.steps)

    def headline(self) -> str:
        """Return what it says, in a line."""
        ends = self.tasks["outcome"].value_counts(sort=True).rows()
        counts = ", ".join(f"{n:,} {outcome}" for outcome, n in ends)
        return f"{self.shows.about}; tasks: {counts or 'none'}"


@dataclass(frozen=True, repr=False)
class QueueDecisions(PlaceDecisions):
    """What a brokerage of queues decided.

    Attributes:
        places: One row per (task, queue) that was a candidate.
        tasks: One row per task.
        world: What was decided on.
        weighed: The queues that reached the weight.
    """

    weighed: pl.DataFrame

    @property
    def queues(self) -> pl.DataFrame:
        """One row per (task, queue) that was a candidate."""
        return self.places

    def frame(self) -> pl.DataFrame:
        """Return the decisions on queues."""
        return self.queues

    def to_dict(self) -> dict[str, Any]:
        """Return the tables and their provenance as plain Python values."""
        return {
            "queues": self.queues.to_dicts(),
            "tasks": self.tasks.to_dicts(),
            "matching": self.world.matching.to_dict(),
            "brokerage": self.world.recipe.name,
            "rules": self.world.rules.to_dict(),
            "config_digest": self.world.config.digest,
            "unasked": self.world.unasked,
        }
