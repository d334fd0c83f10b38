"""Settings of estimators: the level that exceeds no more often than the deployed rule, all of them, and the best that hindsight allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.scoring.judged import (
    N_BOOT,
    PLACE,
    Entry,
    Judged,
    differences,
    parts,
    rate,
    without_levels,
)
from brokerlab.numerics import BoolArray, FloatArray, IntArray

GRID = (
    *(0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95),
    *(0.96, 0.97, 0.975, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995),
)
"""Levels among which one is chosen."""
AVERAGES = {
    "jobs": ("exceed", "over_allocation"),
    "tasks": ("exceed_task_mean", "over_allocation_task_mean"),
}
"""What rates are averages over: the measures of exceeding and of over-allocation."""
ROUNDING = 1e-12  # of a share
OTHERS, SAME = "other tasks", "same jobs"


@dataclass(frozen=True)
class Curve:
    """Sums of one estimator at ascending levels, and of the reference, on the same jobs."""

    estimator: str  # its name
    levels: FloatArray  # (L,) ascending
    sums: FloatArray  # (L, n_tasks, len(COUNTED))
    reference: FloatArray  # (n_tasks, len(COUNTED))

    @classmethod
    def of(cls, entries: Sequence[Entry], reference: Entry) -> Curve:
        """Sum entries of one estimator, ascending in level.

        The jobs are those that can be judged under the reference and have an answer at the lowest level;
        killed ones only if they are known to exceed at every level. Levels at which the estimator
        gives some of these no answer are left out.
        """
        judged, highest = reference.judged, entries[-1].bound
        both = judged.can_be_judged(reference.bound) & np.isfinite(entries[0].bound)
        both &= ~judged.censored | (judged.used >= highest)
        sums = np.stack([judged.sums(each.bound, both) for each in entries])
        theirs = judged.sums(reference.bound, both)
        counts = sums.sum(axis=1)
        all_said = counts[:, PLACE["answered"]] == counts[:, PLACE["jobs"]]
        tasks = theirs[:, PLACE["jobs"]] > 0
        return cls(
            entries[0].estimator,
            np.array([each.level for each in entries], dtype=np.float64)[all_said],
            sums[all_said][:, tasks],
            theirs[tasks],
        )

    def least(self, measure: str, *, without: bool) -> tuple[IntArray, BoolArray]:
        """Find the least level that exceeds no more often than the reference."""
        top, bottom = np.moveaxis(np.array([parts(each, measure) for each in self.sums]), 1, 0)
        top_ref, bottom_ref = parts(self.reference, measure)
        if without:
            rates = _share(top.sum(axis=1)[:, None] - top, bottom.sum(axis=1)[:, None] - bottom)
            limit = _share(top_ref.sum() - top_ref, bottom_ref.sum() - bottom_ref)
        else:
            rates = _share(top.sum(axis=1), bottom.sum(axis=1))[:, None] + np.zeros_like(top)
            limit = _share(top_ref.sum(), bottom_ref.sum()) + np.zeros_like(top_ref)
        enough: BoolArray = np.asarray(rates <= limit + ROUNDING)
        met: BoolArray = np.asarray(enough.any(axis=0))
        return np.where(met, enough.argmax(axis=0), self.levels.size - 1), met

    def chosen(self, place: IntArray) -> FloatArray:
        """Return (n_tasks, len(COUNTED)) sums of every task at its own level."""
        chosen: FloatArray = self.sums[place, np.arange(place.size)]
        return chosen


def at_deployed(
    curves: Sequence[Curve], *, confidence: float, n_boot: int = N_BOOT, seed: int
) -> pl.DataFrame:
    """Compare over-allocation with the deployed rule's where an estimator exceeds no more often.

    The level is the least of the grid at which the estimator exceeds no more often than the rule:
    ``other tasks``: for every task from all other tasks, so that no judged job has a say in its own level;
    ``same jobs``: one level from the judged jobs themselves, which describes and promises nothing.

    One row per (estimator, average, chosen_on): ``average`` (``jobs``: pooled; ``tasks``: means over
    tasks), ``level`` (median over the tasks), ``level_lo, level_hi``; ``exceed, exceed_reference``,
    ``no_higher`` (whether it came true), ``not_met`` (tasks for which no level of the grid was
    enough: the largest is taken); ``over_allocation, over_reference, ratio, ratio_lo, ratio_hi``,
    ``saved`` (1 - ratio), ``jobs, tasks``. Of a single task there are no others.
    """
    asked: dict[str, Any] = {"confidence": confidence, "n_boot": n_boot, "seed": seed}
    rows = [
        _row(curve, average, chosen_on, asked)
        for curve in curves
        for average in AVERAGES
        for chosen_on in (OTHERS, SAME)[curve.reference.shape[0] < 2 :]
    ]
    return pl.DataFrame(rows, schema=_SCHEMA).with_columns(pl.selectors.float().fill_nan(None))


def _row(curve: Curve, average: str, chosen_on: str, asked: dict[str, Any]) -> dict[str, object]:
    """Choose the level of every task, and compare."""
    exceed, over = AVERAGES[average]
    place, met = curve.least(exceed, without=chosen_on == OTHERS)
    sums, level = curve.chosen(place), curve.levels[place]
    fails, result = differences(sums, curve.reference, (exceed, over), **asked)
    return {
        "estimator": curve.estimator,
        "average": average,
        "chosen_on": chosen_on,
        "level": float(np.median(level)) if level.size else None,
        "level_lo": float(level.min()) if level.size else None,
        "level_hi": float(level.max()) if level.size else None,
        "exceed": fails["value"],
        "exceed_reference": fails["reference"],
        "no_higher": bool(fails["value"] <= fails["reference"] + ROUNDING),
        "not_met": int((~met).sum()),
        "over_allocation": result["value"],
        "over_reference": result["reference"],
        **{name: result[name] for name in ("ratio", "ratio_lo", "ratio_hi")},
        "saved": 1 - result["ratio"],
        "jobs": int(curve.reference[:, PLACE["jobs"]].sum()),
        "tasks": level.size,
    }


_SCHEMA = {
    **dict.fromkeys(["estimator", "average", "chosen_on"], pl.String),
    **dict.fromkeys(["level", "level_lo", "level_hi", "exceed", "exceed_reference"], pl.Float64),
    "no_higher": pl.Boolean,
    "not_met": pl.Int64,
    **dict.fromkeys(
        ["over_allocation", "over_reference", "ratio", "ratio_lo", "ratio_hi", "saved"], pl.Float64
    ),
    "jobs": pl.Int64,
    "tasks": pl.Int64,
}


def _share(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Divide; where there is nothing, nothing is exceeded."""
    return np.asarray(np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), 0.0))


ENOUGH = 0.999
"""Share of the jobs that a setting must give an answer for to be compared with others."""
MEASURES = ("exceed", "over_allocation", "exceed_task_mean", "over_allocation_task_mean")
GROUP = ("jeditaskid", "queue", "cores")  # what a rule can tell jobs apart by
PRICES = np.geomspace(1e-4, 1e5, 400)  # of an exceeding job, in over-allocations of one usual job
Setting = tuple[str, float | None]
"""An estimator and its level, price or margin; None: it has no setting."""


def score_settings(
    records: Any, allocations: Mapping[Setting, FloatArray], quantity: Quantity
) -> pl.DataFrame:
    """Judge allocations of the jobs that are no scouts.

    One row per setting, in their order: ``estimator, setting, answered`` (share of jobs), ``exceed, over_allocation``
    (pooled), ``exceed_task_mean, over_allocation_task_mean``.
    """
    judged = Judged.of(checked(records), quantity, "production")
    rows = []
    for (name, setting), allocation in allocations.items():
        sums = judged.sums(allocation[judged.rows])
        rows.append(
            {
                "estimator": name,
                "setting": setting,
                "answered": float(np.isfinite(allocation[judged.rows]).mean()),
                **{measure: rate(sums, measure) for measure in MEASURES},
            }
        )
    return pl.DataFrame(rows, schema_overrides={"setting": pl.Float64})


def bounds_by_setting(predicted: Mapping[str, Predicted]) -> dict[Setting, FloatArray]:
    """Return the bounds of every estimator at each of its levels; one that says the same at all levels has no setting."""
    bounds: dict[Setting, FloatArray] = {}
    for name, each in predicted.items():
        if without_levels(each):
            bounds[name, None] = each.bounds[:, 0]
        else:
            bounds |= {(name, level): each.at(level) for level in each.levels}
    return bounds


def least_within(
    curve: pl.DataFrame, exceed: float, *, averaged: bool = True
) -> dict[str, Any] | None:
    """Return the setting of least over-allocation that exceeds no more often than asked; None where none does.

    Settings that leave jobs without an answer are not compared.
    """
    end = "_task_mean" if averaged else ""
    within = curve.filter(
        pl.col(f"exceed{end}") <= exceed + 1e-12, pl.col("answered") >= ENOUGH
    ).sort(f"over_allocation{end}")
    return within.row(0, named=True) if within.height else None


def limit_curve(records: pl.DataFrame, *, pooled: bool = False) -> pl.DataFrame:
    r"""Return the least over-allocation at every exceed rate of one allocation per group of jobs, chosen with hindsight.

    Over all groups g with allocations :math:`a_g`, solved for every price :math:`\lambda` of an exceeding job

    .. math:: \min_a \sum_g over_g(a_g) + \lambda \sum_g exceed_g(a_g)

    which gives the corners of the convex frontier: no allocation that is the same for all jobs of a group lies below it. It
    knows the uses it is judged by, so small groups are fitted closely: a bound, not a promise.

    ``exceed`` (share of jobs), rising, and ``over_allocation`` (allocated above use / use), falling.
    """
    frame = records.filter(~pl.col("censored"))
    if frame.is_empty():
        raise InsufficientDataError("limit of allocations: no finished job; one would do")
    whole = pl.lit(0) if pooled else pl.col("jeditaskid")
    frame = frame.with_columns(whole.alias("whole"))
    n_wholes = frame["whole"].n_unique()
    job = 1 / pl.len().over("whole") / n_wholes
    unit = 1 / pl.col("used").sum().over("whole") / n_wholes
    frame = frame.with_columns(job=job, unit=unit)
    curve = np.zeros((PRICES.size, 2))
    for _, group in frame.group_by(*GROUP, maintain_order=True):
        ordered = group.sort("used")
        columns = (ordered[name].to_numpy() for name in ("used", "job", "unit"))
        curve += _cheapest(*columns)
    corners = pl.DataFrame(curve, schema=["exceed", "over_allocation"]).unique()
    return corners.sort("exceed", "over_allocation")


def over_allocation_at(curve: pl.DataFrame, exceed: float) -> float:
    """Return the over-allocation of a limit curve at an exceed rate, between its corners on the line through them."""
    return float(np.interp(exceed, curve["exceed"].to_numpy(), curve["over_allocation"].to_numpy()))


def _cheapest(used: FloatArray, job: FloatArray, unit: FloatArray) -> FloatArray:
    """Return (prices, 2) exceed rate and over-allocation of a group's cheapest allocation at every price."""
    exceed = np.maximum(job.sum() - np.cumsum(job), 0.0)
    over = np.maximum(used * np.cumsum(unit) - np.cumsum(used * unit), 0.0)
    best = np.argmin(over[None, :] + PRICES[:, None] * exceed[None, :], axis=1)
    return np.column_stack([exceed[best], over[best]])
