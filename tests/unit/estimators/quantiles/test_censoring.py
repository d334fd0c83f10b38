"""Killed jobs: ignored or taken at their limit they pull the upper quantile down; redistributed less so."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting
from brokerlab.estimators.quantiles.models import reached, redistribute
from tests.unit.estimators.quantiles.toys import tasks


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
