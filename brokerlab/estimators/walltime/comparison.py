"""One table of all predictions: errors, accuracy, under- and over-allocation, with paired intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError, nearest
from brokerlab.estimators.walltime.likejobs import LikeJobs
from brokerlab.estimators.walltime.online import predict_log
from brokerlab.estimators.walltime.predictor import Predictor
from brokerlab.estimators.walltime.rules import simple_rules
from brokerlab.estimators.walltime.running import ROUNDING
from brokerlab.numerics import FloatArray

KNOWN = ("job", "user", "submit_s", "requested_s", "run_s")


def all_predictors() -> list[Predictor]:
    """Return the simple rules and ours, nothing learnt yet."""
    return [*simple_rules(), LikeJobs()]


def score(predicted: pl.DataFrame) -> pl.DataFrame:
    """Score the second half of the jobs.

    Args:
        predicted: As :func:`online.predict_log` gives it.

    Returns:
        One row per name, in the order of the columns: ``method, jobs, mae_s`` (mean absolute error),
        ``median_s`` (median absolute error), ``accuracy`` (mean of smaller / larger of prediction and
        run), ``under`` (share of jobs that run longer), ``over_allocation`` (time predicted above the
        runs / time run).

    Raises:
        InsufficientDataError: There is no job.

    Source: sizing.md, section 8.
    """
    half = second_half(predicted)
    run_s = half["run_s"].to_numpy()
    return pl.DataFrame(
        [_scored(name, half[name].to_numpy(), run_s) for name in _names(half)], orient="row"
    )


def compare(
    jobs: Any,
    *,
    predictors: Callable[[], Sequence[Predictor]] = all_predictors,
    peers: Collection[str] | None = None,
    confidence: float = 0.95,
    n_boot: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Predict a log by all methods in one run and compare each with the best peer.

    Args:
        jobs: As for :func:`online.usable_jobs`.
        predictors: Returns fresh ones.
        peers: Names of the predictions of which the one with least mean absolute error is the best
            peer; by default those of the simple rules.
        confidence: Of the intervals: users are drawn with replacement, all methods on the same draws.
        n_boot: Draws.
        seed: Of the draws.

    Returns:
        Columns of :func:`score`, ``under_lo, under_hi``, ``best_peer``, ``ratio`` (mean absolute error /
        that of the best peer), ``ratio_lo, ratio_hi``.

    Raises:
        ConfigError: A peer is none of the predictions.
        SchemaError, InsufficientDataError: See :func:`online.usable_jobs`.

    Source: sizing.md, section 8.
    """
    return compare_predicted(
        predict_log(jobs, predictors()),
        peers=peers,
        confidence=confidence,
        n_boot=n_boot,
        seed=seed,
    )


def compare_predicted(
    predicted: pl.DataFrame,
    *,
    peers: Collection[str] | None = None,
    confidence: float = 0.95,
    n_boot: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare what was predicted of a log with the best peer: see :func:`compare`.

    Args:
        predicted: As :func:`online.predict_log` gives it.
        peers: As for :func:`compare`, as all others.
        confidence: See there.
        n_boot: See there.
        seed: See there.

    Raises:
        ConfigError: A peer is none of the predictions.
        InsufficientDataError: There is no job.
    """
    table = score(predicted)
    if peers is None:
        peers = [name for each in simple_rules() for name in each.names]
    known = table["method"].to_list()
    wrong = [f"peer '{name}': {nearest(name, known)}" for name in peers if name not in known]
    if wrong or not peers:
        raise ConfigError("; ".join(wrong) or "compare: at least one peer is needed")
    best = table.filter(pl.col("method").is_in(list(peers))).sort("mae_s")["method"][0]
    place = known.index(best)
    mae_s, under = _drawn(second_half(predicted), np.random.default_rng(seed), n_boot)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    ratio_lo, ratio_hi = np.quantile(mae_s / mae_s[:, [place]], tails, axis=0)
    under_lo, under_hi = np.quantile(under, tails, axis=0)
    return table.with_columns(
        under_lo=under_lo,
        under_hi=under_hi,
        best_peer=pl.lit(best),
        ratio=table["mae_s"] / table["mae_s"][place],
        ratio_lo=ratio_lo,
        ratio_hi=ratio_hi,
    )


def second_half(predicted: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs that are scored: the later half by submission.

    Raises:
        InsufficientDataError: There is no job.
    """
    if predicted.is_empty():
        raise InsufficientDataError("predictions: there is no job to score")
    return predicted.slice(predicted.height // 2)


def _names(predicted: pl.DataFrame) -> list[str]:
    return [name for name in predicted.columns if name not in KNOWN]


def _scored(name: str, predicted_s: FloatArray, run_s: FloatArray) -> dict[str, object]:
    error = np.abs(predicted_s - run_s)
    larger = np.maximum(predicted_s, run_s)
    return {
        "method": name,
        "jobs": run_s.size,
        "mae_s": float(error.mean()),
        "median_s": float(np.median(error)),
        "accuracy": float((np.minimum(predicted_s, run_s) / larger).mean()),
        "under": float((run_s > predicted_s * ROUNDING).mean()),
        "over_allocation": float(np.maximum(predicted_s - run_s, 0).sum() / run_s.sum()),
    }


def _drawn(
    half: pl.DataFrame, rng: np.random.Generator, n_boot: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean absolute error and share of too short predictions, per draw and method."""
    names, run = _names(half), pl.col("run_s")
    users = half.group_by("user").agg(
        pl.len().alias("jobs"),
        *((pl.col(name) - run).abs().sum().alias(f"error of {name}") for name in names),
        *((run > pl.col(name) * ROUNDING).sum().alias(f"under of {name}") for name in names),
    )
    sums = users.sort("user").drop("user").to_numpy().astype(np.float64)
    n = sums.shape[0]
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ sums
    shares = drawn[:, 1:] / drawn[:, :1]
    return shares[:, : len(names)], shares[:, len(names) :]
