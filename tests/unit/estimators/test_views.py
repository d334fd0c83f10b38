"""The mixture of views as an estimator: nothing of the future, what is said of a task that nobody has seen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.estimators.likejobs import LikeJobs
from brokerlab.estimators.memory_tasks import OURS_OF_TRACES, evaluate_traces
from brokerlab.estimators.mixture import Views
from brokerlab.estimators.sources import of_trace
from tests.estimator_kit import assert_never_looks_ahead, random_records
from tests.unit.estimators.toys import drawn


@pytest.mark.parametrize("quantity", ["memory", "walltime"])
def test_nothing_of_the_future_is_known(quantity):
    records = random_records(40, seed=3, tasks=3, quantity=quantity)
    assert_never_looks_ahead(Views(quantity), records, cuts=2, rtol=1e-9)


def test_of_a_new_task_like_jobs_of_all_tasks_tell():
    records = random_records(60, seed=4, tasks=2)
    new = random_records(5, seed=5, tasks=1).with_columns(jeditaskid=pl.lit(99, pl.Int64))
    views, like = Views("memory").fit(records), LikeJobs("memory").fit(records)
    assert views.predict(new, levels=(0.5, 0.95)).equals(like.predict(new, levels=(0.5, 0.95)))


def test_memory_that_follows_the_input_is_foreseen():
    rng = np.random.default_rng(1)
    size = rng.uniform(100, 5000, 120)
    records = random_records(120, tasks=1).with_columns(
        used=pl.Series(200 + 0.3 * size), input_mb=pl.Series(size), censored=pl.lit(value=False),
        decided_s=pl.int_range(120).cast(pl.Float64), ended_s=pl.int_range(120) + 0.5,
    )  # fmt: skip
    found = Views("memory").replay(records, levels=(0.95,))
    error = np.abs(np.log(found.point / records["used"].to_numpy()))
    assert np.median(error[60:]) < 0.01


def test_traces_are_compared_with_every_rule():
    runs = pl.concat([drawn(60), drawn(60, seed=1, process="b")])
    found = evaluate_traces({"toy": of_trace(runs, "memory")}, n_boot=50)
    rows = found.methods
    ours = found.ours.row(0, named=True)
    assert ours["role"] in ("proposed", "model")
    assert (ours["runs"], ours["types"]) == (120, 2)
    best = rows.filter(pl.col("estimator") != OURS_OF_TRACES)["waste_per_usage"].min()
    assert ours["over_best"] == pytest.approx(ours["waste_per_usage"] / best)
    assert rows.filter(role="current")["ratio"].to_list() == [1.0]
    assert rows["waste_per_usage"].is_sorted()
