"""The one interface of every estimator of memory and walltime, and the order in which estimators decide jobs and see them end."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from brokerlab.compiled import compiled_in_place
from brokerlab.errors import ConfigError
from brokerlab.estimators.records import checked
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

    def bound_events(
        self, frame: pl.DataFrame, events: IntArray, levels: tuple[float, ...]
    ) -> Predicted:
        """Go through decisions (~row) and ends (row) of checked records, and bound the jobs that are decided."""
        raise NotImplementedError

    def predict(self, records: Any, *, levels: Sequence[float]) -> pl.DataFrame:
        """Bound jobs that have not run, from everything learnt and seen up to now.

        ``pandaid, seen`` (finished jobs of the task that were seen), ``point`` (best single guess) and one ``bound_<level>`` per level
        [MB or s], sorted by ``decided_s, pandaid``.

        Raises:
            SchemaError, DataError: See :func:`records.checked`.
            ConfigError: Impossible levels, or the estimator is not fitted.
        """
        asked, frame = check_levels(levels), checked(records)
        return self.bound_events(frame, ~np.arange(frame.height, dtype=np.int64), asked).frame()

    def replay(self, records: Any, *, levels: Sequence[float]) -> Predicted:
        """Bound every job as it is decided; see :meth:`Estimator.replay`, and :meth:`predict` for errors."""
        asked, frame = check_levels(levels), checked(records)
        return deepcopy(self).bound_events(frame, order(frame), asked)


def order(records: pl.DataFrame) -> IntArray:
    """Merge decisions (~row) and ends (row) of checked records into one list of events that a compiled loop can walk.

    A job is known to another one if it ended at or before the other is decided: at one instant ends come
    first, by pandaid, then decisions, by pandaid. A job that ends at the instant of its own decision
    is seen right after it. A job without an end is never seen.
    """
    decided = records["decided_s"].to_numpy()
    ended = records["ended_s"].fill_null(float("nan")).to_numpy()
    rows = np.arange(records.height, dtype=np.int64)
    seen = rows[~np.isnan(ended)]
    at_once = ended[seen] == decided[seen]
    time = np.concatenate([decided, ended[seen]])
    # ends of earlier jobs before decisions; an end at once directly behind its own decision
    phase = np.concatenate([np.ones(rows.size, dtype=np.int64), at_once.astype(np.int64)])
    pandaid = records["pandaid"].to_numpy()
    tie = np.concatenate([rows, np.where(at_once, seen, pandaid[seen])])
    is_end = np.concatenate([np.zeros(rows.size, dtype=np.int64), np.ones(seen.size, np.int64)])
    events = np.concatenate([~rows, seen])
    ordered: IntArray = events[np.lexsort((is_end, tie, phase, time))]
    return ordered


_MANY_PIECES = 64


class Past:
    """Finished jobs that an estimator has seen, kept to be put before those that it is asked of."""

    def __init__(self) -> None:
        self._pieces: list[pl.DataFrame] = []

    def clear(self) -> None:
        """Forget all of them."""
        self._pieces.clear()

    def add(self, records: pl.DataFrame) -> None:
        """Keep finished jobs, in the order of their ends; those without an end are left out."""
        ended = records.filter(pl.col("ended_s").is_not_null()).sort("ended_s", "pandaid")
        self._pieces.append(ended)
        if len(self._pieces) > _MANY_PIECES:
            self._pieces = [pl.concat(self._pieces)]

    def frame(self) -> pl.DataFrame | None:
        """Return all of them, as they came; None: nothing was seen."""
        return pl.concat(self._pieces) if self._pieces else None

    def before(
        self, records: pl.DataFrame, events: IntArray, *, others: bool = True
    ) -> tuple[pl.DataFrame, IntArray, int]:
        """Put what was seen before records: all rows, their events, and how many were seen; ``others``: of other tasks, too."""
        seen = self.frame()
        if seen is None:
            return records, events, 0
        if not others:
            seen = seen.filter(pl.col("jeditaskid").is_in(records["jeditaskid"].unique().implode()))
        past = seen.height
        shifted = np.where(events >= 0, events + past, events - past)
        walked = np.concatenate([np.arange(past, dtype=np.int64), shifted])
        return pl.concat([seen, records]), walked, past


def codes(records: pl.DataFrame, *columns: str) -> tuple[IntArray, int]:
    """Number groups of rows that are equal in some columns, from 0 as they first appear; return how many there are, too."""
    groups = records.select(columns).unique(maintain_order=True).with_row_index("code")
    result = records.select(columns).join(
        groups, on=columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return result["code"].cast(pl.Int64).to_numpy(), groups.height


def known(records: pl.DataFrame, events: IntArray) -> IntArray:
    """Count the jobs of the same task, not killed at a limit, that are known to have ended when each job is decided."""
    task, n_tasks = codes(records, "jeditaskid")
    counts = np.zeros(records.height, dtype=np.int64)
    finished = ~records["censored"].to_numpy()
    _count(events, task, finished, np.zeros(n_tasks, dtype=np.int64), counts)
    return counts


@compiled_in_place
def _count(
    events: IntArray, task: IntArray, finished: np.ndarray, so_far: IntArray, counts: IntArray
) -> None:
    for event in events:
        if event < 0:
            counts[~event] = so_far[task[~event]]
        elif finished[event]:
            so_far[task[event]] += 1
