"""Four regressors weighted by their accuracy, raised by the offset that would have wasted least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.sizing.peers.models import families
from benchmarks.sizing.sizer import History, Run
from brokerlab.numerics import FloatArray

FIRST_OFFSET = 0.05
TAU_GROWS = 0.25
NEAR_LARGEST = 1.05


class WeightedEnsemble:
    """Give the mean of a line, neighbours, a forest and a small net, raised by a relative offset.

    Settings of the models are chosen on the history, weights are the softmax of their accuracy there;
    after every run all but the neighbours are fitted again ("refit mode"). The offset of each model is
    one of four statistics of its past relative errors, chosen by the waste it would have caused on the
    runs seen. As published, the neighbours stay with the history and the net sees each later run
    twice: mended, both waste more. Unlike the published code, no step knows the run being sized; with
    seed 1996 that knowledge saves it less than 1 % of its waste, and up to a tenth of its failures.

    Args:
        errors: Where errors of the models are kept. The published code has one list for all task types,
            which gives new types an offset at once; by default each sizer has its own.

    Source: Bader et al., "Sizey", IEEE CLUSTER 2024, arXiv 2407.16353; sizing.md, sections 3
    (retries), 4 and 5b.
    """

    def __init__(self, errors: list[FloatArray] | None = None) -> None:
        self.errors: list[FloatArray] = [] if errors is None else errors

    def start(self, history: History) -> None:
        """Choose the settings of the models, weigh and fit them."""
        self.x, self.y = history.input_b.tolist(), history.memory_b.tolist()
        self.n_history = len(self.y)
        x, y = self._scale()
        chosen = [each.select(x, y) for each in families(self.n_history)]
        self.makers = [make for make, _ in chosen]
        weights = np.exp([accuracy for _, accuracy in chosen])
        self.weights = weights / weights.sum()
        self.neighbours = (self.makers[1]().fit(x, y), self.scale)
        self._fit()

    def _scale(self) -> tuple[FloatArray, FloatArray]:
        """Return inputs and memory from 0 to 1, and remember how they were scaled."""
        x, y = np.array(self.x), np.array(self.y)
        self.scale = (
            float(x.min()),
            float(np.ptp(x)) or 1.0,
            float(y.min()),
            float(np.ptp(y)) or 1.0,
        )
        return (x - self.scale[0]) / self.scale[1], (y - self.scale[2]) / self.scale[3]

    def _fit(self) -> None:
        x, y = self._scale()
        twice = np.repeat(np.arange(x.size), np.where(np.arange(x.size) < self.n_history, 1, 2))
        line, forest = (self.makers[k]().fit(x, y) for k in (0, 2))
        net = self.makers[3]().fit(x[twice], y[twice])
        now = self.scale
        self.models = ((line, now), self.neighbours, (forest, now), (net, now))

    def _predict(self, input_b: Sequence[float]) -> FloatArray:
        """Return what each model expects, (4, n) [bytes]."""
        x = np.array(input_b)
        return np.array(
            [
                model.predict((x - x_min) / x_range) * y_range + y_min
                for model, (x_min, x_range, y_min, y_range) in self.models
            ]
        )

    def _offsets(self) -> FloatArray:
        """Choose each model's offset by what it would have wasted on the runs seen."""
        if not self.errors:
            return np.full(4, FIRST_OFFSET)
        past, seen, truth = np.array(self.errors), self._predict(self.x), np.array(self.y)
        return np.array([best_offset(past[:, k], seen[k], truth) for k in range(4)])

    def allocate(self, run: Run) -> float:
        """Return the raised mean of the models [bytes]."""
        self.predicted = self._predict([run.input_b])[:, 0]
        raised = float(self.weights @ self.predicted) * (1 + float(self.weights @ self._offsets()))
        return raised if raised >= 0 else min(self.y) * FIRST_OFFSET

    def retry(self, run: Run, failed_b: Sequence[float]) -> float:
        """Return the largest value seen, or twice what failed where that will not do [bytes]."""
        from scipy.stats import kendalltau

        place = int(np.argmax(self.y))
        largest = self.y[place]
        if largest < NEAR_LARGEST * failed_b[-1]:
            return 2 * failed_b[-1]
        grows = run.input_b > self.x[place] and kendalltau(self.x, self.y).statistic > TAU_GROWS
        return 2 * failed_b[-1] if grows else largest

    def reveal(self, run: Run, memory_b: float, _runtime_s: float) -> None:
        """See one run, and fit again."""
        self.errors.append((memory_b - self.predicted) / memory_b)
        self.x.append(run.input_b)
        self.y.append(memory_b)
        self._fit()


def best_offset(errors: FloatArray, predicted: FloatArray, truth: FloatArray) -> float:
    """Return the statistic of past errors that wastes least when what fails is doubled.

    Of an allocation that fails several times only the last failed attempt counts, as published.

    Args:
        errors: (m,) relative errors so far, positive where the model was too low; at least one.
        predicted: (n,) what the model expects of the runs seen [bytes].
        truth: (n,) what they used [bytes].
    """
    usable = np.where(predicted > 0, predicted, predicted[predicted > 0].min(initial=np.inf))
    wastes = []
    offsets = _statistics(errors)
    for offset in offsets:
        given = usable * (1 + offset)
        low = given < truth
        last = given * 2 ** np.ceil(np.log2(np.where(low, truth / given, 1.0)))
        wastes.append(float((np.where(low, 1.5, 1.0) * last - truth).sum()))
    return offsets[int(np.argmin(wastes))]


def _statistics(errors: FloatArray) -> list[float]:
    """Return spread without outliers, median of the low, median of all, spread of the low."""
    low, size = errors[errors > 0], np.abs(errors)
    first, last = np.percentile(size, [10, 90])
    reach = 1.5 * (last - first)
    inner = size[(size >= first - reach) & (size <= last + reach)]
    off = size[size > 0]
    return [
        float(inner.std()) if size.size > 1 else FIRST_OFFSET,
        float(np.median(low)) if low.size else FIRST_OFFSET,
        float(np.median(off)) if off.size else FIRST_OFFSET,
        float(low.std()) if low.size else FIRST_OFFSET,
    ]
