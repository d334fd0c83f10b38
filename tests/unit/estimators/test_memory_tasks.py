"""Estimators of memory on whole tasks: nothing learns from what it is tested on."""

import polars as pl
import pytest

from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.estimators.evaluation import MODEL, evaluate_later, evaluate_left_out, learners
from brokerlab.estimators.memory_tasks import (
    OTHER_MARGINS,
    OURS,
    judge_speeds,
    other_margins,
    speed_effect,
)
from brokerlab.estimators.sources import Source
from tests.unit.estimators.trial_toys import whole_tasks

MAKES = learners("memory", MODEL)


def source(frame):
    counts = pl.DataFrame({"reason": ["kept"], "rows": [frame.height]})
    return Source("memory", frame, counts, ())


def test_learners_are_asked_for_by_name():
    assert next(iter(learners("walltime"))) == MODEL
    assert list(learners("memory", MODEL)) == [MODEL]
    with pytest.raises(ConfigError, match="models: 'boost'"):
        learners("memory", "boost")


def test_tasks_that_are_left_out_teach_the_saved_model():
    frame = whole_tasks(3)
    result = evaluate_left_out(
        {"submit": source(frame)}, MAKES, variants=other_margins(), n_boot=50
    )
    assert result.main.curves.filter(estimator=OTHER_MARGINS)["setting"].len() == 9
    assert result.learnt["jeditaskid"].n_unique() == 3
    assert result.main.comparison.counts["jobs"] == 90
    assert set(result.doubts.support["jeditaskid"]) == {0, 1, 2}
    judged = judge_speeds({10.0: source(frame)}, MAKES[MODEL])
    speeds = judged.filter(estimator=OURS).row(0, named=True)
    ours = result.main.comparison.row(OURS)
    assert speeds["over_allocation"] == pytest.approx(ours["over_allocation"])
    assert result.division.is_empty()
    assert result.largest_task[1] == pytest.approx(1 / 3)
    effect = speed_effect(judged)
    assert effect["ids_per_s"] == 10
    assert effect["worst"] == effect["taken"] == pytest.approx(speeds["over_allocation_task_mean"])


def test_estimators_that_learnt_nothing_are_left_out():
    """Two tasks to learn from: nothing is known of which jobs differ."""
    makes = learners("memory", "linear quantiles")
    result = evaluate_left_out({"submit": source(whole_tasks(3))}, makes, n_boot=50)
    assert result.unlearnt == ("linear quantiles",)
    assert "linear quantiles" not in result.main.predicted


def test_an_archive_is_tested_on_its_later_tasks():
    frame = whole_tasks(6)
    result = evaluate_later({"submit": source(frame)}, MAKES, n_boot=50)
    assert result.division.rows() == [("fitted", 3, 120), ("calibrated", 1, 40), ("tested", 2, 80)]
    assert set(result.main.records["jeditaskid"]) == {4, 5}
    assert set(result.learnt["jeditaskid"]) == {0, 1, 2, 3}
    assert speed_effect(judge_speeds({}, MAKES[MODEL])) is None
    written = result.to_dict()
    assert written["division"][-1] == {"part": "tested", "tasks": 2, "jobs": 80}
    limit = result.main.limit(result.main.deployed["exceed_task_mean"])
    assert written["limits"]["submit"]["task_mean"] == limit
    with pytest.raises(InsufficientDataError, match="2 tasks, 3 are needed"):
        evaluate_later({"submit": source(whole_tasks(2))}, MAKES)
