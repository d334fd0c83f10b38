"""Tables of any engine: narrow them to what a rule reads, turn times into numbers, collect the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import DataError, SchemaError, nearest

INT, FLOAT, TEXT, TIME, FLAG = (
    nw.Int64(),
    nw.Float64(),
    nw.String(),
    nw.Datetime("us"),
    nw.Boolean(),
)
NATIVE = {
    INT: pl.Int64(),
    FLOAT: pl.Float64(),
    TEXT: pl.String(),
    TIME: pl.Datetime("us"),
    FLAG: pl.Boolean(),
}
"""The types of columns as Polars calls them."""
UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Z", "Zulu")  # names of the zone
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - archive times are UTC without zone
Types = Mapping[str, nw.dtypes.DType]


def narrow(
    frame: Any,
    table: str,
    columns: Types,
    required: Sequence[str],
    problems: list[str] | None = None,
) -> nw.LazyFrame[Any]:
    """Select the named columns in their types; an absent optional one becomes null, as do whole numbers that are NaN or infinite.

    Required columns that are missing, texts and numbers where times are needed, times and lengths of time where numbers are, and
    times with a zone in a session of DuckDB that is not in UTC are added to ``problems``, or raise a SchemaError where that is null.
    """
    lazy = lazy_of(frame, table)
    present = lazy.collect_schema()
    missing = [
        f"{table}.{name}: column missing, {nearest(name, present)}"
        for name in required
        if name not in present
    ]
    kinds = [(name, present[name], dtype) for name, dtype in columns.items() if name in present]
    if lazy.implementation.is_polars():
        missing += [
            f"{table}.{name}: is text, a time is needed: read it with str.to_datetime()"
            for name, result, dtype in kinds
            if dtype == TIME and result == TEXT
        ]
    for name, result, dtype in kinds:
        other = (
            result.is_numeric() if dtype == TIME else dtype.is_numeric() and result.is_temporal()
        )
        if other and collect(lazy.select(nw.col(name).count())).item():  # nulls alone say nothing
            needed = (
                "time is needed: numbers may count seconds or parts of them"
                if dtype == TIME
                else "number is needed: give it in the column's unit"
            )
            missing.append(f"{table}.{name}: is {result}, a {needed}")
    if (
        lazy.implementation.is_duckdb()
    ):  # it gives times with a zone as the clocks of its session show them
        zones = {name: getattr(present.get(name), "time_zone", None) for name in columns}
        missing += [
            f"{table}.{name}: the session's zone is {zone}, UTC is needed: SET TimeZone = 'UTC'"
            for name, zone in zones.items()
            if zone is not None and zone not in UTC
        ]
    if problems is not None:
        problems += missing
    elif missing:
        raise SchemaError(f"cannot read the tables: {'; '.join(missing)}")
    kept = [(name, present.get(name), dtype) for name, dtype in columns.items()]
    if lazy.implementation.is_polars():  # to narwhals an expression costs ten times as much
        native = lazy.to_native().select(_cast(*each, pl, NATIVE[each[2]]) for each in kept)
        chosen: nw.LazyFrame[Any] = nw.from_native(native)
        return chosen
    return lazy.select(_cast(*each, nw, each[2]) for each in kept)


def _cast(
    name: str, kind: nw.dtypes.DType | None, dtype: nw.dtypes.DType, engine: Any, type_: Any
) -> Any:
    """Return a column in a type, as the engine (Polars or narwhals) writes it; null where it is absent."""
    if kind == dtype:
        return name
    column = engine.lit(None) if kind is None else engine.col(name)
    if kind is not None and kind.is_float() and dtype == INT:
        column = engine.when(column.is_finite()).then(column)
    return column.cast(type_).alias(name)


def lazy_of(frame: Any, table: str) -> nw.LazyFrame[Any]:
    """Return a table of any engine; what is in memory becomes Polars, for pandas keeps missing whole numbers as NaN."""
    try:
        result: Any = nw.from_native(frame)
    except TypeError:
        raise SchemaError(
            f"{table} is a {type(frame).__name__}; allowed are frames of Polars, pandas, Arrow, DuckDB or Spark"
        ) from None
    if isinstance(result, nw.DataFrame):
        result = nw.from_native(result.to_polars().lazy())
    lazy: nw.LazyFrame[Any] = result
    return lazy


def collect(frame: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Collect an engine's result as Polars."""
    collected: pl.DataFrame = frame.collect("polars").to_native()
    return collected


def same_engine(frames: Mapping[str, nw.LazyFrame[Any]]) -> None:
    """Refuse tables that are to be joined but live in different engines."""
    result = {name: frame.implementation.value for name, frame in frames.items()}
    if len(set(result.values())) > 1:
        engines = ", ".join(f"{name}: {engine}" for name, engine in result.items())
        raise DataError(f"tables must come from one engine; found {engines}; convert them to one")


def last_attempts(files: nw.LazyFrame[Any], *of: str) -> nw.LazyFrame[Any]:
    """Keep the last attempt of each file, or of each file and value of other columns; rows without ``fileid`` stay.

    Source: docs/rules/archive.md 4.
    """
    key, number = ["jeditaskid", "datasetid", "fileid", *of], nw.col("attemptnr").fill_null(-1)
    counted = files.with_columns(attempt__=number, last__=number.max().over(*key))
    known = counted.filter(nw.col("fileid").is_null() | (nw.col("attempt__") == nw.col("last__")))
    return known.drop("attempt__", "last__")


def quoted(name: str) -> str:
    """Write a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def unpivot(
    frame: nw.LazyFrame[Any], on: Sequence[str], keep: Sequence[str], *, name: str, value: str
) -> nw.LazyFrame[Any]:
    """Stack columns of one type, reading the table once."""
    if not frame.implementation.is_duckdb():
        narrowed = frame.select(*keep, *on)
        return narrowed.unpivot(list(on), index=list(keep), variable_name=name, value_name=value)
    # narwhals would unpivot on another connection than the table's
    names, values = ", ".join(f"'{n}'" for n in on), ", ".join(map(quoted, on))
    kept = ", ".join(map(quoted, keep))
    stacked = f"{kept}, unnest([{names}]) as {quoted(name)}, unnest([{values}]) as {quoted(value)}"
    lazy: nw.LazyFrame[Any] = nw.from_native(frame.to_native().select(stacked))
    return lazy


def microseconds(frame: nw.LazyFrame[Any] | nw.DataFrame[Any], time: nw.Expr) -> nw.Expr:
    """Return a time of a table as microseconds since 1970."""
    if frame.implementation.is_pyspark():
        return microseconds_of_parts(time)
    return (time.cast(TIME) - nw.lit(EPOCH, TIME)).dt.total_microseconds()


def microseconds_of_parts(time: nw.Expr) -> nw.Expr:
    """Return a time as microseconds since 1970, for engines without a function that narwhals knows."""
    part = time.dt
    year = part.year().cast(nw.Int64)
    leap = (year - 1969) // 4 - (year - 1901) // 100 + (year - 1601) // 400
    days = 365 * (year - 1970) + leap + part.ordinal_day() - 1
    minutes = (days * 24 + part.hour()) * 60 + part.minute()
    return ((minutes * 60 + part.second()) * 1_000_000 + part.microsecond()).cast(nw.Int64)
