"""Charts of waiting rules, their limits, and fast rebrokerage."""

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart

MOST_TIMES = 100
"""Values of keys further from the current one are not drawn."""


def limits_chart(frame: pl.DataFrame) -> Chart:
    """Draw what other limits end (``more_after_h`` [h]) and interrupt (``more_soon`` [jobs]) by ``setting, label``."""
    return primitives.scatter(
        frame,
        "more_soon",
        "more_after_h",
        x_title="more interrupted needlessly than now [jobs]",
        y_title="more waiting ended than now [h]",
        colour="setting",
        label="label",
    )


def fast_keys_chart(frame: pl.DataFrame) -> Chart:
    """Draw what each key of fast rebrokerage does: its ``name``, value in ``times`` the current one, ``to_move`` [jobs]."""
    return primitives.line(
        frame.filter(pl.col("times") <= MOST_TIMES),
        "times",
        "to_move",
        x_title="value of the key [times the current one]",
        y_title="would move [jobs per instant]",
        colour="name",
        x_log=True,
        points=True,
    )
