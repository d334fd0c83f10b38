"""Charts of estimators of memory and walltime, one function each; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import primitives


def exceed_frontier(
    points: pl.DataFrame,
    *,
    marks: pl.DataFrame,
    over_title: str = "over-allocated [% of use]",
    exceed_title: str = "jobs above their allocation [%]",
) -> primitives.Chart:
    """Draw how often jobs exceed against what is over-allocated, a line per estimator, its settings along it.

    Args:
        points: ``line`` (``current``, ``proposed`` or an estimator's name), ``exceed, over_allocation`` [1].
        marks: The same numbers of points that are named, and their ``label``.
        over_title: Of the x axis.
        exceed_title: Of the y axis.
    """
    return primitives.line(
        points,
        "over_allocation",
        "exceed",
        x_title=over_title,
        y_title=exceed_title,
        colour="line",
        marks=marks,
        height=185,
    )


def coverage_by_known(coverage: pl.DataFrame, *, level: float) -> primitives.Chart:
    """Draw how many jobs stay within their bound by how many finished jobs of their task were known.

    Args:
        coverage: ``known`` (in words, in order), ``estimator``, ``coverage, coverage_lo, coverage_hi`` [1].
        level: What the bound promises [1].
    """
    return primitives.dots(
        coverage,
        "coverage",
        "known",
        title="jobs within their bound [%]",
        colour="estimator",
        references={f"asked for: {100 * level:g} %": 100 * level},
    )
