"""The best so far: it follows whoever cost least, by the jobs that had ended, and never looks ahead."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks.leader import BestSoFar, candidates
from brokerlab.estimators.deployed import DEPLOYED, PercentileMemory, Recorded, Rule, Seen
from brokerlab.estimators.likejobs import LikeJobs
from tests.estimator_kit import assert_never_looks_ahead, random_records


def two():
    return [Rule("requested", Recorded("requested")), Rule("largest", PercentileMemory(Seen(100)))]


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
def test_nothing_of_the_future_is_known(quantity):
    records = random_records(40, seed=3, tasks=3, quantity=quantity)
    made = [LikeJobs(quantity), *two()]
    assert_never_looks_ahead(BestSoFar(quantity, made), records, cuts=2, rtol=1e-9)


def steady(n=40, *, tasks=1):
    """Jobs one after the other that use a tenth of what they ask for."""
    return random_records(n, tasks=tasks, cores=(1,)).with_columns(
        decided_s=pl.int_range(n).cast(pl.Float64), ended_s=pl.int_range(n) + 0.5,
        used=pl.lit(100.0), requested=pl.lit(1000.0), censored=pl.lit(value=False), wall_s=pl.lit(1.0),
    )  # fmt: skip


def test_the_one_that_cost_least_is_followed():
    found = BestSoFar("memory", two()).replay(steady(), levels=(0.5, 0.95))
    assert found.point[:2].tolist() == [
        1000.0,
        1000.0,
    ]  # both say the request, then one of them less
    assert found.point[2:] == pytest.approx(100.0)
    assert np.array_equal(found.bounds[:, 0], found.bounds[:, 1])


def test_one_that_says_nothing_costs_as_much_as_the_worst():
    records = steady().with_columns(requested=pl.lit(None, pl.Float64))
    found = BestSoFar("memory", two()).replay(records, levels=(0.5,))
    assert np.isinf(found.point[0])
    assert found.point[1:] == pytest.approx(100.0)


def test_a_failure_costs_its_attempt_and_the_next_ones():
    """100 MB needed: of 30 MB three attempts fail or fit, 30 + 60 + 120 less 100; of 150 MB fifty are left."""
    costs = BestSoFar("memory", two())._costs(steady(1), np.array([[30.0, 150.0]]))
    assert costs.tolist() == [[110.0, 50.0]]


def test_models_and_every_rule_are_candidates():
    for quantity in ("memory", "walltime"):
        names = [each.name for each in candidates(quantity)]
        assert names[0] == DEPLOYED[quantity]
        assert names[-3:] == ["hierarchy", "like jobs", "views"]
        assert len(names) == len(set(names)) > 8


def test_seeing_nothing_changes_nothing():
    one, other = (BestSoFar("memory", two()) for _ in range(2))
    unended = steady(3).with_columns(ended_s=pl.lit(None, pl.Float64))
    found = [
        each.predict(steady(1), levels=(0.5,))
        for each in (one.update(unended), other.update(unended.clear()))
    ]
    assert found[0].equals(found[1])
