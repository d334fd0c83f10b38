"""What is offered: by hand, on rows of some systems, and on allocations of a few jobs."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from benchmarks.estimators import exceptions
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.offered import WORST, defaults, judge_allocations, offers
from tests.unit.estimators.trial_toys import whole_tasks


def row(system, estimator, ratio, *, learns=True, upper=None, silent=False, kind="trace"):
    return {
        "kind": kind, "unseen": "system", "system": system, "estimator": estimator, "learns": learns,
        "silent": silent, "ratio": ratio, "upper_0.95": upper,
    }  # fmt: skip


def offered(*rows):
    schema = {"ratio": pl.Float64, "upper_0.95": pl.Float64}
    return offers(pl.DataFrame(rows, schema_overrides=schema))


@pytest.mark.parametrize(
    ("second", "is_offered"),
    [
        ({"ratio": WORST, "upper": 0.96}, True),
        ({"ratio": WORST}, True),  # it refuses every bound
        ({"ratio": 1.06, "upper": 0.96}, False),
        ({"ratio": 0.5, "upper": 0.94}, False),
        ({"ratio": None, "silent": True}, False),
        ({"ratio": None}, False),
    ],
)
def test_a_model_is_offered_where_it_is_good_on_every_system(second, is_offered):
    rules = [row(system, "rule", 1.0, learns=False) for system in "ab"]
    found = offered(*rules, row("a", "model", 0.5, upper=0.97), row("b", "model", **second))
    assert found.filter(estimator="model")["offered"].to_list() == [is_offered]
    assert defaults(found)["estimator"].to_list() == ["model" if is_offered else "rule"]


def test_where_a_default_is_worse_than_another_rule_the_system_and_the_rule_are_named():
    """No model is offered; of two rules the one of least mean is default, and worse on one system."""
    rows = [row("a", "twice", 1.0, learns=False), row("b", "twice", 1.5, learns=False)]
    rows += [row("a", "some", 2.0, learns=False), row("b", "some", 1.0, learns=False)]
    rows.append(row("b", "model", 1.2))
    found = pl.DataFrame(
        [each | {"best_rule": rule} for each, rule in zip(rows, "tstss", strict=True)],
        schema_overrides={"ratio": pl.Float64, "upper_0.95": pl.Float64},
    )
    worse = exceptions(found).to_dicts()
    assert worse == [
        {"kind": "trace", "unseen": "system", "system": "b", "estimator": "twice", "ratio": 1.5, "best_rule": "s"}
    ]  # fmt: skip


def test_a_model_that_was_not_judged_on_all_systems_is_not_offered():
    rules = [row(system, "rule", 1.0, learns=False) for system in "ab"]
    found = offered(*rules, row("a", "model", 0.5, upper=0.97))
    assert found["offered"].to_list() == [True, False]


def test_allocations_are_scored_on_the_jobs_that_each_gives_something():
    records = whole_tasks(2).with_columns(requested=pl.lit(None, pl.Float64))
    used = records["used"].to_numpy()
    half = np.where(np.arange(used.size) % 2 == 0, 3 * used, np.inf)
    bounds = Predicted(
        records["pandaid"].to_numpy(), np.zeros(used.size, int), (0.95,), 0.9 * used[:, None], used,
        own=(np.arange(used.size) < 60)[:, None],
    )  # fmt: skip
    rules = {"twice": 2 * used, "some": half, "nothing": np.full(used.size, np.inf)}
    rows = judge_allocations(records, "memory", rules, {"model": (1.5 * used, bounds)}, system="s")
    assert rows["estimator"].to_list() == ["twice", "some", "model"]
    assert rows["ratio"].to_list() == pytest.approx([1.0, 2.0, 0.5])  # waste 1, 2 and 0.5 of use
    model = rows.row(2, named=True)
    assert model["coverage_0.95"] == 0.0
    judged = ~records["is_scout"].to_numpy()
    assert model["promised_0.95"] == pytest.approx((np.arange(used.size) < 60)[judged].mean())
    assert offers(rows).filter(estimator="model")["short"].to_list() == [["s"]]
