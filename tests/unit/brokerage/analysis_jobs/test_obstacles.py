"""What would help a user task is decided again without the check, in both locality loops."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from brokerlab.brokerage import single_obstacles, what_would_help
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.engine.decide import trial, without_checks
from brokerlab.brokerage.engine.steps import rules_of
from tests.unit.brokerage.analysis_jobs.toys import SHARE, World
from tests.unit.brokerage.analysis_jobs.worlds import random_world

STRICT = AnalysisRules("production", bad_jobs_mode="all", cap_rt_effective=True)
ALL_BAD = AnalysisRules("production", bad_jobs_mode="all")


@cache
def base(rules: str) -> AnalysisDecisions:
    return random_world(3).decided(STRICT if rules == "strict" else rules)


def told(made: World, rules: str | AnalysisRules = "document") -> dict[str, dict[str, object]]:
    table = what_would_help(made.decided(rules), jeditaskid=1)
    return {row["check"]: row for row in table.to_dicts()}


@pytest.mark.parametrize("rules", ["document", "strict"])
def test_single_obstacles_agree_with_deciding_without_the_check(rules: str) -> None:
    decisions = base(rules)
    late = {rule.name for rule in rules_of(decisions.world.steps)}
    single = single_obstacles(decisions)
    assert single["check"].n_unique() > 5
    tasks = decisions.world.facts.tasks.select("jeditaskid", "t").head(8)
    numbers = dict(decisions.world.facts.queues.select("panda_queue", "q").iter_rows())
    for t, rows in single.join(tasks, on="jeditaskid").group_by("t"):
        again = trial(decisions, int(t[0]))
        for name, check in rows.select("panda_queue", "check").unique("check").iter_rows():
            names = {check} if check != BROKERAGE.marked else set(MARKS)
            here = pl.col("q") == numbers[name]
            without = again(frozenset(names), here)
            found = without.pairs.filter(here)["check"].item()
            assert found is None or (found in late and found != check) or found == "low_weight"


def test_only_queues_that_fail_nothing_else_would_pass() -> None:
    made = World().queue("A", maxrss=1.0).queue("B", maxrss=1.0, e_space_usable=1.0)
    table = told(made)
    memory = table["lowmemory"]
    assert (memory["n_skipped"], memory["n_alone"], memory["n_gained"]) == (2, 1, 1)
    assert memory["n_candidates"] == 1
    assert "storage" not in table
    assert memory["queue_fields"] == ["corecount", "maxrss"]


def test_a_check_of_the_first_loop_brings_the_task_back_to_it() -> None:
    made = World(allowincompleteinds=True).queue("FULL", maxrss=1.0).queue("EMPTY")
    made.add("datasets", jeditaskid=1, datasetname="d", type="input", is_master=True)
    place = {"ddm_endpoint_name": "FULL_DISK", "found": 3, "total": 3}
    made.add("replicas", jeditaskid=1, datasetname="d", **place)
    decisions = made.decided()
    assert decisions.tasks["loop"].to_list() == [2]
    assert decisions.queues["check"].cast(pl.String).to_list() == [None, "lowmemory"]
    queues = dict(decisions.world.facts.queues.select("panda_queue", "q").iter_rows())
    found = without_checks(decisions, 0, queues["FULL"])
    assert (found.checks, found.loop, found.place, found.ranked.height) == (("lowmemory",), 1, 1, 1)
    # without the check the first loop is enough: one queue comes, the other goes
    assert told(made)["lowmemory"]["n_gained"] == 0


def test_marks_stand_in_the_place_of_badsite() -> None:
    made = World().queue("A").jobs("A", "activated", 200).jobs("A", "running", 1)
    alice = {"gshare": SHARE, "produsername": "alice", "nqueue": 190, "nrunning": 1}
    made.add("user_job_stats", computingsite="A", **alice)
    made.queue("B").jobs("B", "running", 1).jobs("B", "activated", 200)
    table = told(made, ALL_BAD)
    assert set(table) == {"user_queue"}
    assert (table["user_queue"]["n_alone"], table["user_queue"]["n_gained"]) == (1, 1)
    made.add("failure_counts", jeditaskid=1, computingsite="A", jobstatus="failed", njobs=9)
    both = told(made, ALL_BAD)
    assert {name: row["n_alone"] for name, row in both.items()} == {"user_queue": 0, "bad_jobs": 0}
    assert {name: row["n_skipped"] for name, row in both.items()} == {
        "user_queue": 1,
        "bad_jobs": 1,
    }
    assert single_obstacles(made.decided(ALL_BAD))["check"].to_list() == [BROKERAGE.marked]


def test_a_task_held_back_has_none() -> None:
    decisions = base("document")
    held = decisions.tasks.filter(pl.col("n_queues") == 0)["jeditaskid"]
    assert len(held)
    assert not what_would_help(decisions, jeditaskid=held[0]).height


def test_every_obstacle_of_a_batch_can_be_told() -> None:
    decisions = base("document")
    for task in decisions.tasks["jeditaskid"].head(5):
        table = what_would_help(decisions, jeditaskid=task)
        assert (table["n_alone"] <= table["n_skipped"]).all()
        assert table["n_candidates"].min() in (None, *range(19))
