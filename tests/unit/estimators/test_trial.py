"""Estimators on the same jobs: tested on tasks that are left out, limits known by hand, cheapest allocations, doubts."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators import allocation, doubts
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.evaluation import divide_in_time, fit_and_calibrate, replay_left_out
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.scoring import settings
from brokerlab.estimators.trial import POLICY
from tests.unit.estimators.trial_toys import tried_on, whole_tasks


class Remembering:
    """Remembers which tasks it was given."""

    name = "remembering"

    def __init__(self, given):
        self.given = given

    def fit(self, frame):
        self.fitted = set(frame["jeditaskid"])
        return self

    def conformalize(self, frame):
        self.calibrated = set(frame["jeditaskid"])
        return self

    def replay(self, frame, *, levels):
        self.given.append((set(frame["jeditaskid"]), self.fitted, self.calibrated))
        bounds = np.full((frame.height, len(levels)), 1.0)
        return Predicted(frame["pandaid"].to_numpy(), bounds[:, 0].astype(int), levels, bounds, bounds[:, 0])  # fmt: skip


def test_no_task_is_predicted_by_what_it_taught():
    given = []
    found = replay_left_out(whole_tasks(), lambda: Remembering(given), levels=(0.5,))
    assert found.pandaid.tolist() == whole_tasks()["pandaid"].to_list()
    assert [tested for tested, _, _ in given] == [{0}, {1}, {2}, {3}]
    for tested, fitted, calibrated in given:
        assert not tested & (fitted | calibrated)
        assert not fitted & calibrated
        assert (len(fitted), len(calibrated)) == (2, 1)
        assert max(fitted) < max(calibrated)


def test_a_single_task_can_not_be_left_out():
    with pytest.raises(InsufficientDataError, match="task 0: no other task"):
        replay_left_out(whole_tasks(1), lambda: Hierarchy("memory"), levels=(0.5,))
    assert fit_and_calibrate(Remembering([]), whole_tasks(1)).fitted == {0}


def test_the_limit_is_the_best_allocation_of_each_group():
    """Groups 1..4 and 10: nobody above costs (3+2+1) and 0 of 20; one job above allows 3 for the first group."""
    frame = pl.DataFrame(
        {"jeditaskid": [1] * 5, "queue": ["A"] * 4 + ["B"], "cores": 1, "used": [1.0, 2.0, 3.0, 4.0, 10.0],
         "censored": False}
    )  # fmt: skip
    curve = settings.limit_curve(frame)
    assert curve.row(0) == pytest.approx((0.0, 6 / 20))
    assert curve.row(1) == pytest.approx((0.2, 3 / 20))
    assert settings.over_allocation_at(curve, 0.1) == pytest.approx(4.5 / 20)
    assert curve["over_allocation"].is_sorted(descending=True)


def test_the_limit_averages_tasks_or_pools_jobs():
    used = [1.0, 2.0, 100.0, 200.0, 200.0]
    frame = pl.DataFrame({"jeditaskid": [1, 1, 2, 2, 2], "queue": "A", "cores": 1, "used": used, "censored": False})  # fmt: skip
    assert settings.limit_curve(frame).row(0)[1] == pytest.approx((1 / 3 + 100 / 500) / 2)
    assert settings.limit_curve(frame, pooled=True).row(0)[1] == pytest.approx(101 / 503)
    with pytest.raises(InsufficientDataError, match="no finished job"):
        settings.limit_curve(frame.with_columns(censored=True))


def test_dearer_failures_ask_for_more():
    levels = (0.5, 0.9, 0.999)
    bounds = np.array([[100.0, 200.0, 300.0], [np.inf] * 3])
    told = Predicted(np.array([1, 2]), np.array([5, 0]), levels, bounds, np.array([100.0, np.inf]))
    found = allocation.allocate_at_prices(told, prices=(0.1, 5.0, 500.0))
    assert found.bounds[0, 0] == 100.0
    assert found.bounds[0, 1] > 100.0
    assert found.bounds[0, 2] >= 300.0
    assert np.isinf(found.bounds[1]).all()
    assert allocation.level_of(2.0) == pytest.approx(2 / 3)
    fixed = allocation.repeat_at_price(found, 5.0, (0.9, 0.95))
    assert fixed.at(0.95).tolist() == found.bounds[:, 1].tolist()


def test_a_setting_is_matched_by_its_exceed_rate():
    rows = [("m", 0.5, 1.0, 0.3, 0.1), ("m", 0.9, 1.0, 0.1, 0.2), ("m", 0.99, 0.5, 0.0, 0.1)]
    columns = ["estimator", "setting", "answered", "exceed_task_mean", "over_allocation_task_mean"]
    curve = pl.DataFrame(rows, schema=columns, orient="row")
    assert settings.least_within(curve, 0.1)["setting"] == 0.9
    assert (
        settings.least_within(curve, 0.05) is None
    )  # the rarest has no answer for half of the jobs


def test_a_trial_tells_every_estimator_on_the_same_jobs(tried):
    assert tried.comparison.counts == {"jobs": 120, "left_out": 40, "killed": 0, "tasks": 4}
    assert tried.policies == (POLICY.format("hierarchy"),)
    assert set(tried.at_deployed["estimator"]) == {"hierarchy", *tried.policies}
    assert tried.limit(0.0) <= min(tried.matched(0.0)["over_allocation_task_mean"])
    assert tried.limit(1.0) < tried.limit(0.0)
    deployed = tried.curves.filter(estimator=tried.comparison.reference).row(0, named=True)
    assert deployed["over_allocation"] == pytest.approx(tried.deployed["over_allocation"])


def test_without_an_exceed_rate_there_is_no_limit(tried):
    assert tried.limit(None) is None
    assert tried.matched(None).is_empty()


def test_few_tasks_have_the_range_without_one_of_them(tried):
    row = tried.against_deployed(POLICY.format("hierarchy"), "waste_per_usage")
    paired = tried.comparison.paired.filter(
        estimator=POLICY.format("hierarchy"), measure="waste_per_usage"
    ).row(0, named=True)
    assert row["few_tasks"]
    assert (row["ratio_lo"], row["ratio_hi"]) == (paired["without_lo"], paired["without_hi"])
    assert tried.against_deployed("nobody", "waste_per_usage") is None


def test_an_archive_is_divided_in_time():
    frame = whole_tasks(6)
    fitting, calibrating, testing = divide_in_time(frame)
    tasks = [sorted(set(part["jeditaskid"])) for part in (fitting, calibrating, testing)]
    assert tasks == [[0, 1, 2], [3], [4, 5]]
    late = frame.with_columns(
        ended_s=pl.when(pl.col("pandaid") == 0).then(10.0**9).otherwise("ended_s")
    )
    assert 0 not in divide_in_time(late)[0]["pandaid"]  # its end was not known yet
    with pytest.raises(InsufficientDataError, match="2 tasks, 3 are needed"):
        divide_in_time(whole_tasks(2))


def test_doubts_look_at_every_task(tried):
    learnt = tried.records
    result = doubts.check_model(
        tried, "hierarchy", lambda task: learnt.filter(pl.col("jeditaskid") != task), by_task=True
    )
    assert result.tasks["jeditaskid"].to_list() == [0, 1, 2, 3]
    assert result.scouts.height == 4
    assert set(result.support["jeditaskid"]) == {0, 1, 2, 3}
    assert result.by_task["log10_largest"].is_sorted(descending=True)
    assert result.by_task["scouts"].null_count() == 0


def test_drift_looks_at_the_bound_that_is_promised(tried):
    """The card tells how often the held bound is kept; so do the checks of it."""
    learnt = tried.records
    young = tried_on(whole_tasks(scouts=8))  # nine jobs can hold 90 %
    refused = doubts.check_model(young, "hierarchy", lambda _: learnt, by_task=False)
    assert refused.tasks["verdict"].null_count() == refused.tasks.height == 4
    assert refused.tasks["bet"].null_count() == 0
    assert "drift" not in refused.failures["check"]
    spread = tried_on(whole_tasks(apart_s=600.0))
    promised = doubts.check_model(spread, "hierarchy", lambda _: learnt, by_task=False).tasks
    bound = spread.held["hierarchy"].at(spread.comparison.level)[
        ~spread.records["is_scout"].to_numpy()
    ]
    assert promised["n"].sum() == np.isfinite(bound).sum()


def test_without_marked_scouts_nothing_is_said_of_them():
    frame = whole_tasks(2).with_columns(is_scout=False)
    result = doubts.check_model(tried_on(frame), "hierarchy", lambda _: frame, by_task=False)
    assert result.scouts.is_empty()
    assert result.by_task["scouts"].null_count() == result.tasks.height


def test_failures_are_counted_by_check(tried):
    learnt = tried.records.filter(pl.col("queue") == "A")
    result = doubts.check_model(tried, "hierarchy", lambda _: learnt, by_task=False)
    outside = result.failures.filter(check="outside").row(0, named=True)
    in_b = tried.production.filter(pl.col("queue") == "B").height
    assert (outside["feature"], outside["failed"], outside["of"]) == ("queue", in_b, 120)
    bets = result.tasks.filter(bet="not as expected")
    assert result.failures.filter(check="bets")["failed"].sum() == bets.height
    assert (result.failures["failed"] > 0).all()


def test_a_model_is_never_without_doubts(tried):
    learnt = tried.records.filter(pl.col("queue") == "A")
    result = doubts.check_model(tried, "hierarchy", lambda _: learnt, by_task=False)
    assert result.sentences[-1] == doubts.UNTRIED
    assert "Jobs outside what was learnt, by queue: 60 of 120." in result.sentences
    empty = {
        name: getattr(result, name).clear() for name in ("tasks", "strata", "scouts", "support")
    }
    assert replace(result, **empty).sentences == [doubts.UNTRIED]
