"""Charts of run times on batch logs and of core power, one function each; every frame is aggregated already."""

import polars as pl

from brokerlab.charts import primitives


def errors(guesses: pl.DataFrame) -> primitives.Chart:
    """Draw how far every method is off over the best simple rule, a panel per log.

    Args:
        guesses: ``log, method, role, ratio`` (above 0), ``ratio_lo, ratio_hi``; lines in their order.
    """
    return primitives.dots(
        guesses,
        "ratio",
        "method",
        title="mean error over that of the best simple rule [ratio]",
        colour="role",
        references={"best simple rule": 1.0},
        panels="log",
        log=True,
    )


def slopes(slopes: pl.DataFrame) -> primitives.Chart:
    """Draw slopes of time on core power against that of the rule, a line per task and time, those at most queues first.

    Args:
        slopes: ``jeditaskid, time, queues, slope, slope_lo, slope_hi``.
    """
    label = pl.format("task {}, {} time, {} queues", "jeditaskid", "time", "queues")
    order = ["queues", "jeditaskid", "time"]
    return primitives.dots(
        slopes.sort(order, descending=[True, False, False]).with_columns(label=label),
        "slope",
        "label",
        title="log-log slope of core time per event on core power [1]",
        references={"the rule": -1.0, "no dependence": 0.0},
    )
