"""Frames of a trial: the same numbers as in its comparison, rows in a stated order, nothing relative to almost nothing."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from brokerlab.estimators import trial_frames
from brokerlab.estimators.trial import POLICY

OURS = POLICY.format("hierarchy")


def offered(trial):
    """The trial as if its cheapest allocations were offered."""
    return replace(trial, offers=trial.offers.with_columns(offered=pl.lit(value=True)))


def test_every_estimator_is_held_against_the_deployed_rule(tried):
    rows = trial_frames.every_estimator(tried)
    table = tried.comparison.table
    assert rows.select("estimator", "level").equals(table.select("estimator", "level"))
    marks = dict(rows.drop_nulls("mark").select("mark", "estimator").rows())
    assert marks == {
        "current": tried.comparison.reference
    }  # ours is above 1.05 times the best rule
    marks = (
        trial_frames.every_estimator(offered(tried)).drop_nulls("mark").select("mark", "estimator")
    )
    assert dict(marks.rows()) == {"current": tried.comparison.reference, "proposed": OURS}
    ours = rows.filter(estimator=OURS).row(0, named=True)
    paired = tried.against_deployed(OURS, "over_allocation_task_mean")
    assert ours["change"] == pytest.approx(paired["ratio"] - 1)
    assert ours["change_lo"] == pytest.approx(paired["ratio_lo"] - 1)
    assert rows.filter(mark="current")["change"].to_list() == [None]


def test_every_estimator_stands_beside_itself_by_another_clock(tried):
    rows = trial_frames.every_estimator(tried, replace(tried, at="start"))
    assert rows["start_waste_per_usage"].to_list() == rows["waste_per_usage"].to_list()


def test_nothing_is_relative_to_almost_nothing(tried):
    paired = tried.comparison.paired.with_columns(reference=pl.lit(1e-9), ratio=pl.lit(1e9))
    small = replace(tried, comparison=replace(tried.comparison, paired=paired))
    assert trial_frames.every_estimator(small)["change"].null_count() == len(tried.comparison.table)
    table = tried.comparison.table.with_columns(over_allocation_task_mean=pl.lit(1e-9))
    small = replace(tried, comparison=replace(tried.comparison, table=table))
    assert trial_frames.at_equal_exceed(small)["change"].null_count() == len(
        trial_frames.at_equal_exceed(small)
    )


def test_at_equal_exceed_rates_the_limit_is_least(tried):
    rows = trial_frames.at_equal_exceed(tried)
    assert rows.row(0, named=True)["role"] == "limit"
    assert set(rows["estimator"]) == {*tried.curves["estimator"], trial_frames.LIMIT}
    told = rows.drop_nulls("over_allocation")
    assert told["over_allocation"].is_sorted()
    assert told["exceed"].max() <= tried.deployed["exceed_task_mean"] + 1e-9
    deployed = rows.filter(role="current").row(0, named=True)
    assert deployed["change"] == pytest.approx(0.0)
    assert deployed["mark"] == "current"
    assert rows.filter(role="model")["mark"].null_count() == rows.filter(role="model").height
    best = trial_frames.best_model(rows)
    models = rows.filter(pl.col("role").is_in(["model", "proposed"]))
    assert best["over_allocation"] == models["over_allocation"].min()
    assert trial_frames.best_model(rows.filter(role="rule")) is None


def test_a_rule_without_an_answer_is_matched_by_nobody(tried):
    table = tried.comparison.table.with_columns(
        exceed_task_mean=pl.lit(None, dtype=pl.Float64),
        over_allocation_task_mean=pl.lit(None, dtype=pl.Float64),
    )
    silent = replace(tried, comparison=replace(tried.comparison, table=table))
    rows = trial_frames.at_equal_exceed(silent)
    assert rows["over_allocation"].null_count() == rows.height
    assert trial_frames.frontier_points(silent).height > 0


def test_tasks_are_sorted_by_what_they_lose(tried):
    rows = trial_frames.task_by_task(tried, OURS)
    assert rows.height == 4
    assert rows["difference"].is_sorted(descending=True)
    difference = rows["our_waste_per_usage"] - rows["waste_per_usage"]
    assert rows["difference"].to_list() == pytest.approx(difference.to_list())
    assert rows["mark"].drop_nulls().to_list() == ["worst"] * (rows["difference"][0] > 0)


def test_few_tasks_have_no_interval(tried):
    assert trial_frames.chosen_elsewhere(tried)["ratio_lo"].null_count() == 2
    clocks = trial_frames.coverage_by_clock({"submit": tried}, "hierarchy")
    row = clocks.row(0, named=True)
    assert (row["coverage_lo"], row["coverage_hi"]) == (None, None)
    assert row["decided"] == "at submission"
    assert row["coverage"] == tried.comparison.row("hierarchy")["coverage"]
    assert row["inside"] + row["too_often"] + row["too_rarely"] == row["strata"]
    own = tried.predicted["hierarchy"].at(tried.comparison.level)
    judged = ~tried.records["is_scout"].to_numpy()
    promised = np.isfinite(tried.held["hierarchy"].at(tried.comparison.level))[judged]
    assert row["promised"] == pytest.approx(promised.mean())
    assert promised.mean() < 0.1  # jobs of a task are told together
    assert row["own"] == pytest.approx((tried.records["used"].to_numpy() <= own)[judged].mean())


def test_what_is_not_promised_is_no_answer(one_by_one):
    table = one_by_one.comparison.table.filter(estimator="hierarchy")
    for level, without, coverage in table.select("level", "share_without", "coverage").rows():
        held, own = (
            told["hierarchy"].at(level) for told in (one_by_one.held, one_by_one.predicted)
        )
        judged = ~one_by_one.records["is_scout"].to_numpy()
        assert without == pytest.approx(np.isinf(held)[judged].mean())
        kept = (one_by_one.records["used"].to_numpy() <= held)[judged & np.isfinite(held)]
        assert coverage == (pytest.approx(kept.mean()) if kept.size else None)
        assert np.isfinite(own).all()
    without = table["share_without"].to_list()
    assert 0 == without[0] < without[1] < without[2] == 1  # 10, 19 and 99 of a task are needed
    row = trial_frames.coverage_by_clock({"submit": one_by_one}, "hierarchy").row(0, named=True)
    assert row["promised"] == 1 - table["share_without"][0]
    assert row["coverage"] == table["coverage"][0]


def test_why_an_estimator_is_not_offered(tried):
    def why(**columns):
        return trial_frames.why_not_offered(tried.offers.with_columns(**columns), OURS)

    assert why() == "wastes 1.07 times as much"
    assert why(worst_on=pl.lit("iwd")) == "wastes 1.07 times as much on iwd"
    assert why(worst=pl.lit(1.0)) == "was not judged on all"
    assert why(worst=pl.lit(1.0), short=pl.lit(["a"])) == "keeps its 95 % bounds too rarely"
    assert why(worst=pl.lit(None, pl.Float64)) == "cannot be compared"
    assert why(silent=pl.lit(["a"])) == "says nothing"
    assert why(offered=pl.lit(value=True)) is None
    assert trial_frames.default_of(tried.offers) == tried.comparison.reference
    assert trial_frames.default_of(tried.offers.filter("learns")) is None


def test_coverage_by_what_was_known_goes_up_in_steps(tried):
    rows = trial_frames.by_known(tried)
    assert rows["known_least"].is_sorted()
    assert set(rows["estimator"]) == {tried.comparison.reference, "hierarchy", OURS}
    assert rows.filter(pl.col("coverage_lo") > pl.col("coverage")).is_empty()


def test_each_line_of_the_frontier_has_one_name(tried):
    points = trial_frames.frontier_points(offered(tried))
    named = points.filter("named")
    assert named["estimator"].is_unique().all()
    assert {"current", "proposed", "model", "limit"} <= set(named["role"])
    far = 3.0 * tried.deployed["over_allocation_task_mean"]
    assert points.filter(pl.col("role") != "limit")["over_allocation"].max() <= far
