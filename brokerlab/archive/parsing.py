"""Turn whatever a source holds into the canonical types, as Polars expressions (section 0).

Every function returns null for a value it cannot read; ``schema`` tells such a value from a missing
one by comparing with the cleaned source.
"""

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from brokerlab.archive.contracts._columns import FIRST_TIME

LONGEST_SCALAR = 64
"""Longest text [bytes] that is looked at as a number, time or boolean; longer ones are refused."""

_TRUE = ["y", "yes", "1", "t", "true", "1.0"]
_FALSE = ["n", "no", "0", "f", "false", "0.0"]
_TIME = (
    r"^(?<day>\d{4}-\d{2}-\d{2})[T ](?<clock>\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)"
    r" ?(?:[Zz]|(?<sign>[+-])(?<hours>[01]\d|2[0-3])(?::?(?<minutes>[0-5]\d))?)?$"
)
_EXACT_FLOAT = 2.0**53
"""Above this a float no longer names one whole number."""
EXACT_FLOAT32 = 2.0**24
"""The same of 32 bits: numbers of tasks and jobs are larger."""


def is_pattern(name: str) -> bool:
    """Whether Polars takes a name for a selection of columns: ``*``, ``^job.*$``."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def cleaned(column: pl.Expr, source: pl.DataType) -> pl.Expr:
    """Strip blanks and make the empty string and ``NULL`` null; other types pass unchanged."""
    if isinstance(source, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    elif not isinstance(source, pl.String):
        return column
    return column.map_batches(_said, return_dtype=pl.String, is_elementwise=True)


def _said(texts: pl.Series) -> pl.Series:
    """Strip blanks and make what says nothing null; most columns are copied once at most."""
    stripped = texts.str.strip_chars()
    nothing = stripped.is_in(["", "NULL", "null"])
    return stripped.set(nothing, None) if nothing.any() else stripped


def parsed(clean: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr | None:
    """Convert a cleaned column, null where a value cannot be read; None where no value of the source type ever can."""
    if isinstance(source, pl.Categorical | pl.Enum):
        source = pl.String()
    if isinstance(source, pl.Null) or source == target:
        return clean.cast(target)
    if isinstance(target, pl.String):
        return _as_text(clean, source)
    if isinstance(source, pl.String):
        clean = pl.when(clean.str.len_bytes() <= LONGEST_SCALAR).then(clean)
    if isinstance(target, pl.Boolean):
        return _as_flag(clean, source)
    if isinstance(target, pl.Datetime):
        return _as_time(clean, source)
    return _as_number(clean, source, target)


def without_epoch(time: pl.Expr) -> pl.Expr:
    """Make ``1970-01-01 00:00:00`` null: sources write it for "no time"."""
    return pl.when(time != FIRST_TIME).then(time)


def _as_text(clean: pl.Expr, source: pl.DataType) -> pl.Expr | None:
    """Write numbers and booleans as text, whole floats without the ``.0``."""
    if source.is_nested() or isinstance(source, pl.Binary | pl.Object):
        return None
    if source.is_float():
        whole = clean.cast(pl.Int64, strict=False)
        return (
            pl.when(whole.cast(pl.Float64) == clean)
            .then(whole.cast(pl.String))
            .when(clean.is_not_nan())
            .then(clean.cast(pl.String))
        )
    return clean.cast(pl.String)


def _as_flag(clean: pl.Expr, source: pl.DataType) -> pl.Expr | None:
    """Read Y/N, 1/0, T/F, true/false."""
    if source.is_numeric():
        return pl.when(clean == 1).then(True).when(clean == 0).then(False)  # noqa: FBT003
    if not isinstance(source, pl.String):
        return None
    lower = clean.str.to_lowercase()
    return pl.when(lower.is_in(_TRUE)).then(True).when(lower.is_in(_FALSE)).then(False)  # noqa: FBT003


def _as_number(clean: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr | None:
    """Read a number; whole floats such as ``123.0`` count as integers, others are null."""
    if isinstance(target, pl.Float64):
        readable = isinstance(source, pl.String | pl.Boolean) or source.is_numeric()
        return clean.cast(pl.Float64, strict=False) if readable else None
    if source.is_integer() or isinstance(source, pl.Boolean):
        return clean.cast(target, strict=False)
    if isinstance(source, pl.String):
        return clean.map_batches(_whole_of_text, return_dtype=pl.Int64).cast(target, strict=False)
    if isinstance(source, pl.Decimal):  # by way of a float, long keys would lose their last digits
        whole = clean.cast(pl.Int64, strict=False)
        return (
            pl.when(whole.cast(source, strict=False) == clean)
            .then(whole)
            .cast(target, strict=False)
        )
    if source.is_numeric():
        return _whole(clean.cast(pl.Float64, strict=False)).cast(target, strict=False)
    return None


def _whole_of_text(texts: pl.Series) -> pl.Series:
    """Read whole numbers; the costly forms (``123.0``, ``1e3``) only where the plain one fails."""
    text = pl.col(texts.name)
    exact = text.str.replace(r"\.0*$", "").cast(pl.Int64, strict=False)
    other = pl.coalesce(exact, _whole(text.cast(pl.Float64, strict=False)))
    return _with_rest(texts, texts.cast(pl.Int64, strict=False), other)


def _with_rest(texts: pl.Series, plain: pl.Series, other: pl.Expr) -> pl.Series:
    """Fill what the plain form could not read by another one, applied to those values only."""
    left = (plain.is_null() & texts.is_not_null()).arg_true()
    if left.is_empty():
        return plain
    return plain.scatter(left, texts.gather(left).to_frame().select(other).to_series())


def _whole(number: pl.Expr) -> pl.Expr:
    """Keep floats that are exactly a whole number, as Int64."""
    exact = number.is_finite() & (number.abs() <= _EXACT_FLOAT) & (number == number.floor())
    return pl.when(exact).then(number).cast(pl.Int64, strict=False)


def _as_time(clean: pl.Expr, source: pl.DataType) -> pl.Expr | None:
    """Read the time forms of section 0 and convert to UTC without zone."""
    if isinstance(source, pl.Datetime):
        if source.time_zone is not None:
            clean = clean.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return clean.cast(pl.Datetime("us"))
    if isinstance(source, pl.Date):
        return clean.cast(pl.Datetime("us"))
    if not isinstance(source, pl.String):
        return None
    return clean.map_batches(_time_of_text, return_dtype=pl.Datetime("us"))


def _time_of_text(texts: pl.Series) -> pl.Series:
    """Read times; the pattern with zones only where ``YYYY-MM-DD HH:MM:SS`` fails."""
    if (times := _usual_times(texts)) is not None:
        return times
    part = pl.col(texts.name).str.extract_groups(_TIME)
    local = _local_time(part.struct.field("day") + " " + part.struct.field("clock"))
    ahead_min = (
        part.struct.field("hours").cast(pl.Int64) * 60
        + part.struct.field("minutes").cast(pl.Int64).fill_null(0)
    ) * pl.when(part.struct.field("sign") == "-").then(-1).otherwise(1)
    zoned = local - pl.duration(minutes=ahead_min.fill_null(0))
    plain = _local_time(pl.col(texts.name).str.replace("T", " ", literal=True))
    return _with_rest(texts, texts.to_frame().select(plain).to_series(), zoned)


def _usual_times(texts: pl.Series) -> pl.Series | None:
    """Read times since 1970 of ``YYYY-MM-DD HH:MM:SS`` with up to six more digits; None where one is no such time."""
    if (texts.str.len_bytes() < len("2026-12-31 14:05:00")).any():
        return None
    try:
        times = pl.Series(texts.name, pc.cast(texts.to_arrow(), pa.timestamp("us")))
    except pa.ArrowInvalid:
        return None
    return None if (times < FIRST_TIME).any() else times


def _local_time(text: pl.Expr) -> pl.Expr:
    """Read ``YYYY-MM-DD HH:MM:SS`` with or without fraction; null for anything else."""
    return text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
