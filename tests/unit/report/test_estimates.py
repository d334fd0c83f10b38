"""What the reports on estimators share: tested on tasks that are left out, limits known by hand, cheapest allocations."""

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.estimators.deployed import rules
from brokerlab.estimators.estimator import Predicted
from brokerlab.estimators.hierarchy import Hierarchy
from brokerlab.estimators.records import checked
from brokerlab.report.estimates import allocated, data_folder, frontier, limit, tables, trust
from brokerlab.report.estimates.left_out import replay_left_out, trained
from brokerlab.report.estimates.trial import POLICY, asked_levels, trial

LEVEL = 0.9


def records(n_tasks=4, jobs=30, *, seed=0):
    """Tasks whose ten scouts end before the others are decided; memory differs by task and queue."""
    rng = np.random.default_rng(seed)
    parts = []
    for task in range(n_tasks):
        n = 10 + jobs
        decided = 10_000.0 * task + np.where(np.arange(n) < 10, np.arange(n), 1000.0 + np.arange(n))
        level = rng.uniform(500, 4000)
        parts.append(
            pl.DataFrame(
                {
                    "pandaid": np.arange(n) + 1000 * task,
                    "jeditaskid": task,
                    "kind": "reco",
                    "queue": ["A" if i < 10 or i % 2 else "B" for i in range(n)],
                    "cores": 1,
                    "events": 1000,
                    "input_mb": 100.0,
                    "corepower": 10.0,
                    "requested": 5000.0,
                    "sent": 0.9 * level,
                    "is_scout": np.arange(n) < 10,
                    "decided_s": decided,
                    "ended_s": decided + 500.0,
                    "used": level * rng.lognormal(0, 0.1, n),
                    "censored": False,
                    "wall_s": 500.0,
                }
            )
        )
    return checked(pl.concat(parts))


@pytest.fixture(scope="module")
def tried():
    frame, asked = records(), asked_levels(LEVEL)
    predicted = {each.name: each.replay(frame, levels=asked) for each in rules("memory")}
    predicted["hierarchy"] = replay_left_out(lambda: Hierarchy("memory"), frame, levels=asked)
    return trial(
        frame, predicted, at="submit", quantity="memory", level=LEVEL, models=["hierarchy"],
        policies=["hierarchy"], n_boot=100, seed=1,
    )  # fmt: skip


class Told:
    """Remembers which tasks it was given."""

    name = "told"

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
    found = replay_left_out(lambda: Told(given), records(), levels=(0.5,))
    assert found.pandaid.tolist() == records()["pandaid"].to_list()
    assert [tested for tested, _, _ in given] == [{0}, {1}, {2}, {3}]
    for tested, fitted, calibrated in given:
        assert not tested & (fitted | calibrated)
        assert not fitted & calibrated
        assert (len(fitted), len(calibrated)) == (2, 1)
        assert max(fitted) < max(calibrated)


def test_a_single_task_can_not_be_left_out():
    with pytest.raises(InsufficientDataError, match="task 0: no other task"):
        replay_left_out(lambda: Hierarchy("memory"), records(1), levels=(0.5,))
    assert trained(Told([]), records(1)).fitted == {0}


def test_the_limit_is_the_best_allocation_of_each_group():
    """Groups 1..4 and 10: nobody above costs (3+2+1) and 0 of 20; one job above allows 3 for the first group."""
    frame = pl.DataFrame(
        {"jeditaskid": [1] * 5, "queue": ["A"] * 4 + ["B"], "cores": 1, "used": [1.0, 2.0, 3.0, 4.0, 10.0],
         "censored": False}
    )  # fmt: skip
    curve = limit.limit_curve(frame)
    assert curve.row(0) == pytest.approx((0.0, 6 / 20))
    assert curve.row(1) == pytest.approx((0.2, 3 / 20))
    assert limit.at_exceed(curve, 0.1) == pytest.approx(4.5 / 20)
    assert curve["over_allocation"].is_sorted(descending=True)


def test_the_limit_averages_tasks_or_pools_jobs():
    used = [1.0, 2.0, 100.0, 200.0, 200.0]
    frame = pl.DataFrame({"jeditaskid": [1, 1, 2, 2, 2], "queue": "A", "cores": 1, "used": used, "censored": False})  # fmt: skip
    assert limit.limit_curve(frame).row(0)[1] == pytest.approx((1 / 3 + 100 / 500) / 2)
    assert limit.limit_curve(frame, pooled=True).row(0)[1] == pytest.approx(101 / 503)
    with pytest.raises(InsufficientDataError, match="no finished job"):
        limit.limit_curve(frame.with_columns(censored=True))


def test_dearer_failures_ask_for_more():
    levels = (0.5, 0.9, 0.999)
    bounds = np.array([[100.0, 200.0, 300.0], [np.inf] * 3])
    told = Predicted(np.array([1, 2]), np.array([5, 0]), levels, bounds, np.array([100.0, np.inf]))
    found = allocated.allocated(told, prices=(0.1, 5.0, 500.0))
    assert found.bounds[0, 0] == 100.0
    assert found.bounds[0, 1] > 100.0
    assert found.bounds[0, 2] >= 300.0
    assert np.isinf(found.bounds[1]).all()
    assert allocated.price_of(allocated.level_of(2.0)) == pytest.approx(2.0)
    fixed = allocated.at_price(found, 5.0, (0.9, 0.95))
    assert fixed.at(0.95).tolist() == found.bounds[:, 1].tolist()


def test_a_setting_is_matched_by_its_exceed_rate():
    rows = [("m", 0.5, 1.0, 0.3, 0.1), ("m", 0.9, 1.0, 0.1, 0.2), ("m", 0.99, 0.5, 0.0, 0.1)]
    columns = ["estimator", "setting", "answered", "exceed_task_mean", "over_allocation_task_mean"]
    curve = pl.DataFrame(rows, schema=columns, orient="row")
    assert frontier.at_most(curve, 0.1)["setting"] == 0.9
    assert frontier.at_most(curve, 0.05) is None  # the rarest has no answer for half of the jobs


def test_a_trial_tells_every_estimator_on_the_same_jobs(tried):
    assert tried.comparison.counts == {"jobs": 120, "left_out": 40, "killed": 0, "tasks": 4}
    assert tried.policies == (POLICY.format("hierarchy"),)
    assert set(tried.at_deployed["estimator"]) == {"hierarchy", *tried.policies}
    assert tried.limit(0.0) <= min(tried.matched(0.0)["over_allocation_task_mean"])
    assert tried.limit(1.0) < tried.limit(0.0)
    deployed = tried.curves.filter(estimator=tried.comparison.reference).row(0, named=True)
    assert deployed["over_allocation"] == pytest.approx(tried.deployed["over_allocation"])


def test_tables_show_what_was_compared(tried):
    shown = tables.overall(tried)
    rows = {row.cells["estimator"]: row for row in shown.rows}
    assert rows[tried.comparison.reference].note == "deployed"
    assert rows[tried.policies[0]].note == "ours"
    assert rows["hierarchy, 90 %"].cells["over"].value == pytest.approx(
        100 * tried.comparison.row("hierarchy", 0.9)["over_allocation_task_mean"]
    )
    matched = tables.at_equal_exceed(tried, {"as sent": 0.5})
    assert matched.rows[-1].note == "limit"
    assert tables.by_task(tried, tried.policies[0]).rows[0].cells["jobs"].value == 30
    assert {row.cells["estimator"] for row in tables.by_known(tried).rows} == {
        tried.comparison.reference, "hierarchy", *tried.policies
    }  # fmt: skip


def test_doubts_are_never_empty(tried):
    learnt = tried.records
    found = trust.doubts(tried, "hierarchy", lambda task: learnt.filter(pl.col("jeditaskid") != task), by_task=True)  # fmt: skip
    assert found.tasks["jeditaskid"].to_list() == [0, 1, 2, 3]
    assert found.scouts.height == 4
    assert trust.sentences(found)[-1].startswith("Jobs of queues, kinds and sizes that nobody ran")
    assert len(trust.table(found, name="x").rows) == 4


def test_data_are_looked_for_where_they_were_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path / "none"))
    assert data_folder() is None
    monkeypatch.setenv("BROKERLAB_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    with pytest.raises(DataError, match="no such folder"):
        data_folder("nowhere")
