"""What other percentile ranks, hours and lengths of a queue would change, and what the present ones do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.lifecycle.classes import ClassRules, SiteClasses
from brokerlab.lifecycle.classes.weighted import LARGEST_S
from brokerlab.report.replays.shares import DAY, shares
from brokerlab.report.site_classes import rating
from brokerlab.report.site_classes.inputs import Inputs
from brokerlab.units import HOUR_S

UNITS = {
    "percentile_low": "fraction",
    "percentile_high": "fraction",
    "hi_limit_hours": "h",
    "lo_limit_hours": "h",
    "short_queue_jobs": "jobs",
}
"""Numbers of the rules that are varied."""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """What other numbers would do.

    Attributes:
        curves: One row per number and value: ``key, unit, value, current, is_current``; ``share, lo, hi`` of the (queue,
            instant) cells whose class changes; ``better, worse`` (parts of them); ``slots, slots_lo, slots_hi`` and
            ``jobs, jobs_lo, jobs_hi`` (shares of slots and jobs there); ``n_queues`` whose usual class changes;
            ``hi_share, lo_share`` of all cells then.
        binding: `shares` over instants: ``percentile_hi, hours_hi, percentile_lo, hours_lo``: what sets either limit;
            ``cut_hi, cut_lo``: the percentile is the 999,999 s at which upper limits are cut.
    """

    curves: pl.DataFrame
    binding: pl.DataFrame


def tried(
    inputs: Inputs,
    rows: pl.DataFrame,
    stats: pl.DataFrame,
    found: SiteClasses,
    grids: Mapping[str, Sequence[float]],
    *,
    n_boot: int,
    seed: int,
) -> WhatIf:
    """Try every value of every number alone.

    Args:
        inputs: From `load`.
        rows: Rated cells.
        stats: Statistics of the waits.
        found: Classes under the rules as they are.
        grids: Values by number of the rules.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.
    """
    curves = []
    for key, values in grids.items():
        current = float(getattr(inputs.rules, key))
        for value in sorted({*map(float, values), current}):
            other = rating.classes_of(inputs, stats, rating.changed(inputs.rules, **{key: value}))
            row = moved(rows, rating.used_by(rows, other), n_boot=n_boot, seed=seed)
            about = {"key": key, "unit": UNITS[key], "value": value, "current": current}
            curves.append({**about, "is_current": value == current, **row})
    return WhatIf(
        curves=pl.DataFrame(curves, infer_schema_length=None),
        binding=binding(found.percentiles, inputs, n_boot=n_boot, seed=seed),
    )


def moved(
    rows: pl.DataFrame, other: pl.Series, *, n_boot: int, seed: int
) -> dict[str, float | int | None]:
    """Say how many cells another classification moves, with intervals over days.

    Args:
        rows: Rated cells.
        other: Class of every cell, as the brokerage takes it.
        n_boot: Bootstrap replicates over days.
        seed: Of the bootstrap.

    Returns:
        Numbers of one row of `WhatIf.curves`.
    """
    rank = {"hi": 0, "mid": 1, "lo": 2}
    place = pl.col("used").replace_strict(rank, return_dtype=pl.Int64)
    there = pl.Series("there", other.replace_strict(rank, return_dtype=pl.Int64))
    table = rows.select("day", "queue", "slots", "jobs", place.alias("here")).with_columns(there)
    differs = (pl.col("here") != pl.col("there")).cast(pl.Int64)
    table = table.with_columns(
        differs=differs,
        cell=pl.lit(1),
        slots_moved=differs * pl.col("slots"),
        jobs_moved=differs * pl.col("jobs"),
    )
    numbers = ["differs", "cell", "slots_moved", "slots", "jobs_moved", "jobs"]
    daily = table.group_by("day").agg(pl.col(numbers).sum())
    found: dict[str, float | int | None] = {}
    for part, whole, name in (
        ("differs", "cell", "share"),
        ("slots_moved", "slots", "slots"),
        ("jobs_moved", "jobs", "jobs"),
    ):
        row = shares(daily, [part], whole, unit=DAY, n_boot=n_boot, seed=seed).row(0, named=True)
        ends = ("lo", "hi") if name == "share" else (f"{name}_lo", f"{name}_hi")
        found |= {name: row["share"], ends[0]: row["lo"], ends[1]: row["hi"]}
    n = max(table.height, 1)
    better = table.filter(pl.col("there") < pl.col("here")).height
    worse = table.filter(pl.col("there") > pl.col("here")).height
    usual = table.group_by("queue").agg(pl.col("here", "there").sort().mode().sort().first())
    found |= {"better": better / n, "worse": worse / n}
    found["n_queues"] = usual.filter(pl.col("here") != pl.col("there")).height
    found["hi_share"] = table.filter(pl.col("there") == rank["hi"]).height / n
    found["lo_share"] = table.filter(pl.col("there") == rank["lo"]).height / n
    return found


def binding(percentiles: pl.DataFrame, inputs: Inputs, *, n_boot: int, seed: int) -> pl.DataFrame:
    """Return the shares of instants at which the percentile, or the hours, set either limit."""
    rules: ClassRules = inputs.rules
    rows = percentiles.join(inputs.instants, on="snapshot").filter(
        pl.col("hi_limit_s").is_not_null()
    )
    parts = []
    for name, rank, hours in (
        ("hi", "p33", rules.hi_limit_hours),
        ("lo", "p67", rules.lo_limit_hours),
    ):
        by_rank = (pl.col(rank) > hours * HOUR_S).fill_null(value=False)
        cut = (pl.col(rank) >= LARGEST_S).fill_null(value=False)
        parts += [by_rank.alias(f"percentile_{name}"), (~by_rank).alias(f"hours_{name}")]
        parts.append(cut.alias(f"cut_{name}"))
    table = rows.select(pl.col("at").dt.date().alias("day"), *parts, instant=pl.lit(1))
    names = table.columns[1:-1]
    table = table.with_columns(pl.col(names).cast(pl.Int64))
    return shares(table, names, "instant", unit=DAY, n_boot=n_boot, seed=seed)


def limits(percentiles: pl.DataFrame) -> dict[str, float | None]:
    """Return the medians over the instants of both percentiles and limits [s]."""
    names = ("p33", "p67", "hi_limit_s", "lo_limit_s")
    values = {name: percentiles[name].drop_nulls().to_numpy() for name in names}
    return {name: float(np.median(kept)) if len(kept) else None for name, kept in values.items()}
