"""Two periods: one to choose on, a later one never looked at; and whether they are alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from brokerlab.calibrate.backtest import Backtest
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.intervals import bootstrap_totals, percentile_interval
from brokerlab.numerics import FloatArray


@dataclass(frozen=True)
class Periods:
    """The tasks of both periods.

    Attributes:
        early: Tasks created before ``at``: the choice is made on them.
        late: Tasks created at or after it: the proof.
        at: The instant between, UTC.
        early_window: First and last creation of the early tasks; None without tasks.
        late_window: The same of the late ones.
        n_undated: Tasks without a creation time, in neither.
        n_overlapping: Jobs of early tasks that ended at or after ``at``: no task is in both periods, but at
            that instant they could not have been known yet.
    """

    early: pl.DataFrame
    late: pl.DataFrame
    at: datetime
    early_window: tuple[datetime, datetime] | None
    late_window: tuple[datetime, datetime] | None
    n_undated: int
    n_overlapping: int

    def to_dict(self) -> dict[str, Any]:
        """Return the instant between the periods, the span of each, and how many jobs overlap."""
        return {
            "at": self.at,
            "calibration": self.early_window,
            "proof": self.late_window,
            "n_overlapping": self.n_overlapping,
        }


def split_periods(
    tasks: pl.DataFrame,
    quantities: pl.DataFrame | None = None,
    *,
    at: datetime | None = None,
    fraction: float = 0.5,
) -> Periods:
    """Divide tasks by the time they were created.

    Args:
        tasks: With ``creationdate``; null: the first ``creationtime`` of its jobs in ``quantities``.
        quantities: ``jeditaskid, creationtime, finish_time``; also limits the tasks to those with jobs.
        at: Instant between the periods [UTC]; None: by ``fraction``.
        fraction: Share of the tasks that go to the early period.

    Raises:
        ConfigError: fraction outside 0..1.
        InsufficientDataError: No task has a creation time.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"fraction={fraction}: allowed is a share between 0 and 1")
    when = (
        pl.col("creationdate")
        if "creationdate" in tasks.columns
        else pl.lit(None, pl.Datetime("us"))
    )
    dated = tasks.with_columns(created_at=when)
    if quantities is not None:
        first = quantities.group_by("jeditaskid").agg(first_job=pl.col("creationtime").min())
        dated = (
            dated.join(first, on="jeditaskid", how="inner")
            .with_columns(created_at=pl.coalesce("created_at", "first_job"))
            .drop("first_job")
        )
    known = dated.filter(pl.col("created_at").is_not_null()).sort("created_at", "jeditaskid")
    if known.is_empty():
        raise InsufficientDataError(
            "no task with jobs has a creation time: tasks.creationdate and jobs.creationtime are null"
        )
    moment = at or known["created_at"][min(int(known.height * fraction), known.height - 1)]
    early, late = (
        known.filter(pl.col("created_at") < moment),
        known.filter(pl.col("created_at") >= moment),
    )
    return Periods(
        early=early.drop("created_at"),
        late=late.drop("created_at"),
        at=moment,
        early_window=_window(early),
        late_window=_window(late),
        n_undated=dated.height - known.height,
        n_overlapping=_overlapping(early, quantities, moment),
    )


def _overlapping(early: pl.DataFrame, quantities: pl.DataFrame | None, at: datetime) -> int:
    """Count the jobs of early tasks that ended at or after the instant between."""
    if quantities is None:
        return 0
    mine = quantities.join(early.select("jeditaskid"), on="jeditaskid", how="semi")
    return mine.filter(pl.col("finish_time") >= at).height


def _window(tasks: pl.DataFrame) -> tuple[datetime, datetime] | None:
    """Return first and last creation."""
    return None if tasks.is_empty() else (tasks["created_at"][0], tasks["created_at"][-1])


def exchangeability(
    early: Backtest, late: Backtest, *, n_boot: int = 2000, seed: int = 0, min_tasks: int = 10
) -> pl.DataFrame:
    """Compare the two periods under the current setting: what was learnt holds only if they are alike.

    Args:
        early: Back-test of the calibration period.
        late: Back-test of the proof period.
        n_boot: Bootstrap replicates over tasks, drawn separately in both periods.
        seed: Same seed, same intervals.
        min_tasks: Fewer tasks in a level of either period: no interval (null).

    Returns:
        One row per (quantity, level), sorted: ``exceed_rate`` (mean over tasks, shares) and
        ``log_gap`` (logarithm of scouts' over rest's median), for ``all`` tasks and by number of scouts;
        ``n_early, n_late, early, late, difference, lo, hi``, ``ks_statistic`` and ``ks_pvalue`` of the
        two-sample test on the tasks' values (ties make it conservative), ``alike`` (interval holds 0).

    Source: Smirnov, Ann. Math. Statist. 19 (1948) 279, doi:10.1214/aoms/1177730256.
    """
    rank, margin = early.current
    if late.current != early.current:
        raise ConfigError(
            f"the periods have different current settings: {early.current}, {late.current}"
        )
    sides = [_per_task(side, rank, margin) for side in (early, late)]
    levels = sorted({int(n) for side in sides for n in side["n_scouts"]})
    rows = []
    for quantity in ("exceed_rate", "log_gap"):
        for level in ["all", *levels]:
            values = [
                (side if level == "all" else side.filter(pl.col("n_scouts") == level))[quantity]
                .drop_nulls()
                .to_numpy()
                for side in sides
            ]
            rows.append(
                {
                    "quantity": quantity,
                    "level": str(level),
                    **_compare(values[0], values[1], n_boot=n_boot, seed=seed, min_tasks=min_tasks),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _per_task(tried: Backtest, rank: int, margin: int) -> pl.DataFrame:
    """Return the tasks' values under one setting."""
    here = (pl.col("rank") == rank) & (pl.col("margin_pct") == margin)
    gap = tried.gap.select("jeditaskid", log_gap=pl.col("ratio_median").log())
    finite = pl.when(pl.col("log_gap").is_finite()).then("log_gap")
    return (
        tried.by_task.filter(here)
        .select("jeditaskid", "n_scouts", "exceed_rate")
        .join(gap, on="jeditaskid", how="left")
        .with_columns(log_gap=finite)
        .sort("jeditaskid")
    )


def _compare(
    early: FloatArray, late: FloatArray, *, n_boot: int, seed: int, min_tasks: int
) -> dict[str, float | int | bool | None]:
    """Compare two samples of tasks."""
    result: dict[str, float | int | bool | None] = {
        "n_early": int(early.size),
        "n_late": int(late.size),
        "early": float(early.mean()) if early.size else None,
        "late": float(late.mean()) if late.size else None,
        "difference": float(late.mean() - early.mean()) if early.size and late.size else None,
        **dict.fromkeys(["lo", "hi", "ks_statistic", "ks_pvalue", "alike"]),
    }
    if min(early.size, late.size) < min_tasks:
        return result
    means = [
        bootstrap_totals(values[:, None], n_boot=n_boot, seed=seed + place)[:, 0] / values.size
        for place, values in enumerate((early, late))
    ]
    fewer = min(early.size, late.size)
    bounds = percentile_interval((means[1] - means[0])[:, None], 0.95, n_tasks=fewer)
    low, high = (float(bound[0]) for bound in bounds)
    test = stats.ks_2samp(early, late, method="asymp")
    return result | {
        "lo": low,
        "hi": high,
        "ks_statistic": float(np.clip(test.statistic, 0, 1)),
        "ks_pvalue": float(np.clip(test.pvalue, 0, 1)),
        "alike": low <= 0 <= high,
    }
