"""Cells that the tables of the brokerage replay report share."""

from __future__ import annotations

from typing import Any

from brokerlab.report.content import Num
from brokerlab.words import decimals_for, number

INTERVALS = "In brackets: 95 % intervals from resampling tasks."


def pct(share: float | None, low: float | None = None, high: float | None = None) -> Num:
    """Return a share as per cent, with one decimal at least and two at most."""
    ends = [None if end is None else 100 * end for end in (share, low, high)]
    places = min(2, max(1, decimals_for(*ends))) if ends[1] is not None else 1
    return Num(value=ends[0], lo=ends[1], hi=ends[2], decimals=places)


def row_pct(row: dict[str, Any]) -> Num:
    """Return the share of a row of `shares`."""
    return pct(row["share"], row["lo"], row["hi"])


def count(value: float | None) -> Num:
    """Return a count."""
    return Num(value=value, decimals=0)


def value(value: float | None) -> str:
    """Write a setting's value."""
    if value is None:
        return "none"
    return number(value) if value == int(value) else f"{value:g}"
