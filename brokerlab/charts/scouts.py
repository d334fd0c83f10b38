"""Charts of a scout calibration; shares are numbers from 0 to 1, ``setting`` is current or proposed."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, dots, frontier

KILLS = "jobs that exceed their request [% of jobs]"


def frontier_chart(settings: pl.DataFrame, *, limit: float, thing: str) -> Chart:
    """Draw what settings cost (``waste`` of ``thing``) and how often they kill: ``kills`` [1], its ends, ``setting, label``.

    ``limit`` is of the kills [%]; ``setting`` is null for settings without a name.
    """
    title = f"{thing} reserved and not used, killed attempts included [% of used]"
    return frontier(settings, "waste", "kills", x_title=title, y_title=KILLS, limit=limit)


def coverage_chart(coverage: pl.DataFrame, *, limit: float) -> Chart:
    """Draw the jobs within their request by number of scouts: ``n_scouts``, ``setting`` or promised, ``kept`` [1], its ends."""
    wanted = {f"limit {100 - limit:g} %": 100 - limit}
    named = coverage.with_columns(pl.format("{} scouts", "n_scouts").alias("name"))
    return dots(
        named,
        "kept",
        "name",
        title="jobs within their request [%]",
        colour="setting",
        references=wanted,
    )
