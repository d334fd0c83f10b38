"""The one interface of every estimator of memory and walltime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.estimators.records import checked
from brokerlab.estimators.replaying import order
from brokerlab.numerics import BoolArray, FloatArray, IntArray
from brokerlab.results import Result, Shows

GRID: tuple[float, ...] = (
    *(0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75),
    *(0.8, 0.825, 0.85, 0.875, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.955, 0.96, 0.965, 0.97),
    *(0.975, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999),
)
"""Levels asked of an estimator: dense where the choice between one attempt and two is made."""


@dataclass(frozen=True, repr=False)
class Predicted(Result):
    """What an estimator expected of jobs, each from what was known when it was decided."""

    shows = Shows(
        about="what an estimator expected of jobs, one row per job",
        keys=("pandaid",),
        next=("estimators.compare(records, estimators, quantity=...)", ".at(level)"),
    )

    pandaid: IntArray  # (n,) the jobs, in the order of the records (`decided_s, pandaid`)
    seen: IntArray  # (n,) finished jobs of the same task that were known by then
    levels: tuple[float, ...]  # ascending levels of the bounds, above 0 and below 1
    # (n, len(levels)) what a job is to exceed with probability 1 - level [MB or s]; not decreasing along a row;
    # infinite where the estimator cannot tell
    bounds: FloatArray
    point: FloatArray  # (n,) the single best guess [MB or s]
    # (n, len(levels)) whether a bound is the estimator's own; if not it is what was requested, and nothing is
    # promised. None: all are.
    own: BoolArray | None = None

    def at(self, level: float) -> FloatArray:
        """Return the (n,) bounds of a level that was asked for."""
        if level not in self.levels:
            known = ", ".join(f"{each:g}" for each in self.levels)
            raise ConfigError(f"level {level:g} was not asked for; allowed are {known}")
        return self.bounds[:, self.levels.index(level)]

    def promised(self, level: float) -> BoolArray:
        """Tell, (n,), which bounds of a level that was asked for are the estimator's own, and finite."""
        finite: BoolArray = np.isfinite(self.at(level))
        return finite if self.own is None else finite & self.own[:, self.levels.index(level)]

    def only_promised(self) -> Self:
        """Return the bounds that are the estimator's own; infinite where it refuses one."""
        if self.own is None:
            return self
        return replace(self, bounds=np.where(self.own, self.bounds, np.inf))

    def frame(self) -> pl.DataFrame:
        """Return ``pandaid, seen, point`` and one ``bound_<level>`` per level, a row per job.

        Where bounds can be refused, ``promised_<level>``, too: whether the bound is one, or what was requested.
        """
        bounds = {f"bound_{level:g}": self.at(level) for level in self.levels}
        known = {"pandaid": self.pandaid, "seen": self.seen, "point": self.point}
        own = (
            {}
            if self.own is None
            else {f"promised_{at:g}": self.promised(at) for at in self.levels}
        )
        return pl.DataFrame({**known, **bounds, **own})


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return levels as they were asked for."""
    asked = tuple(float(level) for level in levels)
    between = all(0 < level < 1 for level in asked)
    if not asked or not between or any(b <= a for a, b in pairwise(asked)):
        raise ConfigError(f"levels {asked}: allowed are ascending ones above 0 and below 1")
    if len({f"{level:g}" for level in asked}) < len(asked):
        raise ConfigError(
            f"levels {asked}: bounds are named by six digits, two would be one column"
        )
    return asked


class Estimator(Protocol):
    """Learns from finished jobs, and bounds what later ones use."""

    name: str

    def fit(self, records: Any) -> Self:
        """Learn from the finished jobs of earlier tasks; forgets what was learnt before."""
        ...

    def conformalize(self, records: Any) -> Self:
        """Calibrate the bounds on finished jobs of other tasks than those of ``fit``."""
        ...

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Bound jobs that have not run, from everything learnt and seen up to now.

        Returns:
            ``pandaid, seen, point`` and one ``bound_<level>`` per level, in the order of the records.
        """
        ...

    def update(self, records: Any) -> Self:
        """See finished jobs, in the order of their ends."""
        ...

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Predict every job as it is decided, seeing each other job once it has ended.

        Starts from what was learnt, leaves the estimator unchanged. A job is known to another one if it
        ended at or before the other is decided.
        """
        ...


class Ordered:
    """What an estimator has that says of jobs what follows from the order in which they are decided and end."""

    def _predicted(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        raise NotImplementedError

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Bound jobs that have not run; see :meth:`Estimator.predict`.

        Raises:
            SchemaError, DataError: See :func:`records.checked`.
            ConfigError: Impossible levels, or the estimator is not fitted.
        """
        asked, frame = check_levels(levels), checked(records)
        return self._predicted(frame, ~np.arange(frame.height, dtype=np.int64), asked).frame()

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Bound every job as it is decided; see :meth:`Estimator.replay`, and :meth:`predict` for errors."""
        asked, frame = check_levels(levels), checked(records)
        return self._predicted(frame, order(frame), asked)
