"""Charts of a scout calibration; shares are numbers from 0 to 1, ``setting`` is current or proposed."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, dots, frontier

KILLS = "jobs that exceed their request [% of jobs]"


def frontier_chart(settings: pl.DataFrame, *, limit: float, thing: str) -> Chart:
    """Draw what every setting costs against how often it kills.

    Args:
        settings: ``waste``, ``kills, kills_lo, kills_hi`` [1], ``setting`` (null: one of the others), ``label``.
        limit: Of the kills [%].
        thing: What is reserved.
    """
    title = f"{thing} reserved and not used, killed attempts included [% of used]"
    return frontier(settings, "waste", "kills", x_title=title, y_title=KILLS, limit=limit)


def coverage_chart(coverage: pl.DataFrame, *, limit: float) -> Chart:
    """Draw, by number of scouts, the share of jobs within their request, promised and observed.

    Args:
        coverage: ``n_scouts``, ``setting`` (promised, current, proposed), ``kept, kept_lo, kept_hi`` [1].
        limit: Of the kills [%].
    """
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
