"""Stated allocations are scored exactly as the back-test scores its settings."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.calibrate.nearest_setting import _score_allocations, stated_prices
from brokerlab.calibrate.percentiles import PARAMETERS, Assumptions, LossWeights, Setting
from brokerlab.calibrate.percentiles.history import sample_of
from brokerlab.calibrate.percentiles.replay import Replay, slots_by_queue
from brokerlab.estimators.allocation import amount_per_unit, cheapest
from tests.unit.calibrate import toys

HOUR = 3600


def scored(parameter="ramcount", *, quantities=None, tasks=None, jobs=None, queues=None, **made):
    quantities = toys.quantities(6, seed=3) if quantities is None else quantities
    tasks = toys.tasks(6) if tasks is None else tasks
    queues = toys.queues() if queues is None else queues
    jobs = toys.NO_JOBS if jobs is None else jobs
    how, slots = Assumptions(**made), slots_by_queue(quantities)
    sample = sample_of(quantities, tasks, jobs, PARAMETERS[parameter], how)
    return Replay.of(sample, queues, slots, PARAMETERS[parameter], how)


MEMORY = LossWeights.default("ramcount")


@pytest.mark.parametrize("parameter", ["ramcount", "cputime"])
@pytest.mark.parametrize(
    "made", [{}, {"retry_factors": (1.5, 2.5), "killed_after": 0.4, "compensation": 0.9}]
)
@pytest.mark.parametrize("minimum", [None, 900])
def test_the_requests_of_a_setting_cost_what_the_setting_costs(parameter, made, minimum):
    jobs = scored(parameter, **made)
    setting = Setting(*((75, 10) if parameter == "ramcount" else (80, 20)), minimum)
    weights = LossWeights.default(parameter)
    told = jobs.by_allocation(jobs.requests(setting), weights)
    rule = jobs.by_task([setting], weights)
    assert told["n_exceed"].sum() > 0
    assert told["jeditaskid"].to_list() == rule["jeditaskid"].to_list()
    for name in set(told.columns) & set(rule.columns) - {"processingtype", "gshare"}:
        assert told[name].to_list() == pytest.approx(rule[name].to_list(), rel=1e-9, abs=1e-9), name


def one_task(memory_mb, *, cores=2.0, hours=1.0, used_scouts=10):
    """Ten scouts and then jobs of the given memory, all of the same length."""
    n = used_scouts + len(memory_mb)
    kb = np.r_[np.full(used_scouts, 1000.0), memory_mb] * 1024
    frame = toys.quantities(1, n, seed=1)
    return frame.with_columns(
        cores=pl.lit(cores),
        duration_s=pl.lit(int(hours * HOUR)),
        maxpss_kb=pl.Series(kb),
        ram_kb=pl.Series(kb / cores),
    )


def test_each_attempt_by_hand():
    """2 cores for 1 h: 900 of 1000 MB fit, 1500 at the second attempt, 2500 never."""
    memory = [900.0, 1500.0, 2500.0]
    jobs = scored(quantities=one_task(memory), tasks=toys.tasks(1), min_scored=1)
    told = jobs.by_allocation(np.full(3, 1000.0), MEMORY).row(0, named=True)
    assert (told["n_exceed"], told["n_lost"]) == (2, 1)
    assert told["over_gbh"] * 1024 == pytest.approx(100 + 500)
    assert told["waste_gbh"] * 1024 == pytest.approx(1000 + 1000 + 2000)
    assert told["used_gbh"] * 1024 == pytest.approx(2400)
    assert told["killed_coreh"] == pytest.approx(3 * 2)
    loss = 0.5 * 600 / 1024 + 6 + 0.5 * 2 + 10 + 0.1 * told["unreachable_coreh"]
    assert told["cost_coreh"] == pytest.approx(loss)
    assert told["work_coreh"] == pytest.approx(6)


def test_a_limit_is_cut_to_whole_megabytes():
    jobs = scored(quantities=one_task([900.0, 900.5]), tasks=toys.tasks(1), min_scored=1)
    for given, killed in ((899.9, 2), (900.0, 1), (900.9, 1), (901.0, 0)):
        assert jobs.by_allocation(np.full(2, given), MEMORY)["n_exceed"].item() == killed


def test_a_walltime_reaches_queues_at_their_own_power():
    """5000 s at 10 HS06 are 600 s and 44000 HS06 s: 5000 s at 10, and 4120 s at 12.5 HS06."""
    queues = pl.DataFrame(
        {
            "panda_queue": ["Q1", "Q2", "Q3"],
            "maxtime": [4999, 5000, 4120],
            "corepower": [10.0, 10.0, 12.5],
        }
    )
    frame = one_task([900.0]).with_columns(corepower=pl.lit(10.0))
    jobs = scored("cputime", quantities=frame, tasks=toys.tasks(1), queues=queues, min_scored=1)
    told = jobs.by_allocation(np.array([5000.0]), LossWeights.default("cputime"))
    assert told["queues_share"].item() == pytest.approx(2 / 3)


def test_of_a_killed_job_only_more_than_it_used_is_enough():
    used = 1200
    killed = pl.DataFrame(
        {
            "pandaid": [999],
            "jeditaskid": [100],
            "jobstatus": ["failed"],
            "creationtime": [toys.T0],
            "starttime": [toys.T0],
            "endtime": [toys.T0.replace(hour=1)],
            "piloterrorcode": [1212],
            "actualcorecount": [2],
            "maxpss": [used * 1024],
            "computingsite": ["Q1"],
        }
    )
    jobs = scored(quantities=one_task([900.0]), tasks=toys.tasks(1), min_scored=1, jobs=killed)
    assert jobs.jobs["censored"].to_list() == [False, True]
    for given, lost in ((used, 1), (used + 1, 0)):
        assert jobs.by_allocation(np.array([1000.0, given]), MEMORY)["n_exceed"].sum() == lost


@pytest.mark.parametrize(
    ("made", "weights"), [({}, {}), ({"killed_after": 0.3}, {"n_lost": 0.9, "n_exceed": 0.1})]
)
def test_the_cheapest_allocation_under_the_stated_prices_costs_least(made, weights):
    """One allocation for all jobs of a task: none costs less than the one chosen on their distribution."""
    needs = np.sort(np.random.default_rng(2).lognormal(7, 0.35, 40).round())
    needs[-1] *= 9 if weights else 1  # where losing a job is cheap, that one is given up
    loss = LossWeights.default("ramcount", **weights)
    jobs = scored(quantities=one_task(needs), tasks=toys.tasks(1), **made)
    factor, prices = stated_prices(loss, Assumptions(**made))
    found = cheapest(
        needs[None, :], levels=np.arange(1, 41) / 40, prices=prices, retry_factor=factor,
        amount=amount_per_unit("memory", wall_s=HOUR, cores=2.0), core_hours=2.0,
    )  # fmt: skip

    assert (found.given_up[0] > 0) == bool(weights)

    def cost(allocation):
        row = jobs.by_allocation(np.full(40, allocation), loss).row(0, named=True)
        return row["cost_coreh"] - 0.1 * row["unreachable_coreh"]

    tried = [cost(a) for a in np.r_[np.linspace(needs[0], needs[-1] * 1.1, 60), needs]]
    assert cost(found.first[0]) == pytest.approx(40 * found.cost[0])
    assert cost(found.first[0]) <= min(tried) + 1e-9


def test_the_current_setting_stands_in_where_nothing_is_told():
    replay, current = scored(), Setting(75, 10)
    known = replay.jobs["pandaid"][:5]
    told = pl.DataFrame({"pandaid": known, "allocated": [1.0, 2.0, None, float("inf"), 5.0]})
    expected = replay.requests(current)
    expected[[0, 1, 4]] = [1, 2, 5]
    found = _score_allocations(replay, told, current, MEMORY)
    assert found["n_missing"].sum() == expected.size - 3
    assert found.drop("n_missing").equals(replay.by_allocation(expected, MEMORY))
