"""Scores of a few jobs, worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators import deployed, scoring
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.scoring.judged import exact
from tests.estimator_kit import random_records
from tests.unit.estimators.records_toys import records

INF = float("inf")
MB_H = 2**20 / 1e9  # a megabyte for an hour [GB h]
RULE = "PanDA scouts p75 x 1.1"


def fixed(frame, bound, levels=(0.95,)):
    """Predictions of everything, (n,) at every level or (n, levels)."""
    bounds = np.array(bound, dtype=float)
    bounds = np.repeat(bounds[:, None], len(levels), axis=1) if bounds.ndim == 1 else bounds
    ids, seen = frame["pandaid"].to_numpy(), np.zeros(frame.height, dtype=np.int64)
    return Predicted(ids, seen, tuple(levels), bounds, bounds[:, 0])


def judged(frame, bound, **options):
    """The row of the table of one rule."""
    options = {"quantity": "memory", "levels": (0.95,), "grid": (), "reference": "p"} | options
    found = scoring.compare(frame, {"p": fixed(frame, bound)}, **options)
    return found.row("p")


def test_every_attempt_is_paid_until_a_job_fits():
    # a job after the other: the largest seen is 0, 1000, 1000, 5000
    frame = records([1000, 500, 5000, 6000])
    row = judged(frame, [1500, 400, 600, 700])
    # 1: fits, 500 unused. 2: 400 lost, 1000 tried, 500 unused.
    # 3: 600, 1000, 2000, 4000 lost, 8000 tried, 3000 unused. 4: 700, 5000 lost, 10000 tried, 4000 unused
    assert row["waste_gbh"] == pytest.approx((500 + 900 + 10600 + 9700) * MB_H)
    assert row["killed_gbh"] == pytest.approx((400 + 7600 + 5700) * MB_H)
    assert (row["retries"], row["retries_per_job"]) == (1 + 4 + 2, 7 / 4)
    assert row["waste_per_usage"] == pytest.approx(21700 / 12500)
    assert (row["exceed"], row["coverage"]) == (0.75, 0.25)
    assert row["over_allocation"] == 500 / 12500
    assert row["width"] == 3200 / 12500
    assert row["reachable"] is None


def test_an_estimate_below_0_is_nothing_lost():
    row = judged(records([1000, 500]), [-50, 500])
    # -50 lost nothing, then 1, 2, 4, ... 512 are lost and 1024 fits
    assert row["killed_gbh"] == pytest.approx(1023 * MB_H)
    assert row["retries"] == 11


def test_a_killed_walltime_costs_its_bound_on_all_cores():
    frame = records([3600, 7200], cores=[8, 2])
    row = judged(frame, [1800, 3600], quantity="walltime")
    # 1: 0.5 h lost, 1 h is just enough. 2: 1 h lost, 3600 s is the largest seen, not more: 2 h
    assert row["killed_coreh"] == pytest.approx(0.5 * 8 + 1 * 2)
    assert row["waste_coreh"] == pytest.approx(row["killed_coreh"])
    assert row["retries"] == 2


def test_scouts_are_seen_and_not_judged_and_killed_jobs_tell_what_they_can():
    frame = records(
        [1000, 900, 900, 900, 900],
        is_scout=[True, *[False] * 4],
        censored=[False, True, True, True, False],
    )
    found = scoring.compare(
        frame,
        {"p": fixed(frame, [1, 800, 900, 901, INF])},
        quantity="memory",
        grid=(),
        reference="p",
    )
    row = found.row("p")
    assert found.counts == {"jobs": 4, "left_out": 1, "killed": 3, "tasks": 1}
    assert (row["jobs"], row["share_without"], row["unknown"], row["at_limit"]) == (4, 0.25, 1, 1)
    assert (row["exceed"], row["coverage_hi"]) == (1, pytest.approx(1 - 0.025 ** (1 / 2)))
    assert (row["over_allocation"], row["waste_gbh"]) == (None, 0)  # no finished job has an answer
    assert judged(frame, [1, 800, 900, 901, INF], judge="all")["jobs"] == 5


def test_rates_are_pooled_and_averaged_over_tasks():
    frame = records([100, 100, 100, 1000], jeditaskid=[1, 1, 1, 2])
    row = judged(frame, [50, 150, 150, 1500])
    assert (row["exceed"], row["exceed_task_mean"]) == (1 / 4, (1 / 3 + 0) / 2)
    assert row["cluster_lo"] < row["coverage"] == 0.75 < row["cluster_hi"]
    assert row["over_allocation"] == 600 / 1300
    assert row["over_allocation_task_mean"] == pytest.approx((100 / 300 + 0.5) / 2)


def test_coverage_has_its_exact_interval():
    found = exact(18, 20, 0.95)
    known = stats.binomtest(18, 20).proportion_ci(0.95, method="exact")
    assert (found.value, found.lo, found.hi) == pytest.approx((0.9, known.low, known.high))
    assert np.isnan(exact(0, 0, 0.95).lo)


def test_slots_in_reach():
    queues = pl.DataFrame(
        {
            "panda_queue": ["A", "B", "C", "D"],
            "corecount": [8, 1, None, 1],
            "maxrss": [16000, 4000, 0, 3000],
            "slots": [50.0, 30.0, 15.0, 5.0],
        }
    )
    frame = records([1, 1, 1, 1], cores=[8, 1, 1, 1])
    row = judged(frame, [16000, 2001, 3000.5, INF], queues=queues)
    # 2000 per core: all slots; 2001: B, C, D; 3000.5: B and C; none
    assert row["reachable"] == pytest.approx((1 + 0.5 + 0.45 + 0) / 4)
    times = queues.with_columns(maxtime=pl.Series([1000, 500, None, 0]))
    row = judged(frame, [700, 500, 1001, 1], quantity="walltime", queues=times)
    assert row["reachable"] == pytest.approx((0.7 + 1 + 0.2 + 1) / 4)


def test_by_scouts_counts_finished_jobs_that_were_known():
    n = 130
    found = scoring.compare(
        records([1000] * n),
        deployed.rules("memory", scouts=2),
        quantity="memory",
        n_boot=10,
    ).by_scouts.filter(estimator=RULE)
    assert found["known"].to_list() == ["0", "1-4", "5-9", "10-19", "20-99", "100+"]
    assert found["jobs"].to_list() == [1, 4, 5, 10, 80, 30]
    assert found["share_without"].to_list() == [1, 0, 0, 0, 0, 0]
    assert found["over_allocation"].to_list() == [None, *[0.1] * 5]


def three_tasks():
    """Three tasks of four jobs of 100, 200, 300, 400 MB each."""
    return records([100, 200, 300, 400] * 3, jeditaskid=np.repeat([1, 2, 3], 4).tolist())


def test_paired_differences_are_those_of_the_same_jobs():
    frame = three_tasks()
    ours = [150, 250, 350, 450] * 2 + [INF] * 4
    theirs = [200, 300, 400, 399] * 3
    said = {"ours": fixed(frame, ours), "theirs": fixed(frame, theirs)}
    options = {"quantity": "memory", "grid": (), "n_boot": 200}
    found = scoring.compare(frame, said, reference="theirs", **options).paired
    over = found.row(by_predicate=pl.col("measure") == "over_allocation", named=True)
    assert (over["value"], over["reference"]) == (0.2, 0.3)
    assert over["difference"] == pytest.approx(-0.1)
    assert (over["lo"], over["hi"]) == pytest.approx((-0.1, -0.1))  # both tasks differ alike
    assert (over["ratio"], over["ratio_lo"]) == pytest.approx((2 / 3, 2 / 3))
    assert (over["without_lo"], over["without_hi"]) == pytest.approx((2 / 3, 2 / 3))
    assert (over["jobs"], over["tasks"], over["few_tasks"]) == (8, 2, True)
    exceed = found.row(by_predicate=pl.col("measure") == "exceed", named=True)
    assert (exceed["value"], exceed["reference"], exceed["difference"]) == (0, 0.25, -0.25)
    turned = scoring.compare(frame, said, reference="ours", **options).paired
    over = turned.row(by_predicate=pl.col("measure") == "over_allocation", named=True)
    assert (over["value"], over["reference"], over["jobs"], over["tasks"]) == (0.3, 0.2, 8, 2)


def test_ratios_to_nothing_are_not_told():
    frame = three_tasks()
    ours, never = [100, 200, 300, 300] * 3, [500] * 12
    once = [500] * 4 + [300] * 8  # exceeds in two tasks of three: in 1 of 27 draws in none

    def ratio(reference):
        found = scoring.compare(
            frame,
            {"ours": fixed(frame, ours), "theirs": fixed(frame, reference)},
            quantity="memory",
            reference="theirs",
            grid=(),
        ).paired.row(by_predicate=pl.col("measure") == "exceed", named=True)
        assert found["lo"] <= found["difference"] <= found["hi"]
        return [found[name] for name in ("ratio", "ratio_lo", "ratio_hi")]

    assert ratio(never) == [None, None, None]
    assert ratio(once) == [1.5, None, None]


def test_paired_intervals_widen_with_the_spread_between_tasks():
    frame = three_tasks()
    ours = [110, 210, 310, 410, 150, 250, 350, 450, 200, 300, 400, 500]
    found = scoring.compare(
        frame,
        {"ours": fixed(frame, ours), "theirs": fixed(frame, [200, 300, 400, 500] * 3)},
        quantity="memory",
        reference="theirs",
        grid=(),
    ).paired.row(by_predicate=pl.col("measure") == "over_allocation", named=True)
    # per task 40, 200 and 400 above 1000 MB; the other 400
    assert found["difference"] == pytest.approx((640 - 1200) / 3000)
    assert (found["without_lo"], found["without_hi"]) == pytest.approx((240 / 800, 600 / 800))
    assert (found["lo"], found["hi"]) == pytest.approx((-0.36, 0.0))  # three tasks: their range


def test_the_level_at_the_deployed_rate_is_chosen_on_other_tasks():
    frame = three_tasks()
    levels = (0.5, 0.7, 0.9)
    # level 0.5 misses two jobs of a task, 0.7 one, 0.9 none; but in task 3 every level one less
    row = np.array([[250, 350, 450]])
    bounds = np.concatenate([np.repeat(row, 8, axis=0), np.repeat(row + 100, 4, axis=0)])
    found = scoring.compare(
        frame,
        {"ours": fixed(frame, bounds, levels), "theirs": fixed(frame, [350] * 12, levels)},
        quantity="memory",
        levels=levels,
        level=0.9,
        grid=levels,
        reference="theirs",
        n_boot=50,
    ).at_deployed
    assert found["chosen_on"].to_list() == ["other tasks", "same jobs"] * 2
    honest, same = found.row(0, named=True), found.row(1, named=True)
    # tasks 1 and 2: their others miss 2 + 1 of 8 at 0.5, the rule 2: 0.7; task 3: its others 4: 0.7
    assert (honest["level_lo"], honest["level_hi"], honest["not_met"]) == (0.7, 0.7, 0)
    assert (honest["exceed"], honest["exceed_reference"]) == (2 / 12, 3 / 12)
    assert honest["no_higher"]
    # at 0.7: 250 + 150 + 50 twice, 350 + 250 + 150 + 50 = 800; the rule 450 three times
    assert honest["ratio"] == pytest.approx((450 * 2 + 800) / 1350)
    assert honest["saved"] == pytest.approx(1 - honest["ratio"])
    assert same["level"] == 0.7
    assert found["tasks"].unique().to_list() == [3]


def test_a_level_that_is_never_enough_is_told():
    frame = three_tasks()
    found = scoring.compare(
        frame,
        {
            "ours": fixed(frame, np.repeat([[150, 250]], 12, axis=0), (0.5, 0.9)),
            "theirs": fixed(frame, [400] * 12, (0.5, 0.9)),
        },
        quantity="memory",
        levels=(0.5,),
        level=0.9,
        grid=(0.5, 0.9),
        reference="theirs",
        n_boot=50,
    ).at_deployed
    assert found["not_met"].to_list() == [3] * 4
    assert not found["no_higher"].any()
    assert found["level"].to_list() == [0.9] * 4


def test_levels_without_an_answer_are_not_chosen():
    frame = three_tasks()
    bounds = np.repeat([[150, 250, INF]], 12, axis=0)
    bounds[0] = INF  # never told: left out
    found = scoring.compare(
        frame,
        {
            "ours": fixed(frame, bounds, (0.5, 0.9, 0.99)),
            "theirs": fixed(frame, [400] * 12, (0.5, 0.9, 0.99)),
        },
        quantity="memory",
        levels=(0.5,),
        level=0.9,
        grid=(0.5, 0.9, 0.99),
        reference="theirs",
        n_boot=50,
    ).at_deployed
    assert found["level"].to_list() == [0.9] * 4
    assert found["jobs"].to_list() == [11] * 4


def test_all_estimators_in_one_run_and_the_order_of_rows_does_not_matter():
    frame = random_records(400, seed=5, tasks=12, quantity="memory", scouts=5)
    options = {"quantity": "memory", "n_boot": 100}
    one = scoring.compare(frame, deployed.rules("memory", scouts=5), **options)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    other = scoring.compare(shuffled, deployed.rules("memory", scouts=5), **options)
    for name in ("table", "tasks", "by_scouts", "paired"):
        assert getattr(one, name).equals(getattr(other, name))
    assert one.table["estimator"].to_list() == [each.name for each in deployed.rules("memory")]
    assert one.table["level"].null_count() == one.table.height
    assert one.at_deployed.height == one.strata.height == 0
    assert one.paired["tasks"].max() == 12
    assert not one.paired["few_tasks"].any()
    assert one.counts["jobs"] + one.counts["left_out"] == 400


def test_strata_are_held_to_the_level():
    frame = records([100.0 + i for i in range(600)], jeditaskid=[1] * 300 + [2] * 300)
    bounds = np.where(np.arange(600) % 20 == 0, 50.0, 1000.0)
    found = scoring.compare(
        frame,
        {
            "ours": fixed(frame, np.column_stack([bounds, bounds + 1]), (0.9, 0.95)),
            "p": fixed(frame, [1] * 600, (0.9, 0.95)),
        },
        quantity="memory",
        levels=(0.9,),
        grid=(),
        reference="p",
        n_boot=50,
    ).strata
    assert set(found["estimator"]) == {"ours"}
    assert found.filter(stratum_by="jeditaskid")["coverage"].to_list() == [0.95, 0.95]
    assert found["inside"].all()


def test_what_cannot_be_is_refused():
    frame, longer, scout = records([1, 2]), records([1, 2, 3]), records([1], is_scout=True)
    said = {"p": fixed(frame, [1, 2])}
    requested = deployed.rules("memory")[3]
    options = {"quantity": "memory", "reference": "p", "grid": ()}
    with pytest.raises(ConfigError, match=r"reference 'PanDA scouts p75 x 1.1'"):
        scoring.compare(frame, said, **options | {"reference": None})
    with pytest.raises(ConfigError, match=r"quantity 'ram'.*judge 'some'"):
        scoring.compare(frame, said, **options | {"quantity": "ram", "judge": "some"})
    with pytest.raises(InsufficientDataError, match="none of 1 jobs"):
        scoring.compare(scout, said, **options)
    with pytest.raises(DataError, match="predictions of 'p': 2 jobs, 3 records"):
        scoring.compare(longer, said, **options)
    with pytest.raises(DataError, match="NaN"):
        judged(frame, [1, np.nan])
    some = {"p": fixed(frame, [[1, 2], [1, 2]], (0.5, 0.6))}
    with pytest.raises(DataError, match=r"levels 0.9, 0.95, 0.99 are missing"):
        scoring.compare(frame, some, **options)
    with pytest.raises(ConfigError, match="named alike: requested"):
        scoring.compare(frame, [requested, requested], quantity="memory")
    found = scoring.compare(frame, said, **options)
    with pytest.raises(ConfigError, match="estimator 'q'"):
        found.row("q")
