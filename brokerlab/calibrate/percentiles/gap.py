"""How far scouts differ from the rest of their task: real scouts are no random sample of it."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from brokerlab.intervals import bootstrap_totals, percentile_interval


def scout_gap(jobs: pl.DataFrame, *, confidence: float = 0.95) -> pl.DataFrame:
    """Compare the used scouts with the rest of each task.

    Args:
        jobs: ``jeditaskid, role, value``; null and negative values are left out.
        confidence: Of the interval.

    Returns:
        One row per task, sorted: ``n_scouts, n_rest``, ``ratio_median`` and ``ratio_p75`` (scouts over
        rest), ``ratio_gmean`` of geometric means with ``gmean_lo, gmean_hi``: Welch's interval on the
        logarithms, null below two jobs on a side. It takes jobs as independent; scouts that share a site
        are not, so the true interval is wider.

    Source: Welch, Biometrika 34 (1947) 28, doi:10.1093/biomet/34.1-2.28.
    """
    value = pl.col("value")
    sides = {"scouts": pl.col("role") == "scout", "rest": pl.col("role") == "rest"}
    columns: dict[str, pl.Expr] = {}
    for side, here in sides.items():
        log = value.filter(here).log()
        columns |= {
            f"n_{side}": value.filter(here).len().cast(pl.Int64),
            f"median_{side}": value.filter(here).median(),
            f"p75_{side}": value.filter(here).quantile(0.75, interpolation="linear"),
            f"mean_{side}": log.mean(),
            f"var_{side}": log.var(),
        }
    frame = jobs.filter(value > 0).group_by("jeditaskid").agg(**columns).sort("jeditaskid")
    frame = frame.filter((pl.col("n_scouts") > 0) & (pl.col("n_rest") > 0))
    half = _welch_half_width(frame, confidence)
    difference = pl.col("mean_scouts") - pl.col("mean_rest")
    return frame.with_columns(half=pl.Series(half, dtype=pl.Float64).fill_nan(None)).select(
        "jeditaskid",
        "n_scouts",
        "n_rest",
        ratio_median=pl.col("median_scouts") / pl.col("median_rest"),
        ratio_p75=pl.col("p75_scouts") / pl.col("p75_rest"),
        ratio_gmean=difference.exp(),
        gmean_lo=(difference - pl.col("half")).exp(),
        gmean_hi=(difference + pl.col("half")).exp(),
    )


def _welch_half_width(frame: pl.DataFrame, confidence: float) -> np.ndarray:
    """Half-width of the difference of two means with unequal variances; NaN where undefined."""
    n1, n2 = (frame[c].to_numpy().astype(float) for c in ("n_scouts", "n_rest"))
    v1, v2 = (
        frame[c].cast(pl.Float64).fill_null(np.nan).to_numpy() for c in ("var_scouts", "var_rest")
    )
    with np.errstate(all="ignore"):
        a, b = v1 / n1, v2 / n2
        freedom = (a + b) ** 2 / (a**2 / (n1 - 1) + b**2 / (n2 - 1))
        freedom = np.where(a + b == 0, n1 + n2 - 2, freedom)
        return np.asarray(stats.t.ppf((1 + confidence) / 2, freedom) * np.sqrt(a + b))


def gap_summary(
    gap: pl.DataFrame, *, n_boot: int = 2000, seed: int = 0, confidence: float = 0.95
) -> pl.DataFrame:
    """Average the gaps over tasks, with an interval by bootstrap over tasks.

    Returns:
        One row per measure (``ratio_median, ratio_p75, ratio_gmean``): ``ratio`` (geometric mean over
        tasks), ``lo, hi`` (null below ten tasks: too few to draw from), ``share_lighter`` (of tasks whose
        scouts are below the rest), ``n_tasks``.
    """
    rows = []
    for measure in ("ratio_median", "ratio_p75", "ratio_gmean"):
        logs = gap[measure].drop_nulls().log().to_numpy()
        logs = logs[np.isfinite(logs)]
        low = high = None
        if logs.size >= 10:
            means = bootstrap_totals(logs[:, None], n_boot=n_boot, seed=seed) / logs.size
            bounds = percentile_interval(means, confidence, n_tasks=logs.size)
            low, high = (float(np.exp(b[0])) for b in bounds)
        rows.append(
            {
                "measure": measure,
                "ratio": float(np.exp(logs.mean())) if logs.size else None,
                "lo": low,
                "hi": high,
                "share_lighter": float((logs < 0).mean()) if logs.size else None,
                "n_tasks": int(logs.size),
            }
        )
    schema = {"lo": pl.Float64, "hi": pl.Float64, "ratio": pl.Float64, "share_lighter": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=schema)
