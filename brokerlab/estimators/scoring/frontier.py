"""How often jobs exceed against what is over-allocated: settings of estimators, and the best that hindsight allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.scoring.entries import without_levels
from brokerlab.estimators.scoring.judged import Judged
from brokerlab.estimators.scoring.measures import rate
from brokerlab.numerics import FloatArray

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


def limit_curve(
    records: pl.DataFrame, *, by: Sequence[str] = GROUP, pooled: bool = False
) -> pl.DataFrame:
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
    for _, group in frame.group_by(*by, maintain_order=True):
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
