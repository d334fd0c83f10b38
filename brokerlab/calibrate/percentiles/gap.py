"""How far scouts differ from the rest of their task: real scouts are no random sample of it."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.intervals import bootstrap_totals, percentile_interval

FEWEST = 10
"""Tasks from which the mean gap has an interval."""


def scout_gap(jobs: pl.DataFrame) -> pl.DataFrame:
    """Compare the used scouts with the rest of each task.

    Args:
        jobs: ``jeditaskid, role, value``; null and negative values are left out.

    Returns:
        One row per task with both, sorted: ``n_scouts, n_rest``, ``ratio_median`` (scouts over rest).
    """
    sides = {"scouts": pl.col("role") == "scout", "rest": pl.col("role") == "rest"}
    values = {name: pl.col("value").filter(here) for name, here in sides.items()}
    counts = {f"n_{name}": value.len().cast(pl.Int64) for name, value in values.items()}
    ratio = values["scouts"].median() / values["rest"].median()
    found = (
        jobs.filter(pl.col("value") > 0).group_by("jeditaskid").agg(**counts, ratio_median=ratio)
    )
    return found.filter(pl.col("n_scouts") > 0, pl.col("n_rest") > 0).sort("jeditaskid")


def gap_summary(
    gap: pl.DataFrame, *, n_boot: int = 2000, seed: int = 0, confidence: float = 0.95
) -> pl.DataFrame:
    """Average the gaps over tasks, with an interval by bootstrap over tasks.

    Returns:
        One row: ``ratio`` (geometric mean over tasks of the ratio of medians), ``lo, hi`` (null below `FEWEST` tasks),
        ``share_lighter`` (of tasks whose scouts are below the rest), ``n_tasks``.
    """
    logs = gap["ratio_median"].drop_nulls().log().to_numpy()
    row: dict[str, float | None] = dict.fromkeys(("ratio", "lo", "hi", "share_lighter"))
    if logs.size:
        row |= {"ratio": float(np.exp(logs.mean())), "share_lighter": float((logs < 0).mean())}
    if logs.size >= FEWEST:
        means = bootstrap_totals(logs[:, None], n_boot=n_boot, seed=seed) / logs.size
        low, high = percentile_interval(means, confidence, n_tasks=logs.size)
        row |= {"lo": float(np.exp(low[0])), "hi": float(np.exp(high[0]))}
    return pl.DataFrame([row], schema=dict.fromkeys(row, pl.Float64)).with_columns(
        n_tasks=pl.lit(logs.size, pl.Int64)
    )
