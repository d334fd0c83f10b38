"""The line of least waste: chosen on samples of the history, and never changed afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from benchmarks.sizing.sizer import History, Run
from brokerlab.numerics import FloatArray

SAMPLES = 10
SAMPLE_SHARE = 0.7
STEPS = 200
LEAST = 0.01  # of the range of the history: the least allocation of a line
VARIES = 0.05  # range of the input over its mean from which a line may have a slope
LEVELS = 1 - np.linspace(0.01, 0.7, 5) ** 2  # of the quantile regressions that start the search

Line = tuple[float, float]  # slope and intercept


class LowWastageLine:
    """Give the mean of ten lines, each of least waste on a sample of the history.

    Input and memory are scaled to the history's range. From each start (five quantile regressions with
    the upper confidence limit of their slope, and the ratio of the interquartile ranges) COBYLA looks
    for the line that wastes least on the sample when what fails is doubled; of all lines it tried the
    best one counts. Twice as much after a kill; nothing is learned after the start.

    Source: Witt et al., HPCS 2019, "Learning low-wastage memory allocations for scientific workflows at
    IceCube", doi:10.1109/HPCS48598.2019.9188126; sizing.md, section 4.
    """

    def start(self, history: History) -> None:
        """Choose the lines."""
        x, y = history.input_b, history.memory_b
        time_ms = 1000 * history.runtime_s  # the search depends on the scale of its costs
        self.x_least, self.x_range = float(x.min()), float(np.ptp(x)) or 1.0
        self.y_least, self.y_range = float(y.min()), float(np.ptp(y)) or 1.0
        sloped = bool(np.ptp(x) > VARIES * x.mean())
        scaled = (x - self.x_least) / self.x_range, (y - self.y_least) / self.y_range
        self.lines: list[Line] = []
        for seed in range(SAMPLES):
            rows = np.random.RandomState(seed).permutation(x.size)
            rows = rows[: max(round(SAMPLE_SHARE * x.size), 1)]
            self.lines.append(
                _cheapest(scaled[0][rows], scaled[1][rows], time_ms[rows], sloped=sloped)
            )

    def allocate(self, run: Run) -> float:
        """Return the mean of the lines [bytes]."""
        x = (run.input_b - self.x_least) / self.x_range
        mean = float(np.mean([max(slope * x + shift, LEAST) for slope, shift in self.lines]))
        return mean * self.y_range + self.y_least

    def retry(self, _run: Run, failed_b: Sequence[float]) -> float:
        """Return twice what failed [bytes]."""
        return 2 * failed_b[-1]

    def reveal(self, run: Run, memory_b: float, runtime_s: float) -> None:
        """Learn nothing."""


def waste(given: FloatArray, memory: FloatArray, time: FloatArray) -> float:
    """Return what first allocations waste when each failed one is doubled.

    Source: sizing.md, section 3 ("double, in closed form").
    """
    with np.errstate(divide="ignore"):
        failures = np.maximum(np.ceil(np.log2(memory / given)), 0.0)
    return float(((given * (2 ** (failures + 1) - 1) - memory) * time).sum())


def _cheapest(x: FloatArray, y: FloatArray, time: FloatArray, *, sloped: bool) -> Line:
    """Return the line of least waste among all that the searches try."""
    from scipy.optimize import minimize

    tried: list[tuple[float, Line]] = []

    def cost(parameters: FloatArray) -> float:
        slope, shift = parameters.tolist()
        tried.append((waste(np.maximum(slope * x + shift, LEAST), y, time), (slope, shift)))
        return tried[-1][0]

    for start in _starts(x, y, sloped=sloped):
        minimize(cost, np.array(start), method="COBYLA", options={"maxiter": STEPS})
    return min(tried, key=lambda each: each[0])[1]


def _starts(x: FloatArray, y: FloatArray, *, sloped: bool) -> list[Line]:
    """Return the lines that the searches start from."""
    if sloped:
        found = [_quantile_line(x, y, level) for level in LEVELS.tolist()]
    else:
        # quantiles of the input, as in the published code: starts only
        found = [(0.0, float(np.quantile(x, level))) for level in LEVELS.tolist()]
    x_middle, y_middle = (float(np.subtract(*np.percentile(each, [75, 25]))) for each in (x, y))
    slope = y_middle / x_middle if x_middle > 0 else 0.0
    return [*found, (slope, float(y.mean() - slope * x.mean()))]


def _quantile_line(x: FloatArray, y: FloatArray, level: float) -> Line:
    """Return a quantile regression, its slope at the upper end of its 95 % interval."""
    from statsmodels.regression.quantile_regression import QuantReg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fifty iterations need not converge: it is a start
        result = QuantReg(y, np.column_stack([np.ones_like(x), x])).fit(q=level, max_iter=50)
        slope = float(result.conf_int()[1, 1])
    if not np.isfinite(slope):
        return 0.0, float(np.quantile(y, level))
    return slope, float(result.params[0])
