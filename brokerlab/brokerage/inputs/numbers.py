"""Rows as whole numbers: several columns, names among them, become one that is grouped, joined and searched quickly."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.numerics import IntArray

MOST = 2**62
"""Numbers stay under it."""
NARROW = 2**31
"""Whole numbers in a range under it stand for themselves."""
FEW = 10_000
"""Up to so many names are sorted; of more the distinct ones are."""


def packed(frame: pl.DataFrame) -> IntArray:
    """Return one number per row (i64, from 0 on), equal where all columns are equal, null to null.

    They ascend with the columns, the first before the second, null before any value; numbers may be left out.

    Example:
        >>> packed(pl.DataFrame({"a": [2, 1, 2], "b": ["y", None, "x"]})).tolist()
        [8, 3, 7]
    """
    found, size = np.zeros(frame.height, dtype=np.int64), 1
    for column in frame.iter_columns():
        places, number = _places(column)
        if size * number >= MOST:
            found, size = _places(pl.Series(found))
        found, size = found * number + places, size * number
    return found


def starts(numbers: IntArray) -> IntArray:
    """Return where runs of equal numbers, from 0 on, start."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def in_order(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the rows sorted by some columns, null first, equals as they stood; names cost no more than numbers."""
    return frame[pl.Series(np.argsort(packed(frame.select(columns)), kind="stable"))]


def _places(column: pl.Series) -> tuple[IntArray, int]:
    """Return the place of each value among all that may be, null being the first, and how many there are."""
    if column.dtype == pl.String and len(column) > FEW:
        numbers = column.cast(pl.Enum(column.unique().drop_nulls().sort())).to_physical()
    elif column.dtype == pl.Boolean or column.dtype.is_integer():
        numbers = column.cast(pl.Int64)
    else:
        numbers = column.rank("dense")
    least, most = (int(end or 0) for end in (numbers.min(), numbers.max()))  # type: ignore[arg-type]
    if most - least >= NARROW:
        numbers = numbers.rank("dense")
        least, most = 1, int(numbers.max() or 0)  # type: ignore[arg-type]
    numbers = numbers.cast(pl.Int64)
    if not numbers.null_count():
        return numbers.to_numpy() - (least - 1), most - least + 2
    return (numbers - (least - 1)).fill_null(0).to_numpy(), most - least + 2
