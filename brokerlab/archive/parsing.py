"""Turn whatever a source holds into the canonical types, as Polars expressions (section 0).

Every function returns null for a value it cannot read; ``schema`` tells such a value from a missing
one by comparing with the cleaned source. Dates as Europe and America write them are read in one order of day
and month for a whole source, never guessed per row (the second half).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from brokerlab.archive.contracts._columns import FIRST_TIME
from brokerlab.errors import SchemaError
from brokerlab.lazy import Later

pa, pc = Later("pyarrow"), Later("pyarrow.compute")

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


def low(name: str) -> str:
    """Write the name of a column without blanks around it and without case, which tell no columns apart."""
    return name.strip().lower()


def by_low(names: Iterable[str]) -> dict[str, str]:
    """Return names as a source writes them by what tells them apart."""
    return {low(name): name for name in names}


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


# --- dates of Europe and America --------------------------------------------------------------------------------------


Order = Literal["day-first", "month-first"]
ORDERS = ("day-first", "month-first")

_CLOCK = (
    r"(?:(?:,? +|T)(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?<part>\.\d{1,9})?)?)?"
    r" ?(?<zone>[Zz]|[+-]\d{2}:?\d{2})?$"
)
_SWAPPED = r"^(?<first>\d{1,2})[./\-](?<second_number>\d{1,2})[./\-](?<year>\d{4})" + _CLOCK
_SHORT = r"^(?<year>\d{4})[./\-](?<month>\d{1,2})[./\-](?<day>\d{1,2})" + _CLOCK
_USUAL = len("2026-12-31 14:05:00")
_MONTHS = 12
_DAYS = 31


@dataclass
class Evidence:
    """What the dates of a source tell about the order of day and month."""

    # by order, the first date that can only be read so: column, value, row
    examples: dict[Order, tuple[str, str, int]] = field(default_factory=dict)
    open: tuple[str, str, int] | None = None  # the first date that can be read both ways

    @classmethod
    def of(cls, columns: Iterable[tuple[str, pl.Series, pl.Series]]) -> "Evidence":
        """Look at name, texts and row numbers of every column of times, part by part."""
        evidence = cls()
        for name, values, rows in columns:
            evidence.add(name, values, rows)
        return evidence

    def add(self, name: str, values: pl.Series, rows: pl.Series) -> None:
        """Look at a column of texts."""
        part = values.str.strip_chars().str.extract_groups(_SWAPPED)
        numbers = part.struct.unnest().select(
            pl.col("first", "second_number").cast(pl.Int64, strict=False)
        )
        first, second = numbers["first"], numbers["second_number"]
        small = (first <= _MONTHS) & (second <= _MONTHS)
        result: dict[Order, pl.Series] = {
            "day-first": first.is_between(_MONTHS + 1, _DAYS) & (second <= _MONTHS),
            "month-first": second.is_between(_MONTHS + 1, _DAYS) & (first <= _MONTHS),
        }
        for order, hits in result.items():
            if order not in self.examples and (hit := _first(name, values, rows, hits)):
                self.examples[order] = hit
        self.open = self.open or _first(name, values, rows, small)

    def check_kept(self, source: str, kept: Order, file: Path) -> None:
        """Refuse dates that can only be read in another order than the one that a mapping keeps of an earlier export."""
        for order in self.examples.keys() - {kept}:
            raise SchemaError(
                f"{source}: {_shown(self.examples[order])} can only be read {order}, but {file} keeps {kept} of an "
                f"earlier export; say --mapping {file} --dates {order}, or --dates {kept}: rows that do not "
                "fit go to quarantine then"
            )

    def order(self, source: str) -> Order:
        """Return the one order that all dates allow; refuse dates that allow both, or exclude each other."""
        type_it = "say --dates day-first or --dates month-first"
        if len(self.examples) == 1:
            return next(iter(self.examples))
        if self.examples:
            day, month = (_shown(self.examples[cast("Order", order)]) for order in ORDERS)
            raise SchemaError(
                f"{source}: dates in two orders, {day} and {month}; mend the export, or {type_it}: "
                "rows that do not fit go to quarantine then"
            )
        shown = _shown(self.open) if self.open else "dates"
        raise SchemaError(
            f"{source}: {shown} may be day/month or month/day, and no date of this source tells "
            f"which; {type_it}"
        )


def unusual(values: pl.Series) -> pl.Series:
    """Return the texts that are not ``YYYY-MM-DD HH:MM:SS...``, without nulls."""
    there = values.drop_nulls().str.strip_chars()
    usual = (there.str.slice(4, 1) == "-") & (there.str.len_bytes() >= _USUAL)
    return there.filter(~usual & (there != ""))


def needs_order(texts: pl.Series) -> bool:
    """Whether there are dates with the year at the end among unusual texts."""
    return bool(texts.str.contains(_SWAPPED).any())


def normalise(values: pl.Series, order: Order | None) -> pl.Series:
    """Write dates as ``YYYY-MM-DD HH:MM:SS``; texts that are none, and dates that do not exist in this order, stay.

    Example:
        >>> texts = pl.Series(["31/12/2026 14:05", "31.12.2026", "2026-12-31", "soon"])
        >>> normalise(texts, "day-first").to_list()
        ['2026-12-31 14:05:00', '2026-12-31 00:00:00', '2026-12-31 00:00:00', 'soon']
    """
    column = pl.col("t").str.strip_chars()
    short = column.str.extract_groups(_SHORT).struct
    written = [_iso(short, short.field("month"), short.field("day"))]
    if order is not None:
        swapped = column.str.extract_groups(_SWAPPED).struct
        pair = swapped.field("first"), swapped.field("second_number")
        day, month = pair if order == "day-first" else pair[::-1]
        exists = month.cast(pl.Int64, strict=False) <= _MONTHS
        written.append(pl.when(exists).then(_iso(swapped, month, day)))
    frame = values.alias("t").to_frame()
    return frame.select(pl.coalesce(*written, "t").alias(values.name)).to_series()


def _iso(part: Any, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    """Put the parts of a date together; null where there is no date."""
    date = pl.concat_str(part.field("year"), month.str.zfill(2), day.str.zfill(2), separator="-")
    clock = pl.concat_str(
        part.field("hour").fill_null("0").str.zfill(2),
        part.field("minute").fill_null("00"),
        part.field("second").fill_null("00"),
        separator=":",
    )
    rest = part.field("part").fill_null("") + part.field("zone").fill_null("")
    written: pl.Expr = date + " " + clock + rest
    return written


def _first(
    name: str, values: pl.Series, rows: pl.Series, hits: pl.Series
) -> tuple[str, str, int] | None:
    """Return (column, value, row) of the first hit."""
    at = hits.fill_null(value=False).arg_true()
    return (name, values[at[0]], rows[at[0]]) if len(at) else None


def _shown(example: tuple[str, str, int]) -> str:
    """Write an example for a message."""
    name, value, row = example
    return f"{name} '{value}' (row {row})"
