"""Charts of waiting rules, their limits, and fast rebrokerage."""

from collections.abc import Sequence

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart

MOST_TIMES = 100
"""Values of keys further from the current one are not drawn."""


def limits_chart(frame: pl.DataFrame) -> Chart:
    """Draw what other limits end and interrupt, against the limits as set.

    Args:
        frame: ``more_soon`` [jobs], ``more_after_h`` [h] with their ends, ``setting`` (current, other limits), ``label``.
    """
    return primitives.scatter(
        frame,
        "more_soon",
        "more_after_h",
        x_title="more interrupted needlessly than now [jobs]",
        y_title="more waiting ended than now [h]",
        colour="setting",
        label="label",
    )


def outcomes_chart(frame: pl.DataFrame) -> Chart:
    """Draw what became of the jobs that each rule times out.

    Args:
        frame: ``name``, ``outcome``, ``share`` [1].
    """
    return primitives.bars(frame, "share", "name", title="share of the jobs [%]", colour="outcome")


def limit_changes_chart(frame: pl.DataFrame) -> Chart:
    """Draw how much more waiting each rule ends at other limits.

    Args:
        frame: ``name``, ``limits``, ``more_after_h`` [h] with its ends.
    """
    title = "more waiting ended than now [h]"
    return primitives.dots(frame, "more_after_h", "name", title=title, colour="limits")


def over_time_chart(frame: pl.DataFrame, *, rules: Sequence[str], step: str) -> Chart:
    """Draw how many jobs rules time out over time.

    Args:
        frame: ``rule``, ``time``, ``jobs`` with its ends.
        rules: Those to draw, in order.
        step: Length of a step, in a word.
    """
    drawn = _closed(frame.filter(pl.col("rule").is_in(rules)), "time")
    return primitives.line(
        drawn.sort(pl.col("rule").cast(pl.Enum(rules)), "time"),
        "time",
        "jobs",
        x_title="time (UTC)",
        y_title=f"[jobs per {step}]",
        panels="rule",
        step=True,
    )


def fast_over_time_chart(frame: pl.DataFrame) -> Chart:
    """Draw how many jobs fast rebrokerage would move at each instant.

    Args:
        frame: ``at``, ``to_move`` [jobs].
    """
    return primitives.line(
        _closed(frame, "at"),
        "at",
        "to_move",
        x_title="time (UTC)",
        y_title="would move [jobs]",
        step=True,
        height=180,
    )


def fast_keys_chart(frame: pl.DataFrame) -> Chart:
    """Draw what each key of fast rebrokerage does over its values.

    Args:
        frame: ``name`` (of the key), ``times`` (its value over the current one; up to `MOST_TIMES` is drawn), ``to_move``
            [jobs] with its ends.
    """
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


def _closed(frame: pl.DataFrame, time: str) -> pl.DataFrame:
    """Repeat the last step of a frame over time one step later, so that it is drawn as wide as the others."""
    times = frame[time].unique().sort()
    if len(times) < 2:
        return frame
    later = pl.col(time) + (times[-1] - times[-2])
    return pl.concat([frame, frame.filter(pl.col(time) == times[-1]).with_columns(later)])
