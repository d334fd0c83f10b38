"""Answers: sentences with the numbers they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from brokerlab.brokerage.words import counted, worded
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.results import Result, Shows

BARE = ("", "ratio", "factor", "weight")
"""Units of the catalogue that say nothing behind a number."""


@dataclass(frozen=True)
class Setting:
    """A gdpconfig key, its value in force (null: not known) and unit (empty: none), and whether that is the default."""

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


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Result):
    """An answer about a task.

    Attributes:
        jeditaskid: The task.
        snapshot: The instant.
        outcome: How it ended.
        sentences: The answer, the first sentence says what happened and why.
    """

    shows = Shows(
        about="an answer about a task", next=("brokerage.what_would_help(decisions)", ".text")
    )

    jeditaskid: int
    snapshot: int
    outcome: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The answer, one sentence a line."""
        return "\n".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return asdict(self) | {"text": self.text}

    def headline(self) -> str:
        """Return what it says, in a line."""
        return self.text


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Answer):
    """Answer to the question why a task was, or was not, sent to a place.

    Attributes:
        place: Name of the queue or nucleus.
        outcome: ``candidate``; ``skipped``; ``task_ended`` (before any place was looked at); ``not_a_candidate`` (the
            place was not looked at for this task); ``unknown`` (there is no such place).
        check: Why it was skipped; null otherwise.
        obstacles: All that stands in the way, the reason of the skip first.
        numbers: Of a candidate: its row of the decisions' table ``weighed`` (``nuclei``).
    """

    place: str
    check: str | None = None
    obstacles: tuple[Obstacle, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """Return one row per reason that stands in the way: ``check, clause, source, kind``."""
        names = ("check", "clause", "source", "kind")
        rows = [[getattr(one, name) for name in names] for one in self.obstacles]
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


@dataclass(frozen=True, kw_only=True, repr=False)
class TaskExplanation(Answer):
    """Answer to the question what became of a task.

    Attributes:
        outcome: As in the table of tasks.
        funnel: What each check removed, only those that removed something; see :func:`brokerlab.brokerage.funnel`.
    """

    funnel: tuple[dict[str, Any], ...] = ()

    def frame(self) -> pl.DataFrame:
        """Return the funnel of the task."""
        return pl.DataFrame(list(self.funnel))


def others(obstacles: Sequence[Obstacle]) -> list[str]:
    """Return the lines about what else stands in the way."""
    if not obstacles:
        return ["No other check stands in the way."]
    lines = [
        f"  - {each.text}{', temporary' if each.kind == 'temporary' else ''}" for each in obstacles
    ]
    verb = "stands" if len(obstacles) == 1 else "stand"
    return [f"{counted(len(obstacles), 'other check')} {verb} in the way as well:", *lines]


def setting(config: Config, key: str, place: str, scope: dict[str, str | None]) -> Setting:
    """Return the value of a key that acts on a task; ``place``: ``app/component`` where it is looked up."""
    if not catalogue.rows_of(key):  # a key of an organisation's own, read by its own checks
        return Setting(key, None, "", is_default=False)
    app, component = place.split("/")
    found = config.found(key, app=app, component=component, vo="atlas", **scope)
    name = key
    for placeholder, text in scope.items():
        name = name.replace(f"[_<{placeholder}>]", "").replace(f"<{placeholder}>", text or "")
    exact = found.entry.key if found.entry else name
    return Setting(exact, found.value, found.row.unit, found.entry is None)
