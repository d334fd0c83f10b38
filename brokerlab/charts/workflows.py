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
