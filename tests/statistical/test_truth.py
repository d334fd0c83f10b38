"""The judge on histories drawn from a synthetic superpopulation: a small version of ``python -m benchmarks.truth``."""

from __future__ import annotations

from types import SimpleNamespace

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


@pytest.mark.parametrize("regret", [0.01, 0.2])
def test_changes_of_planted_thresholds_are_counted(regret, monkeypatch):
    """What is planted is found or not in `test_recovery.py`; here one wrong value is changed and no right one."""

    def studied(case):
        acts = SimpleNamespace(acts=case[1])
        return case, SimpleNamespace(result=SimpleNamespace(judgement=acts), regret=regret), 0.0

    monkeypatch.setattr(truth, "study", studied)
    lines = list(truth.planted([5], keys=["NQUEUED_SAT_CAP"]))
    near = int(regret < truth.TOLERATED)
    assert [(line.n, line.of, line.ok) for line in lines] == [(0, 1, True), (near, 1, True)]
    assert lines[1].note == "1 act"
