"""What killed a job at one of its limits, by the pilot's error code."""

from __future__ import annotations

import polars as pl

MEMORY_CODES = (1212, 1235)
"""Pilot error codes of a payload out of memory, or above its allowed memory."""
WALLTIME_CODES = (1213,)  # pilot error code of a job that reached its time limit


def kill_cause() -> pl.Expr:
    """Tell which limit ended a failed job: ``memory``, ``walltime``, or null for any other reason."""
    code = pl.col("piloterrorcode")
    return (
        pl.when(code.is_in(MEMORY_CODES)).then(pl.lit("memory"))
        .when(code.is_in(WALLTIME_CODES)).then(pl.lit("walltime"))
    )  # fmt: skip
