"""Charts of workflows on batch queues, each a few words on a primitive; every frame is aggregated already."""

from __future__ import annotations

import polars as pl

from brokerlab.charts import primitives
from brokerlab.charts.primitives import Chart


def turnaround_ratios(ratios: pl.DataFrame, *, of: str, panels: str | None = None) -> Chart:
    """Draw how many times as long one way takes as another: ``label``, ``ratio`` (above 0), perhaps ``rules``.

    ``of`` says which turnarounds are divided, such as "notes over paper".
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
