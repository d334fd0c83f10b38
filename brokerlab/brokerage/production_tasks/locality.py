"""When a task must stay near its input, and what waives that (chapter section 5.1)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.rules import ProductionRules

BYTES_PER_GB = 1024.0**3


def off_period() -> pl.Expr:
    """Tell where a task has been stuck for longer than DATA_LOCATION_CHECK_PERIOD."""
    stuck = pl.col("at") - pl.col("frozentime")
    limit = pl.duration(microseconds=pl.col("data_location_check_period_days") * 86400e6)
    return (stuck > limit).fill_null(value=False)


def period_days_left() -> pl.Expr:
    """Return the days until the check ends by itself [days]; null for a task that is not stuck."""
    stuck = (pl.col("at") - pl.col("frozentime")).dt.total_microseconds()
    return pl.col("data_location_check_period_days") - stuck / 86400e6


def with_needs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Add what rows 8 and 9 compare.

    Returns:
        The pairs with ``size_needed`` [B] and ``files_needed`` [files], the parts of the input that must be at
        the nucleus, and ``locality_asked``: the check is on for the task, and the nucleus is not excused because
        the task stages its input and some of it is there.
    """
    staged = pl.col("inputprestaging").fill_null(value=False) & (pl.col("ava_num_any") > 0)
    return pairs.with_columns(
        size_needed=pl.col("tot_size") * pl.col("input_size_fraction"),
        files_needed=pl.col("tot_num") * pl.col("input_num_fraction"),
        locality_asked=pl.col("has_input") & ~pl.col("off_period") & ~staged,
    )


def may_waive(rules: ProductionRules) -> pl.Expr:
    """Tell where the check is cancelled if no nucleus passes it (row T9, switch ``waiver_priority``)."""
    light = pl.col("iointensity").is_null() | (pl.col("iointensity") <= pl.col("min_io_intensity"))
    small = pl.col("tot_size") / BYTES_PER_GB <= pl.col("min_input_size_gb")
    urgent = pl.col(rules.waiver_priority) >= pl.col("max_task_prio")
    return (light & small) | urgent.fill_null(value=False)
