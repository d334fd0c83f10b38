"""What the memory-estimator report says, case by case."""

from types import SimpleNamespace

import polars as pl
import pytest

from brokerlab.estimators.memory_tasks import OURS
from brokerlab.report.memory_estimator import jobs_sentences as say
from brokerlab.report.memory_estimator import traces_sentences

ROW = {"estimator": OURS, "level": None, "measure": "waste_per_usage", "value": 0.2, "reference": 0.25, "ratio": 0.8,
       "ratio_lo": 0.7, "ratio_hi": 0.9, "without_lo": 0.76, "without_hi": 0.84, "few_tasks": False}  # fmt: skip


def trial(*, over=(0.25, 0.2), limit=0.1, exceed=0.01, few=False):
    """The deployed rule, and a model that is matched with it."""
    rows = [{**ROW, "few_tasks": few}, {**ROW, "measure": "exceed_task_mean", "value": 0.02, "reference": exceed, "ratio": 2.0}]  # fmt: skip
    matched = pl.DataFrame({"estimator": ["model"], "over_allocation_task_mean": [over[1]]})
    return SimpleNamespace(
        comparison=SimpleNamespace(
            paired=pl.DataFrame(rows), level=0.95, counts={"jobs": 1200, "tasks": 4}
        ),
        deployed={"exceed_task_mean": exceed, "over_allocation_task_mean": over[0]},
        matched=lambda _: matched,
        limit=lambda _: limit,
        models=("model",),
        policies=(),
    )


def plain(text):
    return text.replace("\u202f", "_").replace("−", "-")


def test_the_headline_tells_waste_and_how_often_jobs_exceed():
    study = SimpleNamespace(kind="tasks", main=trial(), called="real tasks")
    told = plain(say.headline(study))
    assert told.startswith(
        "On 1,200 jobs of 4 real tasks, hierarchy + cheapest allocation wastes less"
    )
    assert "20.0 % of the use against 25.0 %, -20 % (-30 to -10, 95 % interval over tasks)" in told
    assert (
        "2.0 % of the jobs are above their first allocation, 1.0 % under the rule (means of the tasks)"
        in told
    )


def test_few_tasks_have_no_interval():
    row = {**ROW, "few_tasks": True}
    assert plain(say.change(row)) == "-20 % (-24 to -16, when one task is left out)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "wastes less memory than"),
        ({"ratio_hi": 1.1}, "cannot be told apart in what it wastes from"),
        ({"ratio_lo": 1.1, "ratio_hi": 1.3}, "wastes more memory than"),
        ({"few_tasks": True}, "wastes less memory than"),
        ({"few_tasks": True, "without_hi": 1.04}, "cannot be told apart in what it wastes from"),
        ({"ratio_lo": None, "ratio_hi": None}, "cannot be told apart in what it wastes from"),
    ],
)
def test_less_is_said_where_it_is_sure(change, said):
    assert say._how({**ROW, **change}) == said


@pytest.mark.parametrize(
    ("over", "limit", "said"),
    [
        ((0.25, 0.17), 0.1, "is met."),
        ((0.25, 0.2), 0.1, "is not met: no model reaches it, the allocation that knows"),
        ((0.25, 0.3), 0.2, "is not met: even the allocation that knows"),
    ],
)
def test_the_target_is_held_to_what_is_possible(over, limit, said):
    assert said in say._target(trial(over=over, limit=limit))


def test_settings_chosen_on_other_tasks_are_those_that_kept_the_rate():
    rows = [("wild", 0.5, 0.2, False), ("close", 0.9, 0.011, False), ("kept", 0.95, 0.01, True)]
    frame = pl.DataFrame(rows, schema=["estimator", "ratio", "exceed", "no_higher"], orient="row")
    frame = frame.with_columns(average=pl.lit("tasks"), chosen_on=pl.lit("other tasks"), jobs=1200)
    some = trial()
    some.at_deployed = frame
    assert say.best_chosen(some)["estimator"] == "kept"
    some.at_deployed = frame.filter(~pl.col("no_higher"))
    assert say.best_chosen(some)["estimator"] == "close"
    some.at_deployed = frame.filter(pl.col("ratio") < 0)
    assert say.best_chosen(some) is None


@pytest.mark.parametrize(
    ("ratio", "over", "said"),
    [(0.5, -1.0, "is met."), (0.8, -1.0, "is not met."), (0.5, 2.0, "is not met; more kills: mag."), (1.2, -1.0, "is not met; above 1: mag.")],
)  # fmt: skip
def test_the_target_on_traces(ratio, over, said):
    ours = pl.DataFrame({"trace": ["mag"], "ratio": [ratio], "failures_over": [over]})
    one = SimpleNamespace(ours=ours, ratio=ratio, ratio_lo=ratio, ratio_hi=ratio)
    study = SimpleNamespace(main=one, protocols={"submitted": one})
    assert said in traces_sentences._targets(study)
