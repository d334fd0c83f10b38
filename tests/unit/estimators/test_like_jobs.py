"""Like jobs on small logs: nothing of the future, what is said while nothing is known, bounds held to their level."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from brokerlab.errors import ConfigError
from brokerlab.estimators import held
from brokerlab.estimators.estimator import order
from brokerlab.estimators.held import CHANCE, HeldBounds, count_misses
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.hierarchy.kernels import keep
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.records import checked
from brokerlab.estimators.scoring.judged import exact
from brokerlab.estimators.sources import of_log
from tests.estimator_kit import assert_never_looks_ahead, random_records
from tests.examples import examples

NONE = np.zeros((3, 1), np.int64)
"""Nothing was promised yet."""


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


def ours():
    return HeldBounds(LikeJobs("walltime"), "walltime")


def said(jobs, levels=(0.95,)):
    records = of_log(jobs).records
    return records, ours().replay(records, levels=levels)


def misses(jobs, levels):
    """Share of the later half that runs longer."""
    records, found = said(jobs, levels)
    used = records["used"].to_numpy()[len(records) // 2 :, None]
    return (used > found.bounds[len(records) // 2 :]).mean(axis=0)


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
@pytest.mark.parametrize(
    "made", [LikeJobs, lambda q: HeldBounds(LikeJobs(q), q), lambda q: HeldBounds(Hierarchy(q), q)]
)
def test_nothing_of_the_future_is_known(quantity, made):
    records = random_records(50, seed=3, tasks=3, quantity=quantity)
    assert_never_looks_ahead(made(quantity), records, cuts=3, rtol=1e-9)


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 139), factor=st.floats(0.1, 50))
def test_run_times_of_open_jobs_do_not_matter(seed, cut, factor):
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
    before, after = (said(each)[1] for each in (jobs, other))
    assert np.array_equal(before.point[: cut + 1], after.point[: cut + 1])
    assert np.array_equal(before.bounds[: cut + 1], after.bounds[: cut + 1])


def test_predictions_stay_within_the_request():
    records, found = said(drawn(300), (0.5, 0.95, 0.99))
    limit = records["requested"].to_numpy()
    assert ((found.point > 0) & (found.point <= limit)).all()
    assert ((found.bounds > 0) & (found.bounds <= limit[:, None])).all()


def test_units_do_not_matter():
    jobs = drawn(200)
    times = ["submit_s", "wait_s", "run_s", "requested_s"]
    one, other = said(jobs)[1], said(jobs.with_columns(pl.col(times) * 64))[1]
    assert other.point / 64 == pytest.approx(one.point)
    assert other.bounds / 64 == pytest.approx(one.bounds)


def test_the_bound_keeps_its_level_on_planted_jobs():
    missed = misses(drawn(4000), (0.5, 0.8, 0.95))
    assert missed == pytest.approx([0.25, 0.1, 0.025], abs=0.025)  # half of what may
    assert missed[2] == pytest.approx(0.025, abs=0.012)


def test_a_job_stopped_at_its_limit_takes_every_limit():
    """Ten jobs killed at 100 s say that the next may need all of what it asks for."""
    jobs = log([100] * 10 + [1], requested_s=[100] * 10 + [150])
    assert said(jobs)[1].point[-1] == pytest.approx(150)


def test_where_no_like_job_was_seen_what_the_user_ran_counts():
    """A user whose jobs run nine seconds asks for 62 days: nobody asked for so long before."""
    jobs = log([9] * 120 + [9], requested_s=[30, 300, 3000] * 40 + [62 * 86400.0])
    assert said(jobs)[1].point[-1] < 100


def test_jobs_that_were_not_predicted_are_replayed():
    """One update with finished jobs is the same as having predicted each as it was decided."""
    records = random_records(160, seed=5, tasks=2, quantity="memory")
    records = checked(records.filter(pl.col("ended_s").is_not_null()))
    levels = (0.5, 0.9)
    at_once = HeldBounds(Hierarchy("memory"), "memory", levels=levels).update(records)
    one_by_one = HeldBounds(Hierarchy("memory"), "memory", levels=levels)
    for event in order(records).tolist():
        if event < 0:
            one_by_one.predict(records.slice(~event, 1), levels=levels)
        else:
            one_by_one.update(records.slice(event, 1))
    new = records.head(1).with_columns(pandaid=pl.lit(10**9, pl.Int64))
    said = [each.predict(new, levels=levels) for each in (at_once, one_by_one)]
    assert said[0].row(0) == pytest.approx(said[1].row(0), rel=1e-3)
    assert said[0]["promised_0.9"].item()


def test_until_something_is_known_the_request_is_predicted():
    records, found = said(log([5], requested_s=500.0))
    assert (found.point[0], found.bounds[0, 0]) == pytest.approx((500.0, 500.0))
    unasked = records.with_columns(requested=pl.lit(None, pl.Float64))
    assert ours().replay(unasked, levels=(0.95,)).bounds[0, 0] == np.inf


def test_an_update_takes_less_than_two_milliseconds():
    records, _ = said(drawn(1000))
    estimator = LikeJobs("walltime")
    took = time.process_time()
    estimator.replay(records, levels=(0.95,))
    assert (time.process_time() - took) / 1000 < 0.002


def kept(*scores):
    latest, ascending = np.empty((2, 4))
    for count, score in enumerate(scores):
        keep(latest, ascending, count, score)
    return ascending.tolist()


def test_old_scores_are_forgotten():
    assert kept(9.0, 1.0, 2.0)[:3] == [1.0, 2.0, 9.0]
    assert kept(9.0, 1.0, 2.0, 3.0, 4.0) == [1.0, 2.0, 3.0, 4.0]


def reached(scores, at_least, promised=()):
    n = len(scores)
    misses = held.Misses(np.array(scores), np.array(scores), np.array([n]), np.array([0.1]), *NONE)
    found, levels = np.empty((2, n + max(len(promised), 1)))
    total = held.reach(misses, np.array(promised, float), np.array(at_least, float), found, levels)
    return found[:total], levels[:total]


def test_the_promise_counts_as_fifty_jobs():
    """Fifty scores at 0.9 beside ten promised ones from 0.1 to 1."""
    scores, levels = reached([0.9] * 50, [], np.arange(1, 11) / 10)
    assert scores[-1] == 1.0
    assert levels[np.searchsorted(scores, 0.8, side="right") - 1] == pytest.approx(0.4)
    assert levels[np.searchsorted(scores, 0.9, side="right") - 1] == pytest.approx(0.95)


def test_scores_of_jobs_that_run_count_above_what_they_have_run():
    """Of the weight of a hundred and of fifty jobs that have passed the fifth of ten scores, the first five lose a third."""
    promised = np.arange(1, 11) / 10
    _, levels = reached([], np.full(50, 0.55), promised)
    assert levels[:5] == pytest.approx(np.arange(1, 6) / 20)
    assert levels[5:] == pytest.approx(0.25 + 0.75 * np.arange(1, 6) / 5)


@given(use=st.floats(-3, 12), seed=st.integers(0, 1000))
def test_a_use_lies_at_its_score(use, seed):
    rng = np.random.default_rng(seed)
    grid = np.array([0.1, 0.5, 0.9, 0.99])
    told = np.cumsum(rng.exponential(1, 4))
    at = held.use_at(grid, told, held.score_of(grid, told, use))
    assert at == pytest.approx(use, abs=1e-9)
    told[2:] = np.inf
    score = held.score_of(grid, told, use)
    assert held.use_at(grid, told, score) == (
        pytest.approx(use, abs=1e-9) if use <= told[1] else np.inf
    )


def walked(levels, decided, started, use, **more):
    """Bounds of jobs, and the share that may still miss."""
    bounds, misses, _ = walk_through(levels, decided, started, use, **more)
    return bounds, misses.missing


def promised(levels, decided, started, use, **more):
    """Which bounds of jobs are promised."""
    return walk_through(levels, decided, started, use, **more)[2]


def walk_through(levels, decided, started, use, told=(1.0, 2.0), events=None, killed=False):
    n = len(use)
    free = np.full(n, np.inf)
    jobs = held.Jobs(
        decided=np.array(decided, float), started=np.array(started, float), use=np.array(use, float),
        limit=free, killed=np.full(n, killed), asked=free, seen=np.full(n, 1000),
        bounds=np.log(np.tile(told, (n, 1))),
    )  # fmt: skip
    room = np.empty((2, 10))
    none = np.zeros((3, len(levels)), np.int64)
    aimed = held.AIMED * (1 - np.array(levels))
    misses = held.Misses(room[0], room[1], np.zeros(1, np.int64), aimed, *none)
    bounds = np.full((n, len(levels)), np.inf)
    own = np.zeros(bounds.shape, dtype=bool)
    grid = np.array([0.5, 0.9])
    held.walk(
        np.array(events), jobs, np.argsort(started), grid, np.array([0.5, 0.9]), np.array(levels),
        misses, bounds, own, held._may_miss(levels, misses, n),
    )  # fmt: skip
    return bounds, misses, own


def test_the_level_asked_for_moves_with_what_is_missed():
    _, missing = walked([0.9], [0, 10], [9, 19], [5.0, 1.0], events=[~0, 0, ~1, 1])
    assert missing[0] == pytest.approx(0.05 - 0.95 / 51 + 0.05 / 52)


def test_later_jobs_move_the_level_less():
    n = 300
    events = [e for k in range(n) for e in (~k, k)]
    _, missing = walked([0.9], range(n), [np.nan] * n, [1.0] * n, events=events)
    steps = sum(max(held.RATE, 1 / (held.TRUSTED + k)) for k in range(1, n + 1))
    assert missing[0] == pytest.approx(0.05 + 0.05 * steps)


def test_a_job_past_its_bound_counts_once_and_before_it_ends():
    """It starts at 1, its bound is 2 s: missed is known to the decision at 4, not to the one at 2."""
    seen = [~0, ~1, ~2, 0]
    at_2 = walked([0.9], [0, 2, 4], [1, 9, 9], [8.0, 1.0, 1.0], events=seen[:2])[1]
    assert at_2[0] == pytest.approx(0.05)
    at_4 = walked([0.9], [0, 2, 4], [1, 9, 9], [8.0, 1.0, 1.0], events=seen[:3])[1]
    assert at_4[0] == pytest.approx(0.05 - 0.95 / 50)
    after = walked([0.9], [0, 2, 4], [1, 9, 9], [8.0, 1.0, 1.0], events=seen)[1]
    assert after[0] == pytest.approx(0.05 - 0.95 / 50)


def test_where_no_job_may_miss_the_bound_is_at_the_largest_score():
    """Misses in a row: the tenth job is bounded by the use of the ninth, each ten times the one before."""
    n = 10
    events = [e for k in range(n) for e in (~k, k)]
    use = [1e9 * 10**k for k in range(n)]
    bounds, missing = walked([0.9], range(n), [np.nan] * n, use, events=events)
    assert missing[0] < 0
    assert bounds[9, 0] == pytest.approx(use[8])


def test_of_a_young_task_the_request_is_the_bound():
    """Of 18 jobs one more cannot be below 95 % of the time: nineteen must have ended."""
    records, found = said(log([10] * 42, requested_s=500.0), (0.5, 0.95))
    assert found.bounds[:19, 1] == pytest.approx(500.0)
    assert (found.bounds[19:, 1] < 500).all()
    assert (found.bounds[1:, 0] < 500).all()
    assert found.promised(0.95).tolist() == [False] * 19 + [True] * 23
    unasked = records.with_columns(requested=pl.lit(None, pl.Float64))
    assert np.isinf(ours().replay(unasked, levels=(0.95,)).bounds[:19, 0]).all()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_if_all_open_promises_were_missed_the_level_could_still_be_the_stated_one(level):
    """Two hundred jobs keep their bounds, then five hundred are told theirs at once: as many have one as the exact interval bears."""
    first, burst = range(200), range(200, 700)
    events = [*(e for k in first for e in (~k, k)), *(~k for k in burst)]
    own = promised([level], range(700), [np.nan] * 700, [1.0] * 700, events=events)[:, 0]
    kept, at_once = own[:200].sum(), own[200:].sum()
    assert kept == 200
    assert exact(kept, kept + at_once, 0.95).hi >= level
    assert exact(kept, kept + at_once + 1, 0.95).hi < level
    assert own[200 : 200 + at_once].all()


def test_after_misses_one_at_a_time_is_promised_at_the_largest_score():
    """The first two promises are missed, as large as nothing before: of five more that are told together one has a bound."""
    events = [~0, 0, ~1, 1, *(~k for k in range(2, 7))]
    use = [1e3, 1e9, *[1.0] * 5]
    bounds, _, own = walk_through([0.9], range(7), [np.nan] * 7, use, events=events)
    assert own[:, 0].tolist() == [True, True, True, *[False] * 4]
    assert bounds[2, 0] == pytest.approx(1e9)


def test_what_killed_jobs_needed_is_no_largest_score():
    """The first job ran, the second was killed above its bound: no promise may be missed, and the third may have the largest use known."""
    events = [~0, 0, ~1, 1, ~2]
    bounds, _, own = walk_through(
        [0.5], range(3), [np.nan] * 3, [1e3, 1e9, 1.0], events=events, killed=[False, True, False]
    )
    assert own[:, 0].all()
    assert bounds[2, 0] == pytest.approx(1e3)


def test_a_level_that_is_refused_is_told_no_more_than_a_promised_one_above_it():
    frame = checked(random_records(2, seed=1, quantity="memory"))
    frame = frame.with_columns(requested=pl.lit(500.0))
    bounds, own = np.array([[10.0, 20.0]] * 2), np.array([[False, True], [False, False]])
    jobs = held._jobs(frame, np.zeros((2, 1)), np.zeros(2, int), "memory")
    found = held._promised(frame, np.zeros(2, int), (0.5, 0.95), bounds, own, np.ones(2), jobs)
    assert found.bounds.tolist() == [[20.0, 20.0], [500.0, 500.0]]


def test_promised_bounds_keep_their_level_where_long_jobs_come_in_campaigns():
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
    records, found = said(jobs)
    kept = (records["used"].to_numpy() <= found.at(0.95))[found.promised(0.95)]
    assert kept.size > n / 20
    assert exact(kept.sum(), kept.size, 0.95).hi >= 0.95


def test_an_unknown_quantity_is_refused():
    with pytest.raises(ConfigError, match="walltime"):
        LikeJobs("walltim")


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.95, 0.999])
def test_what_may_be_missed_is_a_quantile_of_the_binomial(level):
    most = np.empty(5_000, dtype=np.int64)
    count_misses(1 - level, most)
    assert np.array_equal(most, stats.binom.ppf(1 - CHANCE, np.arange(5_000), 1 - level))
