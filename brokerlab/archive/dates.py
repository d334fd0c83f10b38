"""Dates as Europe and America write them: one order of day and month for a whole source, never guessed per row."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from brokerlab.errors import SchemaError

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
