"""Charts of the classes of queues."""

import polars as pl

from brokerlab.charts.primitives import Chart, dots, line, strips
from brokerlab.charts.theme import PALETTE
from brokerlab.units import HOUR_S

STATES = {"hi": PALETTE[0], "mid": PALETTE[1], "lo": PALETTE[2], "none": "#e4e8ec"}
"""Colours of the classes of queues, those of the palette in their order; without class nearly white."""


def classes_over_time(spells: pl.DataFrame) -> Chart:
    """Draw from when to when each queue had which class: ``queue, class_name, start, end``."""
    return strips(spells, "start", "end", "queue", "class_name", states=STATES)


def moved_queues(values: pl.DataFrame) -> Chart:
    """Draw what other values of numbers move: ``what`` (number and value), ``is_current``, ``differs`` [1]."""
    others = values.filter(~pl.col("is_current"))
    return dots(others, "differs", "what", title="in another class [% of queues and instants]")


def still_waiting(curves: pl.DataFrame) -> Chart:
    """Draw the share of jobs that still wait: ``class_name`` (none is left out), ``time_s`` [s], ``share`` [1]."""
    return line(
        curves.filter(pl.col("class_name") != "none").with_columns(
            time_h=pl.col("time_s") / HOUR_S
        ),
        "time_h",
        "share",
        colour="class_name",
        x_title="time since activation [h]",
        y_title="jobs that still wait [%]",
        x_log=True,
    )
