"""The weight of a nucleus and the draw among them (production-tasks.md 4)."""

from __future__ import annotations

from functools import reduce
from operator import mul

import numpy as np
import polars as pl

from brokerlab.brokerage.engine.rule import setting
from brokerlab.brokerage.engine.steps import Derived
from brokerlab.brokerage.production_tasks.storage import GB_PER_TB
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.numerics import FloatArray

RW_OFFSET = 50.0  # HS06 s
TAPE_WEIGHT = 0.001


def work_factor(rw: FloatArray, rules: ProductionRules) -> FloatArray:
    """Return the factor of the work left (switch ``idle_work_is_one``).

    Args:
        rw: Work left, see switch ``work_of_weight`` [HS06 s].
        rules: ``1 / max(50, rw)``, or 1 below 50.

    Source: production-tasks.md 4.

    Example:
        >>> work_factor(np.array([0.0, 50.0, 200.0]), ProductionRules()).tolist()
        [0.02, 0.02, 0.005]
    """
    factor = 1.0 / np.maximum(RW_OFFSET, rw)
    return np.where(rw < RW_OFFSET, 1.0, factor) if rules.idle_work_is_one else factor


def with_weight(rules: ProductionRules) -> tuple[Derived, ...]:
    """Return what makes the factors that do not change within a cycle, and ``factor``, their product.

    They are ``data, tape, space_fraction, space_amount``, 1 where the term does not apply. Data terms need input that
    counts; space below 0 counts as 0. ``rw`` is the work left, before the tasks of the cycle [HS06 s].
    """
    has_data = pl.col("has_input") & (pl.col("tot_size") > 0)
    if rules.waiver_drops_data:
        has_data &= ~pl.col("waived")
    work = "rw_all" if rules.work_of_weight == "all" else "rw_prio"
    high = pl.col("iointensity") > setting("MIN_IO_INTENSITY_WITH_LOCAL_DATA")
    high = high.fill_null(value=rules.null_intensity_is_high)
    on_tape = pl.col("ava_size_any") > pl.col("ava_size_disk")
    fraction, amount_tb = _space(rules)
    has_space = pl.col("space_total") > 0
    cut = pl.min_horizontal("free_disk_cutoff_tb", amount_tb.clip(lower_bound=0.0))
    factors = {
        "data": _where(has_data & high, pl.col("ava_size_any") / pl.col("tot_size")),
        "tape": _where(has_data & on_tape, pl.lit(TAPE_WEIGHT)),
        "space_fraction": _where(has_space, fraction.clip(lower_bound=0.0)),
        "space_amount": _where(has_space, cut),
    }
    return (
        Derived({"free_disk_cutoff_tb": setting("FREE_DISK_CUTOFF"), "rw": pl.col(work)}),
        Derived(factors),
        Derived({"factor": reduce(mul, map(pl.col, factors))}),
    )


def _space(rules: ProductionRules) -> tuple[pl.Expr, pl.Expr]:
    """Return the fraction of the endpoint that is free, and the free amount [TB]."""
    if rules.weight_after_demand:
        left = pl.col("usable_gb") - pl.col("demand_gb")
        return left / pl.col("space_total"), (left / GB_PER_TB).floor()
    free = pl.col("space_free")
    return (free + pl.col("space_expired")) / pl.col("space_total"), free / GB_PER_TB


def _where(applies: pl.Expr, factor: pl.Expr) -> pl.Expr:
    return pl.when(applies).then(factor).otherwise(1.0)


def probabilities(weights: FloatArray) -> FloatArray:
    """Return the chance of each nucleus, ``w / W``; all of it is the first one's where W is 0."""
    total = float(np.cumsum(weights)[-1]) if len(weights) else 0.0
    if total == 0.0:
        return np.eye(1, len(weights), dtype=np.float64).ravel()
    return weights / total


def drawn(weights: FloatArray, draw: float) -> int:
    """Return the place of the nucleus drawn: walk the weights, the first that uses up ``draw * W`` wins.

    Args:
        weights: Of the nuclei in stored order; at least one.
        draw: Random number in [0, 1).

    Returns:
        Index into the weights; the last one where rounding leaves something over, 0 where all weights are 0.

    Source: production-tasks.md 4.

    Example:
        >>> [drawn(np.array([1.0, 3.0]), draw) for draw in (0.0, 0.25, 0.26, 0.99)]
        [0, 0, 1, 1]
    """
    total = np.cumsum(weights)[-1]  # one after the other: sums of NumPy are pairwise
    left = np.subtract.accumulate(np.concatenate(([draw * total], weights)))[1:]
    used_up = np.flatnonzero(left <= 0)
    return int(used_up[0]) if used_up.size else len(weights) - 1
