"""The wrapper that turns an estimator's distribution into allocations."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import ConfigError
from brokerlab.estimators.allocation import GRID, Allocated, Ladder, Prices, cheapest
from brokerlab.estimators.estimator import Predicted

SPREAD = np.log(1 / (1 - np.array(GRID)))


class Foretold:
    """Tells each job's exponential distribution above its request."""

    name = "foretold"

    def __init__(self):
        self.told = []

    def fit(self, _records):
        self.told.append("fit")
        return self

    def conformalize(self, _records):
        self.told.append("conformalize")
        return self

    def update(self, _records):
        self.told.append("update")
        return self

    def predict(self, records, *, levels):
        bounds = self.replay(records, levels=levels).bounds
        return records.select("pandaid", seen=pl.lit(0), point="requested").with_columns(
            pl.Series(f"bound_{level}", bounds[:, place]) for place, level in enumerate(levels)
        )

    def replay(self, records, *, levels):
        spread = np.log(1 / (1 - np.array(levels)))
        bounds = records["requested"].to_numpy()[:, None] * (1 + spread)
        n = records.height
        return Predicted(
            records["pandaid"].to_numpy(),
            np.zeros(n, dtype=int),
            tuple(levels),
            bounds,
            bounds[:, 0],
        )


def records(n=5):
    return pl.DataFrame(
        {
            "pandaid": np.arange(n) + 1,
            "jeditaskid": [7] * n,
            "kind": ["a", "b", None, "a", "new"][:n],
            "cores": [1, 8, 1, 4, 1][:n],
            "requested": [1000.0, 2000.0, 300.0, 400.0, 50.0][:n],
            "is_scout": [False] * n,
            "decided_s": np.arange(n, dtype=float),
            "ended_s": np.arange(n) + 1e4,
            "used": [900.0] * n,
            "censored": [False] * n,
            "wall_s": [600.0, 7200.0, 1800.0, 1200.0, 36000.0][:n],
        }
    )


def test_the_bound_is_the_cheapest_allocation_at_every_level():
    wrapped = Allocated(Foretold(), "memory", ladder=Ladder.doubling())
    jobs = records()
    told = wrapped.replay(jobs, levels=[0.5, 0.95])
    scale = jobs["requested"].to_numpy()
    right = cheapest(scale[:, None] * (1 + SPREAD), levels=GRID, ladder=Ladder.doubling())
    assert told.levels == (0.5, 0.95)
    assert told.at(0.5).tolist() == told.at(0.95).tolist() == right.first.tolist()
    assert told.point.tolist() == pytest.approx((scale * (1 + SPREAD[0])).tolist())
    frame = wrapped.predict(jobs, levels=[0.9])
    assert frame.columns == ["pandaid", "seen", "point", "bound_0.9"]
    third = wrapped.predict(jobs, levels=[1 / 3])
    assert third.columns[-1] == wrapped.replay(jobs, levels=[1 / 3]).frame().columns[-1]
    with pytest.raises(ConfigError, match="levels"):
        wrapped.replay(jobs, levels=[0.9, 0.5])
    assert frame["bound_0.9"].to_list() == right.first.tolist()
    assert wrapped.name == "foretold, cheapest allocation"


def test_durations_and_cores_weigh_failures():
    """Durations are those of the kind; of a kind not seen, those of all."""
    wrapped = Allocated(
        Foretold(), "memory", prices=Prices(failure=0.05, burnt=0.01, waiting_s=1e-5), wait_s=600.0
    )
    assert wrapped.fit(records()) is wrapped
    found = wrapped.allocations(records())
    scale = records()["requested"].to_numpy()
    usual = np.array([900.0, 7200.0, 9360.0, 900.0, 36000.0])  # means of a, b, all, a, new
    cores = np.array([1.0, 8, 1, 4, 1])
    right = cheapest(
        scale[:, None] * (1 + SPREAD), levels=GRID, prices=wrapped.prices,
        amount=usual / 3600 / 1024, core_hours=cores * usual / 3600, wait_s=600.0,
    )  # fmt: skip
    assert found["allocated"].to_list() == right.first.tolist()
    assert found["cost"].to_list() == right.cost.tolist()


def test_learning_goes_through():
    inner = Foretold()
    wrapped = Allocated(inner, "walltime", name="mine")
    wrapped.fit(records()).conformalize(records()).update(records())
    assert inner.told == ["fit", "conformalize", "update"]
    assert wrapped.name == "mine"
    cores = records()["cores"].to_numpy()
    costs = wrapped.allocations(records())["cost"].to_numpy() / records()["requested"].to_numpy()
    assert costs / costs[0] == pytest.approx(cores / cores[0])
    # what is lost at a limit of walltime are core-hours already
    burnt = Allocated(inner, "walltime", prices=Prices(burnt=9.0)).allocations(records())
    assert burnt.equals(Allocated(inner, "walltime").allocations(records()))
