"""What every chart asks of its frame."""

import polars as pl

from brokerlab.errors import SchemaError

MAX_ROWS = 5000
"""Rows a chart may carry; more belongs into a table."""


def need(frame: pl.DataFrame, columns: str) -> None:
    """Refuse a frame without the columns a chart encodes, or with more rows than it can carry.

    Args:
        frame: Data of a chart.
        columns: Names, separated by blanks.

    Raises:
        SchemaError: A column is missing or there are too many rows.
    """
    missing = [name for name in columns.split() if name not in frame.columns]
    if missing:
        raise SchemaError(f"chart data lack {', '.join(missing)}; found {', '.join(frame.columns)}")
    if frame.height > MAX_ROWS:
        raise SchemaError(
            f"chart data have {frame.height} rows, at most {MAX_ROWS}: aggregate first"
        )


def percent(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return shares as per cent."""
    return frame.with_columns(pl.col(name) * 100 for name in columns)
