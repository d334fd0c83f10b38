"""How far off single guesses of run times are, estimator by estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.scoring.measures import FEW_TASKS
from brokerlab.estimators.sources.source import At
from brokerlab.estimators.trial import Trial
from brokerlab.intervals import clustered
from brokerlab.numerics import FloatArray

MOST_JOBS = 0.95
"""Share of the jobs that an estimator must guess to be compared; the deployed rule always is."""


def guess_errors(
    trial: Trial, *, confidence: float = 0.95, n_boot: int = 2000, seed: int = 0
) -> pl.DataFrame:
    """Say how far off single guesses are, of production jobs that ended by themselves.

    Models guess their median, rules their limit.

    One row per estimator that guesses, the least error first, on the jobs of which all of these do: ``at, estimator, jobs,
    mae_s, median_s, accuracy`` (means over all jobs; see `errors_of`), ``error`` (mean over tasks of
    summed error / summed time), ``ratio`` (error / that of the rule of least error), ``ratio_lo, ratio_hi`` (interval
    over tasks; with fewer than 8 the range without one of them; null with one), ``best_rule``.
    """
    guesses = _compare_guesses(trial)
    answered = np.logical_and.reduce([np.isfinite(each) for each in guesses.values()])
    kept = answered & (~trial.records["is_scout"] & ~trial.records["censored"]).to_numpy()
    if not kept.any():
        raise InsufficientDataError(f"guesses {trial.at}: no job has one of every estimator")
    used = trial.records["used"].to_numpy()[kept]
    task = trial.records["jeditaskid"].to_numpy()[kept]
    rows = [{"estimator": name} | errors_of(each[kept], used) for name, each in guesses.items()]
    by_task = _errors_by_task({name: each[kept] for name, each in guesses.items()}, used, task)
    means = by_task.select(*guesses).mean().row(0, named=True)
    frame = pl.DataFrame(rows).with_columns(
        error=pl.col("estimator").replace_strict(means, return_dtype=pl.Float64)
    )
    frame = frame.sort("error", "estimator")
    best = frame.filter(~pl.col("estimator").is_in(trial.models))["estimator"][0]
    ratios = _ratios(by_task, list(guesses), best, confidence=confidence, n_boot=n_boot, seed=seed)
    return frame.join(ratios, on="estimator", how="left", maintain_order="left").select(
        pl.lit(trial.at).alias("at"), pl.all(), pl.lit(best).alias("best_rule")
    )


def guesses_by_clock(trials: Mapping[At, Trial], **drawn: Any) -> pl.DataFrame:
    """Return `guess_errors` of the same jobs by every clock, one below the other."""
    return pl.concat(guess_errors(trial, **drawn) for trial in trials.values())


def _compare_guesses(trial: Trial) -> dict[str, FloatArray]:
    """Return the guesses of the deployed rule, and of all others that answer for nearly all jobs."""
    judged = (~trial.records["is_scout"]).to_numpy()
    return {
        name: each.point
        for name, each in trial.predicted.items()
        if name not in trial.policies
        and (
            name == trial.comparison.reference
            or np.isfinite(each.point[judged]).mean() >= MOST_JOBS
        )
    }


def errors_of(guess: FloatArray, used: FloatArray) -> dict[str, Any]:
    """Return ``jobs``, ``mae_s, median_s`` (mean and median absolute error), ``accuracy`` (mean of smaller / larger)."""
    error = np.abs(guess - used)
    return {
        "jobs": used.size,
        "mae_s": float(error.mean()),
        "median_s": float(np.median(error)),
        "accuracy": float((np.minimum(guess, used) / np.maximum(guess, used)).mean()),
    }


def _errors_by_task(
    guesses: dict[str, FloatArray], used: FloatArray, task: FloatArray
) -> pl.DataFrame:
    """Return summed error / summed time: ``jeditaskid`` and one column per estimator."""
    jobs = pl.DataFrame({"jeditaskid": task, "used": used} | guesses)
    by_task = jobs.group_by("jeditaskid").agg(
        (pl.col(name) - pl.col("used")).abs().sum() / pl.col("used").sum() for name in guesses
    )
    return by_task.sort("jeditaskid")


def _ratios(by_task: pl.DataFrame, names: list[str], best: str, **drawn: Any) -> pl.DataFrame:
    """Return ``estimator, ratio, ratio_lo, ratio_hi`` of mean errors to the best rule's."""
    if by_task.height >= FEW_TASKS:
        wide = clustered(
            by_task, {name: (name, best) for name in names}, unit="jeditaskid", **drawn
        )
        row = wide.row(0, named=True)
        ends = {name: (row[name], row[f"{name}_lo"], row[f"{name}_hi"]) for name in names}
    else:
        total = by_task.select(names).sum()
        without = by_task.select(pl.col(names).sum() - pl.col(names))
        ends = {
            name: (total[name][0] / total[best][0], *_range(without[name] / without[best]))
            for name in names
        }
    columns = ("ratio", "ratio_lo", "ratio_hi")
    rows = [
        {"estimator": name} | dict(zip(columns, each, strict=True)) for name, each in ends.items()
    ]
    return pl.DataFrame(rows, schema={"estimator": pl.String} | dict.fromkeys(columns, pl.Float64))


def _range(ratios: pl.Series) -> tuple[float | None, float | None]:
    """Return the least and the largest of the ratios without one task; null of a single task."""
    finite = ratios.filter(ratios.is_finite())
    return finite.min(), finite.max()  # type: ignore[return-value]
