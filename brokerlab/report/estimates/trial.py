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
from brokerlab.report.estimates import allocated as allocations
from brokerlab.report.estimates.frontier import at_most, of_levels, points
from brokerlab.report.estimates.limit import at_exceed, limit_curve

LEVELS = (0.9, 0.95, 0.99)
"""Levels of the bounds in the table of all estimators."""
POLICY = "{} + cheapest allocation"
"""What the cheapest allocation from an estimator's distribution is called."""
CLOCKS: Mapping[At, str] = {"submit": "at submission", "start": "at the start"}


def asked_levels(level: float) -> tuple[float, ...]:
    """Return the levels that predictions for a trial are needed at."""
    return tuple(sorted({*GRID, *scoring.GRID, *LEVELS, level}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """What all estimators did on the same jobs.

    Attributes:
        at: When a job was decided.
        quantity: ``memory`` or ``walltime``.
        records: The jobs, scouts among them.
        predicted: What estimators said of them.
        models: Those of the estimators that tell distributions.
        policies: What is made of them: the cheapest allocations, by name.
        comparison: One table of all.
        at_deployed: As of the comparison, with the cheapest allocations, too: their ``level`` is a price.
        curves: Every setting of every estimator: `frontier.points`.
        limits: ``exceed, over_allocation`` of the best allocation per group: `limit.limit_curve`, means over tasks.
        limits_pooled: The same over all jobs.
    """

    at: At
    quantity: Quantity
    records: pl.DataFrame
    predicted: Mapping[str, Predicted]
    models: tuple[str, ...]
    policies: tuple[str, ...]
    comparison: scoring.Comparison
    at_deployed: pl.DataFrame
    curves: pl.DataFrame
    limits: pl.DataFrame
    limits_pooled: pl.DataFrame

    @property
    def deployed(self) -> dict[str, Any]:
        """The row of the deployed rule."""
        return self.comparison.row(self.comparison.reference)

    @property
    def production(self) -> pl.DataFrame:
        """The jobs that are judged: all but the scouts."""
        return self.records.filter(~pl.col("is_scout"))

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
    policies: Sequence[str] = (),
    more: Mapping[tuple[str, float | None], FloatArray] | None = None,
    queues: Any = None,
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
        models: Names of the estimators that tell distributions.
        policies: Those of them of whose distributions the cheapest allocation is made, too.
        more: Further allocations whose curves are drawn, as for `frontier.points`.
        queues: As for :func:`scoring.compare`.
        n_boot: Replicates of the bootstrap over tasks.
        seed: Of the bootstrap.
    """
    frame = checked(records)
    dice: dict[str, Any] = {"quantity": quantity, "n_boot": n_boot, "seed": seed}
    priced = {POLICY.format(name): allocations.allocated(predicted[name]) for name in policies}
    settings = of_levels(predicted) | {
        (name, price): each.at(allocations.level_of(price))
        for name, each in priced.items()
        for price in allocations.PRICES
    }
    asked = asked_levels(level)
    fixed = {n: allocations.at_price(p, allocations.PRICE, asked) for n, p in priced.items()}
    every = {**predicted, **fixed}
    found = scoring.compare_predictions(
        frame, every, levels=LEVELS, level=level, queues=queues, **dice
    )
    judged = frame.filter(~pl.col("is_scout"))
    return Trial(
        at=at,
        quantity=quantity,
        records=frame,
        predicted=every,
        models=tuple(models),
        policies=tuple(priced),
        comparison=found,
        at_deployed=pl.concat(
            [found.at_deployed, _at_deployed(frame, priced, found, predicted, dice)]
        ),
        curves=points(frame, {**settings, **(more or {})}, quantity),
        limits=limit_curve(judged),
        limits_pooled=limit_curve(judged, pooled=True),
    )


def _at_deployed(
    frame: pl.DataFrame,
    priced: Mapping[str, Predicted],
    found: scoring.Comparison,
    predicted: Mapping[str, Predicted],
    dice: Mapping[str, Any],
) -> pl.DataFrame:
    """Choose the price of every task's allocations as the level of a bound is chosen: on other tasks."""
    if not priced:
        return found.at_deployed.clear()
    levels = tuple(allocations.level_of(price) for price in allocations.PRICES)
    rule = predicted[found.reference]
    same = Predicted(rule.pandaid, rule.seen, levels, rule.bounds[:, : len(levels)], rule.point)
    told = scoring.compare_predictions(
        frame, {found.reference: same, **priced}, levels=levels[:1], level=levels[0], grid=levels, **dice
    )  # fmt: skip
    prices = (
        (pl.col(name) / (1 - pl.col(name))).alias(name)
        for name in ("level", "level_lo", "level_hi")
    )
    return told.at_deployed.with_columns(prices)
