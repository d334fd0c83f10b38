"""What must hold of the cheapest allocation whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.estimators.allocation import Ladder, Prices, cheapest

LEVELS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
ROWS = st.lists(st.floats(1, 1e4), min_size=6, max_size=6).map(sorted)
LADDERS = st.sampled_from(
    [
        Ladder(),
        Ladder(maximum=6e3),
        Ladder.doubling(),
        Ladder(kind="factor", factor=1.5, maximum=8e3),
        Ladder(kind="largest"),
        Ladder(kind="rungs", rungs=(1e3, 2e3, 3e3, 4e3, 6e3, 8e3)),
    ]
)
PRICE = st.floats(0, 1e4)


def scaled(ladder, by):
    return Ladder(
        ladder.kind, ladder.factor, tuple(by * r for r in ladder.rungs), ladder.maximum * by
    )


@settings(max_examples=60)
@given(row=ROWS, ladder=LADDERS, price=PRICE)
def test_dearer_failures_cost_more_and_are_fewer(row, ladder, price):
    prices = Prices(failure=price, giving_up=1e3)
    found = cheapest([row], levels=LEVELS, ladder=ladder, prices=prices)
    dear = cheapest(
        [row], levels=LEVELS, ladder=ladder, prices=Prices(failure=price + 50, giving_up=1e3)
    )
    assert found.cost[0] >= -1e-6
    assert dear.cost[0] >= found.cost[0] - 1e-6 * (1 + found.cost[0])
    assert dear.attempts[0] <= found.attempts[0] + 1e-9
    if ladder.kind == "free":
        every = cheapest(
            [row], levels=LEVELS, ladder=Ladder.doubling(maximum=ladder.maximum), prices=prices
        )
        assert found.cost[0] <= every.cost[0] * (1 + 1e-9) + 1e-6


@settings(max_examples=40)
@given(row=ROWS, ladder=LADDERS, price=PRICE, power=st.integers(-6, 6))
def test_other_units_change_nothing(row, ladder, price, power):
    by = 2.0**power
    found = cheapest([row], levels=LEVELS, ladder=ladder, prices=Prices(failure=price))
    other = cheapest(
        [[by * q for q in row]],
        levels=LEVELS,
        ladder=scaled(ladder, by),
        prices=Prices(failure=by * price),
    )
    assert other.first[0] == by * found.first[0]
    assert other.cost[0] == pytest.approx(by * found.cost[0])
    assert other.exceed[0] == found.exceed[0]


@settings(max_examples=20)
@given(rows=st.lists(ROWS, min_size=2, max_size=5), ladder=LADDERS, price=PRICE)
def test_each_job_is_decided_alone(rows, ladder, price):
    how = {"levels": LEVELS, "ladder": ladder, "prices": Prices(failure=price)}
    together = cheapest(rows, **how)
    alone = [cheapest([row], **how).first[0] for row in rows]
    assert together.first.tolist() == alone
    assert np.isfinite(together.cost).all()
