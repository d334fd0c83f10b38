"""The chart of the grid simulator's validation."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, scatter


def waits_chart(waits: pl.DataFrame) -> Chart:
    """Draw simulated against observed waits, a point per queue: ``observed_h``, ``simulated_h`` [h, above 0], ``state``.

    Equal ones lie on the line.
    """
    return scatter(
        waits,
        "observed_h",
        "simulated_h",
        x_title="observed wait [h]",
        y_title="simulated wait [h]",
        colour="state",
        diagonal=True,
        log=True,
    )
