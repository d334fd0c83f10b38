"""Lengths of time as text, and grids of instants; times are UTC without zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, overload

import polars as pl

from brokerlab.errors import ConfigError, DataError
from brokerlab.numerics import IntArray

STEPS = {
    **{f"{n}h": timedelta(hours=n) for n in (1, 3, 6, 12)},
    **{f"{n}d": timedelta(days=n) for n in (1, 2, 7)},
    "1w": timedelta(weeks=1),
}
"""Steps of charts over time, as `polars` truncates to them."""
FINE = ("1h", "3h", "6h", "12h", "1d", "2d", "7d")
"""Steps finer than days, and days, for charts of a line."""
MOST_INSTANTS = 10_000
"""Instants of a grid over a period, at most."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_us(text: str, name: str = "every") -> int:
    """Read a duration such as ``10m`` as microseconds."""
    number, unit = str(text)[:-1], str(text)[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit()) or int(number) == 0:
        raise ConfigError(f"{name}={text!r}: allowed is a whole number of s, m, h or d, e.g. '10m'")
    return int(number) * _UNITS[unit] * 1_000_000


@overload
def time_of(value: datetime | str, name: str) -> datetime: ...
@overload
def time_of(value: datetime | str | None, name: str) -> datetime | None: ...
def time_of(value: datetime | str | None, name: str) -> datetime | None:
    """Read a time: naive UTC, as such or as text; an argument of this name that is none, or has a zone, is refused."""
    if value is None:
        return None
    try:
        result = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ConfigError(
            f"{name}={value!r}: allowed is a time such as '2026-03-01T12:00'"
        ) from None
    if result.tzinfo is not None:
        raise ConfigError(f"{name}={value!r}: it has a zone; UTC without zone is needed")
    return result


def rounded(at: pl.Expr, every: str | None) -> pl.Expr:
    """Round times down to the grid that begins in 1970; None keeps them.

    Example:
        >>> from datetime import datetime
        >>> pl.select(at=rounded(pl.lit(datetime(2026, 3, 1, 12, 7)), "5m")).item()
        datetime.datetime(2026, 3, 1, 12, 5)
    """
    if every is None:
        return at
    step = duration_us(every)
    return (at.cast(pl.Int64) // step * step).cast(pl.Datetime("us"))


def instants_of(
    begin: datetime, end: datetime, every: str, *, closed: Literal["left", "both"] = "left"
) -> pl.DataFrame:
    """Return the instants of a period on the grid that begins in 1970, `MOST_INSTANTS` at most: ``snapshot`` (from 0), ``at``.

    Example:
        >>> instants_of(datetime(2026, 3, 1), datetime(2026, 3, 2), "6h").height
        4
    """
    step = timedelta(microseconds=duration_us(every))
    n, minutes = (end - begin) // step, -(-(end - begin) // timedelta(minutes=MOST_INSTANTS))
    if n > MOST_INSTANTS:
        raise ConfigError(
            f"every={every!r}: makes {n:,} instants from {begin} to {end}; allowed are {MOST_INSTANTS:,}: say {minutes}m or longer"
        )
    first = pl.select(rounded(pl.lit(begin, dtype=pl.Datetime("us")), every)).item()
    times = pl.datetime_range(first, end, step, closed=closed, time_unit="us", eager=True)
    inside = times.filter(times >= begin).alias("at").to_frame()
    return inside.select(snapshot=pl.int_range(pl.len(), dtype=pl.Int64), at="at")


def grain(
    window: tuple[datetime, datetime], steps: Sequence[str] = ("1d", "1w"), most: int = 62
) -> str:
    """Return the finest step of a chart over time that divides a window into at most so many.

    Example:
        >>> window = datetime(2026, 3, 1), datetime(2026, 3, 28)
        >>> grain(window), grain(window, FINE, 130)
        ('1d', '6h')
    """
    length = window[1] - window[0]
    return next((step for step in steps if length <= most * STEPS[step]), steps[-1])


def number_instants(table: pl.DataFrame, name: str) -> tuple[IntArray, IntArray]:
    """Return the numbers of instants, ``snapshot``, and the times [us since 1970], ``at``, in the order of time."""
    problems = [f"{name}.{n}: missing" for n in ("snapshot", "at") if n not in table]
    if not problems:
        nulls = table.select(pl.col("snapshot", "at").null_count()).row(0, named=True)
        problems = [f"{name}.{n}: {count} null(s)" for n, count in nulls.items() if count]
        doubled = table["snapshot"].is_duplicated().sum()
        problems += [f"{name}.snapshot: {doubled} rows share a number"] if doubled else []
    if problems:
        raise DataError("; ".join(problems) + "; give one row per instant, snapshot and at")
    typed = table.select(
        pl.col("snapshot").cast(pl.Int64), pl.col("at").cast(pl.Datetime("us")).cast(pl.Int64)
    ).sort("at", "snapshot")
    return typed["snapshot"].to_numpy(), typed["at"].to_numpy()
