"""Fit three quantiles of a job's use: by boosted trees, or by lines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, Self

import numpy as np

from brokerlab.estimators.quantiles.censoring import redistribute
from brokerlab.estimators.quantiles.columns import INDEPENDENT, usable
from brokerlab.estimators.quantiles.curve import KNOTS, Apart
from brokerlab.estimators.quantiles.features import CATEGORIES
from brokerlab.numerics import BoolArray, FloatArray, IntArray

TREES = 100  # per knot
ROWS_AT_ONCE = 250_000  # what is predicted for is copied
PENALTY = 1e-4  # of a line's absolute slopes: picks one of several sets of slopes that fit alike
TOLD_APART = 12  # kinds, and queues, by lines
FEW_ROWS = 50_000  # are predicted for by one thread


@dataclass(frozen=True)
class Sample:
    """Rows of a fit."""

    x: FloatArray  # (n, p) as `features.Known` has them
    y: FloatArray  # (n,) ln use against the anchor
    weight: FloatArray  # (n,) how much each counts; the mean is 1
    task: IntArray  # (n,) numbers of the tasks
    censored: BoolArray  # (n,) killed: at least that much
    reached: FloatArray  # (n,) share of its group that uses at most what a killed one had used

    def weighted(self, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, y and weights for a quantile, killed jobs redistributed."""
        rows = redistribute(self.y, self.censored, self.reached, self.weight, level)
        return self.x[rows.row], rows.value, rows.weight

    def apart(self) -> Apart:
        """Return how far knots may be from each other, after the quantiles of all jobs together."""
        overall = [_quantile(*self.weighted(level)[1:], level) for level in KNOTS]
        return Apart.of(np.array(overall), learnt=np.unique(self.task).size >= INDEPENDENT)


class Model(Protocol):
    """Three fitted quantiles."""

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles of ln use against the anchor, at :data:`curve.KNOTS`."""
        ...

    def state(self) -> dict[str, Any]:
        """Return arrays and scikit-learn models."""
        ...


@dataclass(frozen=True)
class Trees:
    """Histogram gradient boosting with the quantile loss, one model per knot."""

    models: Sequence[Any]  # of scikit-learn
    used: BoolArray  # (p,) columns that the models were fitted to
    apart: Apart  # how far knots may be from each other

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:
        """Fit trees of at most 15 leaves; no early stopping, so rows are not held back."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        used = usable(sample.x, sample.task)
        used[-1] = True  # a model needs a column, also one that does not vary
        n_categories = np.count_nonzero(used[: len(CATEGORIES)])  # they come first
        models = []
        for level in KNOTS:
            x, y, weight = sample.weighted(level)
            model = HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                learning_rate=0.08,
                max_iter=TREES,
                max_leaf_nodes=15,
                min_samples_leaf=40,
                categorical_features=list(range(n_categories)) or None,
                early_stopping=False,
                random_state=seed,
            )
            with _one_thread():
                models.append(model.fit(x[:, used], y, sample_weight=weight))
        return cls(models, used, sample.apart())

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        result = np.empty((len(x), len(KNOTS)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            values = x[part][:, self.used]
            with _one_thread() if len(values) < FEW_ROWS else nullcontext():
                for knot, model in enumerate(self.models):
                    result[part, knot] = model.predict(values)
        return self.apart.rearranged(result)

    def state(self) -> dict[str, Any]:
        """Return the three models."""
        return {"models": list(self.models), "used": self.used, "apart": self.apart.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        models, used = list(state["models"]), state["used"]
        if len(models) != len(KNOTS) or any(
            type(model) is not HistGradientBoostingRegressor
            or model.n_features_in_ != np.count_nonzero(used)
            for model in models
        ):
            raise ValueError("no boosted models of these columns")
        return cls(models, used, Apart(**state["apart"]))


@dataclass(frozen=True)
class Lines:
    """Linear quantile regression, one line per knot.

    Not known values count as 0, and a column says that they are not known; kinds and queues are told apart
    if they are among the most common. A line does not go on beyond the range of what it was fitted to.
    """

    ranges: FloatArray  # (4, q) mean, sd (0: not used), smallest, largest of each column that `_columns` makes
    slopes: FloatArray  # (3, q) per standard deviation
    intercepts: FloatArray  # (3,) one per knot
    apart: Apart  # how far knots may be from each other

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:  # noqa: ARG003 - as trees are fitted
        """Solve three linear programmes."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import QuantileRegressor

        made = _columns(sample.x)
        sd = np.where(usable(made, sample.task), made.std(axis=0), 0.0)
        ranges = np.array([made.mean(axis=0), sd, made.min(axis=0), made.max(axis=0)])
        slopes, intercepts = [], []
        for level in KNOTS:
            x, y, weight = sample.weighted(level)
            line = QuantileRegressor(quantile=level, alpha=PENALTY, solver="highs")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                line.fit(_scale(_columns(x), ranges), y, sample_weight=weight)
            slopes.append(line.coef_)
            intercepts.append(line.intercept_)
        return cls(ranges, np.array(slopes), np.array(intercepts), sample.apart())

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        result = np.empty((len(x), len(KNOTS)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            scaled = _scale(_columns(x[part]), self.ranges)
            # row by row: a matrix product rounds otherwise for one job than for many
            result[part] = np.einsum("ij,kj->ik", scaled, self.slopes) + self.intercepts
        return self.apart.rearranged(result)

    def state(self) -> dict[str, Any]:
        """Return the arrays."""
        arrays = {name: getattr(self, name) for name in _OF_LINES}
        return {**arrays, "apart": self.apart.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        ranges, slopes, intercepts = (state[name] for name in _OF_LINES)
        return cls(ranges, slopes, intercepts, Apart(**state["apart"]))


_OF_LINES = ("ranges", "slopes", "intercepts")


def _columns(x: FloatArray) -> FloatArray:
    """Return numbers, flags of what is not known, and flags of the categories that are told apart."""
    numbers = x[:, len(CATEGORIES) :]
    missing = np.isnan(numbers)
    flags = [
        x[:, column] == code for column in range(len(CATEGORIES)) for code in range(TOLD_APART)
    ]
    return np.column_stack([np.where(missing, 0.0, numbers), missing, *flags]).astype(np.float64)


def _scale(columns: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return columns in standard deviations, kept in their range; 0 where a column is not used."""
    mean, sd, low, high = ranges
    used = sd > 0
    inside = np.clip(columns, low, high)
    return np.where(used, (inside - mean) / np.where(used, sd, 1.0), 0.0)


def _quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    return float(np.quantile(values, level, weights=weights, method="inverted_cdf"))


def _one_thread() -> AbstractContextManager[object]:
    """Leave boosting one thread: its short steps wait for each other, on a busy machine ten times their work."""
    limited: AbstractContextManager[object] = _threads().limit(limits=1, user_api="openmp")
    return limited


@cache
def _threads() -> Any:
    """Look once for the libraries that have threads; scikit-learn has loaded its own by then."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
