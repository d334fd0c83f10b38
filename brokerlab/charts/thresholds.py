"""Charts of thresholds: settings that were judged, what the screen finds."""

from __future__ import annotations

import polars as pl

from brokerlab.charts.primitives import Chart, bars, dots


def candidates_chart(settings: pl.DataFrame, *, title: str) -> Chart:
    """Draw by how much each ``setting`` changes the objective against now, with its interval: ``diff_pct`` [%], ``role``."""
    now = {"current": 0.0}
    return dots(settings, "diff_pct", "setting", title=title, colour="role", references=now)


def screen_chart(keys: pl.DataFrame) -> Chart:
    """Draw how many of the expected jobs each key sends elsewhere: ``key``, ``shift`` [1], ``follows``; in order."""
    title = "expected jobs that go elsewhere [%]"
    return bars(keys, "shift", "key", title=title, colour="follows")
