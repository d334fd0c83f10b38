"""Does a bound stay as good as it was, in the order in which jobs are decided?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.trust.judged import judged

_TERMS = 20  # of the series of sup |W|, which converges like exp(-k^2)


def largest_deviation(
    records: Any, predicted: Predicted, level: float, *, confidence: float = 0.95
) -> pl.DataFrame:
    """Find where the misses are furthest from the number that the level allows.

    ``D = max_k |misses of the first k jobs - k (1 - level)| / sqrt(n level (1 - level))``. With misses that
    are independent and as frequent as asked, D is the largest distance from 0 of a random walk, whose
    limit law is that of Brownian motion. A late D means that misses went wrong all along; an early one
    that they were wrong up to there, and made up for it.

    One row: ``n, missed, statistic`` (D), ``p``, ``after`` (jobs up to there), ``at_s`` (its decision),
    ``missed_before, expected_before, missed_after, expected_after``, ``verdict``: ``as asked`` or
    ``misses too often`` or ``misses too rarely`` up to there.

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
