"""Small nets from a number to a number, compiled: the nets of scikit-learn, trained in a tenth of its time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brokerlab.compiled import compiled
from brokerlab.numerics import FloatArray, IntArray

SEED = 42
EPOCHS = 5000
BATCH = 200
TOLERANCE = 1e-4
PATIENCE = 10  # epochs without a gain of the tolerance
RATE, DECAY_1, DECAY_2, SMALL = 1e-3, 0.9, 0.999, 1e-8  # of Adam


@dataclass(frozen=True)
class NetSettings:
    """Settings of a net.

    Attributes:
        alpha: Weight of the squared weights.
        width: Of both hidden layers.
        solver: ``lbfgs`` or ``adam``.
    """

    alpha: float
    width: int
    solver: str


class Net:
    """Two hidden layers of rectified units, least squares.

    Equal to ``MLPRegressor(hidden_layer_sizes=(width, width), alpha=alpha, solver=solver,
    max_iter=5000, random_state=42)`` on one feature, up to rounding on the way: first weights and the
    order of the rows are the same. Training it again after every run is what its own code was written
    for.

    Args:
        settings: Of the net.
    """

    def __init__(self, settings: NetSettings) -> None:
        self.settings = settings

    def fit(self, x: FloatArray, y: FloatArray) -> Net:
        """Train on (n,) inputs and targets."""
        rng = np.random.RandomState(SEED)
        weights = _first_weights(rng, self.settings.width)
        train = _by_adam if self.settings.solver == "adam" else _by_lbfgs
        self.weights = train(weights, x, y, self.settings, rng)
        return self

    def predict(self, x: FloatArray) -> FloatArray:
        """Return (n,) predictions."""
        found = np.empty(x.size)
        _forward(self.weights, x, self.settings.width, found)
        return found


def _first_weights(rng: np.random.RandomState, width: int) -> FloatArray:
    """Draw weights and shifts (Glorot), the layers' weights first."""
    layers = ((1, width), (width, width), (width, 1))
    weights, shifts = [], []
    for fan_in, fan_out in layers:
        bound = math.sqrt(6.0 / (fan_in + fan_out))
        weights.append(rng.uniform(-bound, bound, fan_in * fan_out))
        shifts.append(rng.uniform(-bound, bound, fan_out))
    return np.concatenate([*weights, *shifts])


def _by_lbfgs(
    weights: FloatArray,
    x: FloatArray,
    y: FloatArray,
    settings: NetSettings,
    _rng: np.random.RandomState,
) -> FloatArray:
    from scipy.optimize import minimize

    rows = np.arange(x.size)

    def loss(at: FloatArray) -> tuple[float, FloatArray]:
        slope = np.empty(at.size)
        return _loss(at, x, y, rows, settings.width, settings.alpha, slope), slope

    options = {"maxfun": 15_000, "maxiter": EPOCHS, "gtol": TOLERANCE}
    found = minimize(loss, weights, method="L-BFGS-B", jac=True, options=options)
    return np.asarray(found.x)


def _by_adam(
    weights: FloatArray,
    x: FloatArray,
    y: FloatArray,
    settings: NetSettings,
    rng: np.random.RandomState,
) -> FloatArray:
    moments = np.zeros((2, weights.size))
    rows = np.arange(x.size)
    best, stale, steps = math.inf, 0, 0
    for _ in range(EPOCHS):
        if x.size > BATCH:  # else one batch holds all rows, in whatever order
            drawn = np.arange(x.size)
            rng.shuffle(drawn)
            rows = rows[drawn]
        loss = _epoch(weights, x, y, rows, settings.width, settings.alpha, moments, steps)
        steps += -(-x.size // BATCH)
        stale = stale + 1 if loss > best - TOLERANCE else 0
        best = min(best, loss)
        if stale > PATIENCE:
            break
    return weights


@compiled
def _forward(weights: FloatArray, x: FloatArray, width: int, found: FloatArray) -> None:
    """Apply a net to inputs."""
    square = width * (width + 1)
    shift = square + width
    first = np.empty(width)
    for i in range(x.size):
        for j in range(width):
            first[j] = max(weights[j] * x[i] + weights[shift + j], 0.0)
        total = weights[shift + 2 * width]
        for k in range(width):
            unit = weights[shift + width + k]
            for j in range(width):
                unit += first[j] * weights[width + j * width + k]
            total += max(unit, 0.0) * weights[square + k]
        found[i] = total


@compiled
def _loss(
    weights: FloatArray,
    x: FloatArray,
    y: FloatArray,
    rows: IntArray,
    width: int,
    alpha: float,
    slope: FloatArray,
) -> float:
    """Return half the mean squared error on some rows, with its penalty, and set its slope."""
    square = width * (width + 1)
    shift = square + width
    first, second, back = np.empty(width), np.empty(width), np.empty(width)
    slope[:] = 0.0
    squares = 0.0
    for i in rows:
        off = weights[shift + 2 * width] - y[i]
        for j in range(width):
            first[j] = max(weights[j] * x[i] + weights[shift + j], 0.0)
            second[j] = weights[shift + width + j]
            back[j] = 0.0
        for j in range(width):
            for k in range(width):
                second[k] += first[j] * weights[width + j * width + k]
        for k in range(width):
            second[k] = max(second[k], 0.0)
            off += second[k] * weights[square + k]
        squares += off * off
        slope[shift + 2 * width] += off
        for k in range(width):
            slope[square + k] += off * second[k]
            second[k] = off * weights[square + k] if second[k] > 0 else 0.0
            slope[shift + width + k] += second[k]
        for j in range(width):
            if first[j] <= 0:
                continue
            for k in range(width):
                slope[width + j * width + k] += first[j] * second[k]
                back[j] += second[k] * weights[width + j * width + k]
            slope[j] += back[j] * x[i]
            slope[shift + j] += back[j]
    penalty = 0.0
    for j in range(shift):
        penalty += weights[j] * weights[j]
        slope[j] += alpha * weights[j]
    slope /= rows.size
    return (0.5 * squares + 0.5 * alpha * penalty) / rows.size


@compiled
def _epoch(
    weights: FloatArray,
    x: FloatArray,
    y: FloatArray,
    rows: IntArray,
    width: int,
    alpha: float,
    moments: FloatArray,
    steps: int,
) -> float:
    """Let Adam see all rows once, a batch at a time; return the mean loss on the way."""
    slope = np.empty(weights.size)
    total = 0.0
    for begin in range(0, rows.size, BATCH):
        batch = rows[begin : begin + BATCH]
        total += _loss(weights, x, y, batch, width, alpha, slope) * batch.size
        steps += 1
        rate = RATE * math.sqrt(1 - DECAY_2**steps) / (1 - DECAY_1**steps)
        for j in range(weights.size):
            moments[0, j] = DECAY_1 * moments[0, j] + (1 - DECAY_1) * slope[j]
            moments[1, j] = DECAY_2 * moments[1, j] + (1 - DECAY_2) * slope[j] * slope[j]
            weights[j] -= rate * moments[0, j] / (math.sqrt(moments[1, j]) + SMALL)
    return total / rows.size
