"""Charts of the network weight's curves, each a few words on a primitive; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart

MBPS = "throughput when the weight is taken [MB/s]"


def weight_curves(curves: pl.DataFrame) -> Chart:
    """Draw step curves over throughput, with the interval of those that have one.

    Args:
        curves: ``curve``, ``mbps`` [MB/s], ``weight`` from there up to the next row, perhaps ``weight_lo, weight_hi``.
    """
    return primitives.line(
        curves,
        "mbps",
        "weight",
        x_title=MBPS,
        y_title="throughput weight [1]",
        colour="curve",
        step=True,
        x_log=True,
    )


def weights_by_closeness(weights: pl.DataFrame) -> Chart:
    """Draw the weight of links without throughput.

    Args:
        weights: ``level`` of closeness (text, in order), ``setting`` (current, proposed or fitted), ``weight`` and perhaps ``weight_lo,
            weight_hi`` [1].
    """
    return primitives.dots(
        weights, "weight", "level", title="weight without throughput [1]", colour="setting"
    )


def score_by_exchange(tried: pl.DataFrame, *, marks: pl.DataFrame) -> Chart:
    """Draw how well the network weight ranks links by how many files weigh one unit of throughput weight.

    Args:
        tried: ``files`` [files], ``score, score_lo, score_hi`` [1].
        marks: ``files, score, label``: named points.
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
