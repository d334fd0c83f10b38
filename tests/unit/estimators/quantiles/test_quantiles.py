"""Quantile estimators: coverage on new tasks, no looking ahead, online as in one go, few tasks, bad calls."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.estimator import Estimator
from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting
from tests.estimator_kit import assert_never_looks_ahead, random_records
from tests.unit.estimators.quantiles.toys import tasks

LEVELS = (0.1, 0.5, 0.9, 0.95)


@pytest.fixture(scope="module")
def fitted():
    earlier, _ = tasks(36, 20, seed=1)
    others, _ = tasks(60, 20, seed=2, first=1)
    return {
        each.name: each.fit(earlier).conformalize(others)
        for each in (QuantileBoosting("memory"), LinearQuantiles("memory"))
    }


@pytest.fixture(scope="module")
def later():
    return tasks(60, 20, seed=3, first=2)[0].sort("decided_s", "pandaid")


@pytest.mark.parametrize("name", ["quantile boosting", "linear quantiles"])
class TestBoth:
    def test_bounds_hold_on_new_tasks_and_do_not_cross(self, fitted, later, name):
        predicted = fitted[name].replay(later, levels=LEVELS)
        follow = ~later["is_scout"].to_numpy()
        held = (later["used"].to_numpy()[:, None] <= predicted.bounds)[follow].mean(axis=0)
        assert held == pytest.approx(LEVELS, abs=0.06)
        assert (np.diff(predicted.bounds, axis=1) > 0).all()
        error = np.abs(np.log(predicted.point / later["used"].to_numpy()))[follow]
        assert np.median(error) < 0.2

    def test_never_looks_ahead(self, fitted, name):
        assert_never_looks_ahead(fitted[name], random_records(40, seed=3, tasks=3), cuts=2)

    def test_online_is_as_in_one_go(self, fitted, later, name):
        estimator = deepcopy(fitted[name])
        one = later.filter(pl.col("jeditaskid") == later["jeditaskid"][0])
        scouts, rest = one.filter(pl.col("is_scout")), one.filter(~pl.col("is_scout"))
        last = rest.tail(1).with_columns(decided_s=scouts["ended_s"].max(), ended_s=None)
        replayed = estimator.replay(pl.concat([scouts, last]), levels=LEVELS)
        online = estimator.update(scouts).predict(last, levels=LEVELS)
        assert online["seen"].to_list() == [10] == [replayed.seen[-1]]
        assert online.row(0)[2:] == (replayed.point[-1], *replayed.bounds[-1])
        again = estimator.replay(last, levels=LEVELS)
        assert np.array_equal(again.bounds[0], replayed.bounds[-1])

    def test_two_tasks_are_not_learnt_by_heart(self, name):
        kind = QuantileBoosting if name == "quantile boosting" else LinearQuantiles
        few, _ = tasks(2, 100, seed=4)
        one, _ = tasks(1, 200, seed=5, first=1)
        new, _ = tasks(1, 200, seed=6, first=2)
        estimator = kind("memory").fit(few).conformalize(one)
        predicted = estimator.replay(new, levels=LEVELS)
        assert not estimator.learnt
        assert np.isinf(predicted.bounds).all()
        assert (predicted.point < 10 * new["used"].max()).all()
        calibrated = estimator.conformalize(tasks(25, 20, seed=7, first=3)[0])
        bounds = calibrated.replay(new, levels=LEVELS).bounds
        assert (bounds[:, -1] < 10 * new["used"].max()).all()
        assert (np.diff(bounds, axis=1) >= 0).all()

    def test_is_an_estimator_that_repeats_itself(self, fitted, later, name):
        kind = QuantileBoosting if name == "quantile boosting" else LinearQuantiles
        few, _ = tasks(4, 30, seed=10)
        estimator: Estimator = kind("memory").fit(few)
        again = kind("memory").fit(few.sample(fraction=1, shuffle=True, seed=1))
        first = estimator.predict(later, levels=(0.9,))
        assert first.equals(again.predict(later, levels=(0.9,)))
        assert first.columns == ["pandaid", "seen", "point", "bound_0.9"]
        assert estimator.features == fitted[name].features


def test_little_is_known_and_nothing_seen():
    records, _ = tasks(5, 20, seed=7)
    bare = records.with_columns(
        pl.lit(None, dtype=pl.String).alias("kind"),
        pl.lit(None, dtype=pl.String).alias("queue"),
        pl.lit(None, dtype=pl.Float64).alias("requested"),
        pl.lit(None, dtype=pl.Float64).alias("corepower"),
        pl.lit(0).alias("events"),
    )
    for kind in (QuantileBoosting, LinearQuantiles):
        found = kind("walltime").fit(bare).predict(bare, levels=(0.5, 0.9))
        assert found["point"].is_finite().all()
        assert found["bound_0.9"].is_infinite().all()
        assert found["seen"].to_list() == [0] * records.height


def test_capped_at_the_request():
    records, _ = tasks(12, 20, seed=8)
    asked = records.with_columns(requested=pl.col("used") * 0.9)
    found = LinearQuantiles("walltime", capped=True).fit(records).replay(asked, levels=(0.99,))
    limit = asked.sort("decided_s", "pandaid")["requested"].to_numpy()
    assert (found.bounds[:, 0] <= limit).all()
    assert (found.point <= limit).all()


def test_a_request_that_is_none_caps_nothing():
    records, _ = tasks(12, 20, seed=8)
    estimator = LinearQuantiles("walltime", capped=True).fit(records)
    free = estimator.replay(records.with_columns(requested=None), levels=(0.9,))
    for none in (float("nan"), 0.0, -5.0):
        found = estimator.replay(records.with_columns(requested=none), levels=(0.9,))
        assert np.array_equal(found.bounds, free.bounds)
        assert np.array_equal(found.point, free.point)


def test_wrong_calls():
    records, _ = tasks(2, 12, seed=9)
    with pytest.raises(ConfigError, match="quantity 'ram': allowed: memory, walltime"):
        QuantileBoosting("ram")
    estimator = LinearQuantiles("memory")
    with pytest.raises(ConfigError, match="linear quantiles: call fit first"):
        estimator.predict(records, levels=(0.5,))
    with pytest.raises(ConfigError, match="ascending"):
        estimator.replay(records, levels=(0.9, 0.5))
    with pytest.raises(InsufficientDataError, match="no finished job"):
        estimator.fit(records.with_columns(censored=True))
    with pytest.raises(DataError, match="above 0 is needed"):
        estimator.fit(records.with_columns(used=0.0))
