"""The back-test of stopped tasks on toys of which is known who would have gone well."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab import scouts
from brokerlab.calibrate.stops import (
    ANY,
    StopBacktest,
    backtest_stops,
    read_scout_history,
    stop_keys,
)
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from tests.scout_toys import Toy, settings

ABUSE = {"cpuconsumptiontime": 2001}
"""More than twice the 1000 s of a job on one core: X6."""
FAILED = {"jobstatus": "failed", "file": {"status": "failed"}}
LEAK = "SCOUT_MEM_LEAK_PER_CORE_<prodsourcelabel>"
CASES: dict[int, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    1: (ABUSE, [{}] * 4),  # stopped, and its later jobs keep the limit: wrongly
    2: (ABUSE, [ABUSE] * 4),  # stopped, rightly
    3: (ABUSE, [{}, FAILED, FAILED, FAILED]),  # keeps the limit, but most later jobs fail: rightly
    4: ({}, [{}] * 4),  # let through, goes well
    5: ({}, [ABUSE] * 4),  # let through, breaks the limit later
    6: ({}, [FAILED] * 4),  # let through, fails
    7: (ABUSE, []),  # nothing is known of what it would have done
}
"""Task to its scouts and its later jobs; tasks 8 and 9 are not judged."""


def toy(
    cases: dict[int, tuple[dict[str, Any], list[dict[str, Any]]]] = CASES, *, grow: bool = True
) -> Toy:
    """Tasks that are over; those whose jobs cannot grow after the scouts have ``NE`` and read in place."""
    about = {
        "nfiles": 1000,
        "splitrule": "US=3,NF=1" + ("" if grow else ",NE=100,LI=1"),
        "status": "done",
    }
    made = Toy(**about)
    for number in cases:
        if number > 1:
            made.task(number, **about)
    for number, (first, later) in cases.items():
        made.file(None, task=number, status="ready", nevents=10**6)  # events of many jobs to come
        for i in range(10):
            made.job(100 * number + i, 1000, task=number, specialhandling="sj", **first)
        for i, one in enumerate(later):
            made.job(100 * number + 20 + i, 1000, task=number, start=5000, **one)
    return made


def backtest(
    made: Toy, *keys: str, config: dict[str, Any] | None = None, **more: Any
) -> StopBacktest:
    tables = dict(zip(("jobs", "files", "tasks", "datasets", "queues"), made.tables(), strict=True))
    history = read_scout_history(tables, config=settings(config))
    return backtest_stops(history, keys, n_boot=100, **more)


def row(
    found: StopBacktest, check: str, key: str | None = None, value: float | None = None
) -> dict[str, Any]:
    wanted = (
        (pl.col("check") == check)
        & pl.col("key").eq_missing(key)
        & pl.col("value").eq_missing(value)
    )
    return found.checks.row(by_predicate=wanted, named=True)


def test_stopped_tasks_that_go_well_and_passed_ones_that_do_not_are_counted():
    told = row(backtest(toy()), "X6")
    assert (told["n_tasks"], told["n_unknown"]) == (7, 1)
    assert (told["n_stopped"], told["n_stopped_well"], told["false_share"]) == (3, 1, 1 / 3)
    assert (told["n_passed"], told["n_passed_badly"], told["missed_share"]) == (3, 2, 2 / 3)
    # exact interval of 1 of 3, Clopper and Pearson 1934
    assert (told["false_share_lo"], told["false_share_hi"]) == pytest.approx(
        (0.0084, 0.9057), abs=1e-4
    )
    assert told["lost_core_h"] == pytest.approx(4000 / 3600)  # four jobs of task 1
    assert told["missed_core_h"] == pytest.approx(8000 / 3600)  # those of tasks 5 and 6
    assert told["missed_core_h_lo"] <= told["missed_core_h"] <= told["missed_core_h_hi"]


def test_any_check_adds_up_and_one_that_is_off_stops_nothing():
    found = backtest(toy())
    assert row(found, ANY) == row(found, "X6") | {"check": ANY}
    leak = row(found, "X3")
    assert (leak["n_stopped"], leak["false_share"], leak["n_passed"]) == (0, None, 6)
    assert leak["n_passed_badly"] == 2  # tasks 3 and 6: most of their later jobs fail


def test_other_values_are_judged_by_what_later_jobs_leak():
    leaky, tight = {"memory_leak": 100}, {"memory_leak": 1}
    made = toy({1: (leaky, [leaky] * 4), 2: (leaky, [tight] * 4), 3: (tight, [tight] * 4)})
    found = backtest(made, LEAK)
    values = found.checks.filter(pl.col("key") == LEAK, pl.col("check") == "X3").sort("value")
    assert values["value"].to_list() == [1, 22, 464, 10000]
    assert values["n_stopped"].to_list() == [2, 2, 0, 0]  # tasks 1 and 2, where 100 exceeds it
    assert values["n_stopped_well"].to_list() == [1, 1, 0, 0]  # task 2: its later jobs do not leak
    assert values["n_passed_badly"].to_list() == [0, 0, 0, 0]


def test_what_else_a_check_needs_is_switched_on():
    short, wanted = "SCOUT_NUM_SHORT_<prodsourcelabel>", "SCOUT_THR_SHORT_<prodsourcelabel>"
    found = backtest(toy(), short, config={"SCOUT_SHORT_EXECTIME_managed": 20})
    assert found.beside == {short: f"{wanted} = 316"}  # the middle of 10 to 10000
    # every job runs 1000 s, shorter than 20 min: all scouts are short, and so are the later jobs
    told = row(found, "X4", short, 10)
    assert (told["n_stopped"], told["n_stopped_well"], told["n_passed"]) == (0, 0, 6)
    exempt = row(
        backtest(toy(grow=False), short, config={"SCOUT_SHORT_EXECTIME_managed": 20}),
        "X4",
        short,
        10,
    )
    assert (exempt["n_stopped"], exempt["n_stopped_well"]) == (6, 0)


def test_other_tasks_are_left_out():
    made = toy()
    made.task(8, nfiles=1000, splitrule="US=1").task(9, nfiles=12, splitrule="US=2")
    for i in range(10):
        made.job(800 + i, 1000, task=8, **ABUSE).job(900 + i, 1000, task=9, **ABUSE)
    found = backtest(
        made
    )  # 8 has no scouts; 9 has little to come, which the page does not ask about
    assert found.tasks["jeditaskid"].unique().sort().to_list() == [*CASES, 9]


def test_what_cannot_be_said_is_refused():
    with pytest.raises(InsufficientDataError, match="no task has scouts"):
        backtest(Toy(splitrule="US=1").job(1))
    with pytest.raises(InsufficientDataError, match="has no table 'jobs'"):
        read_scout_history({})


def test_files_given_twice_are_refused():
    """Their events would count twice: half the CPU time per event."""
    names = ("jobs", "files", "tasks", "datasets", "queues")
    tables = dict(zip(names, toy().tables(), strict=True))
    files = tables["files"].with_row_index("fileid").with_columns(attemptnr=0)
    with pytest.raises(DataError, match=r"files: \d+ rows have a key that another one has"):
        read_scout_history({**tables, "files": pl.concat([files, files])})
    read_scout_history({**tables, "files": files})
    with pytest.raises(ConfigError, match=r"'SCOUT_NUM_SHORT': did you mean 'SCOUT_NUM_SHORT_<"):
        backtest(toy(), "SCOUT_NUM_SHORT")


def test_every_key_of_the_checks_can_be_tried():
    read = {key for check in scouts.checks.checks(scouts.ScoutRules()) for key in check.keys}
    assert {key.key for key in stop_keys()} == read
    found = backtest(toy(), *(key.key for key in stop_keys()))
    assert set(found.checks["key"].drop_nulls()) == read
