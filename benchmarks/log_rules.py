"""The simple rules of the chapter on batch logs that the library does not offer: they know no jobs seen before a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.estimators.deployed import PercentileWalltime, Rule, Seen, log_rules
from brokerlab.estimators.seen import put_in, take_out
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.quantities import floats

LATEST = 2000
"""Runs that a conformal factor is taken of."""
SHORTEST_S = 1.0
"""Guess that a run is divided by at least [s]."""


def all_log_rules() -> list[Rule]:
    """Return every rule of the chapter, nothing seen yet."""
    last_two = PercentileWalltime(Seen(50, least=2, most=2))
    conformal = [
        Rule(f"last two x conformal {100 * level:g} %", ConformalWalltime(last_two, level))
        for level in (0.9, 0.95)
    ]
    return [*log_rules(), *conformal]


@dataclass(frozen=True)
class ConformalWalltime:
    """A guess times the factor that the stated share of the latest 2000 runs kept, at most the request.

    Attributes:
        guess: What it says; where it says nothing, the request counts as the guess.
        level: Share of the runs.
        least: Runs seen below which the request is said.

    Source: sizing.md, section 8; Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World (2005),
    ISBN 0-387-00152-2, section 2.
    """

    guess: PercentileWalltime
    level: float
    least: int = 100

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return the wall time [s]; NaN where too few jobs have finished."""
        used, requested = floats(records, "used"), floats(records, "requested")
        guess = self.guess(records, events)
        guess = np.where(np.isnan(guess), requested, guess)
        factor = np.full(used.size, np.nan)
        ratio = used / np.maximum(guess, SHORTEST_S)
        _walk_factor(events, ratio, np.empty(LATEST), self.level, self.least, factor)
        return np.where(requested < guess * factor, requested, guess * factor)


@compiled_in_place
def _walk_factor(
    events: IntArray,
    ratio: FloatArray,
    ascending: FloatArray,
    level: float,
    least: int,
    found: FloatArray,
) -> None:
    """Write the ceil((n + 1) level)-th smallest of the latest ratios, at most the largest."""
    held, oldest = 0, 0
    for place in range(events.size):
        event = events[place]
        if event < 0:
            if held >= least:
                found[~event] = ascending[min(int(np.ceil((held + 1) * level)), held) - 1]
            continue
        if held == ascending.size:
            while events[oldest] < 0:
                oldest += 1
            take_out(ascending, 0, held, ratio[events[oldest]])
            oldest, held = oldest + 1, held - 1
        put_in(ascending, 0, held, ratio[event])
        held += 1
