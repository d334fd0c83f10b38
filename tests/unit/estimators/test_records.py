"""What no record may say is refused, every fault at once, and by the job."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import DataError
from brokerlab.estimators.records import checked
from tests.estimator_kit import random_records

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("used", [0.0, -1.0, NAN, INFINITE]),
        ("wall_s", [-1.0, NAN, INFINITE]),
        ("decided_s", [NAN, INFINITE, -INFINITE]),
        ("ended_s", [-1.0, NAN, INFINITE]),
        ("cores", [0, -8]),
    ],
)
def test_numbers_that_cannot_be_are_refused(column, values):
    frame = random_records(20).with_columns(decided_s=pl.int_range(20).cast(pl.Float64))
    frame = frame.with_columns(ended_s=pl.col("decided_s") + 5)
    assert checked(frame).height == 20
    for value in values:
        place = pl.int_range(pl.len()) == 7
        wrong = frame.with_columns(pl.when(place).then(value).otherwise(column).alias(column))
        with pytest.raises(DataError, match=rf"records\.{column}: .*1 rows.*{frame['pandaid'][7]}"):
            checked(wrong)


def test_all_that_is_wrong_is_said_at_once():
    frame = random_records(20).with_columns(cores=pl.lit(0), used=pl.lit(NAN), pandaid=pl.lit(3))
    with pytest.raises(DataError) as refused:
        checked(frame)
    assert all(f"records.{name}" in str(refused.value) for name in ("cores", "used", "pandaid"))


def test_records_come_in_the_order_of_decision_whatever_order_they_were_in():
    frame = random_records(50)
    found = checked(frame)
    assert found.equals(checked(frame.sample(fraction=1, shuffle=True, seed=1)))
    assert found.select("decided_s", "pandaid").rows() == sorted(
        frame.select("decided_s", "pandaid").rows()
    )
