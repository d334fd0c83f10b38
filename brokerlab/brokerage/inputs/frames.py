"""Where tables enter: held to their contracts, or read column by column; what is missing is noted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import dataframely as dy
import polars as pl

from brokerlab.errors import SchemaError
from brokerlab.frames import polars_frame, prepared

Schema: TypeAlias = Mapping[str, type[pl.DataType] | pl.DataType]

SNAPSHOT: Schema = {"snapshot": pl.Int64}
TASK: Schema = {"jeditaskid": pl.Int64}


def read(
    table: str, frame: pl.DataFrame | None, required: Schema, optional: Schema | None = None
) -> pl.DataFrame:
    """Return the named columns of a table (null = empty), with the types asked for; optional ones may be absent, and are null.

    Raises:
        SchemaError: Missing columns and columns of another kind, all at once.
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


def read_given(
    tables: Mapping[str, Any],
    contracts: Mapping[str, type[dy.Schema]],
    *,
    later: Collection[str] = (),
    others: Mapping[str, type[dy.Schema]] | None = None,
) -> tuple[dict[str, pl.DataFrame], frozenset[str]]:
    """Hold input tables to their contracts; one that is not given has no rows.

    ``others``: contracts of another brokerage: its tables, and its columns of the same tables, are let pass.

    Returns:
        Every table, null for NaN; and the names of those that were not given, nor are named in ``later``: nothing is known of what they
        would say, while a table without rows says that there is nothing.

    Raises:
        SchemaError: Unknown tables and columns, values of another type, nulls where none is allowed: all at
            once, with the nearest names.
    """
    missing = contracts.keys() - tables.keys() - set(later)
    own = {name: table for name, table in tables.items() if name in contracts}
    strange = {name: table for name, table in tables.items() if name not in {*own, *(others or {})}}
    for name in own.keys() & (others or {}).keys():
        extra = (others or {})[name].columns().keys() - contracts[name].columns().keys()
        own[name] = _without(own[name], contracts[name], extra)
    made = prepared(own | strange, contracts, exact=True)
    # Polars takes NaN for larger than any number
    numbers = {
        name: frame.with_columns(pl.col(pl.Float64).fill_nan(None)) for name, frame in made.items()
    }
    return numbers, frozenset(missing)


def _without(table: Any, contract: type[dy.Schema], columns: Collection[str]) -> Any:
    """Return a table without some columns; as it is where it cannot be read."""
    try:
        return polars_frame(table, contract).drop(columns, strict=False)
    except SchemaError:
        return table
