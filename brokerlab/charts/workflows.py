"""Charts of workflows on batch queues, each a few words on a primitive; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart


def turnaround_ratios(ratios: pl.DataFrame, *, of: str, panels: str | None = None) -> Chart:
    """Draw how many times as long one way takes as another.

    Args:
        ratios: ``label`` (text, in order), ``ratio`` and perhaps ``ratio_lo, ratio_hi`` (above 0), perhaps ``rules``
            (several dots in a row) and the column of the panels.
        of: Which turnarounds are divided, such as "notes over paper".
        panels: Column; one panel per value.
    """
    return primitives.dots(
        ratios,
        "ratio",
        "label",
        title=f"turnaround, {of} [ratio]",
        colour="rules" if "rules" in ratios.columns else None,
        references={"": 1.0},
        log=True,
        panels=panels,
    )


def waits_by_run_time(waits: pl.DataFrame) -> Chart:
    """Draw the estimated wait against the run time asked for, a panel per machine, a line per number of hosts.

    Args:
        waits: ``system``, ``size`` (of hosts, in words), ``run_h`` [h, above 0], ``wait`` [h].
    """
    return primitives.line(
        waits,
        "run_h",
        "wait",
        x_title="run time asked for [h]",
        y_title="estimated wait [h]",
        colour="size",
        x_log=True,
        panels="system",
    )


def job_phases(bars: pl.DataFrame) -> Chart:
    """Draw one run per strategy: when its jobs waited and ran, a line per job or per level.

    Args:
        bars: ``strategy``, ``line`` (job or level, in words), ``phase`` (waits, runs, expires, cancelled), ``begin_h,
            end_h`` [h since the submission].
    """
    return primitives.gantt(
        bars,
        "begin_h",
        "end_h",
        "line",
        title="time since submission [h]",
        colour="phase",
        panels="strategy",
    )
