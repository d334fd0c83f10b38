"""A deployed rule as an estimator: a formula over the finished jobs of a task, and nothing learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from brokerlab.estimators.estimator import Ordered, Predicted
from brokerlab.estimators.records import checked
from brokerlab.estimators.replaying import Past, known
from brokerlab.numerics import FloatArray, IntArray
from brokerlab.scouts.quantities import floats


class Formula(Protocol):
    """What a rule says of each job from what was seen when it is decided."""

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return (n,) bounds [MB or s]; NaN where too little was seen."""
        ...


@dataclass(frozen=True)
class Recorded:
    """A column as it is recorded: what was asked for, or what the system gave."""

    column: str  # ``requested`` or ``sent``

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:  # noqa: ARG002
        """Return the column; NaN where it is null."""
        return floats(records, self.column)


@dataclass(frozen=True)
class Anew:
    """One formula until another one has seen enough."""

    first: Formula  # says what it says until then
    later: Formula  # is NaN until then

    def __call__(self, records: pl.DataFrame, events: IntArray) -> FloatArray:
        """Return what the later formula says; where it says nothing, what the first does."""
        later = self.later(records, events)
        return np.where(np.isnan(later), self.first(records, events), later)


class Rule(Ordered):
    """A deployed rule behind the interface of every estimator.

    A rule knows one number, not a distribution: it is the bound at every level and the point. Where the
    rule has seen too little it is what was requested, and infinite where nothing was. There is nothing
    to fit or to calibrate, only finished jobs of the same task to be seen.
    """

    def __init__(self, name: str, formula: Formula) -> None:
        self.name = name
        self.formula = formula
        self._past = Past()

    def __repr__(self) -> str:
        return f"Rule({self.name!r})"

    def fit(self, records: Any) -> Self:  # noqa: ARG002 - rules learn nothing from other tasks
        """Forget what was seen; other tasks say nothing to a rule."""
        self._past.clear()
        return self

    def conformalize(self, records: Any) -> Self:  # noqa: ARG002 - see fit
        """Change nothing: a rule is not calibrated."""
        return self

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends; those that never end are not seen."""
        self._past.add(checked(records))
        return self

    def _predicted(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Put what was seen of the tasks before the events, and ask the formula."""
        together, walked, past = self._past.before(frame, events, others=False)
        values = self.formula(together, walked)[past:]
        requested = frame["requested"].fill_null(np.inf).to_numpy()
        bound = np.where(np.isnan(values), requested, values)
        return Predicted(
            pandaid=frame["pandaid"].to_numpy(),
            seen=known(together, walked)[past:],
            levels=levels,
            bounds=np.repeat(bound[:, None], len(levels), axis=1),
            point=bound,
        )
