"""A question about a task, and perhaps a place: what is alike in every brokerage."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from brokerlab.brokerage.engine.decisions import PlaceDecisions
from brokerlab.brokerage.engine.what_if import Waived
from brokerlab.brokerage.explaining.answer import Explanation, Obstacle, others
from brokerlab.brokerage.explaining.pair import Pair
from brokerlab.brokerage.explaining.subject import Subject

_NEAR = 3


@dataclass(frozen=True)
class Question(ABC):
    """A task of decisions, and the place asked about.

    Attributes:
        decisions: What was decided.
        who: The task.
        name: The place; empty where the task as a whole is asked about.
    """

    NOUN: ClassVar[tuple[str, str]]
    """One place, and several."""

    decisions: Any
    who: Subject
    name: str = ""

    @property
    def shown(self) -> str:
        """The place in words."""
        return self.name

    @property
    def not_sent(self) -> str:
        """The verb of a place that was skipped."""
        return "was not sent to"

    @abstractmethod
    def explained(self) -> Explanation:
        """Return why the task was, or was not, sent to the place."""

    @abstractmethod
    def ending(self) -> str:
        """Say in a clause why the task found no place."""

    @abstractmethod
    def goes_to(self, seen: PlaceDecisions) -> str:
        """Say where the task goes, after its name."""

    def remarks(self) -> list[str]:
        """Return what is said of the task as a whole besides."""
        return []

    def answer(self, outcome: str, *sentences: str, **more: Any) -> Explanation:
        """Return the answer."""
        return Explanation(
            jeditaskid=self.who.jeditaskid,
            snapshot=self.who.snapshot,
            place=self.name,
            outcome=outcome,
            sentences=sentences,
            **more,
        )

    def skipped(
        self, check: str, obstacles: Sequence[Obstacle], besides: Iterable[str] = ()
    ) -> Explanation:
        """Return the answer about a place that was skipped: the reason, then all else that stands in the way.

        Args:
            check: Why it was skipped.
            obstacles: All reasons against it.
            besides: What is said at the end.
        """
        first = obstacles[0]
        says = [f"{self.who.text} {self.not_sent} {self.shown}: {first.text}."]
        if first.check != check:
            says.append(
                f"That marks the queue as problematic, and the final list drops it ({check})."
            )
        if first.kind == "temporary":
            says.append("This is a temporary problem: it may be gone at the next brokerage.")
        says += [*others(obstacles[1:]), *besides, *self.who.again()]
        return self.answer("skipped", *says, check=check, obstacles=tuple(obstacles))

    def obstacles(self, found: Waived, failed: int) -> list[Obstacle]:
        """Return all that skips a place, with the numbers compared.

        Args:
            found: The place without the checks that skip it.
            failed: Bits of the checks of single places that it fails: they stand before rules of their name.
        """
        decisions, world = self.decisions, self.decisions.world
        known = {rule.name: rule for rule in (*decisions.reasons, *decisions.marks)}
        known |= {rule.name: rule for bit, rule in enumerate(decisions.checks) if failed >> bit & 1}
        facts = world.in_loop(pl.DataFrame({"t": [found.t]}), self.who.row.get("loop", 1))
        pair = Pair(replace(world, facts=facts), found.t, found.q, found.late)
        return pair.obstacles([known[name] for name in found.checks])

    def made_of(self) -> str:
        """Introduce the factors of a weight: of an organisation's own they are only what it may be made of."""
        brokerage = self.decisions.world.brokerage
        if brokerage.own_weight is None:
            return "The weight is the product of"
        return f"The weight is that of brokerage {brokerage.name}; the factors that it may read are"

    def near(self, names: Sequence[str], otherwise: str) -> str:
        """Return the names that the place may be a slip of, else another hint."""
        close = difflib.get_close_matches(self.name, names, n=_NEAR)
        return f"did you mean {' or '.join(close)}?" if close else otherwise
