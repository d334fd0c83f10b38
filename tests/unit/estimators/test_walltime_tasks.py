"""Walltime estimators on whole tasks: who learns from what, single guesses by hand, answers that are missing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from brokerlab.errors import InsufficientDataError
from brokerlab.estimators.deployed import DEPLOYED
from brokerlab.estimators.evaluation import MODEL, evaluate_later, evaluate_left_out, learners
from brokerlab.estimators.records import checked
from brokerlab.estimators.sources import Source
from brokerlab.estimators.walltime.logs import guess_errors, guesses_by_clock
from tests.unit.estimators.trial_toys import whole_tasks

RULE = DEPLOYED["walltime"]


def timed_tasks(n_tasks=4, **columns):
    """Whole tasks whose use is their run time."""
    frame = whole_tasks(n_tasks)
    ended = pl.col("decided_s") + pl.col("used")
    return checked(frame.with_columns(wall_s=pl.col("used"), ended_s=ended, **columns))


def source_of(records):
    counts = pl.DataFrame({"reason": ["kept"], "rows": [records.height]})
    return {"submit": Source("walltime", records, counts, ())}


def evaluated(records, evaluate=evaluate_left_out):
    return evaluate(source_of(records), learners("walltime", MODEL), level=0.9, n_boot=50)


def guesses_of(evaluation):
    return guesses_by_clock(evaluation.trials, n_boot=50)


@pytest.fixture(scope="module")
def left_out():
    return evaluated(timed_tasks())


def test_tasks_left_out_are_all_judged_and_later_ones_only_are(left_out):
    assert left_out.main.comparison.counts["tasks"] == 4
    later = evaluated(timed_tasks(9), evaluate_later)
    judged = later.main.records["jeditaskid"].unique().sort().to_list()
    assert judged == [5, 6, 7, 8]
    assert later.learnt["jeditaskid"].unique().sort().to_list() == [0, 1, 2, 3, 4]
    assert later.doubts.support["jeditaskid"].is_null().all()
    assert left_out.doubts.support["jeditaskid"].n_unique() == 4


def test_errors_of_guesses_by_hand(left_out):
    trial = left_out.main
    jobs = ~trial.records["is_scout"].to_numpy()
    used, task = (
        trial.records["used"].to_numpy()[jobs],
        trial.records["jeditaskid"].to_numpy()[jobs],
    )
    guesses = guesses_of(left_out)
    rows = {row["estimator"]: row for row in guesses.iter_rows(named=True)}
    by_task = {}
    for name, row in rows.items():
        off = np.abs(trial.predicted[name].point[jobs] - used)
        by_task[name] = np.array([off[task == t].sum() / used[task == t].sum() for t in range(4)])
        assert row["mae_s"] == pytest.approx(off.mean())
        assert row["median_s"] == pytest.approx(np.median(off))
        assert row["error"] == pytest.approx(by_task[name].mean())
    best = rows[MODEL]["best_rule"]
    assert best != MODEL
    assert rows[best]["ratio"] == rows[best]["ratio_lo"] == rows[best]["ratio_hi"] == 1
    without = [np.delete(by_task[MODEL], t).mean() / np.delete(by_task[best], t).mean() for t in range(4)]  # fmt: skip
    assert rows[MODEL]["ratio"] == pytest.approx(by_task[MODEL].mean() / by_task[best].mean())
    assert rows[MODEL]["ratio_lo"] == pytest.approx(min(without))
    assert rows[MODEL]["ratio_hi"] == pytest.approx(max(without))
    assert guesses["error"].is_sorted()


def test_many_tasks_have_an_interval():
    evaluation = evaluated(timed_tasks(8))
    guesses = guesses_of(evaluation)
    ours = guesses.filter(estimator=MODEL).row(0, named=True)
    assert ours["ratio_lo"] < ours["ratio"] < ours["ratio_hi"]
    again = guess_errors(evaluation.main, n_boot=50)
    assert again.equals(guesses)


def test_too_few_tasks_teach_nothing():
    with pytest.raises(InsufficientDataError, match="2 tasks, 3 are needed"):
        evaluated(timed_tasks(2), evaluate_later)
    with pytest.raises(InsufficientDataError, match="no other task to learn from"):
        evaluated(timed_tasks(1))


def test_jobs_that_end_after_the_first_tested_decision_teach_nothing():
    frame = timed_tasks(6)
    first = frame.filter(pl.col("jeditaskid") == 4)["decided_s"].min()
    late = (pl.col("pandaid") == 20) & (pl.col("jeditaskid") == 0)
    ended = pl.when(late).then(first + 1.0).otherwise("ended_s")
    later = evaluated(checked(frame.with_columns(ended_s=ended)), evaluate_later)
    assert 20 not in later.learnt["pandaid"]
    assert 20 in evaluated(frame, evaluate_later).learnt["pandaid"]


def test_jobs_without_scouts_and_requests_have_no_reference():
    """Each task is a single job, of which nothing was asked for: no rule can say anything."""
    records = timed_tasks(6, requested=pl.lit(None, pl.Float64)).filter(
        pl.col("pandaid") % 1000 == 20
    )
    with pytest.raises(InsufficientDataError, match="has no limit for any of 6 jobs"):
        evaluated(records)
    assert RULE in evaluated(timed_tasks(3)).main.predicted
