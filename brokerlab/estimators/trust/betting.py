"""Bet against a model, job by job: a fortune that grows is evidence that jobs are not as it expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.trust.judged import places
from brokerlab.numerics import FloatArray

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


def bet_against(
    records: Any, predicted: Predicted, *, seed: int = 0, confidence: float = 0.95
) -> pl.DataFrame:
    """Bet against a model in the order of the decisions.

    The place of each use in its expected distribution would be even, and independent of those before, if
    the model were right. Jobs that are decided together share what the model gets wrong of their task: a
    fortune is evidence against the model as a whole, not against the order alone.

    One row: ``n, log10_largest`` (the largest fortune), ``after`` (jobs up to there), ``at_s`` (its
    decision), ``log10_final``, ``p`` (at most this likely for a right model), ``verdict``: ``as
    expected`` or ``not as expected``.

    Source: see :func:`fortune`.
    """
    frame = places(records, predicted, seed=seed)
    if frame["censored"].all():
        raise InsufficientDataError(
            "records: every job was killed at a limit; nothing can be bet on"
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
            "verdict": ["not as expected" if p <= 1 - confidence else "as expected"],
        }
    )
