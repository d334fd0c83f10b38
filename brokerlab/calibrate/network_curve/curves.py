"""What a step curve can tell apart: how many links share a step, and what they deliver later; curves for drawing."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.stats import rankdata

from brokerlab.brokerage.curves import ThroughputCurve
from brokerlab.brokerage.network_weight import throughput_curve
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.network_curve.steps import LEAST, StepFit
from brokerlab.numerics import FloatArray
from brokerlab.rulesets import RuleSetName

LOG_STEPS = 20
"""Steps of the logarithm written as a curve."""


def curve_of(rules: RuleSetName) -> ThroughputCurve:
    """Return the steps of a rule set."""
    return throughput_curve(ProductionRules(rules))


def resolution(rows: pl.DataFrame, curve: ThroughputCurve, other: ThroughputCurve) -> pl.DataFrame:
    """Return what the links of each step delivered later, and what they would weigh under another curve.

    Args:
        rows: ``mbps, outcome`` [MB/s], both not null.
        curve: The steps.
        other: The other curve.

    Returns:
        One row per step, the lowest first: ``step``, ``mbps_above`` (null: the lowest), ``weight``, ``n_rows``,
        ``share`` of the links [1], ``q10, q50, q90`` of ``outcome`` [MB/s], ``beats_below``: how often a link of this step delivers
        more later than one of the next step below that has links [1]; 0.5 = the edge tells nothing; ``other, other_lo,
        other_hi``: mean, least and largest weight under the other curve; ``edge``: in words. Null without links.
    """
    mbps, outcome = rows["mbps"].to_numpy(), rows["outcome"].to_numpy()
    steps = np.searchsorted(np.array(curve.mbps_above), mbps, side="left")
    weights = other.weights(np.maximum(mbps, LEAST))
    table = curve.frame()
    described = []
    below = outcome[:0]
    for step in range(table.height):
        here, then = outcome[steps == step], weights[steps == step]
        known = len(here) > 0
        numbers = np.quantile(here, (0.1, 0.5, 0.9)) if known else [None] * 3
        again = (then.mean(), then.min(), then.max()) if known else [None] * 3
        beats = _beats(here, below) if known and len(below) else None
        described.append((step, len(here), len(here) / max(len(steps), 1), *numbers, beats, *again))
        below = here if known else below
    floats = ("share", "q10", "q50", "q90", "beats_below", "other", "other_lo", "other_hi")
    schema = dict.fromkeys(("step", "n_rows"), pl.Int64) | dict.fromkeys(floats, pl.Float64)
    above = pl.format("above {}", pl.col("mbps_above").cast(pl.String).str.strip_suffix(".0"))
    edge = pl.when(pl.col("mbps_above").is_null()).then(pl.lit("lowest")).otherwise(above)
    return pl.concat(
        [pl.DataFrame(described, schema=schema, orient="row"), table], how="horizontal"
    ).select("step", "mbps_above", "weight", "n_rows", *floats, edge=edge)


def _beats(above: FloatArray, below: FloatArray) -> float:
    """Return how often a value of the one is larger than one of the other; ties count half (Mann and Whitney's U)."""
    n = len(above)
    ranks = rankdata(np.concatenate([above, below]))[:n]
    return float((ranks.sum() - n * (n + 1) / 2) / n / len(below))


def tied_share(weights: FloatArray) -> float:
    """Return the share of all pairs of links that have the same weight [1].

    Example:
        >>> tied_share(np.array([1.0, 1.0, 2.0, 2.0])) == 2 / 6
        True
    """
    n, (_, sizes) = len(weights), np.unique(weights, return_counts=True)
    return float((sizes * (sizes - 1)).sum() / max(n * (n - 1), 1))


def beside_current(
    fit: StepFit,
    mbps: pl.Series,
    *,
    rules: RuleSetName = "document",
    fitted: str = "fitted",
    logarithm: str = "",
) -> pl.DataFrame:
    """Return the curve of a rule set and a fitted one with its interval, for drawing over the throughputs that occur.

    Args:
        fit: The fitted curve.
        mbps: Throughputs [MB/s].
        rules: The rule set.
        fitted: What the fitted curve is called.
        logarithm: What the logarithm is called; empty: it is not drawn.

    Returns:
        ``mbps`` [MB/s], ``weight, weight_lo, weight_hi`` (ends of the fitted one), ``curve`` (current, and as called).
    """
    low, high = bounds_of(mbps)
    drawn = {
        "current": corners(curve_of(rules), low, high),
        fitted: fit.band.filter(pl.col("mbps") >= low),
    }
    if logarithm:
        drawn[logarithm] = corners(log_curve(low, high), low, high)
    named = [frame.with_columns(curve=pl.lit(name)) for name, frame in drawn.items()]
    return pl.concat(named, how="diagonal")


def bounds_of(mbps: pl.Series) -> tuple[float, float]:
    """Return whole powers of ten around throughputs [MB/s], at least up to 1000."""
    known = np.maximum(mbps.drop_nulls().to_numpy(), LEAST)
    low = 10 ** np.floor(np.log10(known.min()))
    return float(low), max(float(10 ** np.ceil(np.log10(known.max()))), 1000.0)


def log_curve(low: float, high: float) -> ThroughputCurve:
    """Return the logarithm of throughput between two bounds [MB/s] as a curve of steps, from 1 to 2 by 0.05."""
    edges = np.geomspace(low, high, LOG_STEPS + 1)[1:]
    weights = np.round(np.linspace(1, 2, LOG_STEPS + 1), 2).tolist()
    return ThroughputCurve(tuple(float(f"{e:.3g}") for e in edges), tuple(weights[1:]), weights[0])


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
