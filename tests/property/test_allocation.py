"""What must hold of the cheapest allocation whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.estimators.allocation import Prices, cheapest

LEVELS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
ROWS = st.lists(st.floats(1, 1e4), min_size=6, max_size=6).map(sorted)
FACTOR = st.sampled_from([None, 1.5, 2.0])
PRICE = st.floats(0, 1e4)


@settings(max_examples=60)
@given(row=ROWS, factor=FACTOR, price=PRICE)
def test_dearer_failures_cost_more_and_are_fewer(row, factor, price):
    found, dear = (
        cheapest(
            [row], levels=LEVELS, retry_factor=factor, prices=Prices(failure=each, giving_up=1e3)
        )
        for each in (price, price + 50)
    )
    assert found.cost[0] >= -1e-6
    assert dear.cost[0] >= found.cost[0] - 1e-6 * (1 + found.cost[0])
    if factor is None:
        assert dear.first[0] >= found.first[0] * (1 - 1e-9)
    else:
        free = cheapest([row], levels=LEVELS, prices=Prices(failure=price, giving_up=1e3))
        assert free.cost[0] <= found.cost[0] * (1 + 1e-9) + 1e-6 or found.given_up[0] > 0


@settings(max_examples=40)
@given(row=ROWS, factor=FACTOR, price=PRICE, power=st.integers(-6, 6))
def test_other_units_change_nothing(row, factor, price, power):
    by = 2.0**power
    found, other = (
        cheapest(
            [[u * q for q in row]],
            levels=LEVELS,
            retry_factor=factor,
            prices=Prices(failure=u * price, giving_up=u),
        )
        for u in (1.0, by)
    )
    assert other.first[0] == by * found.first[0]
    assert other.cost[0] == pytest.approx(by * found.cost[0])
    assert other.given_up[0] == found.given_up[0]


@settings(max_examples=20)
@given(rows=st.lists(ROWS, min_size=2, max_size=5), factor=FACTOR, price=PRICE)
def test_each_job_is_decided_alone(rows, factor, price):
    prices = Prices(failure=price, giving_up=1.0)
    how = {"levels": LEVELS, "retry_factor": factor, "prices": prices}
    together = cheapest(rows, **how)
    alone = [cheapest([row], **how).first[0] for row in rows]
    assert together.first.tolist() == alone
    assert np.isfinite(together.cost).all()
