"""Answers: sentences with the numbers they rest on."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.words import worded
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue

BARE = ("", "ratio", "factor", "weight")
"""Units of the catalogue that say nothing behind a number."""


@dataclass(frozen=True)
class Setting:
    """A gdpconfig key with the value in force.

    Attributes:
        key: Exact key.
        value: Its value; null where it is not known.
        unit: Unit, empty for none.
        is_default: It is not set: the default of the catalogue.
    """

    key: str
    value: Any
    unit: str
    is_default: bool

    @property
    def text(self) -> str:
        """The setting in words."""
        if self.value is None:
            return f"gdpconfig {self.key}"
        default = " by default" if self.is_default else ""
        unit = "" if self.unit in BARE else f" {self.unit}"
        return f"{self.key} is {worded(self.value)}{unit}{default}"


@dataclass(frozen=True)
class Obstacle:
    """One reason why a place is skipped.

    Attributes:
        check: Name of the check.
        clause: Why, with the numbers compared.
        source: Chapter and row.
        kind: ``persistent`` or ``temporary``.
        settings: The keys it reads.
    """

    check: str
    clause: str
    source: str
    kind: str
    settings: tuple[Setting, ...]

    @property
    def text(self) -> str:
        """The clause with the check's name and settings."""
        notes = [f"check {self.check}", *(setting.text for setting in self.settings)]
        return f"{self.clause} ({'; '.join(notes)})"


@dataclass(frozen=True)
class Explanation:
    """Answer to the question why a task was, or was not, sent to a place.

    Attributes:
        jeditaskid: The task.
        snapshot: The instant.
        place: Name of the queue or nucleus.
        outcome: ``candidate``; ``skipped``; ``task_ended`` (before any place was looked at); ``not_a_candidate`` (the
            place was not looked at for this task); ``unknown`` (there is no such place).
        check: Why it was skipped; null otherwise.
        sentences: The answer, the first sentence says what happened and why.
        obstacles: All that stands in the way, the reason of the skip first.
        numbers: Of a candidate: rank, weight, factors and counts.
    """

    jeditaskid: int
    snapshot: int
    place: str
    outcome: str
    check: str | None
    sentences: tuple[str, ...]
    obstacles: tuple[Obstacle, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The answer, one sentence a line."""
        return "\n".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return asdict(self) | {"text": self.text}

    def _repr_html_(self) -> str:
        return as_html(self.sentences)


@dataclass(frozen=True)
class TaskExplanation:
    """Answer to the question what became of a task.

    Attributes:
        jeditaskid: The task.
        snapshot: The instant.
        outcome: As in the table of tasks.
        sentences: The answer.
        funnel: What each check removed, only those that removed something; see :func:`brokerlab.brokerage.funnel`.
    """

    jeditaskid: int
    snapshot: int
    outcome: str
    sentences: tuple[str, ...]
    funnel: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """The answer, one sentence a line."""
        return "\n".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return asdict(self) | {"text": self.text}

    def _repr_html_(self) -> str:
        return as_html(self.sentences)


def as_html(sentences: Sequence[str]) -> str:
    """Return the first sentence in bold, the others below it."""
    first, *others = (html.escape(sentence) for sentence in sentences)
    return f"<p><b>{first}</b></p>" + "".join(f"<div>{sentence}</div>" for sentence in others)


def obstacle(reason: Rule, clause: str, settings: Sequence[Setting]) -> Obstacle:
    """Return a reason with its clause filled in."""
    return Obstacle(reason.name, clause, reason.source, reason.kind, tuple(settings))


def setting(config: Config, key: str, place: str, scope: dict[str, str | None]) -> Setting:
    """Return the value of a key that acts on a task.

    Args:
        config: The configuration.
        key: Key as the catalogue writes it.
        place: ``app/component`` where it is looked up.
        scope: Values of placeholders.
    """
    if not catalogue.rows_of(key):  # a key of an organisation's own, read by its own checks
        return Setting(key, None, "", is_default=False)
    app, component = place.split("/")
    found = config.found(key, app=app, component=component, vo="atlas", **scope)
    name = key
    for placeholder, text in scope.items():
        name = name.replace(f"[_<{placeholder}>]", "").replace(f"<{placeholder}>", text or "")
    exact = found.entry.key if found.entry else name
    return Setting(exact, found.value, found.row.unit, found.entry is None)
