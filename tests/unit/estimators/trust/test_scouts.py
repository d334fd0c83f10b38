"""Scouts that are not like their task are found."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.trust import scouts_against_rest
from tests.unit.estimators.trust.toys import records

N, TASKS = 1200, 4
TASK = 1 + np.arange(N) % TASKS
IS_SCOUT = np.arange(N) // TASKS < 10


def test_heavier_scouts_are_found_in_their_task_only():
    shift = np.where(IS_SCOUT & (TASK == 2), 0.3, 0.0)
    table = scouts_against_rest(records(N, tasks=TASKS, shift=shift))
    assert table["verdict"].to_list() == ["alike", "scouts use more", "alike", "alike"]
    assert table["n_scouts"].to_list() == [10] * 4
    assert table["n_others"].to_list() == [290] * 4
    row = table.row(0, named=True)
    assert row["lo"] < row["exceeds"] < row["hi"]
    assert (table["p_adjusted"] >= table["p"]).all()


def test_groups_that_do_not_overlap_have_an_exact_p_value():
    shift = np.where(IS_SCOUT, -2.0, 0.0)
    table = scouts_against_rest(records(N, tasks=TASKS, shift=shift))
    assert table["exceeds"].to_list() == [1.0] * 4
    assert table["lo"].null_count() == 4
    assert table["verdict"].unique().to_list() == ["scouts use less"]
    same = scouts_against_rest(records(N, tasks=TASKS, used=np.full(N, 500.0)))
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
    used = 500.0 * cores * np.exp(0.1 * np.random.default_rng(0).standard_normal(N))
    frame = records(N, tasks=TASKS, used=used, cores=cores)
    assert scouts_against_rest(frame)["verdict"].unique().to_list() == ["scouts use less"]
    assert scouts_against_rest(frame, per_core=True)["verdict"].unique().to_list() == ["alike"]


def test_comparisons_that_mean_nothing_are_refused():
    with pytest.raises(InsufficientDataError, match="3 scouts"):
        scouts_against_rest(records(100, scouts=2))
