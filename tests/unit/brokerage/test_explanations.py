"""Answers read like those to a colleague: what happened, the numbers compared, what else stands in the way."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import polars as pl
import pytest

from brokerlab.brokerage import Explanation, explain, explain_task
from brokerlab.brokerage.engine.decide import redecide
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE, decide
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.brokerage.words import names_in
from brokerlab.errors import BrokerlabWarning, ConfigError, DataError
from brokerlab.gdpconfig import Config
from tests.brokerage_toys import AT, SHARE, World
from tests.twins.compare import config as world_config
from tests.twins.compare import frames
from tests.twins.worlds import random_world
from tests.unit.brokerage.production_jobs.book import ADDED, added
from tests.unit.brokerage.production_tasks.world import decided, nucleus, replica, world


def ask(
    made: World, queue: str, rules: str | ProductionRules = ADDED, **settings: object
) -> Explanation:
    return explain(made.decided(rules, **settings), jeditaskid=1, panda_queue=queue)


def test_a_skip_says_the_numbers_compared_with_their_units() -> None:
    answer = ask(World().queue("CERN_X", maxrss=12_000).queue("B"), "CERN_X")
    needs = "the job needs 14,400 MB (2,000 MB per core x 8 cores, times 0.9)"
    assert answer.sentences == (
        f"Task 1 was not sent to CERN_X: {needs} and the slot offers 12,000 MB (maxrss) (check memory_max).",
        "No other check stands in the way.",
        "Without this check it would rank 2 of 2, with weight 9.595.",
    )
    assert (answer.outcome, answer.check) == ("skipped", "memory_max")
    assert answer.obstacles[0].source == "production-jobs.md 5"


def test_a_skip_says_the_setting_and_its_value() -> None:
    made = World().queue("A").link("A", queued=200)
    by_default = ask(made, "A").sentences[0]
    assert by_default == (
        "Task 1 was not sent to A: 200 files wait on the link to nucleus NUC, more than 150 (check link_backlog; "
        "NQUEUED_NUC_CAP_FOR_JOBS is 10,000 files by default; NQUEUED_SAT_CAP is 150 files by default)."
    )
    assert "NQUEUED_SAT_CAP is 20 files)" in ask(made, "A", NQUEUED_SAT_CAP=20).sentences[0]
    assert (
        "which reaches the limit of 200" in ask(made, "A", "production", NQUEUED_SAT_CAP=200).text
    )


def test_all_that_stands_in_the_way_is_told() -> None:
    made = World().queue("A", maxrss=1.0, pilots=0, maxwdir=10.0).queue("B")
    answer = ask(made.add("locks", panda_queue="A"), "A")
    assert [each.check for each in answer.obstacles] == [
        *("memory_max", "scratch_disk", "no_pilot", "locked")
    ]
    assert "3 other checks stand in the way as well:" in answer.text
    assert "(check no_pilot), temporary" in answer.text
    assert "Without these 4 checks it would rank 1 of 2" in answer.sentences[-1]


def test_a_temporary_problem_is_called_so() -> None:
    answer = ask(World().queue("A", pilots=0).queue("B"), "A")
    assert "This is a temporary problem" in answer.sentences[1]


@cache
def many() -> Decisions:
    made = World().data(here={"NEAR": 10}).queue("NEAR").queue("IDLE", running=0, activated=0)
    for number in range(11):
        made.queue(f"M{number:02}", running=300 + number)
    return made.queue("POOR", running=1).decided(ADDED)


def test_the_eleventh_says_who_is_before_it() -> None:
    answer = explain(many(), jeditaskid=1, panda_queue="POOR")
    assert answer.check == "rank"
    assert answer.sentences[-1] == "It is number 14 of 14; M01 is the last taken, with 26.08."


def test_a_candidate_says_rank_weight_and_factors() -> None:
    answer = explain(many(), jeditaskid=1, panda_queue="M05")
    assert answer.sentences[0].startswith(
        "Task 1 may go to M05: it ranks 6 of 10 candidates with weight 26.43 and"
    )
    assert answer.sentences[0].endswith("and can expect 10 % of the jobs.")
    waiting = "(10 activated, 0 starting, 0 defined, 0 assigned, + 10)"
    assert answer.sentences[2:5] == (
        f"  work 15.3: (305 running jobs + 1) / {waiting} / 1 (0 assigned against 10 activated)",
        "  data 0.9091: 10,240 MB in 10 files of 10,240 MB in 10 files are missing there",
        "  nucleus 1: neither at the nucleus nor shares its storage",
    )
    assert (
        "the link from M05 to NUC weighs 1.8 for its throughput (80 MB/s over the last hour)"
        in (answer.sentences[5])
    )
    assert answer.numbers["rank"] == 6
    assert answer.numbers["weight"] == pytest.approx(
        answer.numbers["work"] * answer.numbers["data"] * answer.numbers["network"]
    )


def test_only_factors_of_the_rule_set_are_told() -> None:
    text = ask(World().queue("A"), "A", "document").text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == [
        *("work", "data", "network")
    ]


def test_a_link_is_told_under_the_settings_that_decided() -> None:
    made = World().queue("A").link("A", queued=10)
    other = {"NQUEUED_SAT_CAP": 20, "NW_QUEUE_IMPORTANCE": 0.9}
    config = Config.empty().with_values({f"jedi/jobbroker/{key}": n for key, n in other.items()})
    rules = added(queued_line="cap")
    again = explain(redecide(made.decided(rules), config), jeditaskid=1, panda_queue="A")
    assert "1.5 for its queue (10 files)" in again.text
    assert again.text == ask(made, "A", rules, **other).text


def test_what_beats_a_candidate_is_told_with_its_main_factor() -> None:
    best = explain(many(), jeditaskid=1, panda_queue="M10")
    assert best.sentences[-1] == "No queue ranks better."
    second = explain(many(), jeditaskid=1, panda_queue="M09")
    assert second.sentences[-1].startswith("M10 ranks first with weight ")
    assert "1 times as much" in second.sentences[-1]
    assert "mostly by its work (15.55 against 15.5)" in second.sentences[-1]


def test_an_idle_queue_starts_up() -> None:
    made = World(currentpriority=100).queue("A").queue("IDLE", running=0, activated=0)
    assert "It has no job at all: with priority 100 it gets one job first" in ask(made, "IDLE").text
    assert ask(made, "A").sentences[-1] == "IDLE ranks first, because it has no job at all."
    told = explain_task(made.decided(ADDED), jeditaskid=1)
    assert told.sentences[0] == "Task 1 may go to 2 queues of 2, the best are IDLE and A."
    by_weight = explain_task(made.decided(), jeditaskid=1)
    assert by_weight.sentences[0] == "Task 1 may go to 2 queues of 2, the best are A and IDLE."


def test_the_cap_told_is_the_one_that_is_tested() -> None:
    made = World().queue("PLAIN", running=5, activated=15)
    made.queue("UP", is_unified=True, capability="ucore", activated=400)
    made.queue("UP/MCORE", unified_name="UP", capability="ucore", site="UP")
    assert "\n15 jobs are queued there, up to 20 are let in." in ask(made, "PLAIN").text
    assert "are let in" not in ask(made, "UP/MCORE").text  # nothing is counted by resource type
    kind = {"computingsite": "UP", "gshare": SHARE, "resource_type": "MCORE"}
    made.add("job_stats_rt", **kind, jobstatus="activated", njobs=7)
    text = ask(made, "UP/MCORE").text
    assert "7 jobs of the task's resource types are queued there, up to 200 are let in." in text


def test_without_least_cap_all_queued_jobs_are_told() -> None:
    made = World().queue("A", running=50, activated=10).jobs("A", defined=30)
    rules = ProductionRules(cap_mode="twice_running")
    answer = explain(made.decided(rules=rules), jeditaskid=1, panda_queue="A")
    assert "40 jobs are queued there, up to 100 are let in." in answer.text


def test_a_weight_of_ones_own_is_no_product() -> None:
    ours = replace(BROKERAGE, name="ours", own_weight=lambda _: pl.col("running"))
    decisions = ours.decide(World().queue("A").frames())
    text = explain(decisions, jeditaskid=1, panda_queue="A").text
    assert "The weight is that of brokerage ours; the factors that it may read are" in text
    assert "product" not in text


def test_a_queue_that_is_no_candidate_says_why() -> None:
    made = World(site="GOOD_X").queue("GOOD_X").queue("ANALY", type="analysis")
    made.queue("PARENT", is_unified=True, capability="ucore")
    made.queue("PARENT/SCORE", unified_name="PARENT", corecount=1, site="PARENT")
    made.queue("PARENT/MCORE", unified_name="PARENT", site="PARENT")
    decisions = made.decided()

    def text(queue: str) -> str:
        answer = explain(decisions, jeditaskid=1, panda_queue=queue)
        assert answer.outcome in ("not_a_candidate", "unknown")
        return answer.text

    assert text("ANALY").startswith("Task 1 was not sent to ANALY: it runs no production (type an")
    names = "Its pseudo-queues are PARENT/MCORE and PARENT/SCORE, and none was looked at"
    assert names in text("PARENT")
    assert text("GOOD_Y") == "There is no queue GOOD_Y; did you mean GOOD_X?"
    assert text("?") == "There is no queue ?; 5 queues are known."


def unified(**columns: object) -> World:
    """A good queue, and a unified queue with a slot of one core and one of eight."""
    made = World().queue("GOOD_X", running=5)
    made.queue("PARENT", is_unified=True, capability="ucore")
    made.queue("PARENT/SCORE", unified_name="PARENT", corecount=1, site="PARENT", **columns)
    return made.queue("PARENT/MCORE", unified_name="PARENT", site="PARENT", **columns)


def test_a_unified_queue_is_a_candidate_where_one_of_its_pseudo_queues_is() -> None:
    answer = ask(unified(), "PARENT")
    assert (answer.outcome, answer.check, answer.place) == ("candidate", None, "PARENT")
    assert answer.sentences[0].startswith(
        "Task 1 may go to PARENT (pseudo-queue PARENT/MCORE): it ranks "
    )
    assert answer.sentences[-2:] == (
        "Its other pseudo-queues:",
        "  PARENT/SCORE: skipped by core_count",
    )
    own = ask(unified(), "PARENT/MCORE")
    assert own.numbers == answer.numbers
    assert own.sentences[0].startswith("Task 1 may go to PARENT/MCORE: it ranks ")


def test_a_unified_queue_is_skipped_for_the_reason_of_the_pseudo_queue_that_came_furthest() -> None:
    answer = ask(unified(maxrss=1.0), "PARENT")
    assert (answer.outcome, answer.check, answer.place) == ("skipped", "memory_max", "PARENT")
    assert answer.sentences[0].startswith(
        "Task 1 was not sent to PARENT (pseudo-queue PARENT/MCORE): the job needs "
    )
    assert answer.sentences[-1] == "  PARENT/SCORE: skipped by core_count"


def ran(*rows: tuple[str, int, int]) -> pl.DataFrame:
    """Jobs of task 1: queue, hours after its first brokerage, number."""
    columns = ["computingsite", "hours", "n_jobs"]
    made = AT + pl.duration(hours=pl.col("hours"))
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(made=made, jeditaskid=1)


def test_answers_end_with_where_the_jobs_ran() -> None:
    two = World().queue("A").queue("B").task(1, snapshot=1, at=AT.replace(hour=AT.hour + 1))
    decisions = two.decided()
    jobs = ran(("A", -1, 7), ("A", 0, 1200), ("B", 0, 3), ("B", 1, 5), ("B", 2, 4))

    def last(queue: str, snapshot: int, some: pl.DataFrame) -> str:
        answer = explain(decisions, jeditaskid=1, panda_queue=queue, snapshot=snapshot, ran=some)
        return answer.sentences[-1]

    when = "that were made after this brokerage"
    assert last("A", 0, jobs) == (
        f"Of its jobs {when} and before the next one, 1,203 started: 1,200 at A and 3 at B."
    )
    assert last("A", 1, jobs) == f"Of its jobs {when}, 9 started, all at B."
    assert last("B", 1, jobs.head(2)) == f"None of its jobs {when} has started."
    unknown = explain(decisions, jeditaskid=1, panda_queue="?", ran=jobs)
    assert unknown.sentences == ("There is no queue ?; 2 queues are known.",)
    whole = explain_task(decisions, jeditaskid=1, ran=jobs)
    assert whole.sentences[-1] == f"Of its jobs {when}, 9 started, all at B."


def test_a_pre_assigned_task_names_its_queues() -> None:
    made = World(site="A").queue("A").queue("B")
    assert ask(made, "B").text == "Task 1 was not sent to B: the task is pre-assigned to A (site)."
    gone = ask(World(site="GONE").queue("A"), "A")  # no queue was looked at
    assert gone.text == "Task 1 was not sent to A: the task is pre-assigned to GONE (site)."
    merging = World(is_merging=True, preassigned_site="A").queue("A").queue("B")
    assert "merging stays at A" in ask(merging, "B").text


def test_a_task_that_ended_before_says_so() -> None:
    lost = ask(World(nucleus="GONE").queue("A"), "A")
    assert lost.outcome == "task_ended"
    assert "its nucleus is not known (unknown_nucleus): nucleus GONE is neither" in lost.text
    made = World().queue("A").data()
    made.change("replicas", found=1)
    incomplete = ask(made, "A", MAX_MISSING_INPUT_FILES=0)
    assert "its input is complete nowhere (input_incomplete)" in incomplete.text


def test_the_last_of_several_instants_is_told() -> None:
    made = World().queue("A").task(1, snapshot=1, at=AT.replace(hour=13), ramcount=9000)
    decisions = made.decided()
    last = explain(decisions, jeditaskid=1, panda_queue="A")
    assert last.text.startswith("Task 1 on 2026-06-01 at 13:00 was not sent to A")
    assert last.sentences[-1] == "(The last of 2 brokerages of this task, snapshot 1.)"
    first = explain(decisions, jeditaskid=1, panda_queue="A", snapshot=0)
    assert first.outcome == "candidate"
    with pytest.raises(DataError, match="no decision about task 1 at snapshot 7: it has 0, 1"):
        explain(decisions, jeditaskid=1, panda_queue="A", snapshot=7)


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(DataError, match="no decision about jeditaskid 5 among 1 tasks"):
        explain(many(), jeditaskid=5, panda_queue="M01")
    with pytest.raises(ConfigError, match=r"give panda_queue=\.\.\., and no nucleus"):
        explain(many(), jeditaskid=1, nucleus="NUC")  # type: ignore[call-overload]


def test_hint_mode_says_what_could_run() -> None:
    decisions = World(nucleus=None).queue("A").queue("B", maxrss=1.0).decided(hint=True)
    assert explain(decisions, jeditaskid=1, panda_queue="A").text == (
        "Task 1 could run at A: no check skips it."
    )
    assert explain(decisions, jeditaskid=1, panda_queue="B").text.startswith(
        "Task 1 could not run at B: the job needs"
    )


def test_an_answer_can_be_stored_and_shown() -> None:
    answer = explain(many(), jeditaskid=1, panda_queue="POOR")
    assert str(answer) == answer.text == "\n".join(answer.sentences)
    assert answer.to_dict()["obstacles"][0]["check"] == "rank"
    assert "Task 1 was not sent to POOR" in answer._repr_html_()


@pytest.mark.parametrize("rules", ["document", "production"])
def test_answers_agree_with_the_decisions_in_random_worlds(rules: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)
        tables = random_world(5, 12, 24)
        decisions = decide(
            frames(tables), rules=ProductionRules(rules), config=world_config(tables)
        )
    rows = decisions.queues.gather_every(13)
    assert rows.height > 10
    for row in rows.iter_rows(named=True):
        answer = explain(decisions, jeditaskid=row["jeditaskid"], panda_queue=row["panda_queue"])
        assert answer.check == row["check"]
        assert not names_in(answer.text)
        if row["check"] is None:
            assert answer.numbers["weight"] == row["weight"]
            continue
        told = {each.check for each in answer.obstacles}
        failed = {c.name for bit, c in enumerate(decisions.checks) if row["failed"] >> bit & 1}
        assert answer.obstacles[0].check == row["check"]
        assert failed <= told


def test_a_task_is_told_with_its_funnel() -> None:
    made = World(ramcount=9000).queue("A").queue("B", status="offline").queue("C", pilots=0)
    answer = explain_task(made.decided(), jeditaskid=1)
    again = "It is tried again from 2026-06-01 13:00 on."
    last = "the last were removed by memory_max"
    assert answer.sentences == (
        f"Task 1 finds no place: nothing passed all checks (no_candidates); {last}. {again}",
        "Of 3 queues, 0 are left:",
        "  status_offline removed 1, 2 left",
        "  memory_max removed 2, 0 left",
        "Without one of these checks it would find a place:",
        "  memory_max: 1 queue more (it reads queue corecount, maxrss; task ramcount, baseramcount, ramcountunit)",
    )
    assert [row["check"] for row in answer.funnel] == ["status_offline", "memory_max"]
    good = explain_task(many(), jeditaskid=1)
    assert good.sentences[0].startswith("Task 1 may go to 10 queues of 14, the best are M10, M09,")
    assert good.to_dict()["outcome"] == "candidates"
    assert "Task 1 may go to 10 queues" in good._repr_html_()


def test_a_nucleus_is_told_like_a_queue() -> None:
    tables = world("A", "B", "C")
    tables["nuclei"][1] = nucleus("B", state="BROKEROFF")
    decisions = decided(tables, draw=0.1)
    skipped = explain(decisions, jeditaskid=7, nucleus="B")
    assert skipped.sentences[0] == (
        "Task 7 was not given to B: state is BROKEROFF, not ACTIVE (check nucleus_inactive)."
    )
    assert (
        "drawn with a chance of 50 % among 2 nuclei"
        in explain(decisions, jeditaskid=7, nucleus="A").text
    )
    assert (
        "could have gone to C with a chance of 50 %, but A was drawn"
        in explain(decisions, jeditaskid=7, nucleus="C").text
    )
    assert "did you mean" not in explain(decisions, jeditaskid=7, nucleus="?").text
    whole = explain_task(decisions, jeditaskid=7)
    assert whole.sentences[0] == "Task 7 goes to nucleus A, drawn from 2 nuclei of 3."


def test_a_nucleus_with_little_of_the_input_says_how_much() -> None:
    tables = world("A", "B", datasets=[{"jeditaskid": 7, "datasetname": "in", "is_master": True}])
    tables["replicas"] = [replica("A", 10), replica("B", 0)]
    tables["tasks"][0] |= {"iointensity": 1000}
    answer = explain(decided(tables), jeditaskid=7, nucleus="B")
    assert answer.check == "input_size"
    for setting in ("INPUT_SIZE_THRESHOLD is 1 GB", "INPUT_SIZE_FRACTION is 10 % by default"):
        assert setting in answer.sentences[0]
