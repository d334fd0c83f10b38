"""Where a model should not be trusted: bounds that get worse, strata that are worse, scouts unlike the rest, jobs unlike what was learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.trust import (
    _p_of_largest,
    bet_against,
    coverage_by,
    fortune,
    judged,
    largest_deviation,
    places,
    scouts_against_rest,
    support,
)
from tests.unit.estimators.trust_toys import expected, records

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
    with pytest.raises(ConfigError, match=r"level 0\.8"):
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


JOBS, TASKS = 1200, 4
TASK = 1 + np.arange(JOBS) % TASKS
IS_SCOUT = np.arange(JOBS) // TASKS < 10


def test_heavier_scouts_are_found_in_their_task_only():
    shift = np.where(IS_SCOUT & (TASK == 2), 0.3, 0.0)
    table = scouts_against_rest(records(JOBS, tasks=TASKS, shift=shift))
    assert table["verdict"].to_list() == ["alike", "scouts use more", "alike", "alike"]
    assert table["n_scouts"].to_list() == [10] * 4
    assert table["n_others"].to_list() == [290] * 4
    row = table.row(0, named=True)
    assert row["lo"] < row["exceeds"] < row["hi"]
    assert (table["p_adjusted"] >= table["p"]).all()


def test_groups_that_do_not_overlap_have_an_exact_p_value():
    shift = np.where(IS_SCOUT, -2.0, 0.0)
    table = scouts_against_rest(records(JOBS, tasks=TASKS, shift=shift))
    assert table["exceeds"].to_list() == [1.0] * 4
    assert table["lo"].null_count() == 4
    assert table["verdict"].unique().to_list() == ["scouts use less"]
    same = scouts_against_rest(records(JOBS, tasks=TASKS, used=np.full(JOBS, 500.0)))
    assert same.select("exceeds", "p", "verdict").unique().rows() == [(0.5, 1.0, "alike")]


def test_random_scouts_are_rarely_accused():
    table = scouts_against_rest(records(40 * 200, tasks=40))
    assert table["verdict"].unique().to_list() == ["alike"]
    assert (table["p"] < 0.05).sum() <= 5  # of 40 at 5 %: 6 or more has probability 1.4 %
    assert ((table["lo"] <= 0.5) & (table["hi"] >= 0.5)).sum() >= 35


def test_few_random_scouts_are_accused_no_more_often():
    """A wrong alarm in any of ten tasks has a probability of 5 %: of 30 times, 6 or more with 0.3 %."""
    tables = [
        scouts_against_rest(records(10 * 20, tasks=10, scouts=3, seed=seed)) for seed in range(30)
    ]
    assert sum((table["verdict"] != "alike").any() for table in tables) < 6


def test_per_core_takes_the_cores_out():
    cores = np.where(IS_SCOUT, 4, 8)
    used = 500.0 * cores * np.exp(0.1 * np.random.default_rng(0).standard_normal(JOBS))
    frame = records(JOBS, tasks=TASKS, used=used, cores=cores)
    assert scouts_against_rest(frame)["verdict"].unique().to_list() == ["scouts use less"]
    assert scouts_against_rest(frame, per_core=True)["verdict"].unique().to_list() == ["alike"]


def test_comparisons_that_mean_nothing_are_refused():
    with pytest.raises(InsufficientDataError, match="3 scouts"):
        scouts_against_rest(records(100, scouts=2))


def test_the_same_jobs_are_learnt():
    frame = records(100)
    table = support(frame, frame)
    assert table["verdict"].unique().to_list() == ["learnt"]
    assert table["outside"].sum() == 0
    assert table["feature"].to_list()[:4] == ["kind", "queue", "cores", "kind / queue / cores"]


def test_new_queues_and_numbers_beyond_the_range_are_named():
    old = records(100)
    new = records(100, queue=["C"] * 60 + ["A"] * 40, events=[500] * 4 + [100] * 96)
    found = {row["feature"]: row for row in support(old, new).rows(named=True)}
    assert found["queue"]["outside"] == 60
    assert found["queue"]["example"] == "C"
    assert found["queue"]["verdict"] == "partly learnt"
    assert found["queue"]["lo"] < 0.6 < found["queue"]["hi"]
    assert (found["events"]["outside"], found["events"]["verdict"]) == (4, "learnt")
    assert (found["events"]["learnt_from"], found["events"]["learnt_to"]) == (100, 100)


def test_nothing_known_is_learnt_only_where_it_was_seen():
    known, unknown = records(10), records(10, kind=[None] * 10, corepower=[None] * 10)
    found = dict(support(known, unknown).select("feature", "verdict").rows())
    assert found["kind"] == found["corepower"] == "not learnt"
    both = dict(support(unknown, unknown).select("feature", "verdict").rows())
    assert both["kind"] == both["corepower"] == "learnt"
    back = dict(support(unknown, known).select("feature", "verdict").rows())
    assert back["corepower"] == "not learnt"


def test_no_jobs_are_no_answer():
    with pytest.raises(InsufficientDataError, match="0 jobs learnt from"):
        support(records(10).filter(pl.col("pandaid") < 0), records(10))
