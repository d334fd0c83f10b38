"""How far jobs of other tasks missed what was foreseen, by how much was known of their task."""

from __future__ import annotations

import numpy as np

from brokerlab.estimators.hierarchy import kernels
from brokerlab.estimators.hierarchy.prior import Beliefs
from brokerlab.numerics import BoolArray, FloatArray, IntArray

ATOMS = 400
JOBS_SEEN = (0, 10, 10, 30)  # of the task, typically, at decisions of each class
OWN_TASKS = 3.0  # calibration tasks that weigh as much as the model's own distribution


def of_model(beliefs: Beliefs) -> FloatArray:
    """Return the (classes, atoms) quantiles of the model's own distribution: Student's t."""
    from scipy.stats import t

    levels = (np.arange(ATOMS) + 0.5) / ATOMS
    return np.array([t(2 * beliefs.shape + seen).ppf(levels) for seen in JOBS_SEEN])


def of_tasks(
    own: FloatArray, task: IntArray, kind: IntArray, score: FloatArray, used: BoolArray
) -> FloatArray:
    """Mix the model's own scores with those of calibration tasks."""
    mixed = own.copy()
    levels = (np.arange(ATOMS) + 0.5) / ATOMS
    for each in range(kernels.CLASSES):
        rows = used & (kind == each)
        if not rows.any():
            continue
        _, place, count = np.unique(task[rows], return_inverse=True, return_counts=True)
        values = np.concatenate([own[each], score[rows]])
        weights = np.concatenate([np.full(ATOMS, OWN_TASKS / ATOMS), 1 / count[place]])
        mixed[each] = np.quantile(values, levels, weights=weights, method="inverted_cdf")
    return mixed
