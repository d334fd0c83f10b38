"""Charts of thresholds: which settings nothing beats, what the screen finds."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, bars, scatter


def front_chart(settings: pl.DataFrame, *, x: str, y: str, x_title: str, y_title: str) -> Chart:
    """Draw settings by two objectives as changes from now [%], with the intervals of the proposed one: ``role``, ``x, y``."""
    ends = [f"{name}{end}" for name in (x, y) for end in ("_lo", "_hi")]
    proposed = pl.col("role") == "proposed"
    named = pl.col("role").is_in(["current", "proposed"])
    shown = settings.with_columns(
        *(pl.when(proposed).then(pl.col(name)).alias(name) for name in ends),
        name=pl.when(named).then("role"),
    )
    return scatter(shown, x, y, x_title=x_title, y_title=y_title, colour="role", label="name")


def screen_chart(keys: pl.DataFrame) -> Chart:
    """Draw how many of the expected jobs each key sends elsewhere: ``key``, ``shift`` [1], ``follows``; in order."""
    title = "expected jobs that go elsewhere [%]"
    return bars(keys, "shift", "key", title=title, colour="follows")
