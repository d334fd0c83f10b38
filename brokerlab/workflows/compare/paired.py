"""Differences between strategies at the same instants, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.intervals import CONFIDENCE, studentise, t_factor
from brokerlab.numerics import FloatArray

PLACE = ("system", "workflow")
LEAST_S = 1.0  # A shorter turnaround counts as this long where turnarounds are divided [s]


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

    One row per ``by`` and other strategy: ``strategy, reference, n`` (instants), ``mean, reference_mean, median,
    diff`` (mean difference), ``diff_lo, diff_hi`` (its 95 % interval; null with a single instant), ``better, worse`` (shares of
    the instants where the metric is smaller, larger); sorted.

    ``by`` says what a row is about; ``()``: everything together. Where that is several workflows or machines, an instant's difference
    is the mean over them: machines with the same load have the same instants and are no observations more. Instants are drawn.

    Source: workflows.md 10.
    """
    key = list(dict.fromkeys((*by, "system", "workflow", "instant")))
    base = runs.filter(pl.col("strategy") == reference).select(*key, base=metric)
    pairs = runs.filter(pl.col("strategy") != reference).join(base, on=key)
    unit = list(dict.fromkeys((*by, "strategy", "instant")))
    pairs = pairs.select(*key, "strategy", value=metric, base="base").sort(*key, "strategy")
    pairs = pairs.group_by(unit, maintain_order=True).agg(pl.col("value", "base").mean()).sort(unit)
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
                "diff_lo": low,
                "diff_hi": high,
                "better": float((gap < 0).mean()),
                "worse": float((gap > 0).mean()),
            }
        )
    return pl.DataFrame(rows, schema=_schema(group)).sort(group)


def ratios(
    runs: pl.DataFrame,
    *,
    reference: str,
    by: Sequence[str] = PLACE,
    n_boot: int = 1000,
    seed: int = 1,
) -> pl.DataFrame:
    """Return the geometric mean of the ratio of turnarounds to those of one strategy, instant by instant.

    One row per ``by`` and other strategy: ``strategy, reference, n`` (instants), ``ratio, ratio_lo, ratio_hi``
    (95 % interval; null with a single instant); sorted.
    """
    logs = runs.with_columns(log=log_turnaround())
    result = differences(logs, "log", reference=reference, by=by, n_boot=n_boot, seed=seed)
    ends = {f"ratio{end}": pl.col(f"diff{end}").exp() for end in ("", "_lo", "_hi")}
    return result.select(*by, "strategy", "reference", "n", **ends)


def log_turnaround() -> pl.Expr:
    """Return ln of the turnaround [s], of which geometric means are made."""
    return pl.col("turnaround").clip(LEAST_S).log()


def means(
    runs: pl.DataFrame, metric: str, *, by: Sequence[str] = PLACE, n_boot: int = 1000, seed: int = 1
) -> pl.DataFrame:
    """Return mean and median of a metric with a 95 % interval of the mean.

    One row per ``by`` and strategy: ``strategy, n, mean, mean_lo, mean_hi, median``; sorted.
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
                "mean_lo": low,
                "mean_hi": high,
                "median": float(np.median(value)),
            }
        )
    numbers = {"n": pl.Int64, **dict.fromkeys(("mean", "mean_lo", "mean_hi", "median"), pl.Float64)}
    return pl.DataFrame(rows, schema={**dict.fromkeys(group, pl.String), **numbers}).sort(group)


def mean_interval(
    values: FloatArray, *, n_boot: int = 1000, seed: int = 1
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a mean of values in the order of time.

    That of independent values (:func:`brokerlab.intervals.studentise`) is widened by the root of `dependence`, and to Student's for so
    many fewer: instants of a queue that is full for days are not so many observations. None with fewer than two values, the mean
    itself where all are equal.
    """
    n = len(values)
    if n < 2:
        return None, None
    mean = float(values.mean())
    if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return mean, mean
    _, low, high = studentise(values, np.ones(n), n_boot=n_boot, seed=seed)
    together = dependence(values)
    wider = np.sqrt(together) * t_factor(n / together, CONFIDENCE) / t_factor(n, CONFIDENCE)
    return float(mean - wider * (mean - low)), float(mean + wider * (high - mean))


def dependence(values: FloatArray) -> float:
    """Return how many values in a row tell as much as one independent value: 1 where they do not hang together.

    ``(1 + r) / (1 - r)`` of a first-order autoregressive series, at most half of the values; ``r`` is the correlation of
    neighbours, which few values show too small by about ``(1 + 3 r) / n``.

    Source: Kendall, Biometrika 41 (1954) 403, doi:10.1093/biomet/41.3-4.403.

    Example:
        >>> dependence(np.array([1.0, -1.0, 1.0, -1.0]))
        1.0
        >>> round(dependence(np.repeat([0.0, 1.0, 0.0, 1.0], 5)), 1)
        10.0
    """
    off, n = values - values.mean(), len(values)
    if n < 4 or not off.any():
        return 1.0
    seen = float(off[1:] @ off[:-1] / (off @ off))
    r = max(0.0, (n * seen + 1) / (n - 3))
    return n / 2 if r >= 1 else min(n / 2, (1 + r) / (1 - r))


def _schema(group: Sequence[str]) -> dict[str, Any]:
    numbers = ("mean", "reference_mean", "median", "diff", "diff_lo", "diff_hi", "better", "worse")
    return {
        **dict.fromkeys((*group, "reference"), pl.String),
        "n": pl.Int64,
        **dict.fromkeys(numbers, pl.Float64),
    }
