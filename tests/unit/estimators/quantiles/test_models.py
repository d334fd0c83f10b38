"""Models of quantiles: which of the columns that are left are categories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting
from brokerlab.estimators.quantiles.features import CATEGORIES, FEATURES
from brokerlab.estimators.quantiles.models import (
    BINS,
    PENALTY,
    Sample,
    Trees,
    columns_in_bins,
    fit_line,
    independent_values,
    reached,
    redistribute,
    usable,
)
from tests.unit.estimators.quantiles.toys import tasks


def sample(n_tasks: int = 40, size: int = 10) -> Sample:
    """Return rows whose use hangs on cores and queue; both columns vary, and so does the kind."""
    rng = np.random.default_rng(1)
    n = n_tasks * size
    x = np.full((n, len(FEATURES)), np.nan)
    x[:, 0], x[:, 1] = rng.integers(0, 3, n), rng.integers(0, 4, n)
    x[:, 2] = rng.normal(size=n)  # more values than a category may have
    x[:, -1] = 0.0  # a scout or not is always known
    y = 0.5 * x[:, 2] + 0.1 * x[:, 1] + rng.normal(0, 0.05, n)
    ones, none = np.ones(n), np.zeros(n)
    return Sample(x, y, ones, np.repeat(np.arange(n_tasks), size), none.astype(bool), none)


@pytest.mark.parametrize("unknown", [(), (0,), (1,), (0, 1)])
def test_only_kind_and_queue_are_categories_whatever_is_unknown(unknown):
    rows = sample()
    rows.x[:, list(unknown)] = np.nan
    fitted = Trees.fit(rows, seed=1)
    assert list(np.flatnonzero(fitted.used[:3])) == [c for c in (0, 1, 2) if c not in unknown]
    n_left = len(CATEGORIES) - len(unknown)
    for model in fitted.models:
        told_apart = model.is_categorical_
        expected = [True] * n_left + [False] * (model.n_features_in_ - n_left)
        assert (expected if n_left else None) == (
            None if told_apart is None else told_apart.tolist()
        )


def test_boosting_is_that_of_scikit_learn_on_the_columns_themselves():
    from sklearn.ensemble import HistGradientBoostingRegressor

    rows = sample(size=60)
    rng = np.random.default_rng(2)
    rows = replace(rows, weight=rng.choice([0.25, 1.0, 2.0], rows.y.size))
    rows.x[rng.random(rows.x.shape) < 0.1] = np.nan
    fitted = Trees.fit(rows, seed=1)
    assert max(each.size for each in fitted.edges) == BINS - 1
    ours = fitted.models[1]
    named = ("loss", "quantile", "learning_rate", "max_iter", "max_leaf_nodes", "min_samples_leaf")
    theirs = HistGradientBoostingRegressor(
        **{name: getattr(ours, name) for name in named},
        categorical_features=ours.categorical_features,
        early_stopping=False,
    )
    x = rows.x[:, fitted.used]
    theirs.fit(x, rows.y, sample_weight=rows.weight)
    new = np.where(rng.random(x.shape) < 0.5, x, rng.permutation(x) + 1e-3)
    new[:, : len(CATEGORIES)] = x[:, : len(CATEGORIES)]
    for values in (x, new):
        in_bins = columns_in_bins(values, fitted.edges)
        assert np.array_equal(ours.predict(in_bins), theirs.predict(values))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_a_line_is_that_of_scikit_learn(level):
    from sklearn.linear_model import QuantileRegressor

    rng = np.random.default_rng(3)
    x, weight = rng.normal(size=(400, 6)), rng.uniform(0.2, 2, 400)
    x[:, 4] = 0.0
    y = x @ [1.0, -0.5, 0.0, 0.2, 3.0, 1e-5] + rng.exponential(size=400)
    line = QuantileRegressor(quantile=level, alpha=PENALTY).fit(x, y, sample_weight=weight)
    ours = fit_line(x, y, weight, level)
    assert ours == pytest.approx(np.concatenate([[line.intercept_], line.coef_]), abs=1e-9)


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


@pytest.mark.parametrize("kind", [QuantileBoosting, LinearQuantiles])
def test_planted_kills(kind):
    """12 % of the jobs are killed at a limit below the 95 % quantile of what they would have used."""
    cut, _ = tasks(36, 18, seed=11, limit=0.15 * 1.175)
    later, _ = tasks(36, 18, seed=12, first=1)
    assert 0.1 < cut["censored"].mean() < 0.14
    truth = later.sort("decided_s", "pandaid")["used"].to_numpy()
    ours, taken_as_seen, left_out = (
        (truth <= kind("memory").fit(given).replay(later, levels=(0.95,)).at(0.95)).mean()
        for given in (
            cut,
            cut.with_columns(censored=False),
            cut.filter(~pl.col("censored")),
        )
    )
    assert max(left_out, taken_as_seen) + 0.02 < ours < 0.97


def test_calibration_counts_a_killed_job_as_above_every_bound():
    records, _ = tasks(30, 20, seed=3)
    killed, _ = tasks(60, 20, seed=4, first=1, limit=0.15 * 1.3)
    estimator = LinearQuantiles("memory").fit(records)
    new, _ = tasks(5, 20, seed=5, first=2)
    careful = estimator.conformalize(killed).replay(new, levels=(0.5, 0.8, 0.95))
    assert np.isinf(careful.at(0.95)).any()
    assert np.isfinite(careful.at(0.5)).all()


def test_weights_by_hand():
    """Of five jobs the third is killed at 2; Kaplan-Meier has F(2) = 0.4."""
    value = np.array([1.0, 2.0, 2.0, 3.0, 4.0])
    killed = np.array([False, False, True, False, False])
    known = reached(value, killed, np.zeros(5, int))
    assert known[2] == pytest.approx(0.4)
    assert np.isnan(known[~killed]).all()
    rows = redistribute(value, killed, known, np.ones(5), 0.7)
    assert rows.row.tolist() == [0, 1, 2, 3, 4, 2]
    assert rows.weight == pytest.approx([1, 1, 0.5, 1, 1, 0.5])  # (0.7 - 0.4) / (1 - 0.4) stays
    assert rows.value[-1] > value.max()
    low = redistribute(value, killed, known, np.ones(5), 0.3)
    assert low.row.tolist() == [0, 1, 2, 3, 4]
    assert low.weight.tolist() == [1] * 5


def test_small_groups_take_the_curve_of_all():
    rng = np.random.default_rng(6)
    value = np.concatenate([rng.normal(size=200), [0.0]])
    killed = np.zeros(201, dtype=bool)
    killed[200] = True
    known = reached(value, killed, np.repeat([0, 1], [200, 1]))
    assert known[200] == pytest.approx((value[:200] <= 0).mean(), abs=0.01)
    nothing = reached(value, np.ones(201, dtype=bool), np.zeros(201, int))
    assert (nothing == 0).all()
