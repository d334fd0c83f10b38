"""How often jobs exceed against what is allocated for nothing, for every setting of every estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.scoring.judged import Judged
from brokerlab.estimators.scoring.measures import rate
from brokerlab.numerics import FloatArray

ENOUGH = 0.999
"""Share of the jobs that a setting must give an answer for to be compared with others."""
MEASURES = ("exceed", "over_allocation", "exceed_task_mean", "over_allocation_task_mean")


def points(
    records: Any, settings: Mapping[tuple[str, float | None], FloatArray], quantity: Quantity
) -> pl.DataFrame:
    """Judge allocations of the jobs that are no scouts.

    Args:
        records: As :class:`records.Records`.
        settings: Estimator and setting (a level, a price, a margin; None: it has none) to (n,) allocations in the order of
            the checked records; infinite: no answer.
        quantity: Of the records.

    Returns:
        One row per setting, in their order: ``estimator, setting, answered`` (share of jobs), ``exceed, over_allocation``
        (pooled), ``exceed_task_mean, over_allocation_task_mean``.
    """
    frame = checked(records)
    judged = Judged.of(frame, quantity, "production")
    rows = []
    for (name, setting), allocation in settings.items():
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


def of_levels(predicted: Mapping[str, Predicted]) -> dict[tuple[str, float | None], FloatArray]:
    """Return a setting per level of every estimator; one that says the same at every level has one."""
    found: dict[tuple[str, float | None], FloatArray] = {}
    for name, each in predicted.items():
        if (each.bounds[:, 0] == each.bounds[:, -1]).all():
            found[name, None] = each.bounds[:, 0]
        else:
            found |= {(name, level): each.at(level) for level in each.levels}
    return found


def at_most(curve: pl.DataFrame, exceed: float, *, averaged: bool = True) -> dict[str, Any] | None:
    """Return the setting of least over-allocation that exceeds no more often than asked; None where none does.

    Settings that leave jobs without an answer are not compared.

    Args:
        curve: Rows of `points` of one estimator.
        exceed: Highest share of jobs [1].
        averaged: Judge by the means over tasks, else by all jobs together.
    """
    end = "_task_mean" if averaged else ""
    fine = curve.filter(
        pl.col(f"exceed{end}") <= exceed + 1e-12, pl.col("answered") >= ENOUGH
    ).sort(f"over_allocation{end}")
    return fine.row(0, named=True) if fine.height else None
