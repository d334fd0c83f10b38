"""Hold the input tables of a rule to their contracts: known names, types, missing columns as null."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import SchemaError, nearest

_SHOWN = 3


def prepared(
    tables: Mapping[str, Any], contracts: Mapping[str, type[dy.Schema]], *, exact: bool = False
) -> dict[str, pl.DataFrame]:
    """Return every table of the contracts as a Polars frame; one error lists all that is wrong.

    An absent table is empty, an absent column null; others than the contract's are left out, with ``exact`` refused.
    """
    problems = [
        f"unknown table '{name}': {nearest(name, contracts)}" for name in tables.keys() - contracts
    ]
    result = {}
    for name, contract in contracts.items():
        if name not in tables:
            result[name] = _empty(contract)
            continue
        try:
            frame = polars_frame(tables[name], contract)
        except SchemaError as error:
            problems.append(f"{name}: {error}")
            continue
        if exact:
            problems += _unknown(name, frame, contract)
        result[name], wrong = _conform(name, frame, contract)
        problems += wrong
    if problems:
        raise SchemaError("input tables: " + "; ".join(sorted(problems)))
    return result


def columns_of(frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the columns of a schema, cast; those that the frame lacks are null."""
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    )


def chosen(table: str, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return columns of a table; those that it lacks are refused, all at once."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise SchemaError(
            f"{table} has no column {', '.join(missing)}; found {', '.join(frame.columns)}: add it, or name one so"
        )
    return frame.select(columns)


def polars_frame(table: Any, contract: type[dy.Schema]) -> pl.DataFrame:
    """Return a table as a Polars frame."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, Mapping):
        return _of_columns(table, contract)
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        names = dict.fromkeys(name for row in table for name in row)
        return _of_columns({name: [row.get(name) for row in table] for name in names}, contract)
    try:
        lazy = nw.from_native(table).lazy()
    except TypeError:
        raise SchemaError(
            f"is a {type(table).__name__}; allowed are frames, lists of dicts (rows) and mappings of columns"
        ) from None
    result: pl.DataFrame = lazy.collect("polars").to_native()
    return result


def _of_columns(columns: Mapping[str, Any], contract: type[dy.Schema]) -> pl.DataFrame:
    """Return a frame of Python values, of the contract's types where they are of these."""
    types = _types(contract)
    try:
        return pl.DataFrame(
            [_series(name, values, types.get(name)) for name, values in columns.items()]
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise SchemaError(f"its columns make no table: {reason}") from None


def _series(name: str, values: Any, kind: tuple[pl.DataType, bool] | None) -> pl.Series:
    """Return a column of Python values; those of no contract, or of another type, are as Polars takes them."""
    is_time = kind is not None and isinstance(kind[0], pl.Datetime)
    if kind is not None and not (is_time and any(isinstance(v, int | float) for v in values)):
        try:
            if is_time and any(isinstance(value, str) for value in values):
                texts = pl.Series(name, values, dtype=pl.String)
                times = _times(texts)
                return texts if times.null_count() > texts.null_count() else times
            return pl.Series(name, values, dtype=kind[0], strict=True)
        except (TypeError, pl.exceptions.PolarsError):
            pass
    return pl.Series(name, values, strict=False)


def _times(texts: pl.Series) -> pl.Series:
    """Read times in UTC that begin with the year; others are null: Polars would take 03/04/2026 for a day in April."""
    begins = texts.str.contains(r"^\d{4}-\d{2}-\d{2}(?:$|[T ])")
    times = texts.set(~begins, None).str.to_datetime(time_unit="us", strict=False)
    return times.dt.replace_time_zone(None)


def _unknown(table: str, frame: pl.DataFrame, contract: type[dy.Schema]) -> list[str]:
    """Return which columns the contract does not have, each with the nearest of its own."""
    columns = _types(contract)
    hints = {name: nearest(name, columns) for name in frame.columns if name not in columns}
    if not hints:
        return []
    close = [f"{name} ({hint})" if "?" in hint else name for name, hint in hints.items()]
    return [f"{table} has no column {', '.join(close)}; there are {', '.join(columns)}"]


def _empty(contract: type[dy.Schema]) -> pl.DataFrame:
    return _nothing(contract).clear()


@cache
def _nothing(contract: type[dy.Schema]) -> pl.DataFrame:
    """Return one row of nulls."""
    return pl.DataFrame(
        [pl.Series(name, [None], kind) for name, (kind, _) in _types(contract).items()]
    )


def _conform(
    table: str, frame: pl.DataFrame, contract: type[dy.Schema]
) -> tuple[pl.DataFrame, list[str]]:
    """Return the contract's columns, cast, and what is wrong with them."""
    types = _types(contract)
    if not frame.width and not frame.height:
        return _empty(contract), []
    if _fits(frame, types):
        return frame.select(types.keys()).rechunk(), []
    nothing, there = _nothing(contract), {*frame.columns}
    kept, wrong = [], []
    for name, (kind, nullable) in types.items():
        if name not in there:
            if not nullable and frame.height:
                wrong.append(f"{table}.{name} is missing: add it, it is required")
            kept.append(nothing.get_column(name).new_from_index(0, frame.height))
            continue
        series, problem = _cast(frame.get_column(name), kind)
        if problem or (not nullable and series.null_count()):
            message = problem or f"{series.null_count()} nulls, none is allowed"
            wrong.append(f"{table}.{name}: {message}; mend or leave out those rows")
        kept.append(series)
    return pl.DataFrame(kept).rechunk(), wrong  # Polars 2.1 panics at texts made from empty chunks


def _fits(frame: pl.DataFrame, types: Mapping[str, tuple[pl.DataType, bool]]) -> bool:
    """Tell whether a frame has every column, of its type, and no null where none is allowed."""
    schema = frame.schema
    if any(schema.get(name) != kind for name, (kind, _) in types.items()):
        return False
    return not any(
        frame.get_column(name).null_count() for name, (_, nullable) in types.items() if not nullable
    )


@cache
def _types(contract: type[dy.Schema]) -> dict[str, tuple[pl.DataType, bool]]:
    """Return the columns of a contract: type, and whether null is allowed."""
    return {name: (column.dtype, column.nullable) for name, column in contract.columns().items()}


def _cast(series: pl.Series, dtype: pl.DataType) -> tuple[pl.Series, str]:
    """Return the series in another type, and which values do not fit."""
    if series.dtype == dtype:
        return series, ""
    if isinstance(dtype, pl.Datetime) and series.dtype.is_numeric() and series.count():
        return (
            series,
            f"is {series.dtype}, a time is needed: numbers may count seconds or parts of them",
        )
    if dtype.is_numeric() and series.dtype.is_temporal() and series.count():
        return series, f"is {series.dtype}, a number is needed: give it in the column's unit"
    try:
        if isinstance(dtype, pl.Datetime) and series.dtype == pl.String:
            cast = _times(series)
        else:
            cast = series.cast(dtype, strict=False)
    except pl.exceptions.PolarsError:
        nothing = pl.Series(series.name, [None] * len(series), dtype=dtype)
        return nothing, f"is {series.dtype}, expected {dtype}"
    is_part = dtype.is_integer() and (series.dtype.is_float() or series.dtype.is_decimal())
    rounds = is_part or dtype == pl.Boolean
    if cast.null_count() == series.null_count() and not rounds:
        return cast, ""
    lost = cast.is_null() & series.is_not_null()
    if rounds:
        lost |= cast.cast(series.dtype, strict=False) != series
    if not lost.any():
        return cast, ""
    shown = ", ".join(repr(value) for value in series.filter(lost).head(_SHOWN).to_list())
    return cast, f"{lost.sum()} values are no {dtype} ({shown})"


def latest(queues: pl.DataFrame) -> pl.DataFrame:
    """Return the latest row of each queue, by ``ts`` where there is one, then by its place in the table."""
    if "ts" in queues.columns:
        queues = queues.sort("ts", nulls_last=False, maintain_order=True)
    return queues.unique("panda_queue", keep="last", maintain_order=True)


def doubled(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted.

    Example:
        >>> doubled(["b", "a", "b"])
        ['b']
    """
    return sorted(name for name, n in Counter(names).items() if n > 1)
