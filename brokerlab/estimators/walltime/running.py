"""What jobs that still run tell: how long they have run already, and whose bound they have passed."""

from __future__ import annotations

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import BoolArray, FloatArray, IntArray

ROUNDING = 1 + 1e-9  # a run that is longer by the last bits of a product is as long
AT_REQUEST = np.nextafter(1.0, 0.0)  # above every shorter run, not above those cut at the request


@compiled
def scores_so_far(
    elapsed: FloatArray, lengths: IntArray, shares: FloatArray, reached: FloatArray
) -> FloatArray:
    """Return the probability that was given to runs no longer than what has passed, ascending."""
    found = np.zeros(elapsed.size)
    for row in range(elapsed.size):
        place = np.searchsorted(shares[row, : lengths[row]], elapsed[row], side="right")
        if place:
            found[row] = reached[row, place - 1]
    return np.sort(found)


class RunningJobs:
    """Jobs that have started and not ended, with what was expected of them.

    Args:
        levels: How many bounds each job has.
        room: Most steps of a distribution.
    """

    def __init__(self, levels: int, room: int) -> None:
        self.n = 0
        self._rows: dict[int, int] = {}
        self._numbers: list[int] = []
        self._times = np.zeros((0, 2))  # start, request [s]
        self._lengths = np.zeros(0, dtype=np.int64)
        self._shares = np.zeros((0, room))
        self._reached = np.zeros((0, room))
        self._bounds = np.zeros((0, levels))
        self._passed = np.zeros((0, levels), dtype=np.bool_)

    def begin(
        self,
        number: int,
        times: tuple[float, float],
        expected: tuple[FloatArray, FloatArray],
        bounds: FloatArray,
    ) -> None:
        """Add a job: start and request [s], shares of the request and the probability up to each, bounds."""
        if self.n == len(self._times):
            self._grow()
        row, size = self.n, expected[0].size
        self._rows[number] = row
        self._numbers.append(number)
        self._times[row] = times
        self._lengths[row] = size
        self._shares[row, :size], self._reached[row, :size] = expected
        self._bounds[row] = bounds
        self._passed[row] = False
        self.n += 1

    def newly_passed(self, now_s: float) -> IntArray:
        """Return, per level, how many jobs have run longer than their bound since this was asked last."""
        passed = (self._elapsed(now_s)[:, None] > self._bounds[: self.n] * ROUNDING) & ~(
            self._passed[: self.n]
        )
        self._passed[: self.n] |= passed
        counts: IntArray = passed.sum(axis=0)
        return counts

    def scores(self, now_s: float) -> FloatArray:
        """Return what the scores of these jobs are at least, ascending."""
        n = self.n
        return scores_so_far(
            self._elapsed(now_s), self._lengths[:n], self._shares[:n], self._reached[:n]
        )

    def end(self, number: int) -> BoolArray:
        """Take a job out; return of which bounds it is known already that it was longer."""
        row, last = self._rows.pop(number), self.n - 1
        known: BoolArray = self._passed[row].copy()
        moved = self._numbers.pop()
        if row != last:
            for each in self._tables():
                each[row] = each[last]
            self._numbers[row], self._rows[moved] = moved, row
        self.n = last
        return known

    def _elapsed(self, now_s: float) -> FloatArray:
        """Return how much of their requests has passed; past a request is up to it, as runs are cut there."""
        times = self._times[: self.n]
        return np.minimum((now_s - times[:, 0]) / times[:, 1], AT_REQUEST)

    def _tables(self) -> tuple[FloatArray | IntArray | BoolArray, ...]:
        return (
            *(self._times, self._lengths, self._shares),
            *(self._reached, self._bounds, self._passed),
        )

    def _grow(self) -> None:
        """Make room for twice as many."""
        more = max(64, self.n)
        (self._times, self._lengths, self._shares, self._reached, self._bounds, self._passed) = (
            np.concatenate([each, np.zeros((more, *each.shape[1:]), dtype=each.dtype)])
            for each in self._tables()
        )
