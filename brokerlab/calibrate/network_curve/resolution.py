"""What a step curve can tell apart: how many links share a step, and what they deliver later; curves for drawing."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.calibrate.network_curve.steps import LEAST, StepFit, edge_in_words
from brokerlab.numerics import FloatArray

FACTOR = 10.0
"""Links of one step whose later throughputs differ by more are named [1]."""


def resolution(rows: pl.DataFrame, curve: ThroughputCurve) -> pl.DataFrame:
    """Return what the links of each step delivered later.

    Args:
        rows: ``mbps, outcome`` [MB/s], both not null.
        curve: The steps.

    Returns:
        One row per step, the lowest first: ``step``, ``mbps_above`` (null: the lowest), ``edge`` (in words), ``weight``, ``n_rows``,
        ``share`` of the links [1], ``q10, q50, q90`` of ``outcome`` [MB/s] (null without links),
        ``beats_below``: how often a link of this step delivers more later than one of the next step below
        that has links [1]; 0.5 = the edge tells nothing.
    """
    steps = np.searchsorted(np.array(curve.mbps_above), rows["mbps"].to_numpy(), side="left")
    outcome = rows["outcome"].to_numpy()
    found = []
    below: FloatArray | None = None
    for step, (edge, weight) in enumerate(curve.to_frame().rows()):
        here = outcome[steps == step]
        quantiles = np.quantile(here, (0.1, 0.5, 0.9)) if len(here) else [None] * 3
        found.append(
            {
                "step": step,
                "mbps_above": edge,
                "weight": weight,
                "n_rows": len(here),
                "share": len(here) / max(len(steps), 1),
                **dict(zip(("q10", "q50", "q90"), quantiles, strict=True)),
                "beats_below": _beats(here, below),
            }
        )
        below = here if len(here) else below
    return pl.DataFrame(found, infer_schema_length=None).with_columns(edge_in_words())


def later_by_step(steps: pl.DataFrame) -> pl.DataFrame:
    """Return what the links of each step delivered later, for drawing on a logarithmic axis.

    Args:
        steps: `resolution`, perhaps of several curves, with ``curve``.

    Returns:
        One row per step with links: ``curve``, ``step`` (its edge in words), ``later, later_lo, later_hi``: median and the middle
        80 % of the links [MB/s], at least what the metrics can show.
    """
    ends = {"later": "q50", "later_lo": "q10", "later_hi": "q90"}
    later = {name: pl.col(quantile).clip(LEAST) for name, quantile in ends.items()}
    return steps.drop_nulls("q50").select("curve", step="edge", **later)


def _beats(above: FloatArray, below: FloatArray | None) -> float | None:
    """Return how often a value of the one is larger than one of the other; ties count half."""
    if below is None or not len(above) or not len(below):
        return None
    ordered = np.sort(below)
    wins = np.searchsorted(ordered, above, side="left") + np.searchsorted(
        ordered, above, side="right"
    )
    return float(wins.mean() / (2 * len(below)))


def told_apart(rows: pl.DataFrame, curve: ThroughputCurve) -> dict[str, float]:
    """Return how many pairs of links a curve tells apart, and how wrong it is not to.

    Args:
        rows: ``mbps, outcome`` [MB/s], both not null and ``outcome`` above 0.
        curve: The steps.

    Returns:
        ``n_used`` steps with links; ``largest`` share of the links in one step; ``tied`` share of pairs of links
        with the same weight; ``tied_far`` share of those pairs whose later throughputs differ by more than
        a factor of ten; ``right`` share of the other pairs in which the link of higher weight delivered
        more [1].
    """
    weight = curve.weights(rows["mbps"].to_numpy())
    outcome = np.log(rows["outcome"].to_numpy())
    levels, step = np.unique(weight, return_inverse=True)
    n = len(weight)
    pairs = n * (n - 1) / 2
    parts = [np.sort(outcome[step == i]) for i in range(len(levels))]
    tied = sum(len(p) * (len(p) - 1) / 2 for p in parts)
    far = sum(float((len(p) - np.searchsorted(p, p + np.log(FACTOR), side="right")).sum()) for p in parts)  # fmt: skip
    wins = sum(
        (_beats(parts[j], parts[i]) or 0.0) * len(parts[i]) * len(parts[j])
        for j in range(len(parts))
        for i in range(j)
    )
    return {
        "n_used": len(levels),
        "largest": max(len(p) for p in parts) / n,
        "tied": tied / pairs if pairs else 0.0,
        "tied_far": far / tied if tied else 0.0,
        "right": wins / (pairs - tied) if pairs > tied else 0.0,
    }


def reweighted(
    rows: pl.DataFrame, current: ThroughputCurve, proposed: ThroughputCurve
) -> pl.DataFrame:
    """Return what the links of each step of one curve would weigh under another.

    Args:
        rows: ``mbps`` [MB/s], not null.
        current: Whose steps the rows are grouped by.
        proposed: What they would weigh.

    Returns:
        One row per step of ``current`` that has links: ``step``; ``fitted, fitted_lo, fitted_hi``: mean, least and
        largest weight.
    """
    mbps = rows["mbps"].to_numpy()
    steps = np.searchsorted(np.array(current.mbps_above), mbps, side="left")
    weights = proposed.weights(np.maximum(mbps, LEAST))
    weight = pl.col("weight")
    return (
        pl.DataFrame({"step": steps, "weight": weights})
        .group_by("step")
        .agg(fitted=weight.mean(), fitted_lo=weight.min(), fitted_hi=weight.max())
        .sort("step")
    )


def bounds_of(mbps: pl.Series) -> tuple[float, float]:
    """Return whole powers of ten around throughputs [MB/s], at least up to 1000."""
    known = np.maximum(mbps.drop_nulls().to_numpy(), LEAST)
    low = 10 ** np.floor(np.log10(known.min()))
    return float(low), max(float(10 ** np.ceil(np.log10(known.max()))), 1000.0)


def beside_document(fit: StepFit, mbps: pl.Series, *, fitted: str) -> pl.DataFrame:
    """Return the document's curve and a fitted one with its interval, for drawing over the throughputs that occur.

    Args:
        fit: The fitted curve.
        mbps: Throughputs [MB/s].
        fitted: What the fitted curve is called.

    Returns:
        ``mbps`` [MB/s], ``weight, weight_lo, weight_hi`` (ends of the fitted one), ``curve`` (current, and as called).
    """
    low, high = bounds_of(mbps)
    document = corners(throughput_curve(), low, high).with_columns(curve=pl.lit("current"))
    band = fit.band.filter(pl.col("mbps") >= low).with_columns(curve=pl.lit(fitted))
    return pl.concat([document, band], how="diagonal")


def corners(curve: ThroughputCurve, low: float, high: float) -> pl.DataFrame:
    """Return the corners of a step curve between two throughputs.

    Returns:
        ``mbps`` [MB/s], ascending from ``low`` to ``high``; ``weight`` from there up to the next row.
    """
    inside = [edge for edge in curve.mbps_above if low < edge < high]
    at = np.array([low, *inside, high])
    return pl.DataFrame(
        {"mbps": at, "weight": curve.weights(np.append(np.nextafter(at[:-1], np.inf), high))}
    )
