"""Shares of a replay in sentences."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.report.replays.removal import CANDIDATE
from brokerlab.words import listed, percent


def of(frame: pl.DataFrame, part: str, **where: Any) -> str:
    """Show one share of a frame of `shares` with its interval; unknown where it is not there."""
    found = frame.filter(pl.col("part") == part, **where)
    if found.is_empty():
        return "unknown"
    row = found.row(0, named=True)
    return percent(row["share"], row["lo"], row["hi"])


def value_of(frame: pl.DataFrame, part: str) -> float:
    """Return one share of a frame of `shares`; 0 where it is not there."""
    found = frame.filter(pl.col("part") == part)["share"].drop_nulls()
    return float(found[0]) if len(found) else 0.0


def largest(
    frame: pl.DataFrame, most: int, leave: tuple[str, ...] = (CANDIDATE,)
) -> list[dict[str, Any]]:
    """Return the largest parts of a frame of `shares`, without those to leave out and those of nothing."""
    kept = frame.filter(~pl.col("part").is_in(leave), pl.col("total") > 0)
    return kept.sort("share", "part", descending=[True, False]).head(most).to_dicts()


def named(rows: list[dict[str, Any]]) -> str:
    """Name parts with their shares."""
    return listed([f"{row['part']} ({percent(row['share'])})" for row in rows]) if rows else "none"
