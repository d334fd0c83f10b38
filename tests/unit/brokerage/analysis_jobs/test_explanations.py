"""Answers about user tasks: why held back, skipped or sent, with the numbers compared."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import Explanation, checks_table, compare, explain, explain_task
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules, decide
from brokerlab.brokerage.analysis_jobs.ranking import MARKS
from brokerlab.brokerage.analysis_jobs.throttle import NO_TARGET_PCT, OUTCOMES, throttle_rules
from brokerlab.brokerage.engine.decide import Waived, trial
from brokerlab.brokerage.explaining.question import subject
from brokerlab.brokerage.explaining.users import OfUsers
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import filled
from brokerlab.errors import ConfigError, DataError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.classification.usage import LARGEST
from tests.brokerage_toys import World as ProductionWorld
from tests.unit.brokerage.analysis_jobs.toys import AT, SHARE, World
from tests.unit.brokerage.analysis_jobs.worlds import random_world

RULES = [
    AnalysisRules("document"),
    AnalysisRules("production"),
    AnalysisRules("production", cap_rt_effective=True, bad_jobs_mode="all", new_weight="document"),
]
NAMES = ["document", "production", "mixed"]
DECIDED: dict[str, AnalysisDecisions] = {}


@cache
def batch(name: str) -> AnalysisDecisions:
    rules = RULES[NAMES.index(name)]
    return random_world(3).decided(rules, IO_INTENSITY_CUTOFF_USER=60)


def ask(made: World, queue: str, rules: str | AnalysisRules = "document") -> Explanation:
    """Explain a queue of a world; the same world is decided once."""
    asked = repr((made.rows, rules))
    if asked not in DECIDED:
        DECIDED[asked] = made.decided(rules)
    return explain(DECIDED[asked], jeditaskid=1, panda_queue=queue)


def of(names: dict[str, Any], *keys: str) -> list[Any]:
    return [names[key] for key in keys]


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_every_clause_can_be_told(rules: AnalysisRules) -> None:
    decisions = World().queue("A").decided(rules)
    reasons = (*decisions.reasons, *decisions.marks)
    late = trial(decisions, 0)().late
    assert late is not None
    question = OfUsers(decisions, subject(decisions.tasks, 1, None))
    place = Waived(0, 0, tuple(reason.name for reason in reasons), late, late, {}, 1)
    for found in question.obstacles(place, -1):
        assert "{" not in found.text
    for reason in reasons:
        known = question.values(place, set(reason.reads))
        assert known.with_columns(**reason.numbers).height == 1
        for flag, clause in reason.variants.items():
            values = dict.fromkeys((*reason.columns(), *reason.numbers), False) | {flag: True}
            assert reason.clause(values) == filled(clause, values)


@pytest.mark.parametrize("rules", RULES, ids=NAMES)
def test_reasons_stand_in_the_order_of_the_rules(rules: AnalysisRules) -> None:
    decisions = World().queue("A").decided(rules)
    late = decisions.reasons[len(decisions.checks) :]
    code_only = {"hospital", "overloaded", "below_min_weight", "fileunavailable"}
    assert [reason.name for reason in late] == [
        name
        for name in (
            *(
                "notincluded",
                "hospital",
                "cap_rt",
                "overloaded",
                "overloaded_vp",
                "tmp_user_problem",
            ),
            *("badsite", "low_weight", "below_min_weight", "fileunavailable"),
        )
        if rules.code_only_checks or name not in code_only
    ]
    assert tuple(reason.name for reason in decisions.marks) == MARKS
    held = [*OUTCOMES, "input_incomplete"]
    expected = held if rules.code_only_checks else held[:-3]
    assert [reason.name for reason in throttle_rules(rules)] == expected


def test_the_table_of_checks_tells_throttle_checks_marks_and_weight() -> None:
    table = checks_table(AnalysisRules("production"))
    assert table["step"].to_list() == list(range(1, table.height + 1))
    of_page = checks_table(stage="analysis")
    assert set(of_page["check"]) < set(table["check"])
    assert "zeroshare" not in set(of_page["check"])
    kinds = dict(table.select("check", "kind").iter_rows())
    assert of(kinds, "cap_queued_jobs", "user_queue", "badsite", "weight") == [
        *("throttle", "mark", "temporary", "weight")
    ]
    keys = dict(table.select("check", "keys").iter_rows())
    assert set(keys["weight"]) == {
        *(
            "BASE_QUEUE_LENGTH_PER_PQ",
            "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
            "BASE_QUEUE_RATIO_ON_PQ",
        ),
        *("STATIC_MAX_QUEUE_RUNNING_RATIO", "MAX_EXPECTED_WAIT_HOUR"),
    }
    assert not dict(checks_table(AnalysisRules()).select("check", "keys").iter_rows())["weight"]
    with pytest.raises(ConfigError, match="has ProductionRules, given are AnalysisRules"):
        checks_table(AnalysisRules(), stage="jobs")


TOTALS = {"nrunjobs": 500, "nqueuedjobs": 900, "nruncores": 500, "nqueuedcores": 900}
HELD = {
    "cap_running_jobs": ({"CAP_RUNNING_USER_JOBS": 499}, {}, "alice has 500 running jobs, more than a cap of 499"),
    "cap_queued_jobs": (
        {"CAP_RUNNING_USER_JOBS": 500}, {"nqueuedjobs": 1001},
        "alice has 1,001 waiting jobs, more than 1,000, twice the cap of 500 running jobs",
    ),
    "cap_running_cores": ({"CAP_RUNNING_USER_CORES": 100}, {}, "500 running cores, more than a cap of 100"),
    "cap_queued_cores": (
        {"CAP_RUNNING_USER_CORES": 500}, {"nqueuedcores": 1002},
        "alice has 1,002 waiting cores, more than 1,000, twice the cap of 500 running cores",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", HELD)
def test_caps_tell_the_numbers_and_the_key_of_the_unit(rule: str) -> None:
    keys, more, told = HELD[rule]
    made = World().queue("A").add("user_totals", **({"origusername": "alice"} | TOTALS | more))
    values = {f"pandaserver/prio_mgr/{key}": value for key, value in keys.items()}
    tables = {name: pl.DataFrame(rows) for name, rows in made.rows.items()}
    decisions = decide(tables, config=Config.empty().with_values(values))
    answer = explain(decisions, jeditaskid=1, panda_queue="A")
    assert answer.outcome == "task_ended"
    assert told in answer.sentences[0]
    assert f"(check {rule}; CAP_RUNNING_USER_" in answer.sentences[0]
    assert "GROUP" not in answer.text
    assert "does not count towards the time" in answer.text
    assert "tried again from 2026-06-01 12:20 on" in answer.text
    whole = explain_task(decisions, jeditaskid=1)
    assert whole.outcome == "throttled_waiting"
    assert whole.sentences[0].startswith("Task 1 finds no place: it is held back, because alice")


@pytest.mark.parametrize(
    ("cls", "usage", "told"),
    [
        (-1, 0.93, "User Analysis uses 93 % of its target; tasks of class C wait above 90 %"),
        (0, 0.96, "User Analysis uses 96 % of its target; tasks of class B wait above 95 %"),
        (
            1,
            1.5,
            "alice fill 90 % of the threshold, 135 % together; tasks of class A wait above 100 %",
        ),
    ],
)
def test_the_class_of_the_task_holds_it_back(cls: int, usage: float, told: str) -> None:
    made = World().queue("A").add("task_class", jeditaskid=1, **{"class": cls})
    made.add("gshare_usage", gshare=SHARE, usage_perc=usage)
    made.add("user_eval", user="alice", rem_slots_a=100.0)
    assert told in ask(made, "A").sentences[0]


@pytest.mark.parametrize(
    ("cls", "usage", "known", "told"),
    [
        (-1, LARGEST, True, "a target of 0 then (nothing runs, or it is due nothing), so any usage is too much;"),
        (1, LARGEST, True, "too much, and the running slots of alice fill 90 % of the threshold; tasks"),
        (1, LARGEST, False, "too much, and nothing is known of the slots of alice, which counts as 50 %"),
        (1, 3.0, False, "300 % of its target and nothing is known of the slots of alice, which counts as 50 % of the"),
    ],
)  # fmt: skip
def test_numbers_that_stand_for_something_else_are_not_told_as_numbers(
    cls: int, usage: float, told: str, *, known: bool
) -> None:
    made = World().queue("A").add("task_class", jeditaskid=1, **{"class": cls})
    made.add("gshare_usage", gshare=SHARE, usage_perc=usage)
    if known:
        made.add("user_eval", user="alice", rem_slots_a=100.0)
    answer = ask(made, "A", "production").sentences[0]
    assert told in answer
    assert "99,999" not in answer
    assert NO_TARGET_PCT == 100 * LARGEST


def test_what_a_task_does_not_name_is_not_told_as_unknown() -> None:
    gpu = ask(World().queue("A", catchall="gpu"), "A", "production").sentences[0]
    assert "it is a GPU queue, and the task names no platform" in gpu
    made = World(architecture="x86_64-el9-gcc13-opt").queue("A", releases=[])
    assert (
        "architecture x86_64-el9-gcc13-opt, release none, container none"
        in ask(made, "A", "production").text
    )
    one = World().queue("A").queue("B", maxrss=1.0).decided()
    assert "Of 2 queues, 1 is left:" in explain_task(one, jeditaskid=1).text


def test_quotas_and_input_end_a_task_too() -> None:
    over = World().queue("A").add("quota", global_quota_ok=False)
    answer = ask(over, "A")
    assert "alice is over the global disk quota (check global_quota)" in answer.sentences[0]
    assert "does not count" not in answer.text
    lost = World().queue("A").add("datasets", jeditaskid=1, datasetname="d", type="input")
    text = ask(lost, "A", "production").sentences[0]
    assert "an input dataset is complete nowhere" in text
    assert "MIN_INPUT_COMPLETENESS is 90 % by default" in text


def stabilized() -> World:
    made = World().queue("A").queue("B").jobs("A", "activated", 180).jobs("A", "running", 120)
    made.jobs("B", "activated", 10).jobs("B", "running", 9)
    for user, waiting, running in (("alice", 150, 40), ("bob", 0, 80)):
        row = {"computingsite": "A", "gshare": SHARE, "produsername": user}
        made.add("user_job_stats", **row, nqueue=waiting, nrunning=running)
    return made.add("to_run_rate", computingsite="A", jobs_per_hour=5.0)


def test_the_stabilizer_is_told_step_by_step() -> None:
    answer = ask(stabilized(), "A")
    assert answer.check == "badsite"
    assert answer.sentences[0].startswith(
        "Task 1 was not sent to A: 150 jobs of user alice wait there, more than the 120 that the stabilizer lets wait "
        "(max_q_len) (check user_queue; "
    )
    assert "BASE_QUEUE_LENGTH_PER_PQ is 100 jobs by default" in answer.sentences[0]
    assert answer.sentences[1].endswith("the final list drops it (badsite).")
    assert answer.sentences[-5:] == (
        "The stabilizer lets alice have 120 jobs waiting there (max_q_len); 150 wait.",
        (
            "  it acts from 100 waiting jobs of the share on (the larger of 100 jobs and 8 h x 5 jobs/h that start); 180 "
            "wait, so it acts"
        ),
        "  nQ_max 240: the largest of 100 jobs, 2 x 120 running jobs and 12 h x 5 jobs/h that start",
        "  part of alice 50 %: the larger of one of 2 users, and 40 of 120 running jobs are of alice",
        "  max_q_len 120: the largest of 5 jobs, 0.05 x 120 running jobs and 50 % of nQ_max",
    )


def test_a_candidate_says_both_weights_and_where_it_would_rank() -> None:
    answer = ask(stabilized(), "B")
    assert answer.sentences[0] == (
        "Task 1 may go to B: it ranks 1 of 1 candidate with weight 0.9091 and can expect 100 % of the jobs."
    )
    assert answer.sentences[2] == (
        "  original basic weight 0.9091: (9 running jobs + 1) / (10 waiting + 1), of the queue"
    )
    assert answer.sentences[5].startswith("By the new basic weight it would rank 1, with weight ")
    assert answer.numbers["share"] == 1.0
    budgets = ask(stabilized(), "B", "production").text
    assert (
        "of 10 jobs to make for a task of class A, queues of class hi 0, mid 10, lo 0 get as many, and this is class mid"
        in budgets
    )
    assert "so it does not act" in budgets
    other = World(gshare="Group Analysis").queue("B")
    assert "10 jobs to make, for queues of every class alike" in ask(other, "B", "production").text


def test_what_beats_a_candidate_is_told() -> None:
    made = World().queue("A").queue("B").jobs("A", "running", 9).jobs("B", "running", 29)
    assert ask(made, "B").sentences[6] == "No queue ranks better."
    assert ask(made, "A").sentences[6] == (
        "B ranks first with weight 30, 3 times as much, mostly by its original basic weight (30 against 10)."
    )
    alike = World().queue("A").queue("B")
    assert ask(alike, "B").sentences[6] == "A has the same weight and ranks first by its name."
    made.add("sites_used", jeditaskid=1, computingsite="A")
    told = ask(made, "B", AnalysisRules("document", used_sites_first=True))
    assert "A ranks first, because the task has been there already." in told.sentences


def with_input(found: int, **task: Any) -> World:
    made = World(allowincompleteinds=True, **task).queue("FULL", maxrss=1.0).queue("EMPTY")
    made.add("datasets", jeditaskid=1, datasetname="d", type="input", is_master=True)
    place = {"ddm_endpoint_name": "FULL_DISK", "found": found, "total": 3}
    return made.add("replicas", jeditaskid=1, datasetname="d", **place)


def test_both_locality_loops_are_told() -> None:
    made = with_input(3)
    decisions = made.decided("production")
    answer = explain(decisions, jeditaskid=1, panda_queue="EMPTY")
    assert answer.sentences[-1] == (
        "The second locality loop decided, which does not ask for the input at the queue: the first one left none of 2 "
        "queues, EMPTY was skipped there by data_locality."
    )
    whole = explain_task(decisions, jeditaskid=1)
    assert "left none of 2 queues (data_locality 1, lowmemory 1)" in whole.sentences[1]
    made.rows["queues"][0]["maxrss"] = 0.0
    first = ask(made, "EMPTY")
    assert "its storage does not hold the input (check data_locality)" in first.sentences[0]
    assert "The first locality loop decided" in first.text


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"taskpriority": 2000}, "the task's priority of 2,000 is 2,000 or more"),
        ({"iointensity": 50.0}, "50 kB/s is at most IO_INTENSITY_CUTOFF_USER, 60 kB/s"),
        (
            {"frozentime": AT - timedelta(hours=9)},
            "no progress since 2026-06-01 03:00, longer than DATA_CHECK_TIMEOUT_USER, 8 h",
        ),
    ],
)
def test_a_relaxation_is_told(task: dict[str, Any], told: str) -> None:
    made = with_input(3, **task)
    settings = {"IO_INTENSITY_CUTOFF_USER": 60, "DATA_CHECK_TIMEOUT_USER": 8}
    decisions = made.decided(**settings)
    answer = explain(decisions, jeditaskid=1, panda_queue="EMPTY")
    assert told in answer.sentences[-1]
    assert told in explain_task(decisions, jeditaskid=1).sentences[1]


def test_queues_that_are_not_looked_at() -> None:
    made = World().queue("PROD", type="production").queue("U", is_unified=True)
    made.queue("U/SCORE", unified_name="U").queue("A", corecount=8)
    assert ask(made, "PROD").sentences[0].endswith(
        "it runs no analysis (type production, no grandly_unified in catchall)."
    )  # fmt: skip
    other = World().queue("U", is_unified=True).queue("A")
    other.queue("U/SCORE", unified_name="U", type="production")
    names = "Its pseudo-queues are U/SCORE, and none was looked at: ask about one of them."
    assert names in ask(other, "U").sentences
    assert ask(made, "UU").outcome == "unknown"
    with pytest.raises(DataError, match="no decision about jeditaskid 9"):
        explain(made.decided(), jeditaskid=9, panda_queue="A")
    with pytest.raises(ConfigError, match="give panda_queue"):
        explain(made.decided(), jeditaskid=1, nucleus="A")  # type: ignore[call-overload]


def test_a_task_whose_own_queue_was_skipped_is_fatal() -> None:
    made = World(site="A").queue("A", maxrss=1.0).queue("B")
    answer = explain_task(made.decided("production"), jeditaskid=1)
    assert answer.outcome == "fatal"
    assert "the queue that it is pre-assigned to was skipped (fatal)" in answer.sentences[0]
    assert "lowmemory: 1 queue more" in answer.text


@pytest.mark.parametrize("name", ["document", "production"])
def test_every_kind_of_answer_of_a_batch_can_be_told(name: str) -> None:
    decisions = batch(name)
    kinds = decisions.queues.unique(["check", "loop"], keep="first", maintain_order=True)
    told = 0
    for task, queue, check in kinds.select("jeditaskid", "panda_queue", "check").iter_rows():
        answer = explain(decisions, jeditaskid=task, panda_queue=queue)
        assert answer.check == check
        assert not any(mark in answer.text for mark in ("{", "None", "nan"))
        told += 1
    assert told >= 10


def test_decisions_of_two_brokerages_cannot_be_compared() -> None:
    production = ProductionWorld().queue("A").decided(ProductionRules())
    with pytest.raises(DataError, match="a is of the analysis brokerage, b of the job brokerage"):
        compare(World().queue("A").decided(), production)


def test_other_rules_are_compared() -> None:
    found = compare(batch("document"), batch("production"))
    assert found.n_changed() > 0
    assert found.n_tasks == 30


def test_a_unified_queue_is_a_candidate_where_one_of_its_pseudo_queues_is() -> None:
    made = World(ramcount=3000).queue("UP", is_unified=True)
    made.queue("UP/SCORE", unified_name="UP", maxrss=2000.0)
    made.queue("UP/SCORE_HIMEM", unified_name="UP", maxrss=8000.0)
    answer = ask(made, "UP")
    assert (answer.outcome, answer.place) == ("candidate", "UP")
    assert answer.sentences[0].startswith(
        "Task 1 may go to UP (pseudo-queue UP/SCORE_HIMEM): it ranks"
    )
    assert answer.sentences[-1] == "  UP/SCORE: skipped by lowmemory"
