"""The cheapest allocation against every outcome gone through by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.allocation import HALVINGS, MULTIPLE, Prices, amount_per_unit, cheapest

INF = float("inf")
PRICES = (
    Prices(),
    Prices(failure=700.0),
    Prices(idle=0.5, lost=0.0, burnt=30.0, failure=200.0, giving_up=9e4),
    Prices(idle=0.05, lost=1.0, failure=10.0, giving_up=5e3),
)
PER_JOB = {"amount": 2.0, "core_hours": 8.0}


def cost_of(attempts, needs, mass, prices):
    """Expected cost of given attempts, the job given up after the last one."""
    w, total = PER_JOB["amount"], 0.0
    for need, chance in zip(needs, mass, strict=True):
        for place, given in enumerate(attempts):
            if given * (1 + 1e-9) >= need:
                total += chance * prices.idle * w * (given - need)
                break
            total += chance * (prices.lost * w * given + prices.failure)
            total += chance * prices.burnt * PER_JOB["core_hours"]
            total += chance * prices.giving_up * (place == len(attempts) - 1)
    return total


def drawn(seed, n=6):
    rng = np.random.default_rng(seed)
    needs = np.sort(rng.uniform(300, 9000, n))
    return needs, rng.dirichlet(np.full(n, 0.7))


def asked(needs, mass, **how):
    levels = np.r_[np.cumsum(mass)[:-1], 1.0]
    return cheapest(needs[None, :], levels=levels, **PER_JOB, **how)


@pytest.mark.parametrize("factor", [1.3, 2.0])
@pytest.mark.parametrize("prices", PRICES)
def test_no_first_of_two_attempts_costs_less(factor, prices):
    if not prices.giving_up:
        prices = replace(prices, giving_up=1e4)  # else it is refused
    for seed in (0, 1, 10, 12):
        needs, mass = drawn(seed)
        found = asked(needs, mass, retry_factor=factor, prices=prices)
        first = found.first[0]
        assert found.cost[0] == pytest.approx(cost_of((first, factor * first), needs, mass, prices))
        tried = np.r_[np.linspace(needs[0], needs[-1] * 1.1, 300), needs]
        costs = [cost_of((each, factor * each), needs, mass, prices) for each in tried]
        assert found.cost[0] <= min(costs) * (1 + 1e-9)
        lost = mass[needs > factor * first * (1 + 1e-9)].sum()
        assert found.given_up[0] == pytest.approx(lost, abs=1e-12)


@pytest.mark.parametrize("prices", PRICES)
def test_no_attempts_cost_less_than_free_ones(prices):
    for seed in range(4):
        needs, mass = drawn(seed)
        found = asked(needs, mass, prices=prices)
        every = [
            (*some, needs[-1]) for k in range(len(needs)) for some in combinations(needs[:-1], k)
        ]
        costs = [cost_of(some, needs, mass, prices) for some in every]
        assert found.cost[0] == pytest.approx(min(costs))
        best = min(
            cost for cost, some in zip(costs, every, strict=True) if some[0] == found.first[0]
        )
        assert best == pytest.approx(min(costs))
        assert found.given_up[0] == 0


def with_tail(levels, quantiles):
    """The needs and their chances that quantiles stand for, beyond the last one too."""
    needs, mass = list(quantiles), list(np.diff(np.r_[0, levels]))
    rest = 1 - levels[-1]
    rate = np.log((1 - levels[-2]) / rest) / (quantiles[-1] - quantiles[-2])
    for k in range(HALVINGS):
        needs.append(quantiles[-1] + (k + 1) * np.log(2) / rate)
        mass.append(rest / 2 ** (k + 1))
    far = quantiles[-1] + (HALVINGS + 1) * np.log(2) / rate
    needs.append(max(far, MULTIPLE * quantiles[-1]))
    return np.array(needs), np.array([*mass, rest / 2**HALVINGS])


@pytest.mark.parametrize("factor", [None, 2.0])
def test_no_fixed_percentile_costs_less(factor):
    """Whatever percentile is given to all jobs, and the same retry after it."""
    levels = np.array([0.1, 0.5, 0.75, 0.9, 0.97])
    prices = Prices(failure=900.0, giving_up=1e4)
    rows = np.sort(np.random.default_rng(5).lognormal(7.5, 0.6, (5, levels.size)), axis=1)
    found = cheapest(rows, levels=levels, retry_factor=factor, prices=prices, **PER_JOB)
    for place, row in enumerate(rows):
        needs, mass = with_tail(levels, row)
        retried = factor or needs[-1]
        costs = [cost_of((given, retried * given), needs, mass, prices) for given in row]
        assert found.cost[place] <= min(costs) * (1 + 1e-9)
        if factor:
            first = found.first[place]
            own = cost_of((first, factor * first), needs, mass, prices)
            assert found.cost[place] == pytest.approx(own)


def test_the_tail_falls_off_at_the_rate_of_the_last_two_quantiles():
    """An exponential need told up to 0.9 is answered nearly as one told to the end."""
    short = np.array([0.1, 0.5, 0.8, 0.9])
    long = np.r_[short, 0.95, 0.975, 0.9875, 0.99375, 0.996875, 0.9984375, 1.0]
    last = -np.log(0.1) + (HALVINGS + 1) * np.log(2)
    far = np.r_[-np.log(1 - long[:-1]), last] * 1000
    for prices in (Prices(), Prices(failure=4e4)):
        # halves of the tail have half of what is left each: the same atoms
        told = cheapest(-np.log(1 - short)[None, :] * 1000, levels=short, prices=prices)
        whole = cheapest(far[None, :], levels=long, prices=prices)
        assert told.first[0] == pytest.approx(whole.first[0])
        assert told.cost[0] == pytest.approx(whole.cost[0])


def test_what_lies_beyond_the_last_level():
    at = {"levels": [0.5, 0.99], "prices": Prices(failure=1e9)}  # one attempt must do
    assert cheapest([[100.0, 100.0]], **at).first[0] == 200.0
    for row in ([100.0, INF], [100.0, 100.0 + 1e-9]):
        assert cheapest([row], **at).first[0] == pytest.approx(200.0)
    grows = cheapest([[100.0, 200.0]], **at).first[0]
    assert grows == pytest.approx(max(400.0, 200 + 7 * 100 / np.log2(0.5 / 0.01)))


def test_where_nothing_is_known_nothing_is_named():
    found = cheapest([[INF, INF]], levels=[0.5, 0.9])
    assert found.first[0] == INF
    assert np.isnan(found.cost[0])


def test_amounts():
    assert amount_per_unit("memory", wall_s=np.array([0.0, 3600.0])).tolist() == [
        pytest.approx(1 / 3600 / 1024),
        1 / 1024,
    ]
    # memory is held for the run, walltime on every core: a second more of 8 cores for an hour
    assert amount_per_unit("walltime", cores=8) == 8 / 3600


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Prices(idle=-1), "idle=-1"),
        (lambda: Prices(idle=0, lost=0), "all 0"),
        (lambda: cheapest([[1.0]], levels=[1.0], retry_factor=2.0), "giving_up=0"),
        (
            lambda: cheapest([[1.0]], levels=[1.0], retry_factor=1.0, prices=Prices(giving_up=1)),
            "retry_factor=1.0.*above 1",
        ),
        (lambda: cheapest([[1.0, 2.0]], levels=[0.5, 0.5]), "rising numbers above 0"),
    ],
)
def test_impossible_settings(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("rows", "how", "says"),
    [
        ([[1.0]], {}, r"shape \(1, 1\)"),
        ([[0.0, 1.0], [2.0, 1.0]], {}, "above 0.*such as 0; a row must not fall, 1 rows"),
        ([[np.nan, 1.0]], {}, "above 0"),
        (
            [[1.0, 2.0]],
            {"amount": 0.0, "core_hours": -1},
            "amount: .* above 0.*core_hours: .* at least 0",
        ),
        ([[1.0, 2.0]], {"core_hours": [1, 2]}, r"core_hours of shape \(2,\)"),
    ],
)
def test_impossible_data(rows, how, says):
    with pytest.raises(DataError, match=says):
        cheapest(rows, levels=[0.5, 0.9], **how)
