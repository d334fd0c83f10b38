"""Charts of estimators of memory and walltime, one function each; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, dots, line


def exceed_frontier(
    points: pl.DataFrame,
    *,
    marks: pl.DataFrame,
    over_title: str = "over-allocated [% of use]",
    exceed_title: str = "jobs above their allocation [%]",
) -> Chart:
    """Draw how often jobs exceed against what is over-allocated, a line per estimator, its settings along it.

    ``points`` and the named ``marks`` have ``exceed, over_allocation`` [1]; points ``line`` (current, proposed or an
    estimator's name), marks ``label``.
    """
    return line(
        points,
        "over_allocation",
        "exceed",
        x_title=over_title,
        y_title=exceed_title,
        colour="line",
        marks=marks,
        height=185,
    )


def coverage_by_known(coverage: pl.DataFrame, *, level: float) -> Chart:
    """Draw how many jobs stay within their bound, which promises ``level`` [1], by how many of their task were known.

    Columns: ``known`` (in words, in order), ``estimator``, ``coverage, coverage_lo, coverage_hi`` [1].
    """
    return dots(
        coverage,
        "coverage",
        "known",
        title="jobs within their bound [%]",
        colour="estimator",
        references={f"asked for: {100 * level:g} %": 100 * level},
    )


def waste_ratios(ratios: pl.DataFrame) -> Chart:
    """Draw what estimators waste over the scouts' rule, a row per trace: ``trace, role, ratio`` (above 0) with its ends."""
    return dots(
        ratios,
        "ratio",
        "trace",
        title="waste over that of the scouts' rule [ratio]",
        colour="role",
        references={"the scouts' rule": 1.0},
        log=True,
    )


def errors(guesses: pl.DataFrame) -> Chart:
    """Draw how far methods are off on batch logs, a panel per ``log``: ``method, role, ratio`` (above 0) with its ends."""
    return dots(
        guesses,
        "ratio",
        "method",
        title="mean error over that of the best simple rule [ratio]",
        colour="role",
        references={"best simple rule": 1.0},
        panels="log",
        log=True,
    )


def slopes(slopes: pl.DataFrame) -> Chart:
    """Draw slopes of time on core power, a line per task and time, those at most queues first.

    Columns: ``jeditaskid, time, queues``, ``slope`` [1] with its ends.
    """
    label = pl.format("task {}, {} time, {} queues", "jeditaskid", "time", "queues")
    order = ["queues", "jeditaskid", "time"]
    return dots(
        slopes.sort(order, descending=[True, False, False]).with_columns(label=label),
        "slope",
        "label",
        title="log-log slope of core time per event on core power [1]",
        references={"the rule": -1.0, "no dependence": 0.0},
    )
