"""Reading input tables: absent tables are empty, absent columns null, a missing key is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import polars as pl

from brokerlab.errors import SchemaError

Schema: TypeAlias = Mapping[str, type[pl.DataType] | pl.DataType]

SNAPSHOT: Schema = {"snapshot": pl.Int64}
TASK: Schema = {"jeditaskid": pl.Int64}


def read(
    table: str, frame: pl.DataFrame | None, required: Schema, optional: Schema | None = None
) -> pl.DataFrame:
    """Return the named columns of a table, with the types asked for.

    Args:
        table: Its name, for messages.
        frame: The table; null = empty.
        required: Columns that must be there, except in an empty table without columns.
        optional: Columns that are null where they are absent.

    Returns:
        The columns of ``required``, then of ``optional``, rows in the given order.

    Raises:
        SchemaError: Missing columns and columns of another kind, all at once.

    Example:
        >>> read("t", pl.DataFrame({"a": [1]}), {"a": pl.Int64}, {"b": pl.String}).rows()
        [(1, None)]
    """
    wanted = {**required, **(optional or {})}
    if frame is None or frame.width == 0:
        return pl.DataFrame(schema=wanted)
    problems = [
        f"{table}.{name} is missing; found {', '.join(frame.columns)}"
        for name in required
        if name not in frame.columns
    ]
    columns: list[pl.Series] = []
    for name, dtype in wanted.items():
        if name not in frame.columns:
            columns.append(pl.Series(name, [None], dtype=dtype).new_from_index(0, frame.height))
            continue
        try:
            columns.append(frame[name].cast(dtype))
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            problems.append(f"{table}.{name} is {frame.schema[name]}, allowed is {dtype}: {reason}")
    if problems:
        raise SchemaError("; ".join(problems))
    return pl.DataFrame(columns)


def yes(name: str) -> pl.Expr:
    """Return a flag with null as no."""
    return pl.col(name).fill_null(value=False)
