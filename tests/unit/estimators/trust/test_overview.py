"""All checks in one table: what holds, what does not, what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from brokerlab.estimators.trust import overview
from tests.unit.estimators.trust.toys import expected, records

N = 3000


def verdicts(table):
    return dict(table.select("check", "verdict").rows())


def test_a_right_model_of_jobs_like_those_learnt_holds():
    frame = records(N, seed=1)
    table = overview(frame, expected(frame), 0.9, learnt=frame)
    assert set(verdicts(table).values()) == {"holds"}
    assert list(verdicts(table)) == ["groups", "drift", "distribution", "scouts", "learnt"]


def test_what_went_wrong_is_said_with_its_numbers():
    rows = np.arange(N)
    shift = np.where(rows >= 2000, 0.1, 0.0) + np.where(rows < 10, 0.5, 0.0)
    frame = records(N, shift=shift)
    table = overview(frame, expected(frame), 0.9, learnt=records(100, events=[7] * 100))
    assert set(verdicts(table).values()) == {"does not hold"}
    said = dict(table.select("check", "found").rows())
    assert "miss too often" in said["drift"]
    assert "1 of 1 tasks the scouts use more" in said["scouts"]
    assert "events (100%)" in said["learnt"]


def test_bounds_that_are_missed_too_rarely_are_wide_and_not_broken():
    frame = records(N, shift=-0.1)
    found = verdicts(overview(frame, expected(frame), 0.9))
    assert found["groups"] == found["drift"] == "wider than asked"


@pytest.mark.parametrize(("scouts", "checks"), [(True, 4), (False, 3)])
def test_what_cannot_be_told_is_said_to_be_so(scouts, checks):
    frame = records(100, scouts=1)
    table = overview(frame, expected(frame), 0.9, scouts=scouts)
    assert table.height == checks
    assert verdicts(table)["groups"] == "cannot be told"
    if scouts:
        assert verdicts(table)["scouts"] == "cannot be told"
