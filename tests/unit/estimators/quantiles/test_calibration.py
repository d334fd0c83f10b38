"""Levels by group with tasks as units; where every job is a task, they are MAPIE's."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.estimators.quantiles.estimator import MOST_KEPT, Calibration, Scores
from brokerlab.estimators.quantiles.models import Apart, score_of, value_at

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


def test_as_mapie_by_group_where_every_job_is_a_task():
    """MAPIE's two-sided bounds of twice the risk, signed scores, one regressor per group."""
    from mapie.conformity_scores import AbsoluteConformityScore
    from mapie.regression import SplitConformalRegressor
    from sklearn.dummy import DummyRegressor

    rng = np.random.default_rng(0)
    score = rng.standard_t(3, 900)
    group = np.repeat([0, 1, 2], 300)
    ours = Calibration.of(score, np.arange(900), "abc", group)
    zero = DummyRegressor(strategy="constant", constant=0.0).fit([[0.0]], [0.0])
    for place, name in enumerate("abc"):
        theirs = SplitConformalRegressor(
            zero,
            confidence_level=[2 * level - 1 for level in LEVELS[1:]],
            conformity_score=AbsoluteConformityScore(sym=False),
            prefit=True,
        )
        own = score[group == place]
        theirs.conformalize(np.zeros((300, 1)), own)
        _, bounds = theirs.predict_interval(np.zeros((1, 1)))
        found = [ours.score(name, level) for level in LEVELS[1:]]
        assert [each for each, _ in found] == pytest.approx(bounds[0, 1], abs=1e-12)
        assert {holds for _, holds in found} == {"a new task"}


def test_tasks_count_the_same():
    score = np.concatenate([np.zeros(900), np.arange(100.0) + 1])
    task = np.concatenate([np.zeros(900, int), np.arange(100) + 1])
    found = Calibration.of(score, task, ["g"], np.zeros(1000, int))
    assert (
        found.score("g", 0.5)[0] == 50
    )  # 0.5 x 102 / 101 of 101 tasks, the first being the large one
    assert found.score("another", 0.5)[0] == 50


def test_a_new_task_is_covered_however_alike_its_jobs():
    """With 30 tasks of ten equal jobs each, pooled jobs would promise 95 % and hold less."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        level = rng.normal(size=31)
        score = np.repeat(level[:30], 10)
        bound, _ = Calibration.of(
            score, np.repeat(np.arange(30), 10), ["g"], np.zeros(300, int)
        ).score("g", 0.95)
        held.append(level[30] <= bound)
    assert np.mean(held) + 2 * np.sqrt(0.95 * 0.05 / 400) >= 0.95


def test_few_tasks_fall_back_and_say_so():
    rng = np.random.default_rng(2)
    task = np.concatenate([np.arange(50), np.repeat([90, 91], 60)])
    names, group = ("many", "few"), np.repeat([0, 1], [50, 120])
    score = np.concatenate([rng.normal(size=50), rng.normal(5, 1, 120)])
    found = Calibration.of(score, task, names, group)
    assert found.score("few", 0.9) == found.score("unheard", 0.9) != found.score("many", 0.9)
    alone = Calibration.of(score[50:], task[50:], names, group[50:])
    assert alone.score("few", 0.9)[1] == "these tasks"
    assert alone.score("few", 0.999) == (np.inf, "no bound")
    assert Calibration({}, None).score("g", 0.5) == (0.0, "not calibrated")
    told = alone.table((0.9, 0.999))
    assert told["holds_for"].to_list() == ["these tasks", "no bound"] * 2
    assert told["tasks"].to_list() == [2] * 4


def test_levels_never_fall_and_killed_jobs_are_above_all():
    rng = np.random.default_rng(3)
    for tasks in (1, 5, 25, 60):
        score = rng.normal(size=tasks * 20)
        score[::25] = np.inf
        found = Calibration.of(
            score, np.repeat(np.arange(tasks), 20), ["g"], np.zeros(score.size, int)
        )
        levels = [found.score("g", level)[0] for level in np.arange(0.01, 1, 0.01)]
        assert (np.diff(np.nan_to_num(levels, posinf=1e9)) >= 0).all()
        assert levels[-1] == np.inf
        assert found.score("g", 0.5)[0] < 1.5


def test_thinned_scores_are_never_too_low():
    score = np.random.default_rng(4).normal(size=3 * MOST_KEPT)
    task = np.arange(score.size) % 500
    kept = Scores.of(score, task)
    assert kept.score.size <= MOST_KEPT
    exact = np.sort(score)
    for level in LEVELS:
        at, _ = kept.at(level)
        need = level * 501 / 500
        assert (exact <= at).mean() >= need - 1e-9
        assert (exact <= at).mean() <= need + 2 / MOST_KEPT


def test_states_return():
    found = Calibration.of(np.arange(60.0), np.arange(60), "gh", np.tile([0, 1], 30))
    again = Calibration.from_state(found.state())
    assert again.table(LEVELS).equals(found.table(LEVELS))
    empty = Calibration.from_state(Calibration({}, None).state())
    assert empty.together is None


def test_scores_and_values_are_inverse():
    rng = np.random.default_rng(5)
    apart = Apart.of(np.array([0.0, 0.1, 0.3]), learnt=True)
    quantiles = apart.rearranged(rng.normal(size=(200, 3)))
    assert (np.diff(quantiles, axis=1) >= 0.0099).all()
    z = rng.normal(0, 2, 200)
    assert score_of(quantiles, value_at(quantiles, z)) == pytest.approx(z)
    assert value_at(quantiles, np.zeros(200)) == pytest.approx(quantiles[:, 0])
    alike = Apart.of(np.array([0.0, 0.1, 0.3]), learnt=False).rearranged(quantiles)
    assert np.diff(alike, axis=1) == pytest.approx(np.tile([0.1, 0.2], (200, 1)))
