"""The judge on histories drawn from a synthetic superpopulation: a small version of ``python -m benchmarks.truth``."""

from __future__ import annotations

import pytest

from benchmarks import truth

SMALL = {"histories": 40, "seed": 5, "n_boot": 200, "sizes": (50, 200)}
GRID = tuple((rank, margin) for rank in range(50, 100, 4) for margin in range(0, 31, 3))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """About 400 tasks without drift."""
    folder = tmp_path_factory.mktemp("superpopulation")
    return truth.World.drawn(folder, jobs=200_000, seed=77, drift=0.0, grid=GRID)


@pytest.mark.long
@pytest.mark.parametrize(
    "lines", [truth.fixed_coverage, truth.chosen_coverage, truth.false_proposals]
)
def test_the_promises_of_the_judge_are_kept(world, lines):
    short = [str(line) for line in lines(world, **SMALL) if not line.ok]
    assert not short


@pytest.mark.long
def test_a_better_setting_is_found_where_there_is_one(world):
    made = list(truth.power({"no drift": world}, **SMALL))
    assert [str(line) for line in made if not line.ok] == []
    assert sum(line.what.startswith("acts, ") for line in made) == 4


def test_a_line_is_short_where_chance_does_not_explain_it():
    assert truth.Line("kept", 3, 40, most=0.05).ok
    assert not truth.Line("missed", 9, 40, most=0.05).ok
    assert not truth.Line("too rare", 30, 40, least=0.93).ok
    assert str(truth.Line("x", 9, 40, most=0.05)).endswith("asked 0 to 5 %: short")


@pytest.mark.long
def test_the_best_setting_keeps_its_limit_in_truth(world):
    best = truth.best_within(world, 0.02)
    loss, kills = world.mean("loss"), world.mean("exceed_rate")
    assert kills[best] <= 0.02
    assert loss[best] == loss[kills <= 0.02].min()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")
def test_a_planted_threshold_is_changed_and_a_right_one_is_not():
    lines = list(truth.planted([5], keys=["NQUEUED_SAT_CAP"]))
    assert [(line.n, line.of) for line in lines] == [(0, 1), (1, 1)]
    assert all(line.ok for line in lines)
