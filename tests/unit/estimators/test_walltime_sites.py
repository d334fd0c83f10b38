"""Core power and queues: planted slopes come back, shares by hand, nodes and months by hand."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import InsufficientDataError, SchemaError
from brokerlab.estimators.walltime import sites
from brokerlab.estimators.walltime.power import drift, inside


def planted(slope, *, queues=16, jobs=40, queue_sd=0.05, seed=1):
    """A task whose core time per event is a power of core power, with an effect of the queue."""
    rng = np.random.default_rng(seed)
    power = np.repeat(np.linspace(8.0, 20.0, queues), jobs)
    effect = np.repeat(rng.normal(0, queue_sd, queues), jobs)
    n, cores = queues * jobs, rng.choice([1, 8], queues * jobs)
    time = 100 * np.exp(slope * np.log(power) + effect + rng.normal(0, 0.1, n))
    events = rng.integers(10, 20, n)
    return pl.DataFrame(
        {
            "jeditaskid": np.full(n, 7),
            "queue": [f"Q{k:02d}" for k in np.repeat(np.arange(queues), jobs)],
            "corepower": power,
            "cores": cores,
            "events": events,
            "wall_s": time * events / cores,
            "cpu_s": time * events * 0.9,
        }
    )


@pytest.mark.parametrize("slope", [-1.0, -0.3, 0.0])
def test_a_planted_slope_lies_in_its_interval(slope):
    found = sites.power_slopes(planted(slope))
    assert found["time"].to_list() == ["wall", "cpu"]
    assert (found["slope_lo"] < slope).all()
    assert (found["slope_hi"] > slope).all()
    assert (found["slope_hi"] - found["slope_lo"] < 0.6).all()
    assert found["within_sd"].to_list() == pytest.approx([0.1, 0.1], abs=0.01)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_number_that_is_none_is_left_out(value):
    jobs = planted(-1.0, queues=6, jobs=5)
    row = jobs.head(1).with_columns(pl.lit(value, pl.Float64).alias("corepower"))
    for say in (sites.power_slopes, sites.queue_shares, sites.power_gain, sites.queue_means):
        assert say(pl.concat([row, jobs])).equals(say(jobs))


def test_slopes_say_why_there_is_none():
    few = planted(-1.0, queues=3)
    alike = planted(-1.0).with_columns(corepower=pl.lit(10.0), jeditaskid=pl.lit(8, pl.Int64))
    found = sites.power_slopes(pl.concat([few, alike]))
    assert found["slope"].is_null().all()
    assert found["missing"].to_list() == [
        *["3 queues, 5 are needed"] * 2,
        *["core powers hardly differ"] * 2,
    ]
    exact = planted(-1.0).with_columns(events=100, cores=1, wall_s=100.0)
    found = sites.power_slopes(exact).filter(time="wall")
    assert found.select("slope", "slope_lo", "slope_hi", "missing").row(0) == (
        None,
        None,
        None,
        "its uncertainty cannot be told",
    )


def test_shares_by_hand():
    """Five queues 2 apart in the logarithm, jobs 1 off either way: 8 of 9 parts are between them."""
    y = np.array([2 * k + d for k in range(5) for d in (-1, 1)], dtype=float)
    jobs = pl.DataFrame(
        {
            "jeditaskid": [1] * 10,
            "queue": [f"Q{k}" for k in range(5) for _ in range(2)],
            "corepower": np.exp(-y.reshape(5, 2).mean(axis=1)).repeat(2),
            **dict.fromkeys(("cores", "events"), [1] * 10),
            **dict.fromkeys(("wall_s", "cpu_s"), np.exp(y)),
        }
    )
    table = sites.queue_shares(jobs, n_boot=50)
    plain, scaled = table.filter(time="wall").sort("scaled").iter_rows(named=True)
    assert plain["share"] == pytest.approx(8 / 9)
    assert plain["within_sd"] == pytest.approx(1.0)
    assert plain["sd"] == pytest.approx(np.std(y, ddof=1))
    assert scaled["share"] == pytest.approx(0.0)
    assert plain["share_lo"] <= plain["share"] <= plain["share_hi"]
    one = sites.between_queues(jobs["queue"], jobs["cpu_s"], n_boot=50)
    assert one["share"] == pytest.approx(8 / 9)


def test_core_power_helps_where_it_scales_and_harms_where_it_does_not():
    scales, not_so = (
        sites.power_gain(planted(slope), n_boot=200).filter(time="cpu") for slope in (-1.0, 0.0)
    )
    of = {row["way"]: row for row in scales.iter_rows(named=True)}
    assert of[sites.RULE]["ratio_hi"] < 1
    assert of[sites.FITTED]["ratio_hi"] < 1
    assert of[sites.NO_POWER]["ratio"] == of[sites.NO_POWER]["ratio_lo"] == 1
    of = {row["way"]: row for row in not_so.iter_rows(named=True)}
    assert of[sites.RULE]["ratio_lo"] > 1
    assert of[sites.OWN]["ratio"] < 1


def test_order_of_rows_and_units_of_power_do_not_matter():
    jobs = planted(-0.5, queues=6)
    other = jobs.sample(fraction=1, shuffle=True, seed=2).with_columns(pl.col("corepower") * 16)
    for study in (sites.power_slopes, sites.power_gain, sites.queue_shares):
        one, two = (study(each).drop(pl.selectors.string(), strict=False) for each in (jobs, other))
        for name in one.columns:
            assert two[name].to_list() == pytest.approx(one[name].to_list(), rel=1e-5, abs=1e-6)


def test_few_queues_are_told_or_left_out():
    few = planted(-1.0, queues=2)
    assert sites.power_gain(few).is_empty()
    assert sites.queue_shares(few).is_empty()
    with pytest.raises(InsufficientDataError, match="at 2 queues"):
        sites.between_queues(few["queue"], few["cpu_s"])
    with pytest.raises(SchemaError, match="cores"):
        sites.power_slopes(few.drop("cores"))


def test_spread_inside_a_site_counts_slots():
    found = inside(pl.DataFrame({"jobslots": [10, 30, 0], "hs06": [100.0, 600.0, 5.0]}))
    assert (found["nodes"], found["slots"], found["kinds"]) == (2, 40, 2)
    assert found["mean"] == pytest.approx(17.5)
    assert found["sd"] == pytest.approx(np.sqrt(0.25 * 7.5**2 + 0.75 * 2.5**2))
    assert found["within_tenth"] == 0.0
    with pytest.raises(InsufficientDataError, match="job slots"):
        inside(pl.DataFrame({"jobslots": [0], "hs06": [1.0]}))


def test_a_step_of_a_site_and_rows_too_short_to_tell():
    months = [date(2015, month, 1) for month in (1, 2, 3)]
    usage = pl.DataFrame(
        {
            "site": ["A"] * 3 + ["B"] * 3 + ["A"],
            "month": [*months, *months, months[0]],
            "wall_s": [100_000] * 6 + [2],
            "normalised_hs06s": [1_000_000, 1_000_000, 1_100_000] + [1_200_000] * 3 + [3],
        }
    )
    found = drift(usage)
    first, second = found.by_site.iter_rows(named=True)
    assert (first["site"], first["steps"], first["last"]) == ("A", 1, 11.0)
    assert first["range"] == pytest.approx(0.1)
    assert second["is_default"]
    assert not first["is_default"]
    assert found.numbers["left_out"] == 1
    assert found.numbers["moved"] == 0.5
    with pytest.raises(InsufficientDataError, match="10000 s"):
        drift(usage.with_columns(wall_s=pl.lit(5)))
