"""Evidence of the limit: what allocations would give that know the distribution of every group of jobs exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray

GROUP = ("jeditaskid", "queue", "cores")
"""What a rule can tell jobs apart by."""
PRICES = np.geomspace(1e-4, 1e5, 400)
"""Of an exceeding job, in over-allocations of one usual job."""


def limit_curve(
    records: pl.DataFrame, *, by: Sequence[str] = GROUP, pooled: bool = False
) -> pl.DataFrame:
    r"""Return the least over-allocation at every exceed rate of one allocation per group of jobs, chosen with hindsight.

    Over all groups g with allocations :math:`a_g`, solved for every price :math:`\lambda` of an exceeding job

    .. math:: \min_a \sum_g over_g(a_g) + \lambda \sum_g exceed_g(a_g)

    which gives the corners of the convex frontier: no allocation that is the same for all jobs of a group lies below it. It
    is told the uses it is judged by, so small groups are fitted closely: a bound, not a promise.

    Args:
        records: The jobs that are judged, as :func:`records.checked` returns them; censored ones are left out.
        by: What makes a group.
        pooled: Count every job and every unit alike; else average exceed rates and over-allocations of tasks.

    Returns:
        ``exceed`` (share of jobs), rising, and ``over_allocation`` (allocated above use / use), falling.

    Raises:
        InsufficientDataError: There is no finished job.
    """
    frame = records.filter(~pl.col("censored"))
    if frame.is_empty():
        raise InsufficientDataError("limit of allocations: no finished job")
    whole = pl.lit(0) if pooled else pl.col("jeditaskid")
    frame = frame.with_columns(whole.alias("whole"))
    n_parts = frame["whole"].n_unique()
    frame = frame.with_columns(
        job=1 / pl.len().over("whole") / n_parts, unit=1 / pl.col("used").sum().over("whole") / n_parts
    )  # fmt: skip
    curve = np.zeros((PRICES.size, 2))
    for _, group in frame.group_by(*by):
        curve += _cheapest(*(group.sort("used")[name].to_numpy() for name in ("used", "job", "unit")))  # fmt: skip
    points = pl.DataFrame(curve, schema=["exceed", "over_allocation"]).unique()
    return points.sort("exceed", "over_allocation")


def at_exceed(curve: pl.DataFrame, exceed: float) -> float:
    """Return the over-allocation of a limit curve at an exceed rate, between its corners on the line through them.

    Args:
        curve: Of `limit_curve`.
        exceed: Share of jobs [1].
    """
    return float(np.interp(exceed, curve["exceed"].to_numpy(), curve["over_allocation"].to_numpy()))


def _cheapest(used: FloatArray, job: FloatArray, unit: FloatArray) -> FloatArray:
    """Return (prices, 2) exceed rate and over-allocation of a group's cheapest allocation at every price."""
    exceed = np.maximum(job.sum() - np.cumsum(job), 0.0)
    over = np.maximum(used * np.cumsum(unit) - np.cumsum(used * unit), 0.0)
    best = np.argmin(over[None, :] + PRICES[:, None] * exceed[None, :], axis=1)
    return np.column_stack([exceed[best], over[best]])
