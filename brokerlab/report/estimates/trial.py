"""All estimators on one set of jobs, by one clock: what they said, how it is judged, and what could be at best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from brokerlab.estimators import scoring
from brokerlab.estimators.allocation import GRID
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.sources.source import At
from brokerlab.numerics import FloatArray
from brokerlab.report.estimates.allocated import allocated
from brokerlab.report.estimates.frontier import at_most, of_levels, points
from brokerlab.report.estimates.limit import at_exceed, limit_curve

LEVELS = (0.9, 0.95, 0.99)
"""Levels of the bounds in the table of all estimators."""
PRICES = (0.0, 0.1, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Of a failed attempt, in uses of the job."""
POLICY = "{}, cheapest allocation"
"""What the cheapest allocation from an estimator's distribution is called."""
CLOCKS: Mapping[At, str] = {"submit": "at submission", "start": "at the start"}


def asked_levels(level: float) -> tuple[float, ...]:
    """Return the levels that predictions for a trial are needed at."""
    return tuple(sorted({*GRID, *LEVELS, level}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """What all estimators did on the same jobs.

    Attributes:
        at: When a job was decided.
        quantity: ``memory`` or ``walltime``.
        records: The jobs, scouts among them.
        predicted: What estimators said of them.
        models: Those of the estimators that tell distributions.
        comparison: One table of all.
        curves: Every setting of every estimator: `frontier.points`.
        limits: ``exceed, over_allocation`` of the best allocation per group: `limit.limit_curve`, means over tasks.
        limits_pooled: The same over all jobs.
    """

    at: At
    quantity: Quantity
    records: pl.DataFrame
    predicted: Mapping[str, Predicted]
    models: tuple[str, ...]
    comparison: scoring.Comparison
    curves: pl.DataFrame
    limits: pl.DataFrame
    limits_pooled: pl.DataFrame

    def row(self, estimator: str) -> dict[str, Any]:
        """Return the row of an estimator in the table: of a model at the level that is compared."""
        table = self.comparison.table.filter(estimator=estimator)
        fits = pl.col("level").is_null() | (pl.col("level") == self.comparison.level)
        return table.filter(fits).row(0, named=True)

    def matched(self, exceed: float, *, averaged: bool = True) -> pl.DataFrame:
        """Return each estimator at its setting of least over-allocation that exceeds no more often than asked.

        The setting is chosen with hindsight, for every estimator alike.

        Args:
            exceed: Highest share of jobs [1].
            averaged: Judge by means over tasks, else by all jobs together.

        Returns:
            Rows of ``curves``, the least over-allocation first.
        """
        found = [
            at_most(part, exceed, averaged=averaged)
            for _, part in self.curves.group_by("estimator", maintain_order=True)
        ]
        rows = pl.DataFrame([row for row in found if row], schema=self.curves.schema)
        return rows.sort("over_allocation_task_mean" if averaged else "over_allocation")

    def limit(self, exceed: float, *, averaged: bool = True) -> float:
        """Return the least over-allocation of any allocation per group at an exceed rate."""
        return at_exceed(self.limits if averaged else self.limits_pooled, exceed)


def trial(
    records: Any,
    predicted: Mapping[str, Predicted],
    *,
    at: At,
    quantity: Quantity,
    level: float,
    models: Sequence[str],
    more: Mapping[tuple[str, float | None], FloatArray] | None = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Trial:
    """Judge what estimators said.

    Args:
        records: As :class:`records.Records`.
        predicted: Name to predictions of all records at `asked_levels`.
        at: When a job was decided.
        quantity: Of the records.
        level: At which bounds are held against their promise.
        models: Names of the estimators that tell distributions; the cheapest allocation is made from each.
        more: Further allocations whose curves are drawn, as for `frontier.points`.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    frame = checked(records)
    found = scoring.compare_predictions(
        frame, predicted, quantity=quantity, levels=LEVELS, level=level, n_boot=n_boot, seed=seed
    )
    settings = of_levels(predicted)
    for name in models:
        for price in PRICES:
            told = allocated(predicted[name], price=price)
            settings[POLICY.format(name), price] = told.point
    judged = frame.filter(~pl.col("is_scout"))
    return Trial(
        at=at,
        quantity=quantity,
        records=frame,
        predicted=predicted,
        models=tuple(models),
        comparison=found,
        curves=points(frame, {**settings, **(more or {})}, quantity),
        limits=limit_curve(judged),
        limits_pooled=limit_curve(judged, pooled=True),
    )
