"""Which columns a fit may use: those that took enough values independently of each other."""

from __future__ import annotations

import numpy as np

from brokerlab.numerics import BoolArray, FloatArray, IntArray

INDEPENDENT = 30.0
LEAST_TASKS = 10
"""How the use hangs on a column may differ from task to task; that is seen once a task."""


def independent_values(x: FloatArray, task: IntArray) -> FloatArray:
    r"""Return how many independent values the rows of a few tasks are worth, column by column.

    .. math:: \frac{K}{\rho + (1 - \rho) K / n}

    with K tasks, n rows and :math:`\rho` the share of a column's variance that lies between tasks: what is the same
    for all jobs of a task was seen K times, however many jobs there are.

    Source: the design effect of cluster samples, Kish, Survey Sampling (1965),
    ISBN 0-471-10949-5.
    """
    size = np.bincount(task).astype(np.float64)
    filled = np.where(np.isnan(x), _means(x), x)
    between, within = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for column in range(x.shape[1]):
        values = filled[:, column]
        mean = np.bincount(task, values) / size
        within[column] = (np.bincount(task, (values - mean[task]) ** 2) / size).mean()
        between[column] = mean.var()
    total = between + within
    rho = np.divide(between, total, out=np.ones_like(total), where=total > 0)
    worth = size.size / (rho + (1 - rho) * size.size / task.size)
    return np.where(total > 0, worth, 0.0)


def usable(x: FloatArray, task: IntArray) -> BoolArray:
    """Return the columns worth :data:`INDEPENDENT` values or more; none where there are few tasks.

    Two or three tasks differ in everything, and each hangs on a column in its own way: a model that is told
    so learns them by heart, and is sure of what it never saw.
    """
    result: BoolArray = independent_values(x, task) >= INDEPENDENT
    return result & (np.unique(task).size >= LEAST_TASKS)


def _means(x: FloatArray) -> FloatArray:
    there = ~np.isnan(x)
    sums = np.where(there, x, 0.0).sum(axis=0)
    means: FloatArray = sums / np.maximum(there.sum(axis=0), 1)
    return means
