"""All estimators on one set of jobs, by one clock: what they said, how it is judged, and what could be at best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from brokerlab.estimators import scoring
from brokerlab.estimators.allocation import (
    PRICE,
    PRICES,
    allocate_at_prices,
    level_of,
    repeat_at_price,
)
from brokerlab.estimators.estimator import GRID, Predicted
from brokerlab.estimators.held import hold
from brokerlab.estimators.offered import judge_allocations, offers
from brokerlab.estimators.records import Quantity, checked
from brokerlab.estimators.scoring.judged import FEW_TASKS
from brokerlab.estimators.scoring.settings import (
    Setting,
    bounds_by_setting,
    least_within,
    limit_curve,
    over_allocation_at,
    score_settings,
)
from brokerlab.estimators.sources.source import At
from brokerlab.numerics import FloatArray

LEVELS = (0.9, 0.95, 0.99)  # levels of the bounds in the table of all estimators
POLICY = "{} + cheapest allocation"
"""What the cheapest allocation from an estimator's distribution is called."""


def trial_levels(level: float) -> tuple[float, ...]:
    """Return the levels that predictions for a trial are needed at."""
    return tuple(sorted({*GRID, *scoring.GRID, *LEVELS, level}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """What all estimators did on the same jobs."""

    at: At  # when a job was decided
    quantity: Quantity
    records: pl.DataFrame  # scouts among them
    predicted: Mapping[str, Predicted]  # models their own distributions
    # of models, what can be promised at `trial_levels`; infinite: refused
    held: Mapping[str, Predicted]
    models: tuple[str, ...]  # those that tell distributions
    policies: tuple[str, ...]  # what is made of them: the cheapest allocations, by name
    comparison: scoring.Comparison  # one table of all; bounds of models are those of ``held``
    # `offered.offers` of rules and policies; a policy also by its model's bounds
    offers: pl.DataFrame
    at_deployed: pl.DataFrame  # as of the comparison, and of policies: their ``level`` is a price
    curves: pl.DataFrame  # every setting of every estimator: `settings.score_settings`
    limits: pl.DataFrame  # `settings.limit_curve` per group, means over tasks
    limits_pooled: pl.DataFrame  # the same over all jobs

    @property
    def deployed(self) -> dict[str, Any]:
        """The row of the deployed rule."""
        return self.comparison.row(self.comparison.reference)

    @property
    def production(self) -> pl.DataFrame:
        """The jobs that are judged: all but the scouts."""
        return self.records.filter(~pl.col("is_scout"))

    @property
    def few_tasks(self) -> bool:
        """Whether an interval over tasks would rest on hardly anything: fewer than 8."""
        return self.comparison.counts["tasks"] < FEW_TASKS

    @property
    def compared(self) -> pl.Expr:
        """Keeps the rows of rules, and of models at the level that is compared."""
        return pl.col("level").is_null() | (pl.col("level") == self.comparison.level)

    def against_deployed(self, estimator: str, measure: str) -> dict[str, Any] | None:
        """Return how an estimator compares with the deployed rule on the jobs of which both can be judged.

        ``value, reference`` (of the rule), ``ratio, ratio_lo, ratio_hi``: the interval over tasks; with fewer than 8 tasks
        the range when one of them is left out; null where neither can be told; ``few_tasks``. None where they cannot be
        compared.
        """
        rows = self.comparison.paired.filter(
            self.compared,
            pl.col("estimator") == estimator,
            pl.col("measure") == measure,
            pl.col("ratio").is_not_null(),
        )
        return with_range(rows).row(0, named=True) if rows.height else None

    def matched(self, exceed: float | None, *, averaged: bool = True) -> pl.DataFrame:
        """Return each estimator at its setting of least over-allocation that exceeds no more often than asked.

        The setting is chosen with hindsight, for every estimator alike.

        Rows of ``curves``, the least over-allocation first.
        """
        best = (
            least_within(part, exceed, averaged=averaged)
            for _, part in self.curves.group_by("estimator", maintain_order=True)
            if exceed is not None
        )
        rows = pl.DataFrame([row for row in best if row], schema=self.curves.schema)
        return rows.sort("over_allocation_task_mean" if averaged else "over_allocation")

    def limit(self, exceed: float | None, *, averaged: bool = True) -> float | None:
        """Return the least over-allocation of any allocation per group at an exceed rate; None of none."""
        if exceed is None:
            return None
        return over_allocation_at(self.limits if averaged else self.limits_pooled, exceed)


def without_silent(
    predicted: Mapping[str, Predicted], names: Sequence[str]
) -> tuple[dict[str, Predicted], tuple[str, ...]]:
    """Leave out estimators that refuse every bound, as those do that have learnt nothing."""
    silent = tuple(name for name in names if not np.isfinite(predicted[name].bounds).any())
    return {name: each for name, each in predicted.items() if name not in silent}, silent


def with_range(paired: pl.DataFrame) -> pl.DataFrame:
    """Put, where tasks are few, the range without one of them into the place of the interval of the ratio."""
    return paired.with_columns(
        pl.when("few_tasks").then(f"without_{end}").otherwise(f"ratio_{end}").alias(f"ratio_{end}")
        for end in ("lo", "hi")
    )


def run_trial(
    records: Any,
    predicted: Mapping[str, Predicted],
    *,
    at: At,
    quantity: Quantity,
    level: float,
    models: Sequence[str],
    policies: Sequence[str] = (),
    more: Mapping[Setting, FloatArray] | None = None,
    queues: Any = None,
    n_boot: int = 2000,
    seed: int = 0,
) -> Trial:
    """Judge what estimators said of the same jobs."""
    frame = checked(records)
    asked: dict[str, Any] = {"quantity": quantity, "n_boot": n_boot, "seed": seed}
    priced = {POLICY.format(name): allocate_at_prices(predicted[name]) for name in policies}
    levels = trial_levels(level)
    fixed = {name: repeat_at_price(each, PRICE, levels) for name, each in priced.items()}
    every = {**predicted, **fixed}
    held = {
        name: hold(frame, every[name], quantity, levels=levels).only_promised() for name in models
    }
    promised = {**every, **held}
    comparison = scoring.compare(
        frame, promised, levels=LEVELS, level=level, queues=queues, settings=every, **asked
    )
    at_prices: dict[Setting, FloatArray] = {
        (name, price): each.at(level_of(price)) for name, each in priced.items() for price in PRICES
    }
    allocations = bounds_by_setting(predicted) | at_prices | dict(more or {})
    rule = predicted[comparison.reference]
    chosen = _prices_at_deployed(frame, priced, rule, comparison.reference, **asked)
    judged = frame.filter(~pl.col("is_scout"))
    return Trial(
        at=at,
        quantity=quantity,
        records=frame,
        predicted=every,
        held=held,
        models=tuple(models),
        policies=tuple(priced),
        comparison=comparison,
        offers=_offers(frame, predicted, held, fixed, models, quantity),
        at_deployed=pl.concat([comparison.at_deployed, *chosen]),
        curves=score_settings(frame, allocations, quantity),
        limits=limit_curve(judged),
        limits_pooled=limit_curve(judged, pooled=True),
    )


def _offers(
    frame: pl.DataFrame,
    predicted: Mapping[str, Predicted],
    held: Mapping[str, Predicted],
    fixed: Mapping[str, Predicted],
    models: Sequence[str],
    quantity: Quantity,
) -> pl.DataFrame:
    """Hold the cheapest allocations against every rule, and their models' bounds against their level."""
    simple = {name: each.point for name, each in predicted.items() if name not in models}
    bounds = {POLICY.format(name): each for name, each in held.items()}
    priced = {name: (each.point, bounds[name]) for name, each in fixed.items()}
    return offers(judge_allocations(frame, quantity, simple, priced, system=""))


def _prices_at_deployed(
    frame: pl.DataFrame,
    priced: Mapping[str, Predicted],
    rule: Predicted,
    reference: str,
    **asked: Any,
) -> list[pl.DataFrame]:
    """Choose the price of every task's allocations as the level of a bound is chosen: on other tasks."""
    if not priced:
        return []
    levels = tuple(level_of(price) for price in PRICES)
    same = Predicted(rule.pandaid, rule.seen, levels, rule.bounds[:, : len(levels)], rule.point)
    comparison = scoring.compare(
        frame,
        {reference: same, **priced},
        levels=levels[:1],
        level=levels[0],
        grid=levels,
        reference=reference,
        **asked,
    )
    names = ("level", "level_lo", "level_hi")
    prices = [(pl.col(name) / (1 - pl.col(name))).alias(name) for name in names]
    return [comparison.at_deployed.with_columns(prices)]
