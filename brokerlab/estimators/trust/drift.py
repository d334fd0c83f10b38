"""Does a bound stay as good as it was, in the order in which jobs are decided?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.trust.judged import judged
from brokerlab.estimators.trust.strata import against_level

BLOCK = 200
"""Jobs of a block, as many as a stratum must have."""
_TERMS = 20  # of the series of sup |W|, which converges like exp(-k^2)


def coverage_blocks(
    records: Any,
    predicted: Predicted,
    level: float,
    *,
    block: int = BLOCK,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Follow the coverage over consecutive blocks of jobs in the order of their decision.

    Args:
        records: The jobs to be judged, all of them predicted.
        predicted: Expectations of these jobs.
        level: One of ``predicted.levels``.
        block: Jobs of a block; the last one has up to twice as many.
        confidence: Of the intervals; 1 - this is the share of wrong alarms that is allowed.

    Returns:
        One row per block: ``block`` (from 0), ``from_s, to_s`` (decisions), ``n, missed, coverage, lo, hi,
        p, inside`` as in :func:`strata.coverage_by`, ``p_adjusted`` (for the share of wrong alarms among
        the blocks), ``verdict``: ``as asked``, ``misses too often``, ``misses too rarely``, by the adjusted
        value.

    Raises:
        ConfigError: A block below 1, or an unknown level.
        InsufficientDataError: No job can be judged.

    Source: Benjamini and Hochberg 1995, doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    from scipy import stats

    if block < 1:
        raise ConfigError(f"block = {block}: 1 job or more is allowed")
    frame = _judged(records, predicted, level)
    last = max(frame.height // block - 1, 0)
    number = (pl.int_range(pl.len()) // block).clip(upper_bound=last)
    counts = (
        frame.group_by(block=number)
        .agg(
            from_s=pl.col("decided_s").min(),
            to_s=pl.col("decided_s").max(),
            n=pl.len().cast(pl.Int64),
            missed=pl.col("missed").sum().cast(pl.Int64),
        )
        .sort("block")
    )
    table = against_level(counts, level, confidence)
    adjusted = stats.false_discovery_control(table["p"].to_numpy())
    said = pl.when(pl.col("coverage") < level).then(pl.lit("misses too often"))
    return table.with_columns(p_adjusted=pl.Series(adjusted)).with_columns(
        verdict=pl.when(pl.col("p_adjusted") > 1 - confidence)
        .then(pl.lit("as asked"))
        .otherwise(said.otherwise(pl.lit("misses too rarely")))
    )


def largest_deviation(
    records: Any, predicted: Predicted, level: float, *, confidence: float = 0.95
) -> pl.DataFrame:
    """Find where the misses are furthest from the number that the level allows.

    ``D = max_k |misses of the first k jobs - k (1 - level)| / sqrt(n level (1 - level))``. With misses that
    are independent and as frequent as asked, D is the largest distance from 0 of a random walk, whose
    limit law is that of Brownian motion. A late D means that misses went wrong all along; an early one
    that they were wrong up to there, and made up for it.

    Args:
        records: The jobs to be judged, all of them predicted.
        predicted: Expectations of these jobs.
        level: One of ``predicted.levels``.
        confidence: 1 - this is the p-value below which the verdict is ``drifts``.

    Returns:
        One row: ``n, missed, statistic`` (D), ``p``, ``after`` (jobs up to there), ``at_s`` (its decision),
        ``missed_before, expected_before, missed_after, expected_after``, ``verdict``: ``as asked`` or
        ``misses too often`` or ``misses too rarely`` up to there.

    Raises:
        ConfigError: An unknown level.
        InsufficientDataError: No job can be judged.

    Source: Page 1954, doi:10.1093/biomet/41.1-2.100; the law of the largest distance: Feller, An
        Introduction to Probability Theory and Its Applications II, X.5.
    """
    frame = _judged(records, predicted, level)
    misses = frame["missed"].cast(pl.Int64).cum_sum().to_numpy()
    n, allowed = misses.size, 1 - level
    apart = misses - allowed * np.arange(1, n + 1)
    k = int(np.argmax(np.abs(apart)))
    statistic = float(abs(apart[k]) / math.sqrt(n * level * allowed))
    p = _p_of_largest(statistic)
    wrong = "misses too often" if apart[k] > 0 else "misses too rarely"
    return pl.DataFrame(
        {
            "n": [n],
            "missed": [int(misses[-1])],
            "statistic": [statistic],
            "p": [p],
            "after": [k + 1],
            "at_s": [frame["decided_s"][k]],
            "missed_before": [int(misses[k])],
            "expected_before": [allowed * (k + 1)],
            "missed_after": [int(misses[-1] - misses[k])],
            "expected_after": [allowed * (n - k - 1)],
            "verdict": [wrong if p <= 1 - confidence else "as asked"],
        }
    )


def _judged(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
    """Return the jobs whose bound was kept or missed, in the order of their decision."""
    frame = judged(records, predicted, level).drop_nulls("missed")
    if frame.is_empty():
        raise InsufficientDataError(
            "records: no job can be judged; every bound is infinite, or no job is left"
        )
    return frame


def _p_of_largest(distance: float) -> float:
    """Return P(sup |W| > distance) of Brownian motion W on [0, 1]."""
    if distance < 0.3:  # the series is 0 to seven digits there
        return 1.0
    odd = 2 * np.arange(_TERMS) + 1
    signs = np.where(np.arange(_TERMS) % 2, -1.0, 1.0)
    below = 4 / math.pi * (signs / odd * np.exp(-((math.pi * odd / distance) ** 2) / 8)).sum()
    return float(min(max(1 - below, 0.0), 1.0))
