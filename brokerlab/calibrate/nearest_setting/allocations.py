"""What stated allocations would have done, job by job, beside settings on the same jobs by the same loss."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from brokerlab.calibrate.judge import MIN_UNITS, Question, capped_weights
from brokerlab.calibrate.percentiles.backtest import Backtest, at_setting
from brokerlab.calibrate.percentiles.comparison import judged_values
from brokerlab.calibrate.percentiles.parameters import LossWeights, Parameter, Setting
from brokerlab.calibrate.percentiles.replay import Replay
from brokerlab.errors import InsufficientDataError
from brokerlab.numerics import FloatArray

Who = Literal["estimator", "cheapest", "nearest", "current"]
Difference = Literal["restriction", "limit", "setting", "estimator"]
WHO: tuple[Who, ...] = ("estimator", "cheapest", "nearest", "current")
DIFFERENCES: dict[Difference, tuple[Who, Who]] = {
    "restriction": ("cheapest", "estimator"),
    "limit": ("nearest", "cheapest"),
    "setting": ("current", "nearest"),
    "estimator": ("current", "estimator"),
}
"""Difference -> of whom, against whom: lost by setting a rule, by its limit; gained by the rule, by the estimator."""


class Sides(NamedTuple):
    """Results on the same tasks: ``rows``, one per task under each, sorted by task; and how many jobs had allocations."""

    rows: dict[Who, pl.DataFrame]
    n_jobs: int
    n_missing: int


def score_sides(
    tried: Backtest,
    tasks: pl.DataFrame,
    allocations: pl.DataFrame,
    settings: Mapping[Who, Setting],
) -> Sides:
    """Score allocations and settings on the same tasks, as a back-test scores its settings.

    Args:
        tried: The back-test; its current setting stands in for what has no allocation.
        tasks: Those that are compared.
        allocations: ``pandaid, allocated`` [MB or s]; null and infinite: the estimator cannot tell.
        settings: Of all sides but the estimator's.

    Raises:
        InsufficientDataError: No task can be scored.
    """
    score = partial(
        _score_allocations, allocations=allocations, current=tried.current, weights=tried.weights
    )
    found = tried.each(score)
    under = tried.under(list(dict.fromkeys(settings.values())))
    rows: dict[Who, pl.DataFrame] = {who: at_setting(under, one) for who, one in settings.items()}
    rows["estimator"] = pl.concat(found).sort("jeditaskid")
    kept = {who: side.join(tasks, on="jeditaskid", how="semi") for who, side in rows.items()}
    estimator = kept["estimator"]
    if estimator.is_empty():
        raise InsufficientDataError(
            f"none of {tasks.height} tasks with allocations has scouts and other jobs enough to be scored"
        )
    return Sides(kept, int(estimator["n_scored"].sum()), int(estimator["n_missing"].sum()))


def _score_allocations(
    replay: Replay, allocations: pl.DataFrame, current: Setting, weights: LossWeights
) -> pl.DataFrame:
    """Return one row per task with each job given its allocation, and ``n_missing``: jobs that have none."""
    jobs = replay.jobs.join(allocations, on="pandaid", how="left", maintain_order="left")
    stated = jobs["allocated"].fill_null(float("inf")).to_numpy()
    missing = np.isinf(stated)
    allocated = np.where(missing, replay.requests(current), stated)
    n = np.bincount(replay.jobs["task"].to_numpy(), missing, minlength=replay.tasks.height)
    return replay.by_allocation(allocated, weights).with_columns(n_missing=pl.Series(n))


def compared(
    sides: Mapping[Who, pl.DataFrame],
    labels: Mapping[Who, str],
    parameter: Parameter,
    question: Question,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Lay results on the same tasks side by side.

    Loss and kill rate are means over tasks with the weights that the judge gives them, and its intervals; below `MIN_UNITS`
    tasks there are none. The rest are sums over all jobs.

    Args:
        sides: One row per task each, sorted by it.
        labels: What each is called.
        parameter: What is allocated.
        question: Of the judge: confidence, replicates, seed; the same draws for all.

    Returns:
        ``table``, one row per side, and ``differences``, one row per entry of ``DIFFERENCES``; columns as in
        :class:`Translation`.

    Raises:
        InsufficientDataError: No task has work.
    """
    working = {who: side.filter(pl.col("work_coreh") > 0) for who, side in sides.items()}
    weights = capped_weights(working["current"]["work_coreh"].to_numpy())
    if not weights.size:
        raise InsufficientDataError(
            "no task with allocations has work: there is nothing to compare"
        )

    def mean(name: str, values: FloatArray, *, share: bool = False) -> dict[str, float | None]:
        enough = weights.size >= MIN_UNITS
        return question.interval(name, values, weights, share=share, enough=enough)

    judged = {who: judged_values(working[who]) for who in WHO}
    rows = [
        pl.DataFrame(
            [
                {"who": who, "label": labels[who]}
                | mean("loss", judged[who]["loss"])
                | mean("exceed_rate", judged[who]["exceed_rate"], share=True)
            ],
            schema_overrides=ENDS,
        ).hstack(_sums(sides[who], parameter))
        for who in WHO
    ]
    table = pl.concat(rows)
    now = table.filter(who="current")["loss"].item()
    differences = []
    for name, (of, against) in DIFFERENCES.items():
        gap = mean("loss", judged[of]["loss"] - judged[against]["loss"])
        differences.append({"difference": name, "of": of, "against": against} | gap)
    share = 100 * pl.col("loss") / pl.when(pl.lit(now) != 0).then(pl.lit(now))
    return table, pl.DataFrame(differences, schema_overrides=ENDS).with_columns(
        pct_of_current=share
    )


ENDS = dict.fromkeys(["loss_lo", "loss_hi", "exceed_rate_lo", "exceed_rate_hi"], pl.Float64)


def _sums(side: pl.DataFrame, parameter: Parameter) -> pl.DataFrame:
    """Sum one side over its tasks."""
    used, over, *rest = (
        f"{name}_{parameter.amount}" for name in ("used", "over", "waste", "reserved")
    )
    return side.select(
        pl.len().cast(pl.Int64).alias("n_tasks"),
        pl.col("n_scored", "n_exceed", "n_lost").sum(),
        pl.col(used, over, *rest, "killed_coreh", "work_coreh").sum(),
        pl.col("slots_share").mean(),
        exceed_rate_jobs=pl.col("n_exceed").sum() / pl.col("n_scored").sum(),
        over_allocation=pl.col(over).sum()
        / pl.when(pl.col(used).sum() > 0).then(pl.col(used).sum()),
    )
