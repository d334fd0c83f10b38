"""What no record may say is refused, every fault at once, and by the job."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.quantiles import LinearQuantiles
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


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
def test_a_number_that_is_none_is_not_known(quantity):
    """Each estimator says the same of NaN, of infinity and of null."""
    names = ("input_mb", "corepower", "requested", "sent", "started_s")
    frame = random_records(60, seed=4, tasks=4, quantity=quantity).with_columns(
        started_s="decided_s"
    )
    every = (Hierarchy(quantity), LikeJobs(quantity), Views(quantity), LinearQuantiles(quantity))
    null, *others = (
        frame.with_columns(
            pl.when(pl.int_range(pl.len()) % 5 == row)  # one number of each job
            .then(pl.lit(value, pl.Float64))
            .otherwise(name)
            .alias(name)
            for row, name in enumerate(names)
        )
        for value in (None, NAN, INFINITE)
    )
    told = [each.fit(null).replay(null, levels=(0.5, 0.9)).frame() for each in every]
    for other in others:
        assert checked(other).equals(checked(null))
        again = [each.fit(other).replay(other, levels=(0.5, 0.9)).frame() for each in every]
        assert all(a.equals(b) for a, b in zip(told, again, strict=True))


def test_a_level_that_was_not_asked_for_is_refused():
    told = LikeJobs("memory").replay(random_records(10), levels=(0.5, 0.9))
    with pytest.raises(ConfigError, match=r"level 0\.95 was not asked for; allowed are 0\.5, 0\.9"):
        told.at(0.95)


def test_levels_whose_bounds_would_be_one_column_are_refused():
    for levels in ((0.9999991, 0.9999992), (0.5, 0.9999999, 0.99999999)):
        with pytest.raises(ConfigError, match="two would be one column"):
            LikeJobs("memory").replay(random_records(10), levels=levels)
