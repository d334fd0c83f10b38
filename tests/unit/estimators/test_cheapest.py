"""The predictive mixture and the ladder of attempts that costs least under it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sizing import CheapestAttempts, Method, Run, size, trace_of
from benchmarks.sizing.allocation import learnt
from benchmarks.sizing.peers import peers
from benchmarks.sizing.policy import cheapest_ladder
from brokerlab.errors import ConfigError
from brokerlab.estimators.mixture import Distribution
from tests.unit.estimators.toys import drawn, history, runs

MASSES = st.lists(st.floats(0.01, 1), min_size=1, max_size=6)


def cost_of(rungs, memory, mass, price):
    """Expected cost of a ladder by going through every outcome; twice the largest beyond it."""
    total = 0.0
    for need, chance in zip(memory, mass, strict=True):
        for rung in rungs:
            total += chance * rung
            if rung >= need:
                break
            total += chance * price
    return total


@given(mass=MASSES, price=st.floats(0, 3), seed=st.integers(0, 99))
def test_the_ladder_is_the_cheapest_of_all(mass, price, seed):
    memory = np.cumsum(np.random.default_rng(seed).uniform(0.1, 2, len(mass)))
    mass = np.array(mass) / sum(mass)
    ladder = cheapest_ladder(Distribution(memory, mass), price_b=price)
    every = [
        (*rungs, memory[-1]) for k in range(len(memory)) for rungs in combinations(memory[:-1], k)
    ]
    assert ladder.cost == pytest.approx(min(cost_of(r, memory, mass, price) for r in every))
    climbed = [ladder.first_b]
    while climbed[-1] < memory[-1]:
        climbed.append(ladder.after(climbed[-1]))
    assert cost_of(climbed, memory, mass, price) == pytest.approx(ladder.cost)
    assert ladder.after(memory[-1]) == 2 * memory[-1]


def test_two_modes_make_two_attempts_and_a_price_makes_one():
    two = Distribution(np.array([1.0, 5.0]), np.array([0.9, 0.1]))
    assert cheapest_ladder(two, price_b=0.0).first_b == 1.0
    assert cheapest_ladder(two, price_b=40.0).first_b == 5.0


def test_quantiles_of_a_distribution():
    four = Distribution(np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25))
    assert [four.quantile(q) for q in (0.1, 0.25, 0.5, 0.51, 1.0)] == [1.0, 1.0, 2.0, 3.0, 4.0]


def test_memory_that_follows_the_input_is_foreseen():
    x = np.linspace(1e9, 9e9, 60)
    mixture = learnt(history(2e8 + 0.3 * x, input_b=x))
    foreseen = mixture.predict(Run(5.05e9, 1e10))
    assert foreseen.quantile(0.5) == pytest.approx(2e8 + 0.3 * 5.05e9, rel=0.01)
    assert foreseen.mass.sum() == pytest.approx(1)


def test_memory_that_follows_the_tag_is_foreseen():
    names = [f"asm{i % 5}-read{i}" for i in range(60)]
    memory = np.array([1e9 * (1 + i % 5) for i in range(60)])
    mixture = learnt(history(memory, tags=names))
    foreseen = mixture.predict(Run(0.0, 1e10, "asm3-read99"))
    assert foreseen.quantile(0.5) == pytest.approx(4e9, rel=0.02)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_runs_are_trusted_little(n):
    mixture = learnt(history(np.full(n, 1e9)))
    wide = mixture.predict(Run(1e3, 1e10))
    assert wide.quantile(0.95) > 1.01e9
    assert wide.quantile(0.05) < 0.99e9


def test_bounds_hold_their_level():
    """90 % bounds, each from the runs before it alone, miss 10 % of 360 runs up to chance."""
    missed = total = 0
    for seed in range(4):
        x, memory = drawn_arrays(120, seed)
        mixture = learnt(history(memory[:30], input_b=x[:30]))
        for at, need in zip(x[30:], memory[30:], strict=True):
            run = Run(float(at), 1e10)
            missed += need > mixture.predict(run).quantile(0.9)
            total += 1
            mixture.see(run, float(need))
    assert 0.05 <= missed / total <= 0.15


def drawn_arrays(n, seed):
    frame = drawn(n, seed=seed)
    return frame["rchar"].to_numpy().astype(float), frame["rss"].to_numpy().astype(float)


@settings(max_examples=5)
@given(cut=st.integers(0, 27), factor=st.floats(0.2, 5.0))
def test_it_does_not_look_ahead(cut, factor):
    frame = drawn(40)
    arrivals = trace_of(frame, name="toy").types[0].split(3)[1]
    later = pl.Series(range(40)).is_in(arrivals[cut:].tolist())
    changed = frame.with_columns(
        pl.when(later).then((pl.col(name) * factor).cast(pl.Int64)).otherwise(name).alias(name)
        for name in ("rss", "peak_rss", "realtime")
    )
    firsts = []
    for each in (frame, changed):
        sized = size(trace_of(each, name="toy"), {"own": Method(CheapestAttempts)}, order=3)
        firsts.append(sized.filter(pl.col("arrival") <= cut)["first_b"].to_list())
    assert firsts[0] == firsts[1]


def test_it_wastes_less_than_every_peer_and_fails_less_than_the_best():
    three = [drawn(120, seed=seed, process=str(seed)) for seed in range(3)]
    trace = trace_of(pl.concat(three), name="toy")
    sized = size(trace, {**peers(), "own": Method(CheapestAttempts)})
    sums = sized.group_by("method").agg(pl.col("waste_gbh", "failures").sum()).sort("waste_gbh")
    assert sums["method"][0] == "own"
    assert sums["failures"][0] <= sums["failures"][1]


def test_a_price_buys_fewer_failures():
    trace = trace_of(drawn(100), name="toy")
    counts = [
        size(trace, {"own": Method(lambda price=price: CheapestAttempts(price=price))})[
            "failures"
        ].sum()
        for price in (0.0, 1.0, 30.0)
    ]
    assert counts[0] >= counts[1] > counts[2]


def test_long_histories_keep_their_latest_runs(monkeypatch):
    monkeypatch.setattr("brokerlab.estimators.mixture.WINDOW", 50)
    mixture = learnt(history(np.concatenate([np.full(300, 1e9), np.full(60, 3e9)])))
    assert mixture.predict(Run(1e3, 1e10)).quantile(0.5) == pytest.approx(3e9, rel=0.01)


def test_impossible_settings_are_refused():
    with pytest.raises(ConfigError, match="price of a failure -1"):
        CheapestAttempts(price=-1)
    one = Distribution(np.array([1.0]), np.array([1.0]))
    with pytest.raises(ConfigError, match="level 0"):
        one.quantile(0)
    with pytest.raises(ConfigError, match="price of a failure nan"):
        cheapest_ladder(one, price_b=float("nan"))


def test_a_constant_type_is_sized_tightly():
    sized = size(trace_of(runs([1e9] * 60), name="toy"), {"own": Method(CheapestAttempts)})
    assert sized["failures"].sum() == 0
    assert (sized["first_b"].tail(30) < 1.01e9).all()
