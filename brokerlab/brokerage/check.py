"""A check of a brokerage as a value: what it is called, what it reads, when it says *skip*, and how that is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals.stable.v2 as nw

from brokerlab.brokerage.words import filled, names_in

Kind = Literal["persistent", "temporary"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reason:
    """Why a place is skipped, and how to say so.

    Attributes:
        name: Name of the chapter's table, such as ``scratch_disk``.
        source: Chapter and row, such as ``production-job-brokerage.md 5, 20``.
        says: Why the queue is skipped, as a clause; ``{name}`` stands for a column of the pair or for one of ``numbers``.
        inputs: Columns of the comparison, all that it reads.
        keys: gdpconfig keys it reads, as the catalogue writes them.
        kind: ``persistent`` (removed at once) or ``temporary`` (marked, removed later by the last mark).
        numbers: What is compared but is no column: name to expression over ``inputs``.
        variants: Name of a flag (a number or a column) to the clause that is said instead where it is true; the
            first one counts.
    """

    name: str
    source: str
    says: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...] = ()
    kind: Kind = "persistent"
    numbers: Mapping[str, nw.Expr] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> set[str]:
        """Return every name that the clauses and their choice need."""
        clauses = (self.says, *self.variants.values())
        return {name for clause in clauses for name in names_in(clause)} | set(self.variants)

    def columns(self) -> set[str]:
        """Return the columns that must be at hand to tell it."""
        return (self.names() - set(self.numbers)) | set(self.inputs)

    def clause(self, values: Mapping[str, Any]) -> str:
        """Say why a pair is skipped.

        Args:
            values: Columns of the pair and :attr:`numbers`.
        """
        chosen = (clause for flag, clause in self.variants.items() if values[flag])
        return filled(next(chosen, self.says), values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Check(Reason):
    """One check of a (task, queue) pair that looks at nothing but the pair.

    Attributes:
        skip: Expression over ``inputs``, true where the queue is skipped; null counts as not skipped.
    """

    skip: nw.Expr
