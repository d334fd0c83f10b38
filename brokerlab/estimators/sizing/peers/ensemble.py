"""Four regressors weighted by their accuracy, raised by the offset that would have wasted least."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from brokerlab.estimators.sizing.sizer import History, Run
from brokerlab.numerics import FloatArray

REFIT_GROWTH = 1.05  # forest and net are fitted again when the runs seen grew by 5 %
FIRST_OFFSET = 0.05
TAU_GROWS = 0.25


class WeightedEnsemble:
    """Give the mean of a line, neighbours, a forest and a small net, raised by a relative offset.

    Weights are the softmax of the models' cross-validated accuracy on the history (1 - mean relative
    error, clipped at 0). The offset of each model is one of four statistics of its past relative
    errors, chosen by the waste it would have caused on the runs seen. A *variant* of Sizey: no search
    for hyper-parameters, models fitted again at every 5 % more runs and not after each, the truth of the
    run being sized unknown to every step.

    Args:
        errors: Where errors of the models are kept. The published code has one list for all task types,
            which gives new types an offset at once; by default each sizer has its own.

    Source: Bader et al., "Sizey", IEEE CLUSTER 2024, arXiv 2407.16353; sizing-benchmark.md, section 4.
    """

    def __init__(self, errors: list[FloatArray] | None = None) -> None:
        self.errors: list[FloatArray] = [] if errors is None else errors

    def start(self, history: History) -> None:
        """Fit the models and weigh them."""
        self.x, self.y = history.input_b.tolist(), history.memory_b.tolist()
        self.predicted = np.zeros(4)
        x, y = self._scale()
        accuracy = [_accuracy(model, x, y) for model in _models(len(y))]
        self.weights = np.exp(accuracy) / np.exp(accuracy).sum()
        self._fit()

    def _scale(self) -> tuple[FloatArray, FloatArray]:
        x, y = np.array(self.x), np.array(self.y)
        self.x_min, self.x_range = float(x.min()), float(np.ptp(x)) or 1.0
        self.y_min, self.y_range = float(y.min()), float(np.ptp(y)) or 1.0
        return self._scaled(self.x), (y - self.y_min) / self.y_range

    def _fit(self) -> None:
        x, y = self._scale()
        self.models = [_fitted(model, x, y) for model in _models(len(y))]
        self.n_fitted = len(y)

    def _offsets(self) -> FloatArray:
        """Choose each model's offset by what it would have wasted on the runs seen."""
        if not self.errors:
            return np.full(4, FIRST_OFFSET)
        seen, past, truth = (
            self._predict(self._scaled(self.x)),
            np.array(self.errors),
            np.array(self.y),
        )
        return np.array([_best_offset(past[:, k], seen[k], truth) for k in range(4)])

    def _scaled(self, x: Sequence[float]) -> FloatArray:
        return np.asarray((np.array(x)[:, None] - self.x_min) / self.x_range)

    def _predict(self, x: FloatArray) -> FloatArray:
        raw = np.array([np.ravel(model.predict(x)) for model in self.models])
        return np.asarray(raw * self.y_range + self.y_min)

    def allocate(self, run: Run) -> float:
        """Return the raised mean of the models [bytes]."""
        self.predicted = self._predict(np.array([[(run.input_b - self.x_min) / self.x_range]]))[
            :, 0
        ]
        raised = float(self.weights @ self.predicted) * (1 + float(self.weights @ self._offsets()))
        return raised if raised >= 0 else min(self.y) * FIRST_OFFSET

    def retry(self, run: Run, failed_b: Sequence[float]) -> float:
        """Return the largest value seen, or twice what failed where that will not do [bytes]."""
        from scipy.stats import kendalltau

        place = int(np.argmax(self.y))
        largest = self.y[place]
        if largest < 1.05 * failed_b[-1]:
            return 2 * failed_b[-1]
        grows = run.input_b > self.x[place] and kendalltau(self.x, self.y).statistic > TAU_GROWS
        return 2 * failed_b[-1] if grows else largest

    def reveal(self, run: Run, memory_b: float, _runtime_s: float) -> None:
        """See one run; fit again when 5 % more were seen."""
        self.errors.append((memory_b - self.predicted) / memory_b)
        self.x.append(run.input_b)
        self.y.append(memory_b)
        if len(self.y) >= REFIT_GROWTH * self.n_fitted:
            self._fit()


def _models(n: int) -> list[Any]:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.neural_network import MLPRegressor

    return [
        LinearRegression(),
        KNeighborsRegressor(n_neighbors=min(5, max(1, n // 3)), weights="distance"),
        RandomForestRegressor(25, max_depth=5, min_samples_leaf=2, random_state=42),
        MLPRegressor(hidden_layer_sizes=(7, 7), solver="lbfgs", max_iter=500, random_state=42),
    ]


def _fitted(model: Any, x: FloatArray, y: FloatArray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a net that has not converged is the published one's too
        return model.fit(x, y)


def _accuracy(model: Any, x: FloatArray, y: FloatArray) -> float:
    """Return minus the mean relative error in five parts, each error clipped at 1."""
    errors = np.zeros(len(y))
    parts = np.arange(len(y)) % min(5, len(y))
    for part in np.unique(parts):
        out = parts == part
        predicted = _fitted(model, x[~out], y[~out]).predict(x[out])
        errors[out] = np.clip(np.abs(y[out] - np.ravel(predicted)) / (y[out] + 1e-8), None, 1.0)
    return -float(errors.mean())


def _best_offset(errors: FloatArray, predicted: FloatArray, truth: FloatArray) -> float:
    """Return the statistic of past errors that wastes least when what fails is doubled."""
    low = errors[errors > 0]
    size = np.abs(errors)
    first, last = np.percentile(size, [10, 90])
    inner = size[(size >= first - 1.5 * (last - first)) & (size <= last + 1.5 * (last - first))]
    candidates = [float(np.median(size)), float(inner.std())]
    candidates += [float(np.median(low)), float(low.std())] if low.size else [FIRST_OFFSET]
    usable = np.where(predicted > 0, predicted, predicted[predicted > 0].min(initial=np.inf))
    wastes = []
    for offset in candidates:
        given = usable * (1 + offset)
        doublings = np.maximum(np.ceil(np.log2(truth / given)), 0)
        wastes.append(float(((2 ** (doublings + 1) - 1) * given - truth).sum()))
    return candidates[int(np.argmin(wastes))]
