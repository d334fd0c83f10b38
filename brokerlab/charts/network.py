"""Charts of the network weight's curves, each a few words on a primitive; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart


def weight_curves(curves: pl.DataFrame) -> Chart:
    """Draw step curves over throughput: ``curve``, ``mbps`` [MB/s], ``weight`` from there up to the next row."""
    return primitives.line(
        curves,
        "mbps",
        "weight",
        x_title="throughput when the weight is taken [MB/s]",
        y_title="throughput weight [1]",
        colour="curve",
        step=True,
        height=220,
        x_log=True,
    )


def weights_by_closeness(weights: pl.DataFrame) -> Chart:
    """Draw the weight of links without throughput: ``level`` of closeness (text), ``setting`` or fitted, ``weight`` [1]."""
    return primitives.dots(
        weights, "weight", "level", title="weight without throughput [1]", colour="setting"
    )


def score_by_exchange(tried: pl.DataFrame, *, marks: pl.DataFrame) -> Chart:
    """Draw how well links are ranked (``score`` [1]) by how many ``files`` weigh one unit of throughput weight.

    ``marks`` are named points: ``files, score, label``.
    """
    return primitives.line(
        tried,
        "files",
        "score",
        x_title="waiting files that weigh as much as 1 of throughput weight [files]",
        y_title="rank correlation [1]",
        x_log=True,
        marks=marks,
    )
