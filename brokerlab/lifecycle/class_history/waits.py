"""Whether classes hold for the jobs that come: how long these waited, and how far limits lie above mean waits."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import polars as pl

from brokerlab.intervals import N_BOOT, Sums, clustered, shares
from brokerlab.lifecycle.class_history.period import KEYS
from brokerlab.lifecycle.class_history.ratings import (
    PARTS,
    QueueRatings,
    stability,
    usual_class,
    usual_classes,
)
from brokerlab.lifecycle.classification.wait_stats import LARGEST_S
from brokerlab.numerics import FloatArray

STEERED, SAMPLED = "steered", "sampled"
"""Analysis jobs that the classes steer; merge jobs and probes, whose waits make the classes."""
BANDS = ((0.0, 1.0), (1.0, 3.0), (3.0, 10.0), (10.0, float("inf")))
"""Sums of weights that are told apart: from, below [jobs]."""
QUANTILES = {"median_s": 0.5, "p90_s": 0.9}
POINTS = 400  # waits at which the bootstrap of a quantile looks
TIMES_S = tuple(float(value) for value in np.geomspace(60, 7 * 86_400, 61))
"""Waits at which curves are drawn [s]."""


def jobs_at_classes(ratings: QueueRatings) -> pl.DataFrame:
    """Return the analysis jobs of the period with what their queue was rated when they were made.

    One row per job at a queue that is rated or could be: ``snapshot, queue, day``, ``kind`` (`STEERED`, `SAMPLED`),
    ``wait_s`` (null: not started), ``class_name, w_cl95upp`` [s], ``sum_of_weights`` [jobs].
    """
    about = ratings.cells.select(*KEYS, "day", "class_name", "w_cl95upp", "sum_of_weights")
    kind = pl.when("is_sampled").then(pl.lit(SAMPLED)).otherwise(pl.lit(STEERED))
    return (
        ratings.period.jobs.join(about, on=KEYS, maintain_order="left")
        .with_columns(kind=kind)
        .drop("is_sampled")
    )


def waits_by_class(jobs: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1) -> pl.DataFrame:
    """Say how long jobs waited, by the class that their queue had when they were made.

    One row per kind and class with a job: ``kind, class_name, n`` (jobs that started), ``n_not_started``, ``mean_s``,
    ``median_s, p90_s`` [s] with ``_lo, _hi``.
    """
    rows = []
    for kind in (STEERED, SAMPLED):
        for name in PARTS:
            group = jobs.filter(pl.col("kind") == kind, pl.col("class_name") == name)
            started = group.drop_nulls("wait_s")
            if group.height:
                row = {"kind": kind, "class_name": name, "n": started.height}
                row |= {"n_not_started": group.height - started.height}
                row |= {"mean_s": started["wait_s"].mean()}
                rows.append(row | wait_quantiles(started, n_boot=n_boot, seed=seed))
    ends = [f"{name}{end}" for name in QUANTILES for end in ("", "_lo", "_hi")]
    schema = {"kind": pl.String, "class_name": pl.String, "n": pl.Int64, "n_not_started": pl.Int64}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(["mean_s", *ends], pl.Float64))


def wait_quantiles(
    jobs: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1
) -> dict[str, float | None]:
    """Return the quantiles of waits with intervals over days.

    ``median_s, p90_s`` [s] with ``_lo, _hi``; null without jobs, null ends with fewer than two days.
    """
    waits = jobs["wait_s"].to_numpy()
    if not len(waits):
        return {f"{name}{end}": None for name in QUANTILES for end in ("", "_lo", "_hi")}
    # a replicate's quantile is looked for among some of the waits, not all
    points = np.unique(np.quantile(waits, np.linspace(0, 1, POINTS + 1), method="inverted_cdf"))
    names = [f"below{place}" for place in range(len(points))]
    within = [
        (pl.col("wait_s") <= point).sum().alias(name)
        for name, point in zip(names, points, strict=True)
    ]
    formulas = {name: partial(_quantile, names, points, rank) for name, rank in QUANTILES.items()}
    ends = clustered(
        jobs.group_by("day").agg(within),
        formulas,
        unit="day",
        measures=names,
        n_boot=n_boot,
        seed=seed,
    ).row(0, named=True)
    row: dict[str, float | None] = {}
    for name, rank in QUANTILES.items():
        value = float(np.quantile(waits, rank))
        low, high = ends[f"{name}_lo"], ends[f"{name}_hi"]
        row[name] = value
        row[f"{name}_lo"] = None if low is None else min(value, low)
        row[f"{name}_hi"] = None if high is None else max(value, high)
    return row


def _quantile(names: list[str], points: FloatArray, rank: float, sums: Sums) -> FloatArray:
    """Return the first point at which a part ``rank`` of the jobs lie, of totals or of each replicate."""
    below = np.stack([np.asarray(sums[name]) for name in names], axis=-1)
    return np.asarray(points[(below >= rank * below[..., -1:]).argmax(axis=-1)])


def compare_medians(waits: pl.DataFrame) -> pl.DataFrame:
    """Say whether steered jobs waited as their classes promise: at hi queues for less long than at mid ones, and so on.

    One row per pair of neighbouring classes whose medians have intervals: ``quick, slow``, ``order``: ``right`` (the
    interval of the slower class lies above), ``wrong`` (it lies below) or ``unclear`` (they overlap).
    """
    rows = {row["class_name"]: row for row in waits.filter(kind=STEERED).to_dicts()}
    pairs = []
    for quick, slow in (("hi", "mid"), ("mid", "lo")):
        low, high = rows.get(quick), rows.get(slow)
        if low and high and low["median_s_lo"] is not None and high["median_s_lo"] is not None:
            order = "unclear"
            if high["median_s_lo"] > low["median_s_hi"]:
                order = "right"
            elif low["median_s_lo"] > high["median_s_hi"]:
                order = "wrong"
            pairs.append({"quick": quick, "slow": slow, "order": order})
    return pl.DataFrame(pairs, schema=dict.fromkeys(("quick", "slow", "order"), pl.String))


def still_waiting(jobs: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1) -> pl.DataFrame:
    """Return the share of the steered jobs that waited beyond some time.

    One row per class with a job that started and time, sorted: ``class_name, time_s`` [s], ``share`` [1] with ``_lo,
    _hi``, ``n_units`` (days).
    """
    known = jobs.filter(pl.col("kind") == STEERED).drop_nulls("wait_s")
    times = {f"t{place}": time for place, time in enumerate(TIMES_S)}
    late = [(pl.col("wait_s") > time).sum().alias(name) for name, time in times.items()]
    table = known.group_by("class_name", "day").agg(*late, job=pl.len())
    curves = shares(
        table, list(times), "job", unit="day", by=["class_name"], n_boot=n_boot, seed=seed
    )
    parts = pl.DataFrame({"part": list(times), "time_s": TIMES_S})
    return (
        curves.join(parts, on="part")
        .select("class_name", "time_s", "share", "share_lo", "share_hi", "n_units")
        .sort(pl.col("class_name").cast(pl.Enum(PARTS)), "time_s")
    )


def limits_by_weight(
    ratings: QueueRatings, jobs: pl.DataFrame, *, n_boot: int = N_BOOT, seed: int = 1
) -> pl.DataFrame:
    """Say how far the upper limit of one wait lies above the mean, and whether it held, by how many jobs count.

    One row per band of the sum of weights that has cells, and ``all``: ``band``; ``cells, share`` [1] of the cells with
    a limit; ``ratio`` (median of limit over mean); ``cut`` (share [1] of cells whose limit is cut at 999,999 s);
    ``steered, sampled`` (shares [1] of the jobs that waited beyond the limit; null without jobs) with ``_lo, _hi``.
    """
    known = _with_limit(ratings.cells)
    cells = (
        _with_all(known)
        .group_by("band")
        .agg(
            cells=pl.len(),
            ratio=(pl.col("w_cl95upp") / pl.col("w_mean")).median(),
            cut=(pl.col("w_cl95upp") >= LARGEST_S).mean(),
        )
    )
    held = jobs.drop_nulls(["wait_s", "w_cl95upp"])
    beyond = pl.col("wait_s") > pl.col("w_cl95upp")
    late = [
        (beyond & (pl.col("kind") == kind)).sum().alias(f"late_{kind}")
        for kind in (STEERED, SAMPLED)
    ]
    counts = [(pl.col("kind") == kind).sum().alias(f"n_{kind}") for kind in (STEERED, SAMPLED)]
    table = _with_all(held).group_by("band", "day").agg(*late, *counts)
    order = pl.DataFrame({"band": [*(band_name(*pair) for pair in BANDS), "all"]})
    result = order.join(cells, on="band", maintain_order="left")
    result = result.with_columns(share=pl.col("cells") / max(known.height, 1))
    for kind in (STEERED, SAMPLED):
        part = clustered(
            table.filter(pl.col(f"n_{kind}") > 0),
            {kind: (f"late_{kind}", f"n_{kind}")},
            unit="day",
            by=["band"],
            n_boot=n_boot,
            seed=seed,
        )
        columns = ["band", kind, f"{kind}_lo", f"{kind}_hi"]
        result = result.join(part.select(columns), on="band", how="left", maintain_order="left")
    return result


def _with_limit(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.filter(pl.col("w_cl95upp").is_not_null(), pl.col("w_mean") > 0)


def _with_all(rows: pl.DataFrame) -> pl.DataFrame:
    """Name the band of each row, and add all rows as a band of their own."""
    return pl.concat([rows.with_columns(band=band()), rows.with_columns(band=pl.lit("all"))])


def band() -> pl.Expr:
    """Name the band of ``sum_of_weights``."""
    weight = pl.col("sum_of_weights")
    names = [
        pl.when(weight >= low, weight < high).then(pl.lit(band_name(low, high)))
        for low, high in BANDS
    ]
    return pl.coalesce(names)


def band_name(low: float, high: float) -> str:
    """Write a band of the sum of weights.

    Example:
        >>> [band_name(*pair) for pair in BANDS]
        ['below 1', '1 to 3', '3 to 10', '10 and more']
    """
    if low <= 0:
        return f"below {high:g}"
    return f"{low:g} and more" if high == float("inf") else f"{low:g} to {high:g}"


def limits_by_queue(cells: pl.DataFrame) -> pl.DataFrame:
    """Return medians over the instants, by queue.

    One row per queue with a limit, sorted: ``queue``; ``mean_s`` (weighted mean wait), ``limit_s`` (upper limit of one
    wait) [s]; ``sum_of_weights, n`` [jobs].
    """
    named = _with_limit(cells).rename({"w_mean": "mean_s", "w_cl95upp": "limit_s"})
    numbers = pl.col("mean_s", "limit_s", "sum_of_weights", "n")
    return named.group_by("queue").agg(numbers.median()).sort("queue")


def describe_queues(
    marked: pl.DataFrame, step_days: float, *, n_boot: int = N_BOOT, seed: int = 1
) -> pl.DataFrame:
    """Say of each queue how long it keeps its class, which it usually has, and how long jobs wait.

    One row per queue, most jobs first: the columns of :func:`stability`, :func:`usual_classes` and
    :func:`limits_by_queue`, and ``usual``, see :func:`usual_class`; those of limits are null without one.
    """
    kept = stability(marked, step_days, by=["queue"], n_boot=n_boot, seed=seed)
    usual = kept.join(usual_classes(marked), on="queue")
    known = usual.join(limits_by_queue(marked), on="queue", how="left")
    return known.with_columns(usual=usual_class()).sort("jobs", "queue", descending=[True, False])


def in_minutes(frame: pl.DataFrame) -> pl.DataFrame:
    """Return all times and their ends in minutes instead of seconds: ``x_s, x_s_lo, x_s_hi`` become ``x_min, ...``.

    Example:
        >>> in_minutes(pl.DataFrame({"n": [3], "mean_s": [90.0], "mean_s_lo": [60.0]})).to_dicts()
        [{'n': 3, 'mean_min': 1.5, 'mean_min_lo': 1.0}]
    """
    names = {name: re.sub(r"_s(_lo|_hi)?$", r"_min\1", name) for name in frame.columns}
    times = [old for old, new in names.items() if old != new]
    return frame.with_columns(pl.col(times) / 60).rename(names)
