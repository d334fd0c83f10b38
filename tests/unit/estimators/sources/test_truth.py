"""The truth of a synthetic archive says how often bounds are missed, without the chance of each job."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import DataError
from brokerlab.estimators.sources import of_archive
from brokerlab.worlds import synthesise
from tests.unit.estimators.sources.true_misses import true_misses


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("truth")
    synthesise(folder, jobs=6_000, days=7, seed=3)
    return folder


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_jobs_miss_bounds_as_often_as_the_truth_says(archive, quantity, factor):
    records = of_archive(archive, quantity).records.filter(~pl.col("censored"))
    bounds = records.select(pl.col("used").median().over("jeditaskid") * factor)["used"].to_numpy()
    misses = true_misses(archive, records, bounds, quantity)
    known = records.with_columns(misses["miss"], over=records["used"].to_numpy() > bounds)
    known = known.drop_nulls("miss")
    assert not known["is_scout"].any()
    assert known.height > 0.8 * records.height
    miss = known["miss"].to_numpy()
    deviation = np.sqrt((miss * (1 - miss)).sum())
    assert abs(known["over"].sum() - miss.sum()) < 3.5 * deviation


def test_no_bound_at_all_is_never_missed_and_none_is_always(archive):
    records = of_archive(archive, "memory").records
    never = true_misses(archive, records, np.full(records.height, np.inf), "memory")["miss"]
    always = true_misses(archive, records, np.zeros(records.height), "memory")["miss"]
    assert never.max() == 0
    assert always.min() == 1


def test_bounds_and_records_of_something_else_are_refused(archive):
    records = of_archive(archive, "memory").records
    with pytest.raises(DataError, match="one per record"):
        true_misses(archive, records, np.zeros(3), "memory")
    other = records.with_columns(jeditaskid=pl.lit(1, pl.Int64))
    with pytest.raises(DataError, match="none of 1 tasks has a truth"):
        true_misses(archive, other, np.zeros(records.height), "memory")
