"""Every setting that the deployed system has: rank, margin and minimum, judged together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from brokerlab.calibrate.backtest import Backtest
from brokerlab.calibrate.judge import Judgement, Outcomes
from brokerlab.calibrate.parameters import Parameter
from brokerlab.calibrate.replay import Setting
from brokerlab.numerics import FloatArray

MINIMUM_KEY = "SCOUT_RAMCOUNT_MIN"
MINIMA: tuple[int | None, ...] = (None, 250, 500, 1000, 1500, 2000)
"""Minima tried [MB, per core if the task's unit is]: up to the 2 GB that a slot has per core."""


class FamilySetting(NamedTuple):
    """One member of the family that the deployed system has.

    Attributes:
        rank: Percentile rank.
        margin_pct: Margin [%].
        minimum_mb: SCOUT_RAMCOUNT_MIN [MB]; null: none.
    """

    rank: int
    margin_pct: int
    minimum_mb: int | None

    @property
    def pair(self) -> Setting:
        """Rank and margin."""
        return self.rank, self.margin_pct

    def words(self, parameter: Parameter) -> str:
        """Return the setting in words.

        Example:
            >>> from brokerlab.calibrate.parameters import parameter_named
            >>> FamilySetting(75, 10, 500).words(parameter_named("ramcount"))
            'rank 75, margin 10 %, minimum 500 MB'
        """
        text = f"rank {self.rank}, margin {self.margin_pct} %"
        if parameter.name != "ramcount":
            return text
        least = "no minimum" if self.minimum_mb is None else f"minimum {self.minimum_mb} MB"
        return f"{text}, {least}"


def family_outcomes(tried: Backtest, minima: Iterable[int | None]) -> Outcomes:
    """Return what every member of the family led to, task by task, for the judge.

    The current setting comes first, then what has its minimum: among equals they stay. A minimum is not set alone: rank and
    margin of the current setting come with the current minimum only. Other parameters than ramcount have none.

    Args:
        tried: Back-test of the tasks under the current minimum, of every rank and margin.
        minima: To be tried [MB]; None: no minimum.

    Returns:
        Outcomes whose settings are `FamilySetting`.

    Raises:
        InsufficientDataError: No task with work has a creation time.
    """
    current = FamilySetting(*tried.current, tried.assumptions.ram_min_mb)
    wanted = minima if tried.parameter.name == "ramcount" else ()
    pairs = [current.pair, *(pair for pair in tried.settable if pair != current.pair)]
    by_minimum = {
        minimum: tried.replay.under(minimum).outcomes(
            pairs, current.pair, tried.weights, tried.created
        )
        for minimum in dict.fromkeys((current.minimum_mb, *wanted))
    }
    settings = tuple(
        FamilySetting(*pair, minimum)
        for minimum in by_minimum
        for pair in pairs
        if minimum == current.minimum_mb or pair != current.pair
    )
    place_of = {pair: place for place, pair in enumerate(pairs)}
    units = by_minimum[current.minimum_mb].units

    def values(places: Sequence[int]) -> dict[str, FloatArray]:
        asked = [settings[place] for place in places]
        found: dict[str, FloatArray] = {}
        for minimum, outcomes in by_minimum.items():
            here = [at for at, each in enumerate(asked) if each.minimum_mb == minimum]
            if here:
                columns = outcomes.values([place_of[asked[at].pair] for at in here])
                for name, column in columns.items():
                    found.setdefault(name, np.empty((units.height, len(asked))))[:, here] = column
        return found

    return Outcomes(units=units, settings=settings, current=0, values=values)


def cheapest_of(judgement: Judgement) -> FamilySetting:
    """Return the setting of least loss over all tasks, whatever it exceeds; among equals the first."""
    place = judgement.candidates.sort("loss", "place")["place"][0]
    return FamilySetting(*judgement.settings[place])
