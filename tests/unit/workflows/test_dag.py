"""Workflows: levels, widths, and everything that is refused, all at once."""

import math
from datetime import timedelta

import polars as pl
import pytest

from brokerlab.errors import ConfigError, SchemaError
from brokerlab.workflows.dag import CycleError, MissingRuntime, TaskTooWide, WorkflowError, workflow
from brokerlab.workflows.manager import run
from brokerlab.workflows.strategies import strategy
from tests.unit.workflows.wf_toys import chain, dag, waits


def test_the_level_is_the_longest_path_from_an_entry():
    flow = dag(dict.fromkeys("abcd", 1), [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")])
    assert flow.level == (0, 1, 2, 0)
    assert flow.widths == (2, 1, 1)
    assert flow.longest_path == 3


def test_levels_of_what_is_left_do_not_see_parents_that_are_done():
    flow = chain(1, 2, 3)
    assert flow.levels_of({1, 2}) == ((1,), (2,))
    assert flow.levels_of([]) == ()


def test_isolated_tasks_are_level_0_and_several_components_are_legal():
    assert dag(dict.fromkeys("abcx", 1), [("a", "b")]).levels == ((0, 2, 3), (1,))


def test_a_duplicate_edge_counts_once():
    assert dag({"a": 1, "b": 1}, [("a", "b"), ("a", "b")]).parents == ((), (0,))


def test_widths_count_hosts():
    assert dag({"a": 1, "b": 1}, hosts={"a": 3}).widths == (4,)


def test_a_cycle_is_listed():
    with pytest.raises(CycleError, match=r"3 tasks wait for each other in a circle: .*b.*->"):
        dag(dict.fromkeys("abcd", 1), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])


def test_missing_run_times_are_named_up_to_ten_with_their_number():
    with pytest.raises(MissingRuntime, match=r"12 of 13 tasks have none: t1, .*t10 and 2 more"):
        dag({"t0": 5, **{f"t{i}": None for i in range(1, 13)}})
    assert dag({"a": None}, default_runtime=7).runtime == (7.0,)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_impossible_run_times_are_named(value):
    with pytest.raises(WorkflowError, match=r"tasks.runtime: 1 values.*b \("):
        dag({"a": 1, "b": value})


def test_everything_wrong_is_told_at_once():
    with pytest.raises(WorkflowError) as told:
        dag(
            {"a": -1, "b": None, "c": 1},
            [("a", "ghost"), ("c", "c"), ("a", "b"), ("b", "a")],
            hosts={"c": 0},
            estimates={"c": float("nan")},
        )
    for part in ("edges.child", "ghost", "wait for themselves: c", "a (-1.0)", "tasks.hosts", "c (0)",
                 "tasks.estimate", "circle", "tasks.runtime: 1 of 3 tasks have none: b"):  # fmt: skip
        assert part in str(told.value)


def test_an_id_that_stands_twice_is_refused():
    tasks = pl.DataFrame({"task_id": ["a", "a"], "runtime": [1.0, 2.0]})
    with pytest.raises(WorkflowError, match="1 ids stand more than once: a"):
        workflow(tasks, pl.DataFrame(schema={"parent": pl.String, "child": pl.String}))


def test_a_table_without_its_columns_is_refused():
    with pytest.raises(SchemaError, match="task_id"):
        workflow(pl.DataFrame({"id": ["a"]}), pl.DataFrame())


def test_a_task_wider_than_the_machine_is_refused_before_the_run():
    flow = dag({"a": 1, "b": 1}, hosts={"b": 20})
    with pytest.raises(TaskTooWide, match=r"b \(20\)"):
        run(flow, waits(hosts=10), strategy("one_job"))


def test_an_empty_workflow_is_a_valid_run():
    done = run(dag({}), waits(), strategy("pilot_levels"))
    assert (done.metrics["turnaround"], done.jobs) == (0.0, ())
    assert done.tasks_frame().is_empty()


def test_stretch_scales_run_times():
    flow = dag({"a": 2, "b": 3}, [("a", "b")], stretch=10)
    assert (flow.longest_path, flow.work) == (50.0, 50.0)


@pytest.mark.parametrize("stretch", [0, -1, math.nan, math.inf])
def test_an_impossible_stretch_is_refused(stretch):
    with pytest.raises(ConfigError, match="stretch"):
        dag({"a": 1}, stretch=stretch)


def test_a_duration_is_no_number_of_seconds():
    """It would count microseconds: a task of an hour would run for 114 years."""
    tasks = pl.DataFrame({"task_id": ["a"], "runtime": [timedelta(hours=1)]})
    with pytest.raises(SchemaError, match=r"tasks\.runtime: is Duration.*a number is needed"):
        workflow(tasks, [])
