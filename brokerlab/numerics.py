"""Exact numerics: the one definition of a percentile, for one list and for many groups at once; a noise with a tail.

``numpy.percentile``, Polars' and DuckDB's quantiles use formulas that differ from the rule in the last
bit in a fifth of the cases, and then a rounding flips. Everything here is evaluated as scouts.md
section 4 writes it: two products, then the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_MATRIX_CELLS = 8_000_000  # 64 MB at a time


def percentile(values: Sequence[float], rank: float) -> tuple[float, list[float]]:
    """Interpolate linearly between the two order statistics around a rank.

    ``k = (n-1) * rank / 100``; ``x[k]`` where k is whole, else ``x[f]*(c-k) + x[c]*(k-f)``.

    Source: scouts.md section 4.
    """
    if not values:
        raise ValueError("percentile of an empty list: an empty list means 'parameter not set'")
    if not 0 <= rank <= 100:
        raise ValueError(f"percentile rank {rank} is outside 0..100")
    ordered = sorted(values)
    k = (len(ordered) - 1) * rank / 100
    f, c = math.floor(k), math.ceil(k)
    if f == c:
        return ordered[f], [ordered[f]]
    return ordered[f] * (c - k) + ordered[c] * (k - f), [ordered[f], ordered[c]]


def noise_cdf(
    x: FloatArray, sd: FloatArray, share: FloatArray, scale: FloatArray, sign: int
) -> FloatArray:
    """Return P(normal(0, sd) + sign * tail <= x), the tail exponential in a share of the cases.

    ``F = (1-p) Phi(z) + p G(z)`` with ``G(z) = Phi(z) - exp(-a z s + (a s)^2/2) Phi(z - a s)`` for
    sign +1 (``z = x/s``, rate ``a``), mirrored for -1.
    """
    from scipy.special import log_ndtr, ndtr  # slow to load, and hardly anybody asks

    z = x / sd[:, None]
    k = (sd / scale)[:, None]
    tail = np.exp(np.minimum(-sign * k * z + k * k / 2 + log_ndtr(sign * z - k), 0.0))
    return np.asarray(ndtr(z) - sign * share[:, None] * tail)


MOST_TIMES = 1000.0
"""A change of more than so many times what there was is a change of almost nothing."""


def percent_of(change: float | None, base: float | None, *, least: float = 0.0) -> float | None:
    """Return a change in per cent of what there was; null where that is almost nothing, so that no part of it means anything.

    Example:
        >>> percent_of(-3.0, 12.0), percent_of(2.0, 5e-10), percent_of(-1e-16, 1e-16, least=1e-6)
        (-25.0, None, None)
    """
    if change is None or base is None or abs(base) <= least or abs(change) > MOST_TIMES * abs(base):
        return None
    return 100 * change / abs(base)


@dataclass(frozen=True)
class SortedGroups:
    """Values sorted inside consecutive groups: what every grouped order statistic reads."""

    values: FloatArray  # (n_values,) ascending inside each group
    start: IntArray  # (n_groups,) index of the first value of each group
    size: IntArray  # (n_groups,) number of values of each group, may be 0

    @classmethod
    def of(cls, group: IntArray, values: FloatArray, n_groups: int) -> SortedGroups:
        """Sort values by group, then by value."""
        size = np.bincount(group, minlength=n_groups).astype(np.int64)
        start = np.concatenate(([0], np.cumsum(size)[:-1])).astype(np.int64)
        if np.any(group[1:] < group[:-1]):
            values = values[np.argsort(group, kind="stable")]
        return cls(_sort_runs(values.astype(np.float64), start, size), start, size)

    def percentile(self, rank: float) -> FloatArray:
        """Return the percentile of every group; NaN for empty groups."""
        return interpolated(*self.order_statistics(rank))

    def order_statistics(self, rank: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x[floor k], x[ceil k] and k of every group; the first two NaN for empty groups."""
        if not 0 <= rank <= 100:  # beyond them lie values of other groups
            raise ValueError(f"percentile rank {rank} is outside 0..100")
        k = (self.size - 1) * rank / 100
        empty = self.size == 0
        if self.values.size == 0:
            nan = np.full(self.size.shape, np.nan)
            return nan, nan.copy(), k
        last = self.values.size - 1
        lower = self.values[np.clip(self.start + np.floor(k).astype(np.int64), 0, last)]
        upper = self.values[np.clip(self.start + np.ceil(k).astype(np.int64), 0, last)]
        return np.where(empty, np.nan, lower), np.where(empty, np.nan, upper), k


def interpolated(lower: FloatArray, upper: FloatArray, k: FloatArray) -> FloatArray:
    """Return the percentile at position k between two order statistics: two products, then the sum (scouts.md 4)."""
    f, c = np.floor(k), np.ceil(k)
    return np.where(f == c, lower, lower * (c - k) + upper * (k - f))


def _sort_runs(values: FloatArray, start: IntArray, size: IntArray) -> FloatArray:
    """Sort every run of values by itself.

    Runs of similar length are laid side by side in a matrix, padded with infinity, and its rows sorted at
    once: several times faster than one sort by (run, value) of many short runs.
    """
    result = values.copy()
    width_class = np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    for width in np.unique(width_class[size > 1]):
        runs = np.flatnonzero((width_class == width) & (size > 1))
        length = int(size[runs].max())
        for part in np.array_split(runs, -(-len(runs) * length // _MATRIX_CELLS)):
            column = np.arange(length)
            inside = column < size[part, None]
            place = (start[part, None] + column)[inside]
            matrix = np.full((len(part), length), np.inf)
            matrix[inside] = values[place]
            matrix.sort(axis=1)
            result[place] = matrix[inside]
    return result


def repeated(first: IntArray, length: IntArray) -> tuple[IntArray, IntArray]:
    """Write out ranges, each of a first number and a length: for each number the row of its range, and the number.

    Example:
        >>> row, number = repeated(np.array([5, 9]), np.array([3, 1]))
        >>> row.tolist(), number.tolist()
        ([0, 0, 0, 1], [5, 6, 7, 9])
    """
    ends = np.cumsum(length)
    row = np.repeat(np.arange(len(length)), length)
    offset = np.arange(len(row)) - (ends - length)[row]
    return row, first[row] + offset
