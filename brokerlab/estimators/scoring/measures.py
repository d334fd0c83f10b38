"""From sums over tasks to rates, pooled and as means over tasks, with intervals whose unit is the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brokerlab.estimators.scoring.attempts import PLACE
from brokerlab.intervals import ShareSums, bootstrap_totals, exact_share, percentile_interval
from brokerlab.numerics import FloatArray

N_BOOT = 2000
FEW_TASKS = 8

MEASURES: dict[str, tuple[str, str, bool]] = {
    "exceed": ("exceed", "scored", False),
    "exceed_task_mean": ("exceed", "scored", True),
    "over_allocation": ("over", "used", False),
    "over_allocation_task_mean": ("over", "used", True),
    "width": ("bound", "used", False),
    "waste_per_usage": ("waste", "usage", False),
    "killed_per_usage": ("killed", "usage", False),
    "retries_per_job": ("retries", "answered", False),
}
"""Name: what is summed, what it is divided by, whether the rates of the tasks are averaged."""


def parts(sums: FloatArray, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return (n_tasks,) numerators and denominators; a measure is the ratio of their totals."""
    over, under, averaged = MEASURES[measure]
    top, bottom = sums[:, PLACE[over]], sums[:, PLACE[under]]
    if not averaged:
        return top, bottom
    some = bottom > 0
    return np.where(some, top / np.where(some, bottom, 1.0), 0.0), some.astype(np.float64)


def rate(sums: FloatArray, measure: str) -> float:
    """Return a measure over all tasks; NaN where nothing can be told."""
    top, bottom = parts(sums, measure)
    total = bottom.sum()
    return float(top.sum() / total) if total > 0 else float("nan")


@dataclass(frozen=True)
class Interval:
    """A share of jobs, or a number, with its bounds; NaN where they cannot be told."""

    value: float
    lo: float
    hi: float


def exact(hits: float, jobs: float, confidence: float) -> Interval:
    """Return a share of independent jobs with its exact interval."""
    if jobs <= 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    low, high = exact_share(hits, jobs, confidence)
    return Interval(hits / jobs, float(low), float(high))


def clustered(sums: FloatArray, confidence: float) -> Interval:
    """Return the share of jobs that exceed, with an interval whose unit of chance is the task.

    Source: :func:`intervals.share_interval`.
    """
    exceed, scored = sums[:, PLACE["exceed"]], sums[:, PLACE["scored"]]
    some = scored > 0
    if not some.any():
        return Interval(float("nan"), float("nan"), float("nan"))
    share, lo, hi = ShareSums.of(exceed[some][:, None], scored[some]).interval(confidence)
    return Interval(float(share[0]), float(lo[0]), float(hi[0]))


@dataclass(frozen=True)
class Difference:
    """How one estimator differs from another on the same jobs."""

    value: float  # of the one
    reference: float  # of the other
    difference: Interval  # value - reference, interval over tasks; NaN below two tasks
    ratio: Interval  # NaN where the reference is 0, ends where it is 0 in more draws than lie beyond one
    without_lo: float  # least ratio when one task is left out; NaN where one is to nothing
    without_hi: float  # largest


def differences(
    one: FloatArray,
    other: FloatArray,
    measures: Sequence[str],
    *,
    confidence: float,
    n_boot: int,
    seed: int,
) -> list[Difference]:
    """Compare sums of the same jobs under two estimators, by several measures."""
    some = (one[:, PLACE["jobs"]] > 0) | (other[:, PLACE["jobs"]] > 0)
    one, other = one[some], other[some]
    columns = np.column_stack(
        [each for name in measures for sums in (one, other) for each in parts(sums, name)]
    )
    drawn = (
        bootstrap_totals(columns, n_boot=n_boot, seed=seed)
        if len(columns) >= 2
        else np.empty((0, columns.shape[1]))
    )
    return [
        _difference(columns[:, at : at + 4], drawn[:, at : at + 4], confidence)
        for at in range(0, columns.shape[1], 4)
    ]


def _difference(columns: FloatArray, drawn: FloatArray, confidence: float) -> Difference:
    """Compare two ratios of sums over tasks; below two tasks that say anything, without intervals."""
    n_tasks = int(((columns[:, 1] > 0) | (columns[:, 3] > 0)).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        value, reference, less, ratio = (float(each) for each in _compare(columns.sum(axis=0)))
        ratio = ratio if np.isfinite(ratio) else float("nan")
        less_of, ratio_of = Interval(less, np.nan, np.nan), Interval(ratio, np.nan, np.nan)
        without = np.array([np.nan])
        if n_tasks >= 2:
            replicates = np.column_stack(_compare(drawn.T)[2:])
            less_of, ratio_of = (
                _told(value, each, confidence, n_tasks)
                for value, each in zip((less, ratio), replicates.T, strict=True)
            )
            without = _compare((columns.sum(axis=0) - columns).T)[3]
            without = without if np.isfinite(without).all() else np.array([np.nan])
    return Difference(
        value, reference, less_of, ratio_of, float(without.min()), float(without.max())
    )


def _told(value: float, replicates: FloatArray, confidence: float, n_tasks: int) -> Interval:
    """Return a number with its bootstrap interval; without one where draws that say nothing reach its ends."""
    finite = np.isfinite(replicates)
    if not np.isfinite(value) or (~finite).mean() > (1 - confidence) / 2:
        return Interval(value, np.nan, np.nan)
    lo, hi = percentile_interval(replicates[finite][:, None], confidence, n_tasks=n_tasks)
    return Interval(value, float(lo[0]), float(hi[0]))


def _compare(totals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return a measure of the one, of the other, their difference and their ratio."""
    one, other = totals[0] / totals[1], totals[2] / totals[3]
    return one, other, one - other, one / other
