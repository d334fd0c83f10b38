"""How numbers of this report are written, in sentences and cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.report.content import Num
from brokerlab.words import measured, number, with_unit

SMALL_H = 10.0
"""Hours below this are told with a decimal."""


def hours(row: Mapping[str, Any], name: str) -> str:
    """Show a quantity in hours with its interval.

    Example:
        >>> hours({"after_h": 12.3, "after_h_lo": 5.0, "after_h_hi": 20.0}, "after_h")
        '12 h (5 to 20)'
    """
    return with_unit(_ends(row, name, 0 if abs(row[name] or 0) >= SMALL_H else 1), "h")


def jobs(row: Mapping[str, Any], name: str = "jobs") -> str:
    """Show a number of jobs with its interval."""
    return _ends(row, name, 0)


def signed(row: Mapping[str, Any], name: str, unit: str = "") -> str:
    """Show a difference with its sign."""
    places = 1 if unit == "h" and abs(row[name] or 0) < SMALL_H else 0
    text = _ends(row, name, places)
    told = f"+{text}" if round(row[name] or 0, places) > 0 else text
    return with_unit(told, unit) if unit else told


def _ends(row: Mapping[str, Any], name: str, places: int) -> str:
    return measured(row[name], row.get(f"{name}_lo"), row.get(f"{name}_hi"), places)


def cell(row: Mapping[str, Any], name: str, decimals: int | None = 0, factor: float = 1.0) -> Num:
    """Return a quantity with its interval as a cell."""
    ends = [row.get(name + suffix) for suffix in ("", "_lo", "_hi")]
    value, low, high = (None if end is None else factor * end for end in ends)
    return Num(value=value, lo=low, hi=high, decimals=decimals)


def limit(value_h: float | None) -> str:
    """Write a limit with the unit that people use for it.

    Example:
        >>> limit(0.5), limit(36), limit(60), limit(504.0), limit(None)
        ('30 min', '36 h', '2.5 d', '21 d', '–')
    """
    if value_h is None:
        return number(None)
    if value_h < 1:
        return f"{60 * value_h:g} min"
    if value_h >= 48 and value_h % 6 == 0:
        return f"{value_h / 24:g} d"
    return f"{value_h:g} h"


def labelled(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``name``: the rule, with its action where the rule takes several."""
    several = frame.select("rule", "action").unique().group_by("rule").len().filter(pl.col("len") > 1)  # fmt: skip
    return frame.with_columns(
        name=pl.when(pl.col("rule").is_in(several["rule"].implode()))
        .then(pl.col("rule") + " (" + pl.col("action") + ")")
        .otherwise("rule")
    )
