"""Windows of misses and the mixture of scores, held to plain lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from brokerlab.estimators.hierarchy import Hierarchy, kernels
from brokerlab.estimators.hierarchy.estimator import (
    ATOMS,
    JOBS_SEEN,
    OWN_TASKS,
    State,
    mixed_atoms,
    own_atoms,
)
from brokerlab.estimators.hierarchy.prior import FIRST

LEVELS = np.array([0.5, 0.01, 0.3, 0.8, 0.95, 0.999])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_window_holds_the_latest_in_order_of_size_also_with_ties(size):
    rng = np.random.default_rng(size)
    latest, ascending = np.zeros(size), np.zeros(size)
    values = rng.integers(0, 5, 60).astype(float)
    for count, value in enumerate(values):
        kernels.keep(latest, ascending, count, value)
        held = values[max(count + 1 - size, 0) : count + 1]
        assert ascending[: held.size].tolist() == sorted(held)


@pytest.mark.parametrize(("own", "near"), [(0, 0), (1, 0), (3, 3), (40, 11), (700, 300)])
def test_quantiles_are_those_of_the_weighted_list(own, near):
    rng = np.random.default_rng(own + near)
    state = State(4)
    state.tasks, state.pairs = {0: 0}, {(0, "A"): 0}
    state._reserve()
    prior, deviation = Hierarchy("memory").prior(), 0.3
    misses, close = rng.integers(-9, 9, own) / 10, rng.normal(0, 0.5, near)
    for name, values in (("task", misses), ("pair", close)):
        window = getattr(state.scores, name)[0], getattr(state.scores, f"{name}_sorted")[0]
        for count, value in enumerate(values):
            kernels.keep(*window, count, value)
        getattr(state.scores, f"{name}_count")[0] = values.size
    found = np.empty(LEVELS.size)
    kernels.score_quantiles(prior, state.scores, 2, 0, 0, deviation, LEVELS, found)

    misses, close = misses[-kernels.TASK_WINDOW :], close[-kernels.PAIR_WINDOW :]
    values = np.concatenate([prior.atoms[2] * deviation, misses, close])
    weights = np.repeat(
        [kernels.PRIOR_JOBS / ATOMS, 1, kernels.PAIR_WEIGHT], [ATOMS, misses.size, close.size]
    )
    total = weights.sum()
    by = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[by])
    for level, value in zip(LEVELS, found, strict=True):
        wanted = min(level * (total + 1 - kernels.PRIOR_JOBS / total), total) - 1e-9
        assert value == values[by][np.searchsorted(reached, wanted)]
    if own == near == 0:
        assert (found == np.quantile(prior.atoms[2], LEVELS, method="inverted_cdf") * 0.3).all()


def test_the_model_alone_has_the_quantiles_of_students_t():
    beliefs = replace(FIRST["memory"], shape=2.0)
    for atoms, seen in zip(own_atoms(beliefs), JOBS_SEEN, strict=True):
        assert stats.kstest(atoms, stats.t(4 + seen).cdf).statistic < 1 / ATOMS


def test_each_task_counts_once_and_the_model_as_three():
    own = np.zeros((kernels.CLASSES, ATOMS))
    task = np.repeat([0, 1], [1000, 10])
    score = np.where(task == 0, 1.0, 2.0)
    kind = np.full(task.size, 1)
    mixed = mixed_atoms(own, task, kind, score, np.ones(task.size, dtype=bool))
    total = OWN_TASKS + 2
    shares = [np.mean(mixed[1] == value) for value in (0, 1, 2)]
    np.testing.assert_allclose(shares, [OWN_TASKS / total, 1 / total, 1 / total], atol=2 / ATOMS)
    assert (mixed[[0, 2, 3]] == 0).all()
    assert (mixed_atoms(own, task, kind, score, np.zeros(task.size, dtype=bool)) == 0).all()
