"""Numbers of this report in words: times, shares of the queues, cells of tables."""

from __future__ import annotations

import polars as pl

from brokerlab.report.content import Num
from brokerlab.units import HOUR_S
from brokerlab.words import MISSING, measured, number, with_unit

INTERVALS = "In brackets: 95 % intervals from resampling days."
NAMES = {
    "percentile_low": "lower percentile",
    "percentile_high": "upper percentile",
    "hi_limit_hours": "least hi limit",
    "lo_limit_hours": "least lo limit",
    "short_queue_jobs": "long queue",
}
"""What the numbers of the rules are."""
REASONS = {
    "no_sample": "no merge job or probe finished there in four days",
    "no_statistics": "all waits are equal, or there was none",
    "no_resource_type": "the archive does not know its type",
    "stale": "the statistics are too old",
}
"""Why a queue has no class."""


def time(seconds: float | None, low: float | None = None, high: float | None = None) -> str:
    """Write a time with its interval: minutes up to an hour and a half, then hours.

    Example:
        >>> time(770, 663, 880), time(79_064)
        ('13 min (11 to 15)', '22 h')
    """
    if seconds is None:
        return "unknown"
    unit, scale = ("min", 60) if seconds < 1.5 * HOUR_S else ("h", HOUR_S)
    values = [None if value is None else value / scale for value in (seconds, low, high)]
    places = 1 if (values[0] or 0) < 10 else 0
    return with_unit(measured(values[0], values[1], values[2], places), unit)


def minutes(seconds: float | None, low: float | None = None, high: float | None = None) -> Num:
    """Return a time of a table [min]."""
    values = [None if value is None else value / 60 for value in (seconds, low, high)]
    return Num(
        value=values[0], lo=values[1], hi=values[2], decimals=1 if (values[0] or 0) < 10 else 0
    )


def setting(value: float, unit: str = "") -> str:
    """Write a value of a number of the rules.

    Example:
        >>> setting(0.33, "fraction"), setting(3.0, "h")
        ('0.33', '3 h')
    """
    text = number(value) if value == int(value) else f"{value:g}"
    return text if unit in ("", "fraction") else f"{text} {unit}"


def share_of(frame: pl.DataFrame, part: str) -> float | None:
    """Return one share of a frame; null where it is not there."""
    found = frame.filter(pl.col("part") == part)["share"]
    return float(found[0]) if len(found) and found[0] is not None else None


def plain(value: float | None, decimals: int = 1) -> str:
    """Write a number without interval."""
    return MISSING if value is None else number(value, decimals)
