"""What each switch of the scouts' rules does, on toys."""

from dataclasses import replace

import polars as pl
import pytest

from brokerlab.calibrate.stops import (
    ScoutHistory,
    compare_scout_rules,
    decided,
    read_scout_history,
    sample_tasks,
)
from brokerlab.errors import InsufficientDataError
from tests.scout_toys import settings
from tests.unit.calibrate.test_stops import toy


def history() -> ScoutHistory:
    """Seven tasks whose jobs' efficiency is not known: 003, cpuTime, takes 90 %, the deployed code 100 %."""
    names = ("jobs", "files", "tasks", "datasets", "queues")
    found = read_scout_history(dict(zip(names, toy().tables(), strict=True)), config=settings(None))
    unknown = pl.lit(None, found.tasks.schema["cpuefficiency"])
    return replace(found, tasks=found.tasks.with_columns(cpuefficiency=unknown))


def test_a_switch_that_sets_one_value_of_every_task_otherwise() -> None:
    result = compare_scout_rules(history())
    assert (result.current, result.other, result.n_tasks) == ("document", "production", 7)
    assert result.n_changed == 7
    first = result.switches.row(0, named=True)
    assert (first["switch"], first["here"], first["there"]) == (
        "default_cpu_efficiency",
        "90",
        "100",
    )
    assert (first["n_changed"], first["explained"]) == (7, 1.0)
    assert result.switches["n_changed"][1:].sum() == 0


def test_decisions_are_parameters_and_checks() -> None:
    rows = decided(history())
    told = dict(rows.filter(jeditaskid=1).select("what", "value").iter_rows())
    assert (told["rule"], told["succeeded"]) == ("X6", "true")
    assert int(told["cputime"]) > 0


def test_a_sample_holds_the_jobs_of_its_tasks_alone() -> None:
    few = sample_tasks(history(), 3, seed=1)
    ids = few.tasks["jeditaskid"].to_list()
    assert len(ids) == 3
    assert set(few.tables["jobs"].collect()["jeditaskid"]) == set(ids)
    assert few.at.height == 3
    assert sample_tasks(history(), 3, seed=1).tasks["jeditaskid"].to_list() == ids
    every = decided(history()).filter(pl.col("jeditaskid").is_in(ids))
    assert decided(few).equals(every)


def test_only_the_tasks_that_are_asked_for_are_tried() -> None:
    whole = history()
    one = whole.tasks.select("jeditaskid").head(1)
    assert compare_scout_rules(whole.among(one)).n_tasks == 1
    with pytest.raises(InsufficientDataError, match="none of these tasks has scouts"):
        whole.among(one.clear())
