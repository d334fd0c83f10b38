"""Does a bound stay as good as it was, in the order in which jobs are decided?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.trust.judged import judged, places
from brokerlab.intervals import CONFIDENCE
from brokerlab.numerics import FloatArray

_TERMS = 20  # of the series of sup |W|, which converges like exp(-k^2)


def largest_deviation(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
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
    frame = _judge(records, predicted, level)
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
            "verdict": [wrong if p <= 1 - CONFIDENCE else "as asked"],
        }
    )


def _judge(records: Any, predicted: Predicted, level: float) -> pl.DataFrame:
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


POWERS = tuple((np.arange(20) + 0.5) / 20)
"""Powers of the bets, evenly from 0 to 1: small ones bet on places close to one end."""
_CHUNK = 65_536


def fortune(places: FloatArray) -> FloatArray:
    """Bet on places at either end, job by job, and return the logarithm (base 10) of the fortune.

    Start with 1, put equal parts on the bets ``e p^(e-1)`` and ``e (1-p)^(e-1)`` for powers e from 0 to 1,
    and let each of them run. If the places p are even and independent, the fortune is a martingale: it
    reaches 10^x with probability at most 10^-x, however long one plays and whenever one looks.

    Source: Vovk, Nouretdinov and Gammerman 2003, Testing Exchangeability On-Line, ICML, section 4 (simple
        mixture); Ville's inequality for the bound.
    """
    power = np.array(POWERS)
    tiny = np.finfo(float).tiny
    ends = np.stack([places, 1 - places], axis=1).clip(tiny, 1.0)
    result = np.empty(places.size)
    held = np.zeros(2 * power.size)
    for start in range(0, places.size, _CHUNK):
        logs = np.log(ends[start : start + _CHUNK])[:, :, None]
        gains = (np.log(power) + (power - 1) * logs).reshape(len(logs), -1)
        fortunes = held + np.cumsum(gains, axis=0)
        top = fortunes.max(axis=1)
        mean = np.exp(fortunes - top[:, None]).mean(axis=1)
        result[start : start + _CHUNK] = (top + np.log(mean)) / np.log(10)
        held = fortunes[-1]
    return result


def bet_against(records: Any, predicted: Predicted, *, seed: int = 0) -> pl.DataFrame:
    """Bet against a model in the order of the decisions.

    The place of each use in its expected distribution would be even, and independent of those before, if
    the model were right. Jobs that are decided together share what the model gets wrong of their task: a
    fortune is evidence against the model as a whole, not against the order alone.

    One row: ``n`` (jobs of which any bound was told), ``log10_largest`` (the largest fortune), ``after`` (jobs up to there), ``at_s`` (its
    decision), ``log10_final``, ``p`` (at most this likely for a right model), ``verdict``: ``as
    expected`` or ``not as expected``.

    Source: see :func:`fortune`.
    """
    frame = places(records, predicted, seed=seed)
    if frame["censored"].all():
        raise InsufficientDataError(
            "records: every job was killed at a limit, or no bound of it was told; nothing can be bet on"
        )
    logs = fortune(frame["place"].to_numpy())
    k = int(np.argmax(logs))
    largest = max(float(logs[k]), 0.0)
    p = 10.0**-largest
    return pl.DataFrame(
        {
            "n": [frame.height],
            "log10_largest": [largest],
            "after": [k + 1],
            "at_s": [frame["decided_s"][k]],
            "log10_final": [float(logs[-1])],
            "p": [p],
            "verdict": ["not as expected" if p <= 1 - CONFIDENCE else "as expected"],
        }
    )
