"""Waits learnt from an archive: order statistics, categories, no look ahead, scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError, InsufficientDataError, SchemaError
from brokerlab.workflows import batch, predictors
from brokerlab.workflows.predictors import Classes, Nearest, QuantileBound, fewest, place_of_bound


@pytest.mark.parametrize(
    ("quantile", "confidence", "places", "least"),
    [
        (0.95, 0.95, (None, 59, 99, 196, 484), 59),
        (0.90, 0.95, (29, 58, 96, 188, 462), 29),
        (0.75, 0.95, (26, 51, 83, 161, 392), 11),
        (0.50, 0.95, (20, 37, 59, 113, 269), 5),
        (0.50, 0.50, (15, 30, 51, 101, 251), 1),
    ],
)
def test_the_order_statistics_of_the_chapter(quantile, confidence, places, least):
    found = tuple(place_of_bound(m, quantile, confidence) for m in (29, 59, 100, 200, 500))
    assert (found, fewest(quantile, confidence)) == (places, least)


@pytest.mark.parametrize("m", [1, 4, 5, 17, 35, 60, 499])
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100)])
def test_the_place_is_the_first_whose_exact_probability_is_enough(m, quantile, confidence):
    """Half of an odd number of fair coins is exactly one half: a rounded probability misses it."""
    reached, wanted = Fraction(0), None
    for k in range(1, m + 1):
        reached += math.comb(m, k - 1) * quantile ** (k - 1) * (1 - quantile) ** (m - k + 1)
        if reached >= confidence:
            wanted = k
            break
    assert place_of_bound(m, float(quantile), float(confidence)) == wanted


def test_small_categories_are_left_for_coarser_ones():
    bound = QuantileBound(quantile=0.5, confidence=0.95, run_limit=None)
    assert bound.estimate(1, 60) is None
    with pytest.raises(InsufficientDataError, match="a bound needs 5"):
        bound(1, 60)
    for wait in (1, 2, 3, 4, 5):
        bound.learn(8, 3600, wait)
    assert bound.estimate(1, 60).category == "all jobs"
    for wait in (10, 20, 30):
        bound.learn(8, 60, wait)
    assert bound.estimate(8, 60).category == "up to 8 hosts"
    for wait in (40, 50):
        bound.learn(7, 60, wait)
    told = bound.estimate(8, 900)
    assert (told.wait_s, told.based_on, told.category) == (50, 5, "up to 8 hosts, up to 0.25 h")
    assert bound(8, 3600) == 5
    assert Classes().of(65, 1e6) == ("above 64 hosts, above 24 h", "above 64 hosts", "all jobs")


def test_only_the_most_recent_count_and_a_row_of_long_waits_cuts_the_past():
    calm = QuantileBound(quantile=0.5, confidence=0.95, most=6, run_limit=None)
    cut = QuantileBound(quantile=0.5, confidence=0.95, most=100, run_limit=3)
    for wait in [100.0] * 20 + [1.0] * 6:
        calm.learn(1, 60, wait)
    assert calm.estimate(1, 60).wait_s == 1.0
    for wait in [1.0] * 50 + [9.0, 9.0]:
        cut.learn(1, 60, wait)
    assert cut.estimate(1, 60).based_on == 52
    cut.learn(1, 60, 9.0)
    assert (cut.estimate(1, 60).based_on, cut.estimate(1, 60).wait_s) == (5, 9.0)


def test_the_bound_covers_as_often_as_it_says():
    """Waits without trend: the 0.9 quantile is bounded with 95 % confidence, so nine in ten wait no longer."""
    rng = np.random.default_rng(5)
    bound, covered = QuantileBound(quantile=0.9, run_limit=None), []
    for wait in rng.lognormal(6, 2, 3000):
        told = bound.estimate(2, 600)
        if told is not None:
            covered.append(wait <= told.wait_s)
        bound.learn(2, 600, wait)
    assert 0.89 < np.mean(covered) < 0.95


def test_the_nearest_in_size_and_of_those_the_latest():
    nearest = Nearest(k=2, most=4)
    assert nearest.estimate(1, 60) is None
    for hosts, wait in ((1, 5.0), (1, 7.0), (1, 9.0), (64, 1000.0)):
        nearest.learn(hosts, 60, wait)
    assert (nearest(1, 60), nearest(64, 60)) == (8.0, 504.5)
    nearest.learn(64, 60, 2000.0)  # the first goes
    assert nearest(64, 60) == 1500.0


def seen(*rows):
    names = ["job_id", "submit_s", "start_s", "hosts", "requested_s"]
    kinds = [pl.String, pl.Float64, pl.Float64, pl.Int64, pl.Float64]
    return pl.DataFrame(rows, schema=dict(zip(names, kinds, strict=True)), orient="row")


def test_nothing_is_known_before_it_has_happened():
    rng = np.random.default_rng(2)
    submit = np.sort(rng.uniform(0, 1000, 200))
    rows = [(f"j{n}", s, s + rng.exponential(100), 1, 60.0) for n, s in enumerate(submit)]
    jobs = seen(*rows)
    told = predictors.predict(jobs, {"nearest": Nearest(k=5)}, since_s=500)
    cut = float(submit[120])
    blind = jobs.with_columns(
        start_s=pl.when(pl.col("start_s") < cut).then("start_s").otherwise(pl.col("start_s") + 1e6)
    )
    again = predictors.predict(blind, {"nearest": Nearest(k=5)}, since_s=500)
    before = pl.col("submit_s") <= cut
    assert told.filter(before)["predicted_s"].equals(again.filter(before)["predicted_s"])
    fitted, other = Nearest(k=5), Nearest(k=5)
    predictors.fit(jobs, fitted, at_s=cut)
    predictors.fit(blind, other, at_s=cut)
    last = told.filter(before)["predicted_s"][-1]
    assert fitted(1, 60) == other(1, 60) == last


def test_scores():
    told = pl.DataFrame(
        {
            "method": ["m"] * 4,
            "job_id": list("abcd"),
            "submit_s": [0.0] * 4,
            "hosts": [1] * 4,
            "requested_s": [1.0] * 4,
            "wait_s": [0.0, 9.0, 99.0, 5.0],
            "predicted_s": [0.0, 19.0, 49.0, None],
            "based_on": [1, 1, 1, None],
            "category": ["x", "x", "x", None],
        },
        schema=predictors.PREDICTED,
    )
    every, waited = predictors.score(told).rows(named=True)
    assert (every["jobs"], every["n_jobs"], every["n_predicted"]) == ("all", 4, 3)
    assert every["coverage_pct"] == pytest.approx(200 / 3)
    assert (every["tightness"], every["within_two_pct"], every["mae_s"]) == (1.0, 100.0, 20.0)
    assert (waited["jobs"], waited["n_jobs"], waited["coverage_pct"], waited["tightness"]) == ("that waited", 3, 50.0, 1.25)  # fmt: skip


def test_the_queue_carried_forward_is_a_bound_where_the_policy_says_so_and_exact_with_exact_requests():
    rng = np.random.default_rng(3)
    n = 300
    run = rng.integers(1, 500, n).astype(float)
    jobs = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(n)],
            "submit_s": np.sort(rng.integers(0, 12_000, n)).astype(float),
            "run_s": run,
            "requested_s": run * rng.choice([1.0, 2.0, 5.0], n),
            "hosts": rng.integers(1, 9, n),
        }
    )
    told = predictors.carry_forward(jobs, hosts=16, policy="conservative", since_s=3000)
    assert told["submit_s"].min() >= 3000
    assert (told["wait_s"] <= told["predicted_s"]).all()
    assert (told["wait_s"] < told["predicted_s"]).any()
    real = batch.run(jobs, hosts=16, policy="conservative").filter(pl.col("submit_s") >= 3000)
    assert told["wait_s"].to_list() == real["wait_s"].to_list()
    exact = jobs.with_columns(requested_s="run_s")
    for policy in ("fcfs", "conservative"):
        told = predictors.carry_forward(exact, hosts=16, policy=policy)
        assert told["wait_s"].to_list() == told["predicted_s"].to_list()


def test_wrong_settings_and_tables():
    with pytest.raises(ConfigError, match=r"quantile: 1\.0.*confidence: 0"):
        QuantileBound(quantile=1.0, confidence=0)
    with pytest.raises(ConfigError, match=r"most: 10, allowed: 59 or more; run_limit: 0"):
        QuantileBound(most=10, run_limit=0)
    for limits in ((4, 1), ()):
        with pytest.raises(ConfigError, match="must be at least one, and rise"):
            Classes(hosts=limits)
    with pytest.raises(ConfigError, match="k: 0"):
        Nearest(k=0)
    with pytest.raises(
        DataError, match=r"start_s is before submit_s in 1 rows \(a\); hosts is below 1"
    ):
        predictors.predict(seen(("a", 5, 1, 0, 1)), {}, since_s=0)
    with pytest.raises(DataError, match="no column start_s"):
        predictors.predict(seen(("a", 5, 6, 1, 1)).drop("start_s"), {}, since_s=0)
    with pytest.raises(InsufficientDataError, match="from 9 s on"):
        predictors.predict(seen(("a", 5, 6, 1, 1)), {"n": Nearest()}, since_s=9)
    with pytest.raises(DataError, match=r"requested_s is no number in 1 rows \(a\)"):
        predictors.predict(seen(("a", 5, 6, 1, math.nan)), {}, since_s=0)
    wrong = seen(("a", 5, 6, 1, 1)).with_columns(submit_s=pl.lit("x"))
    with pytest.raises(SchemaError, match=r"jobs\.submit_s: 1 values are no Float64 \('x'\)"):
        predictors.predict(wrong, {}, since_s=0)
    for estimator in (QuantileBound(), Nearest()):
        for learnt in ((0, 1, 1), (1, math.nan, 1), (1, 1, -1)):
            with pytest.raises(DataError, match="wait_s"):
                estimator.learn(*learnt)
        with pytest.raises(DataError, match="hosts 0"):
            estimator.estimate(0, 1)
