"""What earlier tasks say of the next one: the prior of largest marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi
from typing import NamedTuple

import numpy as np
import polars as pl

from brokerlab.compiled import compiled
from brokerlab.estimators.records import Quantity
from brokerlab.lazy import Later
from brokerlab.numerics import FloatArray, IntArray

special = Later("scipy.special")

JOBS_PER_TASK = 300  # more of one task would only say how that one deviates from the model
MOST_TASKS = 2000


@dataclass(frozen=True)
class Beliefs:
    """The prior of a task's coefficients, queue effects and residuals, on the scale of logarithms."""

    mean: FloatArray  # (d,) of the coefficients: level, then slope of each feature
    sd: FloatArray  # (d,) of the coefficients between tasks
    queue_sd: float  # of a queue's effect within a task
    residual_sd: float  # of a typical task's residuals
    # of the inverse gamma distribution of residual variances: the larger, the more alike
    shape: float

    def vector(self) -> FloatArray:
        """Return the parameters on scales without limits; the mean level is not one of them."""
        sizes = [*self.sd, self.queue_sd, self.residual_sd, self.shape]
        return np.concatenate([self.mean[1:], np.log(sizes)])

    def with_vector(self, vector: FloatArray) -> Beliefs:
        """Return beliefs of the same features from what :meth:`vector` returns."""
        d = self.sd.size
        sizes = np.exp(vector[d - 1 :])
        return replace(
            self,
            mean=np.concatenate([self.mean[:1], vector[: d - 1]]),
            sd=sizes[:d],
            queue_sd=float(sizes[d]),
            residual_sd=float(sizes[d + 1]),
            shape=float(sizes[d + 2]),
        )


# Before any task was seen. Slopes: memory grows a little less than with cores, hardly with input;
# time falls with cores and power, less than in proportion, and grows with events or input.
FIRST: dict[Quantity, Beliefs] = {
    "memory": Beliefs(
        mean=np.array([0.0, 0.75, 0.0, 0.0]),
        sd=np.array([1.5, 0.14, 0.1, 0.1]),
        queue_sd=0.05,
        residual_sd=0.08,
        shape=3.0,
    ),
    "walltime": Beliefs(
        mean=np.array([0.0, -0.75, 0.5, 0.2, -0.5]),
        sd=np.array([2.0, 0.4, 0.4, 0.3, 0.5]),
        queue_sd=0.3,
        residual_sd=0.3,
        shape=3.0,
    ),
}
# How far a fit goes from the above without much evidence: slopes, and logarithms of sizes. Where a
# feature hardly varies its slope could be anything, so their sizes are held tighter than the others'.
SLOPE_WIDTH, SLOPE_SD_WIDTH, SIZE_WIDTH, SHAPE_WIDTH = 0.1, 0.3, 1.0, 0.25


class Sums(NamedTuple):
    """What the likelihood needs of tasks: sums over each task, and over each of its queues."""

    first_pair: IntArray  # (t + 1,) pairs of task i are first_pair[i] up to first_pair[i + 1]
    xx: FloatArray  # (t, d, d)
    xy: FloatArray
    yy: FloatArray
    pair_count: IntArray  # (p,)
    pair_x: FloatArray
    pair_y: FloatArray


def sampled(records: pl.DataFrame) -> pl.DataFrame:
    """Take at most 300 jobs of a task and 2000 tasks, evenly over the order of decision."""
    n = pl.len().over("jeditaskid")
    place = pl.int_range(pl.len()).over("jeditaskid")
    chosen = (place * JOBS_PER_TASK) // n > ((place - 1) * JOBS_PER_TASK) // n
    tasks = records["jeditaskid"].unique(maintain_order=True)
    kept = tasks.gather_every(-(-tasks.len() // MOST_TASKS))
    return records.filter((n <= JOBS_PER_TASK) | (place == 0) | chosen).filter(
        pl.col("jeditaskid").is_in(kept.implode())
    )


def sums_of(task: IntArray, pair: IntArray, x: FloatArray, y: FloatArray) -> Sums:
    """Sum jobs by task and by pair of task and queue."""
    n_pairs, n_tasks, d = int(pair.max()) + 1, int(task.max()) + 1, x.shape[1]
    task_of = np.zeros(n_pairs, dtype=np.int64)
    task_of[pair] = task
    products = (x[:, :, None] * x[:, None, :]).reshape(len(x), d * d)
    return Sums(
        first_pair=np.searchsorted(task_of, np.arange(n_tasks + 1)),
        xx=_add(task, products, n_tasks).reshape(n_tasks, d, d),
        xy=_add(task, x * y[:, None], n_tasks),
        yy=_add(task, (y * y)[:, None], n_tasks)[:, 0],
        pair_count=np.bincount(pair, minlength=n_pairs),
        pair_x=_add(pair, x, n_pairs),
        pair_y=_add(pair, y[:, None], n_pairs)[:, 0],
    )


def _add(group: IntArray, values: FloatArray, n: int) -> FloatArray:
    return np.column_stack([np.bincount(group, column, n) for column in values.T])


def fitted(sums: Sums, first: Beliefs) -> Beliefs:
    """Find the beliefs under which the tasks are likeliest, held near the first ones.

    Source: type II maximum likelihood with a normal penalty; Bishop, Pattern Recognition and Machine
    Learning (2006), sections 3.3 to 3.5.
    """
    from scipy.optimize import minimize

    start = first.vector()
    slopes = first.sd.size - 1
    width = np.array(
        [SLOPE_WIDTH] * slopes
        + [SIZE_WIDTH, *[SLOPE_SD_WIDTH] * slopes]
        + [SIZE_WIDTH, SIZE_WIDTH, SHAPE_WIDTH]
    )

    def loss(vector: FloatArray) -> float:
        penalty = float((((vector - start) / width) ** 2).sum()) / 2
        return penalty - log_likelihood(sums, first.with_vector(vector))

    bounds = [(value - 5 * w, value + 5 * w) for value, w in zip(start, width, strict=True)]
    result = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
    return first.with_vector(result.x)


def log_likelihood(sums: Sums, beliefs: Beliefs) -> float:
    """Return the logarithm of the marginal likelihood of all tasks."""
    variance = beliefs.residual_sd**2
    precision = variance / beliefs.sd**2
    left, determinants, counts = np.empty((3, sums.yy.size))
    queue = beliefs.queue_sd**2 / variance
    _integrate(sums, beliefs.mean, precision, queue, left, determinants, counts)
    a, b = beliefs.shape, beliefs.shape * variance
    shape = a + counts / 2
    return float(
        (
            (np.log(precision).sum() - determinants) / 2
            + a * log(b)
            - shape * np.log(b + left / 2)
            + special.gammaln(shape)
            - special.gammaln(a)
            - counts / 2 * log(2 * pi)
        ).sum()
    )


@compiled
def _integrate(
    sums: Sums,
    mean: FloatArray,
    precision: FloatArray,
    queue: float,
    left: FloatArray,
    determinants: FloatArray,
    counts: FloatArray,
) -> None:
    """Integrate queue effects and coefficients out of each task: squares left, log determinants."""
    for t in range(sums.yy.size):
        matrix = np.diag(precision) + sums.xx[t]
        right = precision * mean + sums.xy[t]
        squares = sums.yy[t] + np.sum(precision * mean * mean)
        logs, jobs = 0.0, 0.0
        for p in range(sums.first_pair[t], sums.first_pair[t + 1]):
            share = queue / (1 + sums.pair_count[p] * queue)
            for i in range(mean.size):  # in place: arrays made for each pair take most of the time
                for j in range(mean.size):
                    matrix[i, j] -= share * (sums.pair_x[p, i] * sums.pair_x[p, j])
                right[i] -= share * sums.pair_x[p, i] * sums.pair_y[p]
            squares -= share * sums.pair_y[p] ** 2
            logs += np.log1p(sums.pair_count[p] * queue)
            jobs += sums.pair_count[p]
        solution = np.linalg.solve(matrix, right)
        left[t] = max(squares - np.dot(right, solution), 0.0)
        determinants[t] = logs + np.linalg.slogdet(matrix)[1]
        counts[t] = jobs
