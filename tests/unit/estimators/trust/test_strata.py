"""Coverage by stratum: exact intervals, what cannot be judged, and a group that is worse than the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.trust import coverage_by, judged, places
from tests.unit.estimators.trust.toys import expected, records


def test_a_right_model_is_inside_in_every_stratum_and_a_wrong_one_is_not():
    frame = records(4000, tasks=2)
    table = coverage_by(frame, expected(frame), 0.9)
    assert table["inside"].all()
    assert table.row(0, named=True)["stratum"] == "all"
    low = coverage_by(frame, expected(frame, ln_mean=6.95), 0.9)
    assert low["verdict"].unique().to_list() == ["misses too often"]
    high = coverage_by(frame, expected(frame, ln_mean=7.1), 0.9)
    assert high["verdict"].unique().to_list() == ["misses too rarely"]


def test_the_group_that_is_worse_is_found_and_small_ones_are_left_out():
    n = 3000
    shift = np.where(np.arange(n) % 2, 0.1, 0.0)
    frame = records(n, shift=shift)
    table = coverage_by(frame, expected(frame), 0.9, by=("queue",), least=100)
    verdicts = dict(table.select("stratum", "verdict").rows())
    assert verdicts["A"] == "misses too often"
    assert verdicts["B"] == "inside"
    few = coverage_by(frame, expected(frame), 0.9, by=("queue",), least=2000)
    assert few["stratum"].to_list() == ["all"]


def test_the_interval_is_the_exact_binomial_one():
    frame = records(500)
    row = coverage_by(frame, expected(frame), 0.95, by=()).row(0, named=True)
    lo, hi = stats.binom.ppf([0.025, 0.975], 500, 0.95) / 500
    assert (row["lo"], row["hi"]) == pytest.approx((lo, hi))
    assert 0 < row["p"] <= 1
    outside = coverage_by(frame, expected(frame, ln_mean=6.9), 0.95, by=())["p"][0]
    assert outside < 0.05
    assert row["coverage"] == pytest.approx(1 - row["missed"] / 500)


def test_nobody_knows_of_jobs_killed_below_their_bound_or_with_an_infinite_one():
    frame = records(4, used=[900.0, 900.0, 5000.0, 900.0], censored=[True, False, True, False])
    model = expected(frame)
    model.bounds[3, :] = np.inf
    missed = judged(frame, model, 0.9)["missed"].to_list()
    assert missed == [None, False, True, None]
    row = coverage_by(frame, model, 0.9, by=(), least=1).row(0, named=True)
    assert (row["n"], row["missed"], row["unsaid"]) == (2, 1, 2)


def test_a_killed_job_whose_bound_is_its_limit_kept_to_it():
    frame = records(1, used=[1000.0], censored=[True])
    model = expected(frame)
    model.bounds[:] = 1000.0
    assert judged(frame, model, 0.9)["missed"].to_list() == [False]


def test_unknown_queues_and_steps_of_what_was_seen_are_strata_too():
    frame = records(400, queue=[None] * 400)
    table = coverage_by(frame, expected(frame), 0.9, by=("queue", "seen"), least=4)
    assert "unknown" in table["stratum"].to_list()
    steps = table.filter(pl.col("stratum_by") == "seen")
    assert dict(steps.select("stratum", "n").rows()) == {
        "1 to 4": 4,
        "5 to 9": 5,
        "10 to 99": 90,
        "100 and more": 300,
    }


def test_some_of_the_predicted_jobs_may_be_judged_in_any_order():
    frame = records(1000)
    model = expected(frame)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
    assert coverage_by(shuffled, model, 0.9).equals(coverage_by(frame, model, 0.9))
    half = frame.filter(pl.col("pandaid") > 500)
    assert coverage_by(half, model, 0.9)["n"][0] == 500
    reverse = replace(model, pandaid=model.pandaid[::-1], seen=model.seen[::-1])
    assert judged(half, reverse, 0.9)["seen"].to_list() == list(range(500, 1000))


def test_wrong_questions_are_refused():
    frame = records(10)
    model = expected(frame)
    with pytest.raises(ConfigError, match=r"level = 0\.8"):
        coverage_by(frame, model, 0.8)
    with pytest.raises(ConfigError, match="did you mean 'queue'"):
        coverage_by(frame, model, 0.9, by=("queues",))
    with pytest.raises(DataError, match="10 of 10 jobs were not predicted"):
        coverage_by(frame.with_columns(pl.col("pandaid") + 100), model, 0.9)


def test_places_of_a_right_model_are_even():
    frame = records(5000)
    found = places(frame, expected(frame), seed=0)["place"].to_numpy()
    assert stats.kstest(found, "uniform").pvalue > 0.01
    low = places(frame, expected(frame, ln_mean=6.9), seed=0)["place"].to_numpy()
    assert stats.kstest(low, "uniform").pvalue < 1e-6
