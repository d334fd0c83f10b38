"""Choose the setting of least stated loss under a stated limit, or keep what is."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import polars as pl

from brokerlab.calibrate.backtest import Backtest
from brokerlab.calibrate.loss import COMPONENTS, LossWeights
from brokerlab.calibrate.replay import Setting
from brokerlab.errors import ConfigError
from brokerlab.words import short_percent

LimitOn = Literal["upper", "point"]
Status = Literal["change", "keep", "no_answer"]
MIN_TASKS = 10  # fewer tasks have no spread to speak of
ENOUGH = 2.5
"""Tasks times limit from which a limit on the upper bound was kept as often as it says.

Measured: settings chosen among 272 on 50 to 350 tasks drawn from 350 synthetic ones, limits 0.5 to 5 %, 200
times each. Kept in 80 to 91 of 100 cases below (fewest where the product is least), in 96 or more above. It is
always the cheapest of many settings that is chosen, hence one whose bad tasks were not drawn.
"""


@dataclass(frozen=True)
class Choice:
    """What the calibration period speaks for.

    Attributes:
        status: ``change``, ``keep`` or ``no_answer``.
        setting: (rank, margin_pct) chosen; the current one unless ``change``.
        current: The current setting.
        reason: One sentence with numbers.
        max_exceed: Limit on the exceed rate.
        limit_on: Whether the ``upper`` bound of its interval or the ``point`` must meet the limit.
        weights: Of the loss.
        candidates: The back-test's ``by_setting`` with ``meets_limit`` and ``lowers_loss``.
        caveats: What the choice by itself does not hold, in sentences.
        sensitivity: The choice repeated with each weight halved and doubled: ``weight, factor, rank,
            margin_pct, status, loss_diff``.
    """

    status: Status
    setting: Setting
    current: Setting
    reason: str
    max_exceed: float
    limit_on: LimitOn
    weights: LossWeights
    caveats: tuple[str, ...]
    candidates: pl.DataFrame
    sensitivity: pl.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """Return the facts that are not tables."""
        return {
            "status": self.status,
            "setting": list(self.setting),
            "current": list(self.current),
            "reason": self.reason,
            "max_exceed": self.max_exceed,
            "limit_on": self.limit_on,
            "weights": self.weights.to_dict(),
            "caveats": list(self.caveats),
            "stable": self.stable,
        }

    @property
    def stable(self) -> bool:
        """Tell whether halving or doubling any weight leaves the choice as it is."""
        same = (pl.col("rank") == self.setting[0]) & (pl.col("margin_pct") == self.setting[1])
        return self.sensitivity.filter(~same).is_empty()


def choose(
    tried: Backtest,
    *,
    max_exceed: float = 0.02,
    limit_on: LimitOn = "upper",
    loss: LossWeights | None = None,
    settable_only: bool = True,
) -> Choice:
    """Choose the setting of least loss among those that meet the limit.

    A setting replaces the current one only if its loss is lower by more than its own uncertainty (the
    paired interval of the difference lies below 0), or if the current setting breaks the limit. Equal
    losses: the setting nearest to the current one, then the lower rank, then the lower margin.

    Args:
        tried: Back-test of the calibration period.
        max_exceed: Largest accepted share of jobs whose first attempt is killed.
        limit_on: What must meet the limit: the ``upper`` bound of the exceed rate's interval (default:
            the limit is then kept with that confidence), or the ``point``.
        loss: Weights; None: those of the back-test.
        settable_only: Leave out margins that are fixed in the code (cputime).

    Returns:
        A :class:`Choice`; ``no_answer`` below ten tasks or if no setting meets the limit.

    Raises:
        ConfigError: Impossible limit.
    """
    if not 0 <= max_exceed <= 1 or limit_on not in ("upper", "point"):
        raise ConfigError(
            f"max_exceed={max_exceed}, limit_on={limit_on!r}: allowed are a share from 0 to 1, and "
            "upper or point"
        )
    weights = loss or tried.weights
    frame = _candidates(tried, weights, max_exceed, limit_on, settable_only=settable_only)
    status, setting, reason = _pick(frame, tried, max_exceed, limit_on)
    rows = []
    for name in COMPONENTS:
        for factor in (0.5, 2.0):
            other = _candidates(
                tried,
                weights.scaled(name, factor),
                max_exceed,
                limit_on,
                settable_only=settable_only,
            )
            found, (rank, margin), _ = _pick(other, tried, max_exceed, limit_on)
            rows.append(
                {
                    "weight": name,
                    "factor": factor,
                    "rank": rank,
                    "margin_pct": margin,
                    "status": found,
                    "loss_diff": _row(other, (rank, margin))["loss_diff"],
                }
            )
    return Choice(
        status=status,
        setting=setting,
        current=tried.current,
        reason=reason,
        max_exceed=max_exceed,
        limit_on=limit_on,
        weights=weights,
        caveats=_caveats(tried.n_tasks, frame.height, max_exceed, limit_on),
        candidates=frame,
        sensitivity=pl.DataFrame(rows),
    )


def _caveats(n_tasks: int, n_settings: int, limit: float, limit_on: LimitOn) -> tuple[str, ...]:
    """Say where the cheapest of many settings is likely to be a lucky one."""
    if limit_on == "point":
        lies_at_it = (
            f"The limit of {short_percent(limit)} was asked of the exceed rate itself: the cheapest of {n_settings} "
            "settings then lies at it, and other tasks exceed it about as often as not."
        )
        return (lies_at_it,)
    if not 0 < n_tasks * limit < ENOUGH:
        return ()
    too_few = (
        f"{n_tasks} tasks are few for a limit of {short_percent(limit)}: with fewer than {ceil(ENOUGH / limit)}, the "
        f"cheapest of many settings (here {n_settings}) kept it in about 80 to 90 of 100 synthetic histories, not in 97: only "
        "the proof settles it."
    )
    return (too_few,)


def _candidates(
    tried: Backtest,
    weights: LossWeights,
    max_exceed: float,
    limit_on: LimitOn,
    *,
    settable_only: bool,
) -> pl.DataFrame:
    """Mark which settings meet the limit and which lower the loss beyond doubt."""
    frame = tried.weighed(weights)
    parameter = tried.parameter
    if settable_only and parameter.margin_key is None and parameter.rank_key is not None:
        frame = frame.filter(pl.col("margin_pct") == tried.current[1])
    bound = pl.col("exceed_hi" if limit_on == "upper" else "exceed_rate")
    return frame.with_columns(
        meets_limit=bound <= max_exceed, lowers_loss=pl.col("loss_diff_hi") < 0
    )


def _pick(
    frame: pl.DataFrame, tried: Backtest, max_exceed: float, limit_on: LimitOn
) -> tuple[Status, Setting, str]:
    """Return status, setting and the sentence that says why."""
    current = tried.current
    if tried.n_tasks < MIN_TASKS:
        few = f"{tried.n_tasks} tasks can be scored; {MIN_TASKS} are needed to tell effect from chance."
        return "no_answer", current, few
    feasible = frame.filter("meets_limit")
    if feasible.is_empty():
        return "no_answer", current, _none_meets(frame, max_exceed, limit_on)
    now = _row(frame, current)
    breaks = now["exceed_rate"] > max_exceed
    pool = feasible if breaks else feasible.filter("lowers_loss")
    if pool.is_empty():
        return "keep", current, _nothing_better(feasible, max_exceed, limit_on)
    best = _least_loss(pool, current)
    setting = (best["rank"], best["margin_pct"])
    if setting == current:
        return "keep", current, "The current setting has the least loss of all that meet the limit."
    why = "meets the limit, which the current setting breaks" if breaks else "lowers the loss"
    sentence = (
        f"Rank {setting[0]}, margin {setting[1]} % {why}: loss {best['loss']:.4f} against "
        f"{now['loss']:.4f} (difference {best['loss_diff_lo']:+.4f} to {best['loss_diff_hi']:+.4f}), "
        f"exceed rate {short_percent(best['exceed_rate'])} ({short_percent(best['exceed_lo'])} to {short_percent(best['exceed_hi'])}, "
        f"limit {short_percent(max_exceed)})."
    )
    return "change", setting, sentence


def _least_loss(pool: pl.DataFrame, current: Setting) -> dict[str, Any]:
    """Return the row of least loss; equal to nine digits counts as equal."""
    least = float(pool["loss"].min())  # type: ignore[arg-type]  # never null: the pool is not empty
    distance = (pl.col("rank") - current[0]).abs() + (pl.col("margin_pct") - current[1]).abs()
    tied = pool.filter(pl.col("loss") <= least + 1e-9 * abs(least))
    return tied.sort(distance, "rank", "margin_pct").row(0, named=True)


def _none_meets(frame: pl.DataFrame, max_exceed: float, limit_on: LimitOn) -> str:
    best = frame.sort("exceed_hi", "rank", "margin_pct").row(0, named=True)
    what = "upper bound" if limit_on == "upper" else "rate"
    return (
        f"No setting of the grid keeps the {what} of the exceed rate within {short_percent(max_exceed)}: the best, "
        f"rank {best['rank']} with margin {best['margin_pct']} %, has {short_percent(best['exceed_rate'])} "
        f"({short_percent(best['exceed_lo'])} to {short_percent(best['exceed_hi'])})."
    )


def _nothing_better(feasible: pl.DataFrame, max_exceed: float, limit_on: LimitOn) -> str:
    best = feasible.sort("loss", "rank", "margin_pct").row(0, named=True)
    bound = "upper bound of the exceed rate" if limit_on == "upper" else "exceed rate"
    return (
        f"None of {feasible.height} settings whose {bound} is within {short_percent(max_exceed)} lowers the stated "
        f"loss by more than its own uncertainty; the best, rank {best['rank']} with margin "
        f"{best['margin_pct']} %, changes it by {best['loss_diff']:+.4f} ({best['loss_diff_lo']:+.4f} "
        f"to {best['loss_diff_hi']:+.4f})."
    )


def _row(frame: pl.DataFrame, setting: Setting) -> dict[str, Any]:
    """Return the row of one setting."""
    here = (pl.col("rank") == setting[0]) & (pl.col("margin_pct") == setting[1])
    return frame.filter(here).row(0, named=True)
