"""Differences between strategies at the same instants, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray

PLACE = ("system", "workflow")
CONFIDENCE = 0.95


def differences(
    runs: pl.DataFrame,
    metric: str = "turnaround",
    *,
    reference: str,
    by: Sequence[str] = PLACE,
    n_boot: int = 1000,
    seed: int = 1,
) -> pl.DataFrame:
    """Return how a metric differs from that of one strategy, instant by instant.

    Args:
        runs: Of a `Comparison`, those that there are.
        metric: A column.
        reference: The strategy that the others are held against.
        by: What a row of the result is about; ``()``: everything together. Where that is several workflows, an instant's
            difference is the mean over them.
        n_boot: Replicates of the bootstrap over instants.
        seed: Of the bootstrap.

    Returns:
        One row per ``by`` and other strategy: ``strategy, reference, n`` (instants), ``mean, reference_mean, median,
        diff`` (mean difference), ``lo, hi`` (its 95 % interval; null with a single instant), ``better, worse`` (shares of
        the instants where the metric is smaller, larger); sorted.

    Source: workflow-batch-scheduling.md 10.
    """
    key = list(dict.fromkeys((*by, "system", "workflow", "instant")))
    base = runs.filter(pl.col("strategy") == reference).select(*key, base=metric)
    pairs = runs.filter(pl.col("strategy") != reference).join(base, on=key)
    unit = list(dict.fromkeys((*by, "strategy", "system", "instant")))
    pairs = pairs.select(*key, "strategy", value=metric, base="base").sort(*key, "strategy")
    pairs = pairs.group_by(unit, maintain_order=True).agg(pl.col("value", "base").mean())
    rows: list[dict[str, Any]] = []
    group = [*by, "strategy"]
    for names, part in pairs.group_by(group, maintain_order=True):
        value, base_value = part["value"].to_numpy(), part["base"].to_numpy()
        gap = value - base_value
        low, high = mean_interval(gap, n_boot=n_boot, seed=seed)
        rows.append(
            dict(zip(group, names, strict=True))
            | {
                "reference": reference,
                "n": len(gap),
                "mean": float(value.mean()),
                "reference_mean": float(base_value.mean()),
                "median": float(np.median(gap)),
                "diff": float(gap.mean()),
                "lo": low,
                "hi": high,
                "better": float((gap < 0).mean()),
                "worse": float((gap > 0).mean()),
            }
        )
    return pl.DataFrame(rows, schema=_schema(group)).sort(group)


def means(
    runs: pl.DataFrame, metric: str, *, by: Sequence[str] = PLACE, n_boot: int = 1000, seed: int = 1
) -> pl.DataFrame:
    """Return mean and median of a metric with a 95 % interval of the mean.

    Returns:
        One row per ``by`` and strategy: ``strategy, n, mean, lo, hi, median``; sorted.
    """
    group = [*by, "strategy"]
    rows: list[dict[str, Any]] = []
    ordered = runs.sort("system", "workflow", "instant")
    for names, part in ordered.group_by(group, maintain_order=True):
        value = part[metric].to_numpy()
        low, high = mean_interval(value, n_boot=n_boot, seed=seed)
        rows.append(
            dict(zip(group, names, strict=True))
            | {
                "n": len(value),
                "mean": float(value.mean()),
                "lo": low,
                "hi": high,
                "median": float(np.median(value)),
            }
        )
    numbers = {"n": pl.Int64, **dict.fromkeys(("mean", "lo", "hi", "median"), pl.Float64)}
    return pl.DataFrame(rows, schema={**dict.fromkeys(group, pl.String), **numbers}).sort(group)


def mean_interval(
    values: FloatArray, *, n_boot: int = 1000, seed: int = 1
) -> tuple[float | None, float | None]:
    """Return the 95 % bootstrap interval of a mean; none with fewer than two values, the mean itself where all are equal.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 14 (BCa).
    """
    if len(values) < 2:
        return None, None
    if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return float(values[0]), float(values[0])
    from scipy import stats

    found = stats.bootstrap(
        (values,), np.mean, n_resamples=n_boot, confidence_level=CONFIDENCE, rng=seed
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _schema(group: Sequence[str]) -> dict[str, Any]:
    numbers = ("mean", "reference_mean", "median", "diff", "lo", "hi", "better", "worse")
    return {
        **dict.fromkeys((*group, "reference"), pl.String),
        "n": pl.Int64,
        **dict.fromkeys(numbers, pl.Float64),
    }
