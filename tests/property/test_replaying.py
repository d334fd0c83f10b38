"""The order of decisions and ends: nothing is known before it ends, nothing is known twice."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.estimators.estimator import Predicted, codes, known, order
from brokerlab.estimators.records import checked
from tests.estimator_kit import assert_never_looks_ahead, random_records


def _records(decided, ended, **columns):
    n = len(decided)
    return checked(
        random_records(n).with_columns(
            pandaid=pl.Series(range(1, n + 1)),
            decided_s=pl.Series(decided, dtype=pl.Float64),
            ended_s=pl.Series(ended, dtype=pl.Float64),
            **columns,
        )
    )


def test_at_one_instant_ends_come_first_and_an_end_at_once_follows_its_own_decision():
    records = _records([0, 10, 10, 10], [10, 10, None, 30])
    # the first is decided and ends; the second is decided and seen at once; then the others are decided
    assert order(records).tolist() == [~0, 0, ~1, 1, ~2, ~3, 3]


def test_ends_at_one_instant_follow_pandaid():
    records = checked(
        random_records(3).with_columns(
            pandaid=pl.Series([9, 5, 7]), decided_s=pl.Series([0.0, 1, 2]), ended_s=pl.lit(5.0)
        )
    )
    assert order(records)[3:].tolist() == [1, 2, 0]


def test_codes_number_groups_by_first_appearance_and_null_is_one():
    frame = pl.DataFrame({"jeditaskid": [5, 3, 5, 3], "queue": ["b", None, "b", "a"]})
    assert [each.tolist() for each in codes(frame, "jeditaskid")[:1]] == [[0, 1, 0, 1]]
    found, n = codes(frame, "jeditaskid", "queue")
    assert (found.tolist(), n) == ([0, 1, 0, 2], 3)


def test_known_counts_finished_jobs_of_the_task_only():
    records = _records(
        [0, 0, 5, 10],
        [5, 5, 6, 20],
        jeditaskid=pl.lit(1),
        censored=pl.Series([False, True, False, False]),
    )
    assert known(records, order(records)).tolist() == [0, 0, 1, 2]


@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_job_is_decided_once_and_seen_as_the_rule_says(seed, n, whole):
    records = checked(random_records(n, seed=seed, whole_seconds=whole))
    events = order(records)
    place = {int(event): i for i, event in enumerate(events)}
    assert len(place) == events.size
    assert sorted(~events[events < 0]) == list(range(n))
    decided, ended = records["decided_s"].to_numpy(), records["ended_s"].to_list()
    for row, end in enumerate(ended):
        assert (row in place) == (end is not None)
        if end is None:
            continue
        known_to = np.array([place[row] < place[~other] for other in range(n)])
        at_once = end == decided[row]
        expected = decided >= end
        if at_once:  # to later ones of the same instant only
            expected &= (decided > end) | (np.arange(n) > row)
        assert (known_to == expected).all()


class Clairvoyant:
    """Bounds every job by the mean of all that the records hold, or by what a batch holds."""

    name = "clairvoyant"

    def __init__(self, cheats):
        self.cheats = cheats

    def update(self, _records):
        return self

    def predict(self, records, *, levels):
        return self.replay(records, levels=levels).frame()

    def replay(self, records, *, levels):
        frame = checked(records)
        bound = np.full(frame.height, 1.0)
        if self.cheats == "uses":
            bound[:] = frame["used"].mean()
        elif self.cheats == "kills":
            bound += frame["censored"].to_numpy()
        elif self.cheats == "batch":
            bound[:] = frame["cores"].n_unique()
        elif self.cheats == "rows":
            bound[:] = records["pandaid"][0]
        seen = np.zeros(frame.height, dtype=np.int64)
        bounds = np.repeat(bound[:, None], len(levels), axis=1)
        return Predicted(frame["pandaid"].to_numpy(), seen, tuple(levels), bounds, bound)


@pytest.mark.parametrize("cheats", ["uses", "kills", "batch", "rows"])
def test_the_kit_finds_who_looks_ahead(cheats):
    with pytest.raises(AssertionError):
        assert_never_looks_ahead(Clairvoyant(cheats), random_records(40), cuts=2)


def test_the_kit_lets_honest_ones_pass():
    assert_never_looks_ahead(Clairvoyant("nothing"), random_records(40), cuts=2)
