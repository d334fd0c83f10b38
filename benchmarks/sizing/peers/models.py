"""The four regressors of the weighted ensemble: their settings, and the choice among these."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np

from brokerlab.numerics import FloatArray

SMALL = 1e-8
SEED = 42
EPOCHS = 5000


class Regressor(Protocol):
    """Learns a number from a number."""

    def fit(self, x: FloatArray, y: FloatArray, /) -> Any:
        """Learn (n,) inputs and targets."""
        ...

    def predict(self, x: FloatArray, /) -> FloatArray:
        """Return (n,) predictions."""
        ...


Make = Callable[[], Regressor]


class OneColumn:
    """A scikit-learn regressor of a single feature.

    Args:
        model: The regressor.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, x: FloatArray, y: FloatArray) -> OneColumn:
        """Learn (n,) inputs and targets."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():  # a net that has not converged is the published one's, too
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(x[:, None], y)
        return self

    def predict(self, x: FloatArray) -> FloatArray:
        """Return (n,) predictions."""
        return np.asarray(self.model.predict(x[:, None]))


@dataclass(frozen=True)
class Family:
    """A kind of regressor.

    Attributes:
        candidates: Regressors with all settings that the published code tries; of equals the first
            one is taken.
        folds: Parts of the cross-validation.
    """

    candidates: tuple[Make, ...]
    folds: int

    def select(self, x: FloatArray, y: FloatArray) -> tuple[Make, float]:
        """Return the most accurate candidate and its accuracy; needs two rows or more."""
        scores = [accuracy(make, x, y, self.folds) for make in self.candidates]
        best = int(np.argmax(scores))
        return self.candidates[best], scores[best]


def accuracy(make: Make, x: FloatArray, y: FloatArray, folds: int) -> float:
    """Return minus the mean relative error over parts of the rows in their order, each clipped at 1.

    Source: sizing.md, section 4 (their accuracy, cross-validated).
    """
    rows = np.arange(x.size)
    errors = []
    for part in np.array_split(rows, min(folds, x.size)):
        rest = np.setdiff1d(rows, part, assume_unique=True)
        predicted = make().fit(x[rest], y[rest]).predict(x[part])
        off = np.abs((y[part] - predicted) / (y[part] + SMALL))
        errors.append(float(np.minimum(off, 1.0).mean()))
    return -float(np.mean(errors))


def families(rows: int) -> Sequence[Family]:
    """Return line, neighbours, forest and net, for a history of so many rows.

    Source: the published code of Bader et al., "Sizey", arXiv 2407.16353: its grids, without settings
    that change no result (the search tree of the neighbours, the learning rate's schedule of solvers
    that have none).
    """
    learned = rows - -(-rows // 10)  # rows that every part of ten leaves
    neighbours = tuple(
        _neighbours(k, weights)
        for k, weights in product((2, 3, 5, 7, 9), ("uniform", "distance"))
        if k <= learned
    )
    forests = tuple(
        _forest(trees, depth, split, leaf)
        for depth, leaf, split, trees in product((3, 5, 7), (1, 2), (2, 4), (10, 25, 50))
    )
    nets = tuple(
        _net(alpha, width, solver)
        for alpha, width, solver in product((1e-4, 1e-3), (5, 7, 9), ("lbfgs", "adam"))
    )
    return (
        Family((_line,), 10),
        Family(neighbours or (_neighbours(1, "uniform"),), 10),
        Family(forests, 5),
        Family(nets, 5),
    )


def _line() -> Regressor:
    from sklearn.linear_model import LinearRegression

    return OneColumn(LinearRegression())


def _neighbours(k: int, weights: str) -> Make:
    def make() -> Regressor:
        from sklearn.neighbors import KNeighborsRegressor

        return OneColumn(KNeighborsRegressor(k, weights=weights))

    return make


def _forest(trees: int, depth: int, split: int, leaf: int) -> Make:
    def make() -> Regressor:
        from sklearn.ensemble import RandomForestRegressor

        return OneColumn(
            RandomForestRegressor(
                trees,
                max_depth=depth,
                min_samples_split=split,
                min_samples_leaf=leaf,
                random_state=SEED,
            )
        )

    return make


def _net(alpha: float, width: int, solver: str) -> Make:
    def make() -> Regressor:
        from sklearn.neural_network import MLPRegressor

        return OneColumn(
            MLPRegressor(
                hidden_layer_sizes=(width, width),
                alpha=alpha,
                solver=solver,
                max_iter=EPOCHS,
                random_state=SEED,
            )
        )

    return make
