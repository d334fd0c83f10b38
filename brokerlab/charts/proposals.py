"""The chart of proposals: what each promises, with its interval."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, dots

FARTHEST = 150.0
"""Changes beyond are drawn at the edge [%]; the tables have the numbers."""


def promises_chart(effects: pl.DataFrame) -> Chart:
    """Draw what proposals promise, a panel per ``proposal``: ``quantity``, ``change_pct`` [% of now], its ends, ``interval``."""
    ends = pl.col("change_pct", "change_pct_lo", "change_pct_hi")
    return dots(
        effects.with_columns(ends.clip(-FARTHEST, FARTHEST)),
        "change_pct",
        "quantity",
        title="change [% of the present value]",
        colour="interval",
        panels="proposal",
        references={"now": 0.0},
    )
