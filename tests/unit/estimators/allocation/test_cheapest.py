"""The cheapest allocation against every outcome gone through by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.allocation import (
    PANDA_RUNGS_MB,
    Ladder,
    Prices,
    Tail,
    amount_per_unit,
    cheapest,
)

INF = float("inf")
PRICES = (
    Prices(),
    Prices(failure=700.0, waiting_s=0.5),
    Prices(idle=0.5, lost=0.0, burnt=30.0, failure=200.0, giving_up=9e4),
    Prices(idle=0.05, lost=1.0, failure=10.0, giving_up=5e3),
)
PER_JOB = {"amount": 2.0, "core_hours": 8.0, "wait_s": 1800.0}


def step(ladder, failed, largest):
    """What a ladder gives after a failure; None: nothing."""
    if ladder.kind == "rungs":
        above = [rung for rung in ladder.rungs if rung > failed * (1 + 1e-9)]
        after = above[0] if above else None
    elif ladder.kind == "largest" and failed < largest:
        after = largest
    else:
        after = ladder.factor * failed
    after = None if after is None else min(after, ladder.maximum)
    return None if after is None or after <= failed else after


def cost_of(rungs, needs, mass, prices):
    """Expected cost of given attempts, the job given up after the last one."""
    w, total = PER_JOB["amount"], 0.0
    for need, chance in zip(needs, mass, strict=True):
        for place, rung in enumerate(rungs):
            if rung * (1 + 1e-9) >= need:
                total += chance * prices.idle * w * (rung - need)
                break
            total += chance * (prices.lost * w * rung + prices.failure)
            total += chance * prices.burnt * PER_JOB["core_hours"]
            last = place == len(rungs) - 1
            total += chance * (prices.giving_up if last else prices.waiting_s * PER_JOB["wait_s"])
    return total


def climbed(ladder, first, needs, largest):
    """All attempts from a first one until every need is served or nothing follows."""
    rungs = [first]
    while rungs[-1] * (1 + 1e-9) < needs[-1] and len(rungs) != ladder.attempts:
        after = step(ladder, rungs[-1], largest)
        if after is None:
            break
        rungs.append(after)
    return rungs


def drawn(seed, n=6):
    rng = np.random.default_rng(seed)
    needs = np.sort(rng.uniform(300, 9000, n))
    return needs, rng.dirichlet(np.full(n, 0.7))


def asked(needs, mass, **how):
    levels = np.r_[np.cumsum(mass)[:-1], 1.0]
    return cheapest(needs[None, :], levels=levels, **PER_JOB, **how)


LADDERS = (
    Ladder.doubling(),
    Ladder(kind="factor", factor=1.3),
    Ladder.doubling(maximum=5000.0),
    Ladder.doubling(attempts=2),
    Ladder(kind="largest"),
    Ladder(kind="largest", maximum=6000.0),
    Ladder(kind="rungs", rungs=PANDA_RUNGS_MB),
    Ladder(kind="rungs", rungs=PANDA_RUNGS_MB, maximum=7000.0),
)


@pytest.mark.parametrize("ladder", LADDERS)
@pytest.mark.parametrize("prices", PRICES)
def test_no_first_allocation_costs_less(ladder, prices):
    if ladder.attempts and not prices.giving_up:
        prices = replace(prices, giving_up=1e4)  # else it is refused
    for seed in (0, 1, 10, 12):
        needs, mass = drawn(seed)
        largest = needs[-1]
        found = asked(needs, mass, ladder=ladder, prices=prices)
        rungs = climbed(ladder, found.first[0], needs, largest)
        assert found.cost[0] == pytest.approx(cost_of(rungs, needs, mass, prices))
        tried = np.r_[np.linspace(needs[0], min(needs[-1] * 1.1, ladder.maximum), 300), needs]
        tried = tried[tried <= ladder.maximum]
        costs = [cost_of(climbed(ladder, a, needs, largest), needs, mass, prices) for a in tried]
        assert found.cost[0] <= min(costs) * (1 + 1e-9)
        second = rungs[1] if len(rungs) > 1 and rungs[0] < needs[-1] else np.nan
        assert found.second[0] == pytest.approx(second, nan_ok=True)
        above = [float(mass[needs > rung * (1 + 1e-9)].sum()) for rung in rungs]
        assert found.exceed[0] == pytest.approx(above[0])
        assert found.attempts[0] == pytest.approx(1 + sum(above[:-1]))
        assert found.given_up[0] == pytest.approx(above[-1])


@pytest.mark.parametrize("prices", PRICES)
@pytest.mark.parametrize("maximum", [INF, 5000.0])
def test_no_ladder_costs_less_than_the_free_one(prices, maximum):
    for seed in range(4):
        needs, mass = drawn(seed)
        found = asked(needs, mass, ladder=Ladder(maximum=maximum), prices=prices)
        rungs = np.r_[needs[needs < maximum], min(maximum, needs[-1])]
        every = [
            (*some, rungs[-1]) for k in range(len(rungs)) for some in combinations(rungs[:-1], k)
        ]
        least = min(cost_of(some, needs, mass, prices) for some in every)
        assert found.cost[0] == pytest.approx(least)
        assert found.given_up[0] == pytest.approx(mass[needs > maximum].sum())


def with_tail(levels, quantiles, tail):
    """The needs and their chances that quantiles stand for, beyond the last one too."""
    needs, mass = list(quantiles), list(np.diff(np.r_[0, levels]))
    rest = 1 - levels[-1]
    rate = np.log((1 - levels[-2]) / rest) / (quantiles[-1] - quantiles[-2])
    for k in range(tail.halvings):
        needs.append(quantiles[-1] + (k + 1) * np.log(2) / rate)
        mass.append(rest / 2 ** (k + 1))
    far = quantiles[-1] + (tail.halvings + 1) * np.log(2) / rate
    return np.array([*needs, max(far, tail.multiple * quantiles[-1])]), np.array(
        [*mass, rest / 2**tail.halvings]
    )


@pytest.mark.parametrize("ladder", [Ladder(), *LADDERS[:3], *LADDERS[4:]])
def test_no_fixed_percentile_costs_less(ladder):
    """Whatever percentile is given to all jobs, and the same ladder climbed after it."""
    levels, tail = np.array([0.1, 0.5, 0.75, 0.9, 0.97]), Tail(halvings=3)
    prices = Prices(failure=900.0, giving_up=1e4)
    rng = np.random.default_rng(5)
    rows = np.sort(rng.lognormal(7.5, 0.6, (5, levels.size)), axis=1)
    found = cheapest(rows, levels=levels, ladder=ladder, prices=prices, tail=tail, **PER_JOB)
    for place, row in enumerate(rows):
        needs, mass = with_tail(levels, row, tail)
        costs = [
            cost_of(climbed(ladder, a, needs, row[-1]), needs, mass, prices)
            for a in row[row <= ladder.maximum]
        ]
        assert found.cost[place] <= min(costs) * (1 + 1e-9)
        if ladder.kind != "free":
            rungs = climbed(ladder, found.first[place], needs, row[-1])
            assert found.cost[place] == pytest.approx(cost_of(rungs, needs, mass, prices))


def test_one_retry_at_the_largest_is_the_rule_of_tovar():
    """a + max x P(need > a), least over the values seen."""
    for seed in range(20):
        values = np.sort(np.random.default_rng(seed).lognormal(7, 0.8, 30))
        levels = np.arange(1, 31) / 30
        found = cheapest(values[None, :], levels=levels, ladder=Ladder(kind="largest"))
        rule = values + values[-1] * (values[None, :] > values[:, None]).mean(axis=1)
        assert found.first[0] == values[rule.argmin()]
        assert found.cost[0] == pytest.approx(rule.min() - values.mean())


def test_the_tail_falls_off_at_the_rate_of_the_last_two_quantiles():
    """An exponential need told up to 0.9 is answered nearly as one told to the end."""
    short = np.array([0.1, 0.5, 0.8, 0.9])
    long = np.r_[short, 0.95, 0.975, 0.9875, 0.99375, 0.996875, 0.9984375, 1.0]
    far = np.r_[-np.log(1 - long[:-1]), 20.0] * 1000
    for prices in (Prices(), Prices(failure=4e4)):
        # halves of the tail have half of what is left each: the same atoms but for the last
        told = cheapest(-np.log(1 - short)[None, :] * 1000, levels=short, prices=prices,
                        tail=Tail(multiple=20 / -np.log(0.1)))  # fmt: skip
        whole = cheapest(far[None, :], levels=long, prices=prices)
        assert told.first[0] == pytest.approx(whole.first[0])
        assert told.exceed[0] == pytest.approx(whole.exceed[0])
        assert told.cost[0] == pytest.approx(whole.cost[0])


def test_what_lies_beyond_the_last_level():
    at = {"levels": [0.5, 0.99], "prices": Prices(failure=1e9)}  # one attempt must do
    assert cheapest([[100.0, 100.0]], **at).first[0] == 200.0
    assert cheapest([[100.0, 200.0]], **at, tail=Tail(halvings=0, multiple=3)).first[0] == 600.0
    for row in ([100.0, INF], [100.0, 100.0 + 1e-9]):
        assert cheapest([row], **at).first[0] == pytest.approx(200.0)
    grows = cheapest([[100.0, 200.0]], **at).first[0]
    assert grows == pytest.approx(max(400.0, 200 + 7 * 100 / np.log2(0.5 / 0.01)))


def test_where_nothing_is_known_the_maximum_is_given():
    row, levels = [[INF, INF]], [0.5, 0.9]
    assert cheapest(row, levels=levels).first[0] == INF
    found = cheapest(
        row, levels=levels, ladder=Ladder.doubling(maximum=800, per_core=True), cores=8
    )
    assert found.first[0] == 6400
    assert np.isnan(found.cost[0])


def test_ladders_per_core_and_the_largest_value_seen():
    needs, levels = [[900.0, 2600.0, 9000.0]], [0.4, 0.9, 1.0]
    rungs = cheapest(
        needs, levels=levels, ladder=Ladder.panda(), cores=2.0, prices=Prices(failure=1)
    )
    assert rungs.second[0] == 4000.0
    seen = cheapest(needs, levels=levels, ladder=Ladder(kind="largest"), largest=np.array([3000.0]))
    assert (seen.first[0], seen.second[0]) == (900.0, 3000.0)


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
        (lambda: Ladder(kind="rungs"), "rungs="),
        (lambda: Ladder(kind="steps", factor=1, attempts=0), "kind='steps'.*factor=1.*attempts=0"),
        (lambda: Ladder(rungs=(2.0, 1.0)), "rising numbers"),
        (lambda: Ladder(attempts=3), "none with kind='free'"),
        (lambda: Tail(halvings=-1), "halvings=-1"),
        (
            lambda: cheapest([[1.0]], levels=[1.0], ladder=Ladder.doubling(attempts=2)),
            "giving_up=0",
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
        ([[1.0, 2.0]], {"amount": 0.0, "wait_s": -1}, "amount: .* above 0.*wait_s: .* at least 0"),
        ([[1.0, 2.0]], {"cores": [1, 2]}, r"cores of shape \(2,\)"),
        ([[1.0, 2.0]], {"largest": [-1.0]}, "largest of shape"),
    ],
)
def test_impossible_data(rows, how, says):
    with pytest.raises(DataError, match=says):
        cheapest(rows, levels=[0.5, 0.9], **how)
