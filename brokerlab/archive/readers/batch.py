"""The unit in which readers hand over rows."""

from dataclasses import dataclass, field

import polars as pl

REFUSED = {"row": pl.Int64, "key": pl.String, "reason": pl.String}
"""Columns of rows that a reader could not even cut into columns."""


@dataclass(frozen=True)
class Batch:
    """Rows of one table as the source holds them; columns may still be text and have the source's names.

    Attributes:
        rows: Row number in the source of each row, first data row = 1; rows made of one record share its.
        refused: ``row, key, reason`` of rows that have no place in ``frame``.
        notes: What the reader converted or inferred, in sentences.
    """

    table: str
    frame: pl.DataFrame
    rows: pl.Series
    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFUSED))
    notes: tuple[str, ...] = ()


def numbered(frame: pl.DataFrame, first: int = 1) -> pl.Series:
    """Return consecutive row numbers for a frame."""
    return pl.int_range(first, first + len(frame), eager=True).alias("row")
