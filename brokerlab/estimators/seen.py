"""Percentiles of what was seen, for every job at the moment it is decided."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerlab.compiled import compiled_in_place
from brokerlab.errors import ConfigError
from brokerlab.numerics import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Seen:
    """Which of a group's finished jobs a percentile is taken of."""

    rank: float  # of the percentile, 0 to 100; 100 is the largest, 50 of two is their mean
    least: int = 1  # jobs needed before there is an answer
    most: int | None = 1000  # jobs that enter at most; None: all
    # of more the latest ones; else the first ones, and later ones change nothing
    latest: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        wrong = [
            message
            for message, right in {
                f"rank {self.rank}: 0 to 100 is allowed": 0 <= self.rank <= 100,
                f"least {self.least}: at least 1 is allowed": self.least >= 1,
                f"most {self.most}: `least`, {self.least}, or more is allowed": self.most is None
                or self.most >= self.least,
            }.items()
            if not right
        ]
        if wrong:
            raise ConfigError("percentile of what was seen: " + "; ".join(wrong))

    def first(self, events: IntArray, group: IntArray, known: BoolArray) -> BoolArray:
        """Tell which finished jobs enter, those of which a value is not asked for included: of the first ones, so many of each group."""
        rows = events[events >= 0]
        rows = rows[known[rows]]
        rows = rows[np.argsort(group[rows], kind="stable")]
        place = np.arange(rows.size) - np.searchsorted(group[rows], group[rows])
        entered = np.zeros(known.size, dtype=bool)
        entered[rows] = self.latest or self.most is None or place < self.most
        return entered

    def percentile(self, events: IntArray, group: IntArray, values: FloatArray) -> FloatArray:
        """Return the percentile that is known when each job is decided.

        (n,) by the formula of :func:`numerics.percentile`, bit for bit; NaN where fewer than ``least``
        jobs of the group were seen.
        """
        n_groups = int(group.max()) + 1 if group.size else 0
        result = np.full(values.size, np.nan)
        count = np.zeros(n_groups, dtype=np.int64)
        if self.rank == 100 and self.most is None:
            top = np.full(n_groups, -np.inf)
            _walk_up(events, group, values, count, top, self.least, result)
            return result
        room = np.bincount(group[~np.isnan(values)], minlength=n_groups).astype(np.int64)
        room = room if self.most is None else np.minimum(room, self.most)
        start = np.concatenate(([0], np.cumsum(room)[:-1])).astype(np.int64)
        ordered, arrived = np.empty(int(room.sum())), np.empty(int(room.sum()))
        _walk(
            events, group, values, start, room, count, ordered, arrived,
            self.least, self.latest, float(self.rank), result,
        )  # fmt: skip
        return result


@compiled_in_place
def _walk(
    events: IntArray,
    group: IntArray,
    values: FloatArray,
    start: IntArray,
    room: IntArray,
    count: IntArray,
    ordered: FloatArray,
    arrived: FloatArray,
    least: int,
    latest: bool,  # noqa: FBT001 - compiled functions take their arguments by position
    rank: float,
    result: FloatArray,
) -> None:
    """Walk through the events; every group keeps its values sorted, and as they arrived."""
    for event in events:
        row = event if event >= 0 else ~event
        g = group[row]
        first, held = start[g], min(count[g], room[g])
        if event < 0:
            if held >= least:
                k = (held - 1) * rank / 100
                f, c = int(np.floor(k)), int(np.ceil(k))
                if f == c:
                    result[row] = ordered[first + f]
                else:
                    lower, upper = ordered[first + f], ordered[first + c]
                    result[row] = lower * (c - k) + upper * (k - f)
            continue
        value = values[row]
        if np.isnan(value) or (held == room[g] and not latest):
            continue
        place = first + count[g] % room[g]
        if held == room[g]:
            take_out(ordered, first, held, arrived[place])
            held -= 1
        put_in(ordered, first, held, value)
        arrived[place] = value
        count[g] += 1


@compiled_in_place
def _walk_up(
    events: IntArray,
    group: IntArray,
    values: FloatArray,
    count: IntArray,
    top: FloatArray,
    least: int,
    result: FloatArray,
) -> None:
    """Walk through the events when only the largest value of each group is asked for."""
    for event in events:
        if event >= 0:
            value = values[event]
            if not np.isnan(value):
                top[group[event]] = max(top[group[event]], value)
                count[group[event]] += 1
        elif count[group[~event]] >= least:
            result[~event] = top[group[~event]]


@compiled_in_place
def _bisect(ordered: FloatArray, first: int, held: int, value: float) -> int:
    """Return the place of the first value that is not below this one."""
    low, high = first, first + held
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_in_place
def take_out(ordered: FloatArray, first: int, held: int, value: float) -> None:
    """Take a value out of an ascending list that begins at a place."""
    for i in range(_bisect(ordered, first, held, value), first + held - 1):
        ordered[i] = ordered[i + 1]


@compiled_in_place
def put_in(ordered: FloatArray, first: int, held: int, value: float) -> None:
    """Put a value into an ascending list that begins at a place."""
    place = _bisect(ordered, first, held, value)
    for i in range(first + held, place, -1):
        ordered[i] = ordered[i - 1]
    ordered[place] = value
