"""A check of a brokerage as a value: what it is called, what it reads, and when it says *skip*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import narwhals.stable.v2 as nw

Kind = Literal["persistent", "temporary"]


@dataclass(frozen=True)
class Check:
    """One check of a (task, queue) pair.

    Attributes:
        name: Name of the chapter's table, such as ``scratch_disk``.
        source: Chapter and row, such as ``production-job-brokerage.md 5, 20``.
        says: Why the queue is skipped, in words; ``{column}`` stands for the pair's value.
        skip: Expression over the columns of a pair, true where the queue is skipped; never null.
        kind: ``persistent`` (removed at once) or ``temporary`` (marked, removed later by the last mark).
        keys: gdpconfig keys it reads, as the catalogue writes them.
        inputs: Columns of the comparison, all that ``skip`` reads.
    """

    name: str
    source: str
    says: str
    skip: nw.Expr
    inputs: tuple[str, ...]
    keys: tuple[str, ...] = ()
    kind: Kind = "persistent"
