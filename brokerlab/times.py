"""Lengths of time as text, and grids of instants; times are UTC without zone."""

from __future__ import annotations

import polars as pl

from brokerlab.errors import ConfigError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_us(text: str, name: str = "every") -> int:
    """Read a duration such as ``10m`` as microseconds.

    Args:
        text: A whole number and one of s, m, h, d.
        name: Name of the argument, for the message.

    Raises:
        ConfigError: It is no such text, or not longer than nothing.

    Example:
        >>> duration_us("10m")
        600000000
    """
    number, unit = str(text)[:-1], str(text)[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit()) or int(number) == 0:
        raise ConfigError(f"{name}={text!r}: allowed is a whole number of s, m, h or d, e.g. '10m'")
    return int(number) * _UNITS[unit] * 1_000_000


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
