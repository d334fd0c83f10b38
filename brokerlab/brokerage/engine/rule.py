"""A rule of a brokerage as a value: when a place is skipped, what is compared, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

from brokerlab.brokerage.words import filled, names_in

Kind = Literal["persistent", "temporary"]
Scope = Literal["pair", "task"]
OWN = ("t", "q", "check", "mark")
"""Columns of the evaluation itself: task, place, why it was skipped so far, which temporary check marks it."""
SETTING = "$"
"""Begins the name of a column that holds a setting."""


def setting(key: str) -> pl.Expr:
    """Return the value of a gdpconfig key, as the catalogue writes it, for the task at hand; the task fills placeholders."""
    return pl.col(f"{SETTING}{key}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """When a place is skipped, and how to say so.

    Attributes:
        name: Name of the chapter's table, such as ``scratch_disk``.
        source: Chapter and row, such as ``production-jobs.md 2``.
        says: Why the queue is skipped, as a clause; ``{name}`` stands for a column of the pair or for one of ``numbers``.
        when: True where the place is skipped; null counts as false.
        scope: ``pair``: it looks at one task and one place; ``task``: at all places of a task that are left.
        keys: gdpconfig keys it reads, as the catalogue writes them; those that stand in its expressions (:func:`setting`) are added.
        kind: ``persistent`` or ``temporary`` (it may be gone at the next brokerage). Checks of single places for production
            jobs remove at once if they are persistent; temporary ones mark, and the last mark removes later.
        numbers: What is compared but is no column: name to expression.
        variants: Name of a flag (a number or a column) to the clause that is said instead where it is true; the
            first one counts.
    """

    name: str
    source: str
    says: str
    when: pl.Expr
    scope: Scope = "pair"
    keys: tuple[str, ...] = ()
    kind: Kind = "persistent"
    numbers: Mapping[str, pl.Expr] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Add the keys that stand in the expressions."""
        result = (name.removeprefix(SETTING) for name in self.reads if name.startswith(SETTING))
        object.__setattr__(self, "keys", tuple(dict.fromkeys((*self.keys, *result))))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Columns that the rule and its numbers read, in the order in which they stand there."""
        expressions = (self.when, *self.numbers.values())
        names = (name for each in expressions for name in each.meta.root_names())
        return tuple(dict.fromkeys(name for name in names if name not in OWN))

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads beside settings."""
        return tuple(name for name in self.reads if not name.startswith(SETTING))

    def columns(self) -> tuple[str, ...]:
        """Return the columns that must be at hand to say it: what it reads, then what else its clauses name."""
        clauses = (*self.variants.values(), self.says)
        named = [*self.variants, *(name for clause in clauses for name in names_in(clause))]
        own = (name for name in named if name not in self.numbers)
        return tuple(dict.fromkeys((*self.reads, *own)))

    def clause(self, values: Mapping[str, Any]) -> str:
        """Say why a pair is skipped; ``values``: columns of the pair and :attr:`numbers`."""
        chosen = (clause for flag, clause in self.variants.items() if values[flag])
        return filled(next(chosen, self.says), values)


@dataclass(frozen=True)
class Chapter:
    """Makes the rules of a chapter: what stands in their sources before the row, and the kind where none is said."""

    prefix: str
    kind: Kind = "persistent"

    def __call__(self, row: str, name: str, says: str, when: pl.Expr, **more: Any) -> Rule:
        """Return the rule of a row; ``more`` are further attributes of :class:`Rule`."""
        source, given = self.prefix + row, {"kind": self.kind, **more}
        return Rule(name=name, source=source, says=says, when=when, **given)
