"""Walltime predictors on small logs: nothing of the future, the rules by hand, the bound's level."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import ConfigError, InsufficientDataError, SchemaError
from brokerlab.estimators import walltime
from brokerlab.estimators.walltime import HeldLevel, Job, LikeJobs, RollingQuantile
from brokerlab.estimators.walltime.running import RunningJobs


def log(run_s, *, submit_s=None, wait_s=0.0, requested_s=1000.0, hosts=1, user=1):
    """Jobs one after the other, each submitted when the one before has ended, unless told."""
    run = np.asarray(run_s, dtype=float)
    before = np.concatenate([[0.0], np.cumsum(run)[:-1]])
    n = run.size
    return pl.DataFrame(
        {
            "submit_s": before if submit_s is None else np.asarray(submit_s, dtype=float),
            "wait_s": np.broadcast_to(wait_s, n).astype(float),
            "run_s": run,
            "requested_s": np.broadcast_to(requested_s, n).astype(float),
            "hosts_requested": np.broadcast_to(hosts, n).astype(np.int64),
            "user": np.broadcast_to(user, n).astype(np.int64),
        }
    )


def drawn(n, *, seed=0):
    """Jobs of five users that ask for three to thirty times what they need."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 5, n)
    requested = rng.choice([600.0, 3600.0, 36000.0], n)
    return log(
        np.minimum(requested * rng.lognormal(-2 + 0.2 * user, 0.7, n), 1.1 * requested),
        submit_s=np.cumsum(rng.exponential(2000, n)),
        wait_s=rng.exponential(500, n),
        requested_s=requested,
        hosts=rng.choice([1, 4, 16], n),
        user=user,
    )


def test_rules_by_hand():
    predicted = walltime.predict_log(log([100, 300, 50, 200, 400, 10]), walltime.simple_rules())
    last = predicted.row(-1, named=True)
    assert last["requested"] == 1000
    assert last["last one"] == 400
    assert last["last two"] == 300
    assert last["mean of the user"] == pytest.approx(210)
    assert last["largest of last 10"] == 400
    assert last["p95 of last 200"] == pytest.approx(380)
    assert last["request x p95 of last 20"] == pytest.approx(380)
    assert predicted["last one"].to_list() == [1000, 100, 300, 50, 200, 400]
    assert predicted["last two"].to_list()[:3] == [1000, 1000, 200]
    assert predicted["p95 of last 200"].to_list()[:5] == [1000] * 5


def test_a_job_that_ends_at_the_submission_is_known_and_one_that_ends_later_is_not():
    jobs = log([100, 300, 5, 5], submit_s=[0, 0, 100, 299], wait_s=0)
    assert walltime.predict_log(jobs, [walltime.UserRules()])["last one"].to_list() == [
        *[1000, 1000, 100, 5]
    ]


def test_scores_by_hand():
    predicted = log([1, 1, 100, 300]).select("user", "submit_s", "requested_s", "run_s")
    predicted = predicted.with_columns(job=pl.int_range(pl.len()), rule=pl.lit(200.0))
    assert walltime.score(predicted).row(0, named=True) == {
        "method": "rule",
        "jobs": 2,
        "mae_s": 100.0,
        "median_s": 100.0,
        "accuracy": pytest.approx((1 / 2 + 2 / 3) / 2),
        "under": 0.5,
        "over_allocation": 0.25,
    }


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 139), factor=st.floats(0.1, 50))
def test_nothing_of_the_future_is_known(seed, cut, factor):
    """Run times of all jobs that have not ended at a submission change; what was predicted does not."""
    jobs = drawn(140, seed=seed)
    at_s = jobs["submit_s"][cut]
    open_then = pl.col("submit_s") + pl.col("wait_s") + pl.col("run_s") > at_s
    longer = pl.max_horizontal(pl.col("run_s") * factor, at_s - pl.col("submit_s") + 1)
    other = jobs.with_columns(
        run_s=pl.when(open_then).then(longer).otherwise("run_s"),
        requested_s=pl.when(pl.col("submit_s") > at_s)
        .then(pl.col("requested_s") * factor)
        .otherwise("requested_s"),
    )
    names = [name for each in walltime.all_predictors() for name in each.names]
    before, after = (
        walltime.predict_log(each, walltime.all_predictors()).head(cut + 1)
        for each in (jobs, other)
    )
    assert before.select(names).equals(after.select(names))


def test_predictions_stay_within_the_request():
    jobs = drawn(300)
    predicted = walltime.predict_log(jobs, walltime.all_predictors())
    limit = predicted["requested_s"]
    for each in predicted.columns[5:]:
        assert predicted[each].is_between(0, limit).all()
    assert (predicted["run_s"] <= limit).all()


def test_rows_may_come_in_any_order():
    jobs = drawn(200)
    names = ["like jobs, median", "like jobs, bound 95 %"]
    one = walltime.predict_log(jobs, [LikeJobs()])
    other = walltime.predict_log(jobs.sample(fraction=1, shuffle=True, seed=1), [LikeJobs()])
    assert one.select(names).equals(other.select(names))


def test_units_do_not_matter():
    jobs = drawn(200)
    times = ["submit_s", "wait_s", "run_s", "requested_s"]
    one = walltime.predict_log(jobs, [LikeJobs()])
    other = walltime.predict_log(jobs.with_columns(pl.col(times) * 64), [LikeJobs()])
    for name in LikeJobs().names:
        assert (other[name] / 64).to_list() == pytest.approx(one[name].to_list())


def test_the_bound_keeps_its_level_on_planted_jobs():
    predicted = walltime.predict_log(drawn(4000), [LikeJobs((0.8, 0.95))])
    table = walltime.score(predicted)
    assert table["under"].to_list() == pytest.approx([0.5, 0.2, 0.05], abs=0.05)
    assert table["under"][2] == pytest.approx(0.05, abs=0.012)


def test_a_job_stopped_at_its_limit_takes_every_limit():
    """Ten jobs killed at 100 s say that the next may need all of what it asks for."""
    jobs = log([100] * 10 + [1], requested_s=[100] * 10 + [150])
    assert walltime.predict_log(jobs, [LikeJobs()])["like jobs, median"][-1] == 150


def test_until_something_is_known_the_request_is_predicted():
    assert LikeJobs().predict(Job(0, 1, 0.0, 500.0, 1)) == (500.0, 500.0)


def test_an_update_takes_less_than_two_milliseconds():
    predictor = LikeJobs()
    took = []
    for number in range(800):
        job = Job(number, 1, float(number), 1000.0 + number % 7, 1 + number % 3)
        start = time.process_time()
        predictor.predict(job)
        predictor.begin(job, float(number))
        predictor.see(job, 1.0 + number % 900)
        took.append(time.process_time() - start)
    assert np.median(took[400:]) < 0.002


def test_the_rolling_quantile_forgets():
    rolling = RollingQuantile(window=4, least=3)
    rolling.add(9.0)
    rolling.add(1.0)
    assert rolling.at(0.5) is None
    rolling.add(2.0)
    assert rolling.at(0.5) == 2.0
    for score in (3.0, 4.0):
        rolling.add(score)
    assert rolling.at(0.99) == 4.0
    assert rolling.at(0.2) == 1.0


def test_scores_of_jobs_that_run_count_above_what_they_have_run():
    """Of ten scores and ten jobs that have passed the fifth, half the weight of the first five is left."""
    rolling = RollingQuantile(least=10)
    for score in range(1, 11):
        rolling.add(float(score))
    scores, levels = rolling.levels(np.zeros(0))
    assert scores.tolist() == list(range(1, 11))
    assert levels == pytest.approx(np.arange(1, 11) / 10)
    _, levels = rolling.levels(np.full(10, 5.5))
    assert levels[:5] == pytest.approx(np.arange(1, 6) / 20)
    assert levels[5:] == pytest.approx(0.25 + 0.75 * np.arange(1, 6) / 5)


def test_the_level_asked_for_moves_with_what_is_missed():
    held = HeldLevel(0.9, rate=0.01)
    held.missed()
    assert held.asked == pytest.approx(0.909)
    for _ in range(9):
        held.kept()
    assert held.asked == pytest.approx(0.9)


def test_a_job_past_its_bound_is_told_once_and_before_it_ends():
    running = RunningJobs(1, room=3)
    expected = np.array([0.1, 0.5, 1.0]), np.array([0.3, 0.8, 1.0])
    for number in (7, 8):
        running.begin(number, (100.0 * number, 1000.0), expected, np.array([0.5]))
    assert running.newly_passed(1200.0).tolist() == [0]  # job 7 at its bound
    assert running.scores(1200.0).tolist() == [0.3, 0.8]
    assert running.newly_passed(1201.0).tolist() == [1]
    assert running.newly_passed(1250.0).tolist() == [0]
    assert running.end(7).tolist() == [True]
    assert running.newly_passed(9999.0).tolist() == [1]
    assert running.scores(9999.0).tolist() == [
        0.8
    ]  # cut at its request: only that it is not shorter
    assert running.end(8).tolist() == [True]


def test_a_job_past_its_request_has_not_missed_a_bound_at_the_request():
    running = RunningJobs(1, room=1)
    running.begin(1, (0.0, 10.0), (np.ones(1), np.ones(1)), np.ones(1))
    assert running.newly_passed(11.0).tolist() == [0]


def test_the_bound_keeps_its_level_where_long_jobs_come_in_campaigns():
    """Bursts of fifty alike jobs that run longer than the time between bursts."""
    rng = np.random.default_rng(3)
    n, burst = 4000, 50
    submit = np.repeat(np.cumsum(rng.exponential(40_000, n // burst)), burst)
    share = np.repeat(rng.lognormal(-2.0, 0.7, n // burst), burst) * rng.lognormal(0, 0.2, n)
    jobs = log(
        86400 * np.minimum(share, 1.0),
        submit_s=submit + rng.uniform(0, 600, n),
        requested_s=86400.0,
        user=np.repeat(rng.integers(0, 3, n // burst), burst),
    )
    table = walltime.score(walltime.predict_log(jobs, [LikeJobs()]))
    assert table["under"][1] == pytest.approx(0.05, abs=0.02)


def test_a_comparison_is_paired():
    table = walltime.compare(drawn(600), n_boot=200)
    best = table.filter(method=table["best_peer"][0])
    assert best.select("ratio", "ratio_lo", "ratio_hi").row(0) == (1.0, 1.0, 1.0)
    assert (table["ratio_lo"] <= table["ratio"] + 1e-9).all()
    assert table.height == len([n for each in walltime.all_predictors() for n in each.names])


def test_jobs_that_cannot_be_used_are_left_out():
    jobs = log([1, 0, 3, 4, 5], requested_s=[9, 9, 9, 0, 9])
    jobs = jobs.with_columns(user=pl.when(pl.col("run_s") == 5).then(None).otherwise("user"))
    assert walltime.usable_jobs(jobs)["job"].to_list() == [0, 2]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: walltime.usable_jobs(log([1]).head(0)), InsufficientDataError, "none of 0"),
        (
            lambda: walltime.usable_jobs(log([1]).with_columns(run_s=pl.lit("a"))),
            SchemaError,
            "run_s",
        ),
        (lambda: walltime.predict_log(log([1]), []), ConfigError, "no predictor"),
        (
            lambda: walltime.predict_log(log([1]), [LikeJobs(), LikeJobs()]),
            ConfigError,
            "like jobs, median",
        ),
        (lambda: walltime.compare(log([1]), peers=["request"]), ConfigError, "requested"),
        (lambda: walltime.compare(log([1]), peers=[]), ConfigError, "at least one peer"),
        (lambda: LikeJobs((1.0,)), ConfigError, "below 1"),
    ],
)
def test_errors_say_what_is_wrong(call, error, said):
    with pytest.raises(error, match=said):
        call()
