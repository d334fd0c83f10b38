"""Waits at the queues: the mean against the upper limit, and whether the classes hold for the jobs that come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.intervals import bootstrap_weights, percentile_interval
from brokerlab.lifecycle.classes.weighted import LARGEST_S
from brokerlab.numerics import FloatArray
from brokerlab.report.replays.shares import CONFIDENCE, DAY, shares
from brokerlab.report.site_classes.rating import CLASSES, KEYS, NONE
from brokerlab.units import HOUR_S

BANDS = ((0.0, 1.0), (1.0, 3.0), (3.0, 10.0), (10.0, float("inf")))
"""Sums of weights that tables tell apart: from, below."""
STEERED, SAMPLED = "analysis jobs", "merge jobs and probes"
"""Jobs that the classes steer, and jobs of the kind that queues are rated by."""
QUANTILES = (0.5, 0.9)
POINTS = 400
"""Waits at which a bootstrap of quantiles looks."""
TIMES_S = tuple(float(value) for value in np.geomspace(60, 7 * 86_400, 61))
"""Waits at which curves are drawn [s]."""


@dataclass(frozen=True, kw_only=True)
class Waits:
    """How long jobs waited, by the class that their queue had when they were made.

    Attributes:
        by_class: ``kind`` (`STEERED`, `SAMPLED`), ``class_name``, ``n`` (jobs that started), ``not_started``, ``mean_s``,
            ``median_s, median_lo, median_hi``, ``p90_s, p90_lo, p90_hi`` [s].
        beyond: `shares` by ``kind`` of the jobs that waited beyond their queue's upper limit, and by ``band`` of the sum
            of weights.
        above: `shares` by ``class_name`` of the steered jobs that waited beyond some time: ``time_s``.
        bands: One row per band of the sum of weights: ``band, cells, share`` of the rated cells, ``ratio`` (median of upper
            limit over mean), ``cut`` (share of cells whose limit is cut at 999,999 s).
        queues: One row per queue: medians over the instants of ``w_mean, w_cl95upp`` [s], ``sum_of_weights, n``.
    """

    by_class: pl.DataFrame
    beyond: pl.DataFrame
    above: pl.DataFrame
    bands: pl.DataFrame
    queues: pl.DataFrame


def studied(rows: pl.DataFrame, made: pl.DataFrame, *, n_boot: int, seed: int) -> Waits:
    """Hold the classes against what the next jobs waited.

    Args:
        rows: Rated cells.
        made: Analysis jobs, `Inputs.made`.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.
    """
    about = rows.select(*KEYS, "day", "class_name", "w_cl95upp", "sum_of_weights")
    kind = pl.when("is_sample").then(pl.lit(SAMPLED)).otherwise(pl.lit(STEERED))
    jobs = made.join(about, on=KEYS).with_columns(kind=kind)
    dice = {"n_boot": n_boot, "seed": seed}
    return Waits(
        by_class=_by_class(jobs, **dice),
        beyond=_beyond(jobs, **dice),
        above=_above(jobs.filter(pl.col("kind") == STEERED), **dice),
        bands=_bands(rows),
        queues=_queues(rows),
    )


def _by_class(jobs: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    found = []
    for kind in (STEERED, SAMPLED):
        for name in (*CLASSES, NONE):
            group = jobs.filter(pl.col("kind") == kind, pl.col("class_name") == name)
            known = group.filter(pl.col("wait_s").is_not_null())
            if group.is_empty():
                continue
            row = {"kind": kind, "class_name": name, "n": known.height}
            row |= {"not_started": group.height - known.height, "mean_s": known["wait_s"].mean()}
            ends = quantiles(known, n_boot=n_boot, seed=seed)
            for label, (value, low, high) in zip(("median", "p90"), ends, strict=True):
                row |= {f"{label}_s": value, f"{label}_lo": low, f"{label}_hi": high}
            found.append(row)
    numbers = [f"{label}_{end}" for label in ("median", "p90") for end in ("s", "lo", "hi")]
    schema = {"kind": pl.String, "class_name": pl.String, "n": pl.Int64, "not_started": pl.Int64}
    return pl.DataFrame(found, schema=schema | dict.fromkeys(["mean_s", *numbers], pl.Float64))


def quantiles(
    jobs: pl.DataFrame, *, n_boot: int, seed: int
) -> list[tuple[float | None, float | None, float | None]]:
    """Return the quantiles of waits with intervals over days.

    Args:
        jobs: ``wait_s``, ``day``.
        n_boot: Bootstrap replicates.
        seed: Of the bootstrap.

    Returns:
        Value, lower and upper end of each of `QUANTILES` [s]; null ends with fewer than two days.

    Example:
        >>> from datetime import date
        >>> days = [date(2026, 3, 1), date(2026, 3, 2)]
        >>> quantiles(pl.DataFrame({"wait_s": [10.0, 30.0], "day": days}), n_boot=100, seed=1)[0][0]
        20.0
    """
    waits = jobs["wait_s"].to_numpy()
    if not len(waits):
        return [(None, None, None)] * len(QUANTILES)
    values = [float(value) for value in np.quantile(waits, QUANTILES)]
    days = jobs["day"].rank("dense").to_numpy() - 1
    n_days = int(days.max()) + 1
    if n_days < 2:
        return [(value, None, None) for value in values]
    # a replicate's quantile is looked for among some of the waits, not all
    points = np.unique(np.quantile(waits, np.linspace(0, 1, POINTS + 1), method="inverted_cdf"))
    counts = np.zeros((n_days, len(points)))
    np.add.at(counts, (days, np.searchsorted(points, waits)), 1)
    below = np.cumsum(counts, axis=1)
    drawn = np.concatenate(
        [weights @ below for weights in bootstrap_weights(n_days, n_boot=n_boot, seed=seed)]
    )
    replicates = np.stack([_at(points, drawn, rank) for rank in QUANTILES], axis=1)
    low, high = percentile_interval(replicates, CONFIDENCE, n_tasks=n_days)
    ends = zip(values, low, high, strict=True)
    return [(v, min(v, float(a)), max(v, float(b))) for v, a, b in ends]


def _at(points: FloatArray, below: FloatArray, rank: float) -> FloatArray:
    """Return the first point at which each replicate has a part of its jobs."""
    reached = below >= rank * below[:, -1:]
    return np.asarray(points[reached.argmax(axis=1)])


def _beyond(jobs: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Count the jobs that waited for longer than the limit that is to hold 95 % of them."""
    held = jobs.filter(pl.col("wait_s").is_not_null(), pl.col("w_cl95upp").is_not_null())
    late = (pl.col("wait_s") > pl.col("w_cl95upp")).cast(pl.Int64)
    table = held.with_columns(beyond=late, job=pl.lit(1), band=band())
    everything = table.with_columns(band=pl.lit("all"))
    return shares(
        pl.concat([everything, table]), ["beyond"], "job", by=["kind", "band"], unit=DAY,
        n_boot=n_boot, seed=seed,
    )  # fmt: skip


def band() -> pl.Expr:
    """Name the band of the sum of weights."""
    weight = pl.col("sum_of_weights")
    named = pl.lit(None, pl.String)
    for low, high in reversed(BANDS):
        named = (
            pl.when(weight >= low, weight < high)
            .then(pl.lit(named_band(low, high)))
            .otherwise(named)
        )
    return named


def named_band(low: float, high: float) -> str:
    """Write a band of the sum of weights.

    Example:
        >>> [named_band(*pair) for pair in BANDS]
        ['below 1', '1 to 3', '3 to 10', '10 and more']
    """
    if low <= 0:
        return f"below {high:g}"
    return f"{low:g} and more" if high == float("inf") else f"{low:g} to {high:g}"


def _above(jobs: pl.DataFrame, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the share of jobs that still wait after some time."""
    known = jobs.filter(pl.col("wait_s").is_not_null())
    names = [f"t{place}" for place in range(len(TIMES_S))]
    late = [
        (pl.col("wait_s") > time).sum().alias(name)
        for name, time in zip(names, TIMES_S, strict=True)
    ]
    table = known.group_by("class_name", "day").agg(*late, job=pl.len())
    found = shares(table, names, "job", by=["class_name"], unit=DAY, n_boot=n_boot, seed=seed)
    times = pl.DataFrame({"part": names, "time_s": TIMES_S})
    return found.join(times, on="part").sort("class_name", "time_s")


def _bands(rows: pl.DataFrame) -> pl.DataFrame:
    """Say how far the limit lies above the mean, by how many jobs count."""
    known = rows.filter(pl.col("w_cl95upp").is_not_null(), pl.col("w_mean") > 0)
    ratio = pl.col("w_cl95upp") / pl.col("w_mean")
    found = known.group_by(band().alias("band")).agg(
        cells=pl.len(), ratio=ratio.median(), cut=(pl.col("w_cl95upp") >= LARGEST_S).mean()
    )
    order = pl.DataFrame({"band": [named_band(*pair) for pair in BANDS]}).with_row_index("place")
    share = pl.col("cells") / max(known.height, 1)
    return order.join(found, on="band").sort("place").drop("place").with_columns(share=share)


def _queues(rows: pl.DataFrame) -> pl.DataFrame:
    known = rows.filter(pl.col("w_cl95upp").is_not_null(), pl.col("w_mean") > 0)
    numbers = pl.col("w_mean", "w_cl95upp", "sum_of_weights", "n")
    return known.group_by("queue").agg(numbers.median()).sort("queue")


def hours(seconds: float | None) -> float | None:
    """Return hours; null stays null."""
    return None if seconds is None else seconds / HOUR_S
