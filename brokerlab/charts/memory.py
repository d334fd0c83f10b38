"""Charts of the sizing of traces, one function each; every frame is aggregated already."""

import polars as pl

from brokerlab.charts import primitives


def waste_ratios(ratios: pl.DataFrame, *, target: float) -> primitives.Chart:
    """Draw what every method wastes over the best peer, a row per trace.

    Args:
        ratios: ``trace, role, ratio`` (above 0) and ``ratio_lo, ratio_hi`` (null: none), traces in their order.
        target: Highest ratio that is asked for.
    """
    return primitives.dots(
        ratios,
        "ratio",
        "trace",
        title="waste over that of the best peer [ratio]",
        colour="role",
        references={f"target {target:g}": target},
        log=True,
    )
