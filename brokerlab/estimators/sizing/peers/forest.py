"""Random forests over one number, compiled: the trees of scikit-learn, grown in a hundredth of its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

SEED = 42
DEEPEST = 7
SAME_X = np.float32(1e-7)  # inputs closer than this are never split
PURE = 2.3e-16  # variance below which a node is a leaf

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ForestSettings:
    """Settings of a forest, named as scikit-learn names them."""

    n_estimators: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int


class Forest:
    """The mean of trees of least squares, each grown on a draw of the rows with replacement.

    Equal to ``RandomForestRegressor(**settings, random_state=42)`` on one feature up to rounding: the
    draws are the same. Fitting it again after every run is what its own code was written for.

    Args:
        settings: Of the forest; depth 7 at most.
    """

    def __init__(self, settings: ForestSettings) -> None:
        self.settings = settings
        trees = settings.n_estimators
        self.ends = np.empty((trees, 2**DEEPEST))
        self.values = np.empty((trees, 2**DEEPEST))
        self.leaves = np.zeros(trees, dtype=np.int64)

    def fit(self, x: FloatArray, y: FloatArray) -> Forest:
        """Grow all trees on (n,) inputs and targets."""
        order = np.argsort(x.astype(np.float32), kind="stable")
        drawn = _drawn(self.settings.n_estimators, x.size)[:, order]
        each = self.settings
        _grow(
            x.astype(np.float32)[order],
            y[order],
            drawn,
            each.max_depth,
            each.min_samples_split,
            each.min_samples_leaf,
            self.ends,
            self.values,
            self.leaves,
        )
        return self

    def predict(self, x: FloatArray) -> FloatArray:
        """Return (n,) means over the trees."""
        means = np.empty(x.size)
        _mean(x.astype(np.float32), self.ends, self.values, self.leaves, means)
        return means


def _drawn(trees: int, n: int) -> IntArray:
    """Return how often each tree draws each row, (trees, n)."""
    seeds = np.random.RandomState(SEED).randint(np.iinfo(np.int32).max, size=trees)
    rng = np.random.RandomState()
    drawn = np.empty((trees, n), dtype=np.int64)
    for tree, seed in enumerate(seeds.tolist()):
        rng.seed(seed)  # a new generator would cost fifty times as much
        drawn[tree] = np.bincount(rng.randint(0, n, n, dtype=np.int32), minlength=n)
    return drawn


@compiled
def _split(x: Float32Array, y: FloatArray, weights: IntArray, least: int) -> tuple[int, float]:
    """Return the row before which a node of sorted rows is best cut (0: nowhere) and its mean."""
    total = weight = squares = 0.0
    for j in range(x.size):
        weight += weights[j]
        total += weights[j] * y[j]
        squares += weights[j] * y[j] * y[j]
    mean = total / weight
    if squares / weight - mean * mean <= PURE:
        return 0, mean
    best, cut = -np.inf, 0
    left = left_weight = 0.0
    for j in range(1, x.size):
        left_weight += weights[j - 1]
        left += weights[j - 1] * y[j - 1]
        if x[j] <= x[j - 1] + SAME_X or j < least or x.size - j < least:
            continue
        right, right_weight = total - left, weight - left_weight
        gain = left * left / left_weight + right * right / right_weight
        if gain > best:
            best, cut = gain, j
    return cut, mean


@compiled
def _grow(
    x: Float32Array,
    y: FloatArray,
    drawn: IntArray,
    depth: int,
    split_least: int,
    leaf_least: int,
    ends: FloatArray,
    values: FloatArray,
    leaves: IntArray,
) -> None:
    """Grow trees over sorted rows; the leaves of a tree, left to right: upper end, mean."""
    stack = np.empty((2 * DEEPEST + 2, 3), dtype=np.int64)
    tops = np.empty(2 * DEEPEST + 2)
    for tree in range(drawn.shape[0]):
        rows = np.flatnonzero(drawn[tree])
        xs, ys, weights = x[rows], y[rows], drawn[tree][rows]
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, rows.size, 0
        tops[0] = np.inf
        waiting, count = 1, 0
        while waiting:
            waiting -= 1
            lo, hi, level = stack[waiting]
            top = tops[waiting]
            cut, mean = _split(xs[lo:hi], ys[lo:hi], weights[lo:hi], leaf_least)
            if cut == 0 or level >= depth or hi - lo < max(split_least, 2 * leaf_least):
                ends[tree, count], values[tree, count] = top, mean
                count += 1
                continue
            end = np.float64(xs[lo + cut - 1]) / 2 + np.float64(xs[lo + cut]) / 2
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = lo + cut, hi, level + 1
            tops[waiting] = top
            waiting += 1
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = lo, lo + cut, level + 1
            tops[waiting] = end
            waiting += 1
        leaves[tree] = count


@compiled
def _mean(
    x: Float32Array, ends: FloatArray, values: FloatArray, leaves: IntArray, means: FloatArray
) -> None:
    """Look the inputs up in all trees."""
    means[:] = 0.0
    for tree in range(ends.shape[0]):
        tops = ends[tree, : leaves[tree]]
        for j in range(x.size):
            means[j] += values[tree, np.searchsorted(tops, np.float64(x[j]))]
    means /= ends.shape[0]
