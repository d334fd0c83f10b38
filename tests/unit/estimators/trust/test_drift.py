"""A bound that gets worse on the way is found; one that stays as asked is not accused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.trust import (
    _p_of_largest,
    bet_against,
    fortune,
    largest_deviation,
    places,
)
from tests.unit.estimators.trust.toys import expected, records

N = 2000
LATE = np.where(np.arange(N) >= 1200, 0.1, 0.0)


def test_drift_from_job_1200_on_is_found_there():
    frame = records(N, shift=LATE)
    model = expected(frame)
    row = largest_deviation(frame, model, 0.9).row(0, named=True)
    assert row["verdict"] == "misses too often"
    assert row["after"] > 1900
    assert row["missed"] == row["missed_before"] + row["missed_after"]
    assert bet_against(frame, model)["verdict"].to_list() == ["not as expected"]


def test_too_wide_bounds_are_told_as_such():
    frame = records(N, shift=-0.1)
    model = expected(frame)
    assert largest_deviation(frame, model, 0.9)["verdict"].to_list() == ["misses too rarely"]


def test_a_right_model_is_rarely_accused():
    alarms = np.zeros(2)
    for seed in range(40):
        frame = records(N, seed=seed)
        model = expected(frame)
        alarms += [
            (largest_deviation(frame, model, 0.9)["verdict"] != "as asked").any(),
            (bet_against(frame, model, seed=seed)["verdict"] != "as expected").any(),
        ]
    assert (alarms <= 5).all(), alarms  # 40 runs at 5 %: 6 or more has probability 1.4 %


def test_a_right_model_is_rarely_accused_where_jobs_are_killed_and_a_wrong_one_still_is():
    limit = np.exp(7 + 0.1 * 1.3)  # one job in ten comes to it
    alarms = np.zeros(2)
    for seed in range(20):
        frame = records(N, seed=seed)
        frame = frame.with_columns(
            used=pl.min_horizontal("used", pl.lit(limit)), censored=pl.col("used") > limit
        )
        for each, ln_mean in enumerate((7.0, 6.95)):
            model = expected(frame, ln_mean=ln_mean)
            verdict = bet_against(frame, model, seed=seed)["verdict"][0]
            alarms[each] += verdict == "not as expected"
    assert alarms[0] <= 3  # of 20 at 5 %: 4 or more has probability 1.6 %
    assert alarms[1] == 20


def test_a_right_model_that_says_nothing_of_some_jobs_is_not_accused():
    """Of a job of which nothing was told nothing is known: it used to count as below the lowest bound."""
    frame = records(N)
    model = expected(frame)
    model.bounds[::2] = np.inf
    row = bet_against(frame, model).row(0, named=True)
    assert (row["n"], row["verdict"]) == (N // 2, "as expected")


def test_places_are_even_above_the_last_level_that_was_told():
    frame = records(N)
    model = expected(frame)
    model.bounds[:, 2:] = np.inf  # 0.9 and 0.95: above 0.75 a use is anywhere
    found = places(frame, model, seed=1)["place"].to_numpy()
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_the_law_of_the_largest_distance():
    # P(sup |W| > 2.2414) = 0.05 and P(sup |W| > 1) = 0.6292 (reflection principle, tables of the normal law)
    assert _p_of_largest(2.2414) == pytest.approx(0.05, abs=2e-4)
    assert _p_of_largest(1.0) == pytest.approx(0.6292, abs=2e-4)
    assert _p_of_largest(0.1) == 1
    assert _p_of_largest(8.0) < 1e-9


def test_a_fortune_is_the_mean_of_its_bets_in_pieces_as_in_one():
    rng = np.random.default_rng(0)
    places = rng.random(70_000)
    logs = fortune(places)
    assert np.isfinite(logs).all()
    assert logs[:100] == pytest.approx(fortune(places[:100]))
    power = (np.arange(20) + 0.5) / 20
    p = 0.3
    first = np.mean([power * p ** (power - 1), power * (1 - p) ** (power - 1)])
    assert fortune(np.array([p]))[0] == pytest.approx(np.log10(first))
    assert np.isfinite(fortune(np.array([0.0, 1.0]))).all()


def test_a_fortune_against_even_places_reaches_20_in_less_than_5_per_cent():
    rng = np.random.default_rng(1)
    reached = [fortune(rng.random(300)).max() >= np.log10(20) for _ in range(300)]
    assert np.mean(reached) <= 0.05


def test_questions_without_an_answer_are_refused():
    frame = records(10)
    model = expected(frame)
    model.bounds[:] = np.inf
    with pytest.raises(InsufficientDataError, match="infinite"):
        largest_deviation(frame, model, 0.9)
    killed = frame.with_columns(censored=pl.lit(value=True))
    with pytest.raises(InsufficientDataError, match="killed"):
        bet_against(killed, model)
