"""Fit three quantiles of a job's use: by boosted trees, or by lines."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from brokerlab.estimators.quantiles.censoring import redistributed
from brokerlab.estimators.quantiles.curve import KNOTS
from brokerlab.estimators.quantiles.features import CATEGORIES, FEATURES
from brokerlab.numerics import BoolArray, FloatArray

ROWS_AT_ONCE = 250_000  # scikit-learn copies what it predicts for
FEW_ROWS = 50_000  # below, threads of boosting wait for each other longer than they work


@dataclass(frozen=True)
class Sample:
    """Rows of a fit.

    Attributes:
        x: (n, p) as :class:`features.Known` has them.
        y: (n,) ln use against the anchor.
        weight: (n,) how much each counts; the mean is 1.
        censored: (n,) killed: at least that much.
        reached: (n,) share of its group that uses at most what a killed one had used.
    """

    x: FloatArray
    y: FloatArray
    weight: FloatArray
    censored: BoolArray
    reached: FloatArray

    def weighted(self, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, y and weights for a quantile, killed jobs redistributed."""
        rows = redistributed(self.y, self.censored, self.reached, self.weight, level)
        return self.x[rows.row], rows.value, rows.weight


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

    models: Sequence[Any]

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:
        """Fit 100 trees of at most 15 leaves per knot; no early stopping, so rows are not held back."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        models = []
        for level in KNOTS:
            x, y, weight = sample.weighted(level)
            model = HistGradientBoostingRegressor(
                loss="quantile",
                quantile=level,
                learning_rate=0.08,
                max_iter=100,
                max_leaf_nodes=15,
                min_samples_leaf=40,
                categorical_features=list(range(len(CATEGORIES))),
                early_stopping=False,
                random_state=seed,
            )
            with _threads(len(x)):
                models.append(model.fit(x, y, sample_weight=weight))
        return cls(models)

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        result = np.empty((len(x), len(KNOTS)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            with _threads(len(x)):
                for knot, model in enumerate(self.models):
                    result[part, knot] = model.predict(x[part])
        return result

    def state(self) -> dict[str, Any]:
        """Return the three models."""
        return {"models": list(self.models)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        models = list(state["models"])
        if len(models) != len(KNOTS) or any(
            type(model) is not HistGradientBoostingRegressor
            or model.n_features_in_ != len(FEATURES)
            for model in models
        ):
            raise ValueError("no boosted models of these columns")
        return cls(models)


@dataclass(frozen=True)
class Lines:
    """Linear quantile regression, one line per knot.

    Not known values count as the mean, and a column says that they are not known; kinds and queues are
    told apart if they are among the most common.

    Attributes:
        mean: (p,) of each column.
        sd: (p,) of each column; 0: the column is not used.
        slopes: (3, q) per standard deviation, of the columns that :meth:`_design` makes.
        intercepts: (3,) one per knot.
    """

    TOLD_APART = 12  # kinds, and queues

    mean: FloatArray
    sd: FloatArray
    slopes: FloatArray
    intercepts: FloatArray

    @classmethod
    def fit(cls, sample: Sample, *, seed: int) -> Self:  # noqa: ARG003 - as trees are fitted
        """Solve three linear programmes."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import QuantileRegressor

        plain = cls(np.empty(0), np.empty(0), np.empty((0, 0)), np.empty(0))
        made = plain._columns(sample.x)
        mean, sd = made.mean(axis=0), made.std(axis=0)
        slopes, intercepts = [], []
        for level in KNOTS:
            x, y, weight = sample.weighted(level)
            design = _scaled(plain._columns(x), mean, sd)
            line = QuantileRegressor(quantile=level, alpha=PENALTY, solver="highs")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                line.fit(design, y, sample_weight=weight)
            slopes.append(line.coef_)
            intercepts.append(line.intercept_)
        return cls(mean, sd, np.array(slopes), np.array(intercepts, dtype=np.float64))

    def _columns(self, x: FloatArray) -> FloatArray:
        """Return numbers, flags of what is not known, and flags of the categories that are told apart."""
        numbers = x[:, len(CATEGORIES) :]
        missing = np.isnan(numbers)
        flags = [
            x[:, column] == code
            for column in range(len(CATEGORIES))
            for code in range(self.TOLD_APART)
        ]
        return np.column_stack([np.where(missing, 0.0, numbers), missing, *flags])

    def quantiles(self, x: FloatArray) -> FloatArray:
        """Return the (n, 3) quantiles."""
        return _scaled(self._columns(x), self.mean, self.sd) @ self.slopes.T + self.intercepts

    def state(self) -> dict[str, Any]:
        """Return the arrays."""
        return {
            "mean": self.mean,
            "sd": self.sd,
            "slopes": self.slopes,
            "intercepts": self.intercepts,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return what :meth:`state` was made of."""
        return cls(*(state[name] for name in ("mean", "sd", "slopes", "intercepts")))


def _threads(rows: int) -> AbstractContextManager[object]:
    """Leave boosting one thread for few rows; on a busy machine more are ten times slower."""
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[object] = (
        threadpool_limits(limits=1, user_api="openmp") if rows < FEW_ROWS else nullcontext()
    )
    return limited


PENALTY = 1e-4
"""Of the absolute slopes: picks one of several sets of slopes that fit alike."""


def _scaled(columns: FloatArray, mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Return columns in standard deviations, 0 where a column never varied in the fit."""
    used = sd > 0
    return np.where(used, (columns - mean) / np.where(used, sd, 1.0), 0.0)
