"""Every setting that the deployed system has: rank, margin and minimum, back-tested together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from brokerlab.calibrate.backtest import CELLS, Backtest
from brokerlab.calibrate.choice import Choice, LimitOn
from brokerlab.calibrate.loss import LossWeights
from brokerlab.calibrate.moments import Moments, by_setting
from brokerlab.calibrate.nearest_setting.given import Scored
from brokerlab.calibrate.replay import Setting, columns_of
from brokerlab.numerics import IntArray

MINIMUM_KEY = "SCOUT_RAMCOUNT_MIN"
MINIMA: tuple[int | None, ...] = (None, 250, 500, 1000, 1500, 2000)
"""Minima tried [MB, per core if the task's unit is]: up to the 2 GB that a slot has per core."""


@dataclass(frozen=True, kw_only=True)
class FamilyBacktest(Backtest):
    """A back-test in which every rank and margin comes with the minimum that suits it best.

    Attributes:
        minimum: The current one.
        others: Moments under other minima, each compared with the current setting.
        max_exceed: Limit that a suiting minimum must meet where one does.
        limit_on: What of the exceed rate must meet it.
    """

    minimum: int | None
    others: tuple[tuple[int | None, Moments], ...] = field(default=(), repr=False, compare=False)
    max_exceed: float
    limit_on: LimitOn

    def every(self, weights: LossWeights) -> pl.DataFrame:
        """Return one row per (rank, margin_pct, ram_min_mb), each compared with the current setting."""
        frames = [super().weighed(weights).with_columns(ram_min_mb=pl.lit(self.minimum, pl.Int64))]
        for minimum, moments in self.others:
            laid = by_setting(
                moments,
                np.append(self.ranks, self.current[0]),
                np.append(self.margins, self.current[1]),
                weights,
                amount=self.parameter.amount,
                confidence=self.assumptions.confidence,
            ).filter(~pl.col("is_current"))
            frames.append(laid.with_columns(ram_min_mb=pl.lit(minimum, pl.Int64)))
        return pl.concat(frames)

    def weighed(self, weights: LossWeights) -> pl.DataFrame:
        """Return one row per (rank, margin_pct) with its best minimum: ``ram_min_mb`` is added.

        The best is the cheapest of those that meet the limit; where none does, the one that exceeds
        least; among equals the current one, then the smallest. Rank and margin of the current setting
        stay with the current minimum: they are what the others are compared with.
        """
        bound = pl.col("exceed_hi" if self.limit_on == "upper" else "exceed_rate")
        meets = bound <= self.max_exceed
        rank = [~meets, pl.when(meets).then("loss").otherwise("exceed_hi")]
        here = (pl.col("rank") == self.current[0]) & (pl.col("margin_pct") == self.current[1])
        every = self.every(weights).filter(~here | pl.col("is_current"))
        acts = pl.col("ram_min_mb").eq_missing(pl.lit(self.minimum, pl.Int64))
        best = every.sort("rank", "margin_pct", *rank, ~acts, "ram_min_mb")
        return best.unique(["rank", "margin_pct"], keep="first", maintain_order=True)


def with_minima(
    tried: Backtest,
    scored: Scored,
    minima: Iterable[int | None],
    *,
    max_exceed: float,
    limit_on: LimitOn,
) -> FamilyBacktest:
    """Add other minima to a back-test of the same tasks.

    Args:
        tried: Under the current minimum.
        scored: Its jobs.
        minima: To be tried [MB]; None: no minimum.
        max_exceed: Largest accepted share of killed first attempts.
        limit_on: What of it must meet the limit.
    """
    current = scored.made.ram_min_mb
    wanted = dict.fromkeys(minima) if tried.parameter.name == "ramcount" else {}
    others = tuple(
        (minimum, _moments(scored, minimum, tried.ranks, tried.margins, tried.current))
        for minimum in wanted
        if minimum != current
    )
    known = {name: getattr(tried, name) for name in Backtest.__dataclass_fields__}
    return FamilyBacktest(
        **known, minimum=current, others=others, max_exceed=max_exceed, limit_on=limit_on
    )


def _moments(
    scored: Scored, minimum: int | None, ranks: IntArray, margins: IntArray, current: Setting
) -> Moments:
    """Return the sums under another minimum, the current setting with its own one in the last place."""
    replay, now = scored.under(minimum), scored.replay
    moments = Moments(ranks.size + 1, ranks.size)
    step = max(1, CELLS // (ranks.size + 1))
    n_tasks = scored.sample.tasks.height
    for first in range(0, n_tasks, step):
        part = slice(first, min(first + step, n_tasks))
        cells, own = replay.cells(ranks, margins, part), now.cells(*columns_of([current]), part)
        joined = {name: np.concatenate([cells[name], own[name]], axis=1) for name in cells}
        moments.add(joined, now.ledger.n_jobs[part], now.ledger.coreh[part])
    return moments


def cheapest_of(tried: FamilyBacktest) -> tuple[Setting, int | None]:
    """Return setting and minimum of least loss, whatever they exceed; among equals the current ones.

    A margin that is fixed in the code stays as it is.
    """
    frame = tried.every(tried.weights)
    if tried.parameter.margin_key is None:
        frame = frame.filter(pl.col("margin_pct") == tried.current[1])
    acts = pl.col("ram_min_mb").eq_missing(pl.lit(tried.minimum, pl.Int64))
    frame = frame.sort("loss", ~pl.col("is_current"), ~acts, "rank", "margin_pct", "ram_min_mb")
    best = frame.row(0, named=True)
    return (best["rank"], best["margin_pct"]), best["ram_min_mb"]


def nearest_of(choice: Choice) -> tuple[Setting, int | None]:
    """Return the chosen setting and its minimum; where none was chosen, the cheapest within the limit.

    Where no setting meets the limit, the one that costs least. Among equals the current setting.
    """
    frame = choice.candidates
    if choice.status == "change":
        frame = _at(frame, choice.setting)
    elif frame["meets_limit"].any():
        frame = frame.filter("meets_limit")
    elsewhere = (pl.col("rank") != choice.current[0]) | (pl.col("margin_pct") != choice.current[1])
    best = frame.sort("loss", elsewhere, "rank", "margin_pct").row(0, named=True)
    return (best["rank"], best["margin_pct"]), best["ram_min_mb"]


def _at(frame: pl.DataFrame, setting: Setting) -> pl.DataFrame:
    return frame.filter((pl.col("rank") == setting[0]) & (pl.col("margin_pct") == setting[1]))
