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


def closed(frame: pl.DataFrame, time: str = "time") -> pl.DataFrame:
    """Say of the last step of a frame over time when it ends, so that ``step-after`` draws it as wide as the others.

    Args:
        frame: Numbers that hold from a time on until the next one.
        time: Column of the times.

    Returns:
        The frame with the rows of the last time once more, a step later; one of a single time as it is.

    Example:
        >>> from datetime import date
        >>> days = pl.DataFrame({"time": [date(2026, 3, 1), date(2026, 3, 2)], "jobs": [4, 5]})
        >>> closed(days)["time"].to_list()[-1]
        datetime.date(2026, 3, 3)
    """
    times = frame[time].unique().sort()
    if len(times) < 2:
        return frame
    last = frame.filter(pl.col(time) == times[-1])
    return pl.concat([frame, last.with_columns(pl.col(time) + (times[-1] - times[-2]))])
