"""How many independent values a column is worth, and what of it models of few tasks are told."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.estimators.quantiles.models import independent_values, usable


def test_worth_of_columns():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(12), 50)
    of_task = rng.normal(size=12)[task]
    of_job = rng.normal(size=600)
    half = of_job.copy()
    half[rng.random(600) < 0.5] = np.nan
    x = np.column_stack([of_task, of_job, np.ones(600), half, np.full(600, np.nan)])
    worth = independent_values(x, task)
    assert worth[0] == pytest.approx(12)
    assert 300 < worth[1] <= 600
    assert worth[2] == worth[4] == 0
    assert worth[3] > 200
    assert usable(x, task).tolist() == [False, True, False, True, False]


def test_few_tasks_teach_nothing():
    task = np.repeat(np.arange(9), 100)
    x = np.random.default_rng(1).normal(size=(900, 3))
    assert not usable(x, task).any()


def test_many_tasks_teach_what_is_theirs():
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(40), 5)
    assert usable(rng.normal(size=(40, 1))[task], task).all()
