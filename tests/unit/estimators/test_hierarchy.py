"""The hierarchical estimate against dense Bayesian algebra, and what it promises in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.stats import multivariate_t

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.hierarchy import Hierarchy, kernels
from brokerlab.estimators.hierarchy.estimator import (
    ATOMS,
    JOBS_SEEN,
    OWN_TASKS,
    Levels,
    State,
    mixed_atoms,
    own_atoms,
)
from brokerlab.estimators.hierarchy.prior import FIRST, log_likelihood, sums_of
from tests.estimator_kit import assert_never_looks_ahead, random_records

D = 4
BELIEFS = FIRST["memory"]


def planted(n_tasks, n_jobs=40, *, seed=0, scouts=5, first=0, spread=0.08, queue_sd=0.05):
    """Tasks whose scouts run at one queue, before all others; all with the same kind."""
    rng = np.random.default_rng(seed)
    frames = []
    for task in range(first, first + n_tasks):
        queue = np.where(np.arange(n_jobs) < scouts, 0, rng.integers(0, 6, n_jobs))
        effect = rng.normal(0, queue_sd, 6)
        cores = np.where(queue % 2 == 0, 8, 4)
        level = rng.normal(np.log(1000), 0.7)
        used = level + 0.75 * np.log(cores) + effect[queue] + rng.normal(0, spread, n_jobs)
        is_scout = np.arange(n_jobs) < scouts
        decided = np.where(is_scout, 0.0, 1000.0 + 400 * np.arange(n_jobs)) + 1e6 * task
        frames.append(
            pl.DataFrame(
                {
                    "pandaid": task * 1000 + np.arange(n_jobs),
                    "jeditaskid": np.full(n_jobs, task),
                    "queue": [f"Q{each}" for each in queue],
                    "cores": cores,
                    "is_scout": is_scout,
                    "decided_s": decided,
                    "ended_s": decided + 900,
                    "used": np.exp(used),
                    "censored": np.zeros(n_jobs, dtype=bool),
                    "wall_s": np.full(n_jobs, 900.0),
                }
            )
        )
    return pl.concat(frames)


@pytest.fixture(scope="module")
def fitted():
    return Hierarchy("memory").fit(planted(60)).conformalize(planted(30, seed=1, first=60))


def dense(x, queue, y, at_x, at_queue):
    """Location and scale of one more job by one dense linear model with a column per queue."""
    variance = BELIEFS.residual_sd**2
    columns = np.eye(4)[queue]
    full = np.column_stack([x, columns])
    prior = np.concatenate([BELIEFS.sd**2, np.full(4, BELIEFS.queue_sd**2)]) / variance
    mean = np.concatenate([BELIEFS.mean, np.zeros(4)])
    precision = np.diag(1 / prior) + full.T @ full
    right = mean / prior + full.T @ y
    solution = np.linalg.solve(precision, right)
    left = y @ y + mean @ (mean / prior) - solution @ right
    a, b = BELIEFS.shape + len(y) / 2, BELIEFS.shape * variance + left / 2
    row = np.concatenate([at_x, np.eye(4)[at_queue]])
    return row @ solution, np.sqrt(b / a * (1 + row @ np.linalg.solve(precision, row)))


@pytest.mark.parametrize("n", [0, 1, 3, 25])
def test_what_is_known_of_a_task_is_the_posterior_of_the_dense_model(n):
    rng = np.random.default_rng(n)
    x = np.column_stack([np.ones(n + 1), rng.normal(0, 1, (n + 1, D - 1))])
    queue, y = rng.integers(0, 4, n + 1), rng.normal(7, 1, n + 1)
    state = State(D)
    state.tasks, state.pairs = {0: 0}, {(0, str(q)): q for q in range(4)}
    state._reserve()
    prior = Hierarchy("memory").prior()
    for k in range(n):
        kernels.learn(state.known, prior, 0, queue[k], x[k], y[k])
    for at in range(4):
        got = kernels.foresee(state.known, prior, 0, at, x[n])
        np.testing.assert_allclose(got, dense(x[:n], queue[:n], y[:n], x[n], at), rtol=1e-9)


def test_the_likelihood_of_tasks_is_that_of_their_multivariate_t():
    rng = np.random.default_rng(3)
    expected, rows = 0.0, []
    for task, n in enumerate((1, 4, 9)):
        x = np.column_stack([np.ones(n), rng.normal(0, 1, (n, D - 1))])
        queue, y = np.sort(rng.integers(0, 3, n)), rng.normal(0, 1, n)
        shape = (
            np.eye(n) + (queue[:, None] == queue) * (BELIEFS.queue_sd / BELIEFS.residual_sd) ** 2
        )
        shape += x @ np.diag(BELIEFS.sd**2 / BELIEFS.residual_sd**2) @ x.T
        variance = BELIEFS.residual_sd**2
        told = multivariate_t(x @ BELIEFS.mean, variance * shape, df=2 * BELIEFS.shape)
        expected += told.logpdf(y)
        rows += [
            (task, f"{task}/{q}", *each, value) for q, each, value in zip(queue, x, y, strict=True)
        ]
    pairs = {name: number for number, name in enumerate(dict.fromkeys(row[1] for row in rows))}
    sums = sums_of(
        np.array([row[0] for row in rows]),
        np.array([pairs[row[1]] for row in rows]),
        np.array([row[2:-1] for row in rows]),
        np.array([row[-1] for row in rows]),
    )
    assert log_likelihood(sums, BELIEFS) == pytest.approx(expected, rel=1e-9)


def test_it_never_looks_ahead():
    estimator = (
        Hierarchy("memory").fit(random_records(80, seed=1)).conformalize(random_records(50, seed=2))
    )
    assert_never_looks_ahead(estimator, random_records(40), rtol=1e-9)


def test_the_planted_spreads_are_found(fitted):
    assert fitted.beliefs.queue_sd == pytest.approx(0.05, rel=0.2)
    assert fitted.beliefs.residual_sd == pytest.approx(0.08, rel=0.15)
    assert fitted.beliefs.sd[0] == pytest.approx(0.7, rel=0.3)
    assert fitted.beliefs.mean[1] == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_bounds_hold_their_level_on_new_tasks_after_scouts_at_one_queue(fitted, level):
    records = planted(150, seed=5, first=200)
    found = fitted.replay(records, levels=(level,))
    judged = ~records.sort("decided_s", "pandaid")["is_scout"].to_numpy()
    used = records.sort("decided_s", "pandaid")["used"].to_numpy()
    kept = (used <= found.at(level))[judged].reshape(150, -1).mean(axis=1)
    assert kept.mean() == pytest.approx(level, abs=3.5 * kept.std() / np.sqrt(150))


def pinball(used, bound, level):
    return np.where(used > bound, level * (used - bound), (1 - level) * (bound - used)).mean()


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
def test_the_order_of_rows_changes_nothing_and_units_scale_bounds(quantity):
    learnt, other, asked = (
        random_records(60, tasks=6, seed=seed, quantity=quantity) for seed in (1, 2, 3)
    )

    def bounds(*parts):
        fit, conformalize, replay = parts
        return Hierarchy(quantity).fit(fit).conformalize(conformalize).replay(replay, levels=(0.9,))

    expected = bounds(learnt, other, asked).bounds
    mixed = [each.sample(fraction=1, shuffle=True, seed=5) for each in (learnt, other, asked)]
    np.testing.assert_array_equal(bounds(*mixed).bounds, expected)
    tenfold = [each.with_columns(pl.col("used") * 10) for each in (learnt, other, asked)]
    np.testing.assert_allclose(bounds(*tenfold).bounds, 10 * expected, rtol=1e-4)


def test_few_scouts_help_and_do_not_hurt(fitted):
    losses = {}
    for scouts in (0, 1, 3, 10):
        after = planted(100, seed=6, first=400, scouts=scouts)
        known = after.filter("is_scout")
        rest = after.filter(~pl.col("is_scout"), pl.int_range(pl.len()).over("jeditaskid") >= 20)
        online = Hierarchy.from_state(fitted.state())
        if scouts:
            online.update(known)
        used = rest.sort("decided_s", "pandaid")["used"].to_numpy()
        bound = online.predict(rest, levels=(0.9,))["bound_0.9"].to_numpy()
        losses[scouts] = pinball(used, bound, 0.9)
        if scouts == 3:  # what the largest of the three scouts alone would do
            largest = known.group_by("jeditaskid").agg(top=pl.col("used").max())
            alone = rest.sort("decided_s", "pandaid").join(largest, on="jeditaskid", how="left")
            assert losses[3] < pinball(used, alone["top"].to_numpy(), 0.9)
    assert losses[10] < losses[3] < losses[1] < losses[0]


def test_killed_jobs_raise_what_is_expected_more_than_jobs_that_ended_there(fitted):
    task = planted(1, seed=7, first=900)
    seen, asked = task.head(20), task.tail(20)
    limit = seen["used"].quantile(0.8)
    cut = seen.with_columns(used=pl.min_horizontal("used", pl.lit(limit)))
    killed = cut.with_columns(censored=pl.col("used") >= limit)

    def bound(records):
        online = Hierarchy.from_state(fitted.state()).update(records)
        return online.predict(asked, levels=(0.5,))["bound_0.5"].mean()

    assert bound(cut) < bound(killed)
    assert abs(np.log(bound(killed) / bound(seen))) < abs(np.log(bound(cut) / bound(seen)))
    everything = Hierarchy.from_state(fitted.state()).update(seen.with_columns(censored=True))
    said = everything.predict(asked, levels=(0.95,))
    assert said["bound_0.95"].is_finite().all()
    assert (said["bound_0.95"] > 1.5 * seen["used"].max()).all()
    assert said["seen"].to_list() == [0] * 20


def test_one_job_far_off_does_not_lift_bounds_beyond_what_it_used(fitted):
    task = planted(1, seed=7, first=900)
    outlier = pl.int_range(pl.len()) == 24
    seen = task.with_columns(used=pl.col("used") * pl.when(outlier).then(30.0).otherwise(1.0))
    online = Hierarchy.from_state(fitted.state()).update(seen.head(25))
    said = online.predict(task.tail(15), levels=(0.5, 0.95))
    assert (said["bound_0.95"] < 2 * seen["used"].max()).all()
    assert (said["bound_0.5"] < 5 * task["used"].median()).all()


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_numbers_that_say_nothing_are_as_good_as_none(quantity, value):
    names = ["requested", "input_mb", "corepower"]
    nothing, odd = (
        [
            random_records(60, tasks=6, seed=seed, quantity=quantity).with_columns(
                pl.lit(each, dtype=pl.Float64).alias(name) for name in names
            )
            for seed in (1, 2)
        ]
        for each in (None, value)
    )
    expected, found = (
        Hierarchy(quantity).fit(learnt).replay(asked, levels=(0.9,))
        for learnt, asked in (nothing, odd)
    )
    np.testing.assert_array_equal(found.bounds, expected.bounds)


def test_a_first_job_that_tells_nothing_does_not_silence_its_task(fitted):
    task = planted(1, seed=9, first=900).with_columns(
        input_mb=pl.when(pl.int_range(pl.len()) > 0).then(10.0 * (1 + pl.int_range(pl.len()) % 30))
    )
    task = task.with_columns(used=pl.col("used") * (pl.col("input_mb").fill_null(1) / 10) ** 0.3)
    online = Hierarchy.from_state(fitted.state()).update(task.head(30))
    same = task.slice(35, 1)
    more, less = (same.with_columns(input_mb=pl.lit(size)) for size in (300.0, 10.0))
    points = [online.predict(each, levels=(0.5,))["point"][0] for each in (more, less)]
    assert points[0] > 1.3 * points[1]


@pytest.mark.parametrize("shuffled", [False, True])
def test_scouts_seen_at_once_say_what_they_say_in_a_replay(fitted, shuffled):
    task = planted(1, seed=3, first=900, scouts=10).with_columns(
        requested=400.0 * pl.col("cores"),
        events=pl.Series([None, 10, 40] * 13 + [20]),
        ended_s=pl.col("ended_s") - pl.int_range(pl.len()),  # the last ends first
    )
    scouts, rest = task.filter("is_scout"), task.filter(~pl.col("is_scout")).head(1)
    if shuffled:
        scouts = scouts.sample(fraction=1, shuffle=True, seed=1)
    online = Hierarchy.from_state(fitted.state()).update(scouts)
    replayed = fitted.replay(pl.concat([scouts, rest]), levels=(0.5, 0.9))
    said = online.predict(rest, levels=(0.5, 0.9))
    got = said.select("point", "bound_0.5", "bound_0.9").row(0)
    np.testing.assert_allclose(got, [replayed.point[-1], *replayed.bounds[-1]], rtol=1e-9)
    assert said["seen"][0] == replayed.seen[-1] == 10


def test_what_jobs_without_an_end_would_use_calibrates_nothing():
    learnt, others = planted(20), planted(10, seed=1, first=60)
    unended = pl.int_range(pl.len()) % 3 == 0
    never = others.with_columns(ended_s=pl.when(~unended).then("ended_s"))
    large = never.with_columns(used=pl.col("used") * pl.when(unended).then(100.0).otherwise(1.0))
    one, other = (Hierarchy("memory").fit(learnt).conformalize(each) for each in (never, large))
    np.testing.assert_array_equal(one.atoms, other.atoms)


@pytest.mark.parametrize("n", [1, 2, 4, 30])
def test_what_is_expected_of_a_task_does_not_know_its_own_level(n):
    """Else tasks would look more alike than they are, and bounds of new ones would be too sure."""
    rng = np.random.default_rng(n)
    kinds = pl.Series("kind", rng.choice(["reco", "evgen"], n), dtype=pl.String)
    tasks = pl.DataFrame([kinds, pl.Series("requested", rng.choice([2000.0, 4000.0], n))])
    level = rng.normal(7, 1, n)
    _, expected = Levels.fit(tasks, level, "memory")
    for one in {0, n - 1}:
        moved = level + 5 * (np.arange(n) == one)
        _, again = Levels.fit(tasks, moved, "memory")
        assert again[one] == pytest.approx(expected[one], abs=1e-9)


def test_sums_of_many_jobs_stay_exact():
    """Against rows whose queue means are taken out first: far from what was expected, hardly any scatter."""
    rng = np.random.default_rng(0)
    n, queues, at = 4000, 20, 3
    x = np.column_stack([np.ones(n), rng.normal(0, 1, (n, D - 1))])
    queue = rng.integers(0, queues, n)
    y = (
        3
        + x[:, 1:] @ [0.7, 0.1, 0.05]
        + rng.normal(0, 0.05, queues)[queue]
        + rng.normal(0, 1e-3, n)
    )
    state, prior = State(D), Hierarchy("memory").prior()
    state.tasks, state.pairs = {0: 0}, {(0, str(q)): q for q in range(queues)}
    state._reserve()
    for k in range(n):
        kernels.learn(state.known, prior, 0, queue[k], x[k], y[k])
    location, scale = kernels.foresee(state.known, prior, 0, at, x[0])
    share = [1 - 1 / np.sqrt(1 + prior.queue * np.sum(queue == q)) for q in range(queues)]
    means = [np.column_stack([x, y])[queue == q].mean(axis=0) for q in range(queues)]
    rows = (
        np.column_stack([x, y])
        - np.array([s * m for s, m in zip(share, means, strict=True)])[queue]
    )
    root = np.diag(np.sqrt(prior.precision))
    stacked = np.vstack([rows, np.column_stack([root, root @ prior.mean])])
    solution, left, *_ = np.linalg.lstsq(stacked[:, :-1], stacked[:, -1])
    variance = (prior.rate + left[0] / 2) / (prior.shape + n / 2)
    m = np.sum(queue == at)
    back = prior.queue * m / (1 + prior.queue * m)
    moved = x[0] - back * means[at][:-1]
    widened = np.linalg.solve(stacked[:, :-1].T @ stacked[:, :-1], moved) @ moved
    assert location == pytest.approx(moved @ solution + back * means[at][-1], rel=1e-10)
    spread = 1 + widened + prior.queue / (1 + prior.queue * m)
    assert scale == pytest.approx(np.sqrt(variance * spread), rel=1e-7)


def test_what_was_kept_predicts_what_it_predicted(fitted):
    records = planted(3, seed=8, first=700)
    online = Hierarchy.from_state(fitted.state()).update(records.head(50))
    again = Hierarchy.from_state(online.state())
    one, other = (each.predict(records, levels=(0.5, 0.9)) for each in (online, again))
    assert one.equals(other)
    more = records.head(10).with_columns(pl.col("pandaid") + 500)  # of queues that are known
    told = online.update(more).predict(records, levels=(0.5, 0.9))
    assert again.predict(records, levels=(0.5, 0.9)).equals(other)  # nothing is shared
    assert again.update(more).predict(records, levels=(0.5, 0.9)).equals(told)


def test_wrong_input_is_refused():
    with pytest.raises(ConfigError, match="allowed: memory, walltime"):
        Hierarchy("disk")
    with pytest.raises(InsufficientDataError, match="no finished job"):
        Hierarchy("memory").fit(planted(1).with_columns(censored=True))
    with pytest.raises(ConfigError, match="ascending"):
        Hierarchy("memory").replay(planted(1), levels=(0.9, 0.5))


@pytest.mark.parametrize(
    ("part", "name", "change"),
    [
        ("seen", "xx", lambda kept: kept[:, :2]),
        ("seen", "score_pair_sorted", lambda kept: kept[:, :3]),
        ("seen", "pair_count", lambda kept: kept - 5),
        ("seen", "origin", lambda kept: kept[:, :1]),
        ("seen", "level", lambda kept: kept[:-1]),
        ("beliefs", "sd", lambda kept: kept[:2]),
        ("beliefs", "shape", str),
        (None, "atoms", lambda kept: kept[:1]),
        (None, "atoms", lambda kept: kept[:, :0]),
    ],
)
def test_what_was_kept_in_another_form_is_refused(fitted, part, name, change):
    kept = Hierarchy.from_state(fitted.state()).update(planted(2, seed=9, first=800)).state()
    where = kept if part is None else kept[part]
    where[name] = change(where[name])
    with pytest.raises(ValueError, match="of another form"):
        Hierarchy.from_state(kept)


LEVELS = np.array([0.5, 0.01, 0.3, 0.8, 0.95, 0.999])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_window_holds_the_latest_in_order_of_size_also_with_ties(size):
    rng = np.random.default_rng(size)
    latest, ascending = np.zeros(size), np.zeros(size)
    values = rng.integers(0, 5, 60).astype(float)
    for count, value in enumerate(values):
        kernels.keep(latest, ascending, count, value)
        held = values[max(count + 1 - size, 0) : count + 1]
        assert ascending[: held.size].tolist() == sorted(held)


@pytest.mark.parametrize(("own", "near"), [(0, 0), (1, 0), (3, 3), (40, 11), (700, 300)])
def test_quantiles_are_those_of_the_weighted_list(own, near):
    rng = np.random.default_rng(own + near)
    state = State(4)
    state.tasks, state.pairs = {0: 0}, {(0, "A"): 0}
    state._reserve()
    prior, deviation = Hierarchy("memory").prior(), 0.3
    misses, close = rng.integers(-9, 9, own) / 10, rng.normal(0, 0.5, near)
    for name, values in (("task", misses), ("pair", close)):
        window = getattr(state.scores, name)[0], getattr(state.scores, f"{name}_sorted")[0]
        for count, value in enumerate(values):
            kernels.keep(*window, count, value)
        getattr(state.scores, f"{name}_count")[0] = values.size
    found = np.empty(LEVELS.size)
    kernels.score_quantiles(prior, state.scores, 2, 0, 0, deviation, LEVELS, found)

    misses, close = misses[-kernels.TASK_WINDOW :], close[-kernels.PAIR_WINDOW :]
    values = np.concatenate([prior.atoms[2] * deviation, misses, close])
    weights = np.repeat(
        [kernels.PRIOR_JOBS / ATOMS, 1, kernels.PAIR_WEIGHT], [ATOMS, misses.size, close.size]
    )
    total = weights.sum()
    by = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[by])
    for level, value in zip(LEVELS, found, strict=True):
        wanted = min(level * (total + 1 - kernels.PRIOR_JOBS / total), total) - 1e-9
        assert value == values[by][np.searchsorted(reached, wanted)]
    if own == near == 0:
        assert (found == np.quantile(prior.atoms[2], LEVELS, method="inverted_cdf") * 0.3).all()


def test_the_model_alone_has_the_quantiles_of_students_t():
    beliefs = replace(FIRST["memory"], shape=2.0)
    for atoms, seen in zip(own_atoms(beliefs), JOBS_SEEN, strict=True):
        assert stats.kstest(atoms, stats.t(4 + seen).cdf).statistic < 1 / ATOMS


def test_each_task_counts_once_and_the_model_as_three():
    own = np.zeros((kernels.CLASSES, ATOMS))
    task = np.repeat([0, 1], [1000, 10])
    score = np.where(task == 0, 1.0, 2.0)
    kind = np.full(task.size, 1)
    mixed = mixed_atoms(own, task, kind, score, np.ones(task.size, dtype=bool))
    total = OWN_TASKS + 2
    shares = [np.mean(mixed[1] == value) for value in (0, 1, 2)]
    np.testing.assert_allclose(shares, [OWN_TASKS / total, 1 / total, 1 / total], atol=2 / ATOMS)
    assert (mixed[[0, 2, 3]] == 0).all()
    assert (mixed_atoms(own, task, kind, score, np.zeros(task.size, dtype=bool)) == 0).all()
