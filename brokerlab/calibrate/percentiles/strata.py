"""The same outcomes by processing type, share, cores and number of scouts: who pays for the mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.calibrate.percentiles.parameters import Setting
from brokerlab.errors import ConfigError, nearest
from brokerlab.intervals import ShareSums
from brokerlab.numerics import FloatArray

STRATA = ("processingtype", "gshare", "cores", "n_scouts")
NO_LEVEL = "(none)"


def with_levels(by_task: pl.DataFrame, strata: Sequence[str] = STRATA) -> pl.DataFrame:
    """Return one row per (task row, stratum): ``stratum, level`` added; null levels are ``(none)``."""
    unknown = [f"{s}: {nearest(s, STRATA)}" for s in strata if s not in STRATA]
    if unknown:
        raise ConfigError("no such stratum: " + "; ".join(unknown))
    return pl.concat(
        by_task.with_columns(
            stratum=pl.lit(stratum),
            level=pl.col(stratum).cast(pl.String).fill_null(NO_LEVEL),
        )
        for stratum in strata
    )


def by_stratum(
    by_task: pl.DataFrame, *, amount: str, confidence: float, strata: Sequence[str] = STRATA
) -> pl.DataFrame:
    """Sum the tasks of each level under each setting in ``by_task``.

    Args:
        by_task: Of a back-test.
        amount: Suffix of the amount columns.
        confidence: Of the exceed rate's interval.
        strata: Which.

    Returns:
        One row per (stratum, level, rank, margin_pct, minimum_mb), sorted: ``n_tasks, n_scored, n_exceed, exceed_rate,
        exceed_lo, exceed_hi, exceed_rate_task_mean``, the amounts, ``killed_coreh, work_coreh, loss,
        queues_share, slots_share``.
    """
    exceed = pl.col("n_exceed").cast(pl.Float64)
    n = pl.col("n_scored").cast(pl.Float64)
    totals = [f"{name}_{amount}" for name in ("used", "over", "waste", "reserved")]
    keys = ["stratum", "level", *Setting._fields]
    frame = (
        with_levels(by_task, strata)
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("n_tasks"),
            pl.col("n_scored", "n_exceed", "n_lost").sum(),
            *(pl.col(name).sum() for name in (*totals, "killed_coreh", "work_coreh", "cost_coreh")),
            pl.col("queues_share", "slots_share").mean(),
            exceed_rate_task_mean=(exceed / n).mean(),
            exceed=exceed,
            n=n,
        )
        .with_columns(
            exceed_rate=pl.col("n_exceed") / pl.col("n_scored"),
            loss=pl.col("cost_coreh") / pl.col("work_coreh"),
        )
        .sort(keys)
    )
    # tens of levels, not thousands
    bounds = [
        _bounds(np.array(y), np.array(x), confidence)
        for y, x in frame.select("exceed", "n").iter_rows()
    ]
    return frame.drop("exceed", "n", "cost_coreh").with_columns(
        exceed_lo=pl.Series([b[0] for b in bounds], dtype=pl.Float64),
        exceed_hi=pl.Series([b[1] for b in bounds], dtype=pl.Float64),
    )


def _bounds(exceed: FloatArray, jobs: FloatArray, confidence: float) -> tuple[float, float]:
    """Interval of the exceed rate of one level."""
    _, low, high = ShareSums.of(exceed[:, None], jobs).interval(confidence)
    return float(low[0]), float(high[0])
