"""Which keys matter, and which rule differences, on toy worlds whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from brokerlab import rulesets
from brokerlab.brokerage.analysis_jobs import AnalysisDecisions
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.studies import alternatives, removal
from brokerlab.brokerage.studies.alternatives import (
    check_keys,
    compare_rule_sets,
    which_keys_matter,
)
from brokerlab.brokerage.studies.period import ANALYSIS, PRODUCTION, kind_of
from brokerlab.brokerage.studies.weights import competing_queues, factor_shares, weight_spread
from brokerlab.errors import ConfigError
from brokerlab.matching.rules import MatchingRules
from brokerlab.rulesets import single_switches
from tests.brokerage_toys import World
from tests.unit.brokerage.analysis_jobs import toys as analysis
from tests.unit.brokerage.studies.toys import DICE, replay_of, totals


def two_loops() -> AnalysisDecisions:
    """Task 1 finds a queue at its data; that of task 2 has no memory; task 3 is urgent."""
    made = analysis.World(ramcount=1000)
    made.add("tasks", **(analysis.TASK | {"jeditaskid": 2, "ramcount": 3000}))
    made.add("tasks", **(analysis.TASK | {"jeditaskid": 3, "taskpriority": 2500}))
    made.queue("HERE", maxrss=2000.0).queue("THERE", maxrss=8000.0)
    for number in (1, 2, 3):
        own = {"jeditaskid": number, "datasetname": f"d{number}"}
        made.add("datasets", **own, type="input", is_master=True)
        made.add("files", **own, lfn="f", fsize=1)
        made.add("replicas", **own, ddm_endpoint_name="HERE_DISK", found=1, total=1)
    return made.decided()


def busy() -> analysis.World:
    """A queue where 110 jobs wait and 65 of them are Alice's, and an idle one."""
    made = analysis.World().queue("BUSY").queue("IDLE")
    made.jobs("BUSY", "activated", 110).jobs("BUSY", "running", 60).jobs("IDLE", "running", 10)
    for user, queued, running in (("alice", 65, 10), ("bob", 45, 50)):
        counts = {"nqueue": queued, "nrunning": running, "gshare": analysis.SHARE}
        made.add("user_job_stats", computingsite="BUSY", produsername=user, **counts)
    return made


def test_checks_of_user_tasks_are_counted_like_those_of_production() -> None:
    decisions = two_loops()
    replay = replay_of(decisions)
    counts = removal.count_removals(decisions, replay.tasks)
    order = removal.removal_order(decisions)
    assert totals(removal.removal_shares(counts, order, **DICE)) == {
        "data_locality": 1,
        "lowmemory": 1,
        "candidate": 4,
    }
    best = removal.best_pseudo_queues(decisions)
    assert best.filter(check="candidate").height == 4
    stuck = removal.shares_without_queue(decisions.tasks, replay.tasks, ANALYSIS, **DICE)
    assert stuck["part"].to_list() == ["throttled_waiting", "temporary_error", "fatal", "stuck"]
    assert totals(stuck) == {}


def test_keys_of_other_components_are_refused_all_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        check_keys(["NQUEUED_SAT_CAP", "SCOUT_RAMCOUNT_RANK", "NW_ACTVE"])
    message = str(caught.value)
    assert "'SCOUT_RAMCOUNT_RANK' is no key of the production brokerage" in message
    assert "did you mean 'NW_ACTIVE'?" in message
    assert "NQUEUED_SAT_CAP'" not in message
    check_keys(["BASE_QUEUE_LENGTH_PER_PQ", "STORAGE_MIN_FREE_SIZE"], ANALYSIS)
    with pytest.raises(ConfigError, match="is no key of the analysis brokerage"):
        which_keys_matter(busy().decided(), ["NQUEUED_SAT_CAP"], **DICE)


def test_keys_of_production() -> None:
    made = World().queue("A_X", running=400).queue("B_X", running=50)
    made.link("B", queued=120)
    decisions = made.decided(NQUEUED_SAT_CAP=150)
    keys = ["NQUEUED_SAT_CAP", "MAX_PRIO_TO_BOOTSTRAP", "DISK_THRESHOLD", "NW_ACTIVE"]
    effects = which_keys_matter(decisions, keys, points=3, **DICE)
    rows = {row["key"]: row for row in effects.keys.to_dicts()}
    assert list(rows) == ["NQUEUED_SAT_CAP", "MAX_PRIO_TO_BOOTSTRAP"]
    assert rows["NQUEUED_SAT_CAP"]["half"] > 0  # 75 blocks the link with 120 files
    assert rows["MAX_PRIO_TO_BOOTSTRAP"]["shift"] == 0
    assert rows["NQUEUED_SAT_CAP"]["name"] == "NQUEUED_SAT_CAP [files]"
    steps = effects.steps.filter(key="NQUEUED_SAT_CAP")
    assert steps["value"].to_list() == ["halved", "doubled", "at the value that moves most"]
    assert steps["share"].to_list() == [
        rows["NQUEUED_SAT_CAP"][name] for name in ("half", "double", "shift")
    ]
    assert effects.skipped.rows() == [("DISK_THRESHOLD", "no_nuclei"), ("NW_ACTIVE", "not_read")]
    current = effects.curves.filter("is_current")
    assert current.select("shift", "pairs", "without").unique().rows() == [(0, 0, 0)]
    none = which_keys_matter(decisions, [], **DICE)
    assert (none.keys.height, none.curves.height, none.skipped.height) == (0, 0, 0)


def test_a_key_of_0_has_neither_half_nor_double() -> None:
    made = World().queue("A_X", running=400).queue("B_X", running=50)
    effects = which_keys_matter(made.decided(NW_QUEUE_IMPORTANCE=0.0), ["NW_QUEUE_IMPORTANCE"], **DICE)  # fmt: skip
    (row,) = effects.keys.to_dicts()
    assert (row["current"], row["half"], row["double"]) == (0, None, None)
    assert effects.steps["value"].to_list() == ["at the value that moves most"]


def test_keys_of_user_tasks() -> None:
    decisions = busy().decided(OVERLOAD_RATIO_OFFSET=100.0)
    keys = ["BASE_QUEUE_LENGTH_PER_PQ", "MIN_BAD_JOBS_TO_SKIP_PQ", "CAP_RUNNING_USER_JOBS"]
    effects = which_keys_matter(decisions, keys, points=3, **DICE)
    rows = {row["key"]: row for row in effects.keys.to_dicts()}
    assert set(rows) == set(keys)
    assert effects.keys["key"][0] == "BASE_QUEUE_LENGTH_PER_PQ"  # twice as long, Alice may wait
    assert rows["BASE_QUEUE_LENGTH_PER_PQ"]["double"] > 0
    assert rows["MIN_BAD_JOBS_TO_SKIP_PQ"]["current"] == 5
    assert rows["CAP_RUNNING_USER_JOBS"]["current"] is None


def test_rule_sets_and_the_switch_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("drop_test_queues", "standby_online", "empty_arch_accepts", "weight_after_demand")

    def some_switches(rules: Any, other: Any) -> dict[str, Any]:
        return {name: one for name, one in single_switches(rules, other).items() if name in few}

    for module in (rulesets, alternatives):
        monkeypatch.setattr(module, "single_switches", some_switches)
    made = World().queue("TEST_X").queue("IDLE_Y", status="standby").queue("GOOD_X")
    made.change("queues", {"panda_queue": "TEST_X"}, panda_queue="A_test_X")
    for table in ("queue_endpoints", "queue_storage_site"):
        made.change(table, {"panda_queue": "TEST_X"}, panda_queue="A_test_X")
    decisions = made.decided()
    result = compare_rule_sets(replay_of(decisions), decisions, sample=5, **DICE)
    assert (result.current, result.other) == ("document", "production")
    parts = dict(result.totals.select("part", "total").iter_rows())
    assert parts["pairs"] == parts["gained"] + parts["lost"] + parts["other_reason"]
    switches = {row["switch"]: row for row in result.switches.to_dicts()}
    assert switches["drop_test_queues"]["n_changed"] > 0
    assert switches["standby_online"]["n_changed"] > 0
    assert "standby" in switches["standby_online"]["note"]
    assert switches["standby_online"]["source"]
    values = switches["standby_online"]["here"], switches["standby_online"]["there"]
    assert values == ("False", "True")
    assert switches["empty_arch_accepts"]["n_changed"] == 0  # of the text rules
    assert set(switches) == {*few[:3]}  # the last is the task brokerage's
    assert (result.n_sample, result.n_sample_pairs) == (1, int(parts["pairs"]))
    again = made.decided("production")
    back = compare_rule_sets(replay_of(again), again, sample=0, **DICE)
    assert totals(back.totals)["lost"] == parts["gained"] > 0
    assert back.switches.is_empty()
    assert back.switches.schema == result.switches.schema


def test_rule_sets_of_user_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("basic_weight", "use_base_ram")
    monkeypatch.setattr(alternatives, "kind_of", lambda _: replace(ANALYSIS, switches=few))
    made = analysis.World(n_jobs_to_submit=8).queue("FAST").queue("SLOW")
    made.jobs("FAST", "running", 10).jobs("FAST", "activated", 20)
    made.jobs("SLOW", "running", 40).jobs("SLOW", "activated", 10)
    made.add("site_class", computingsite="FAST", **{"class": 1})
    made.add("site_class", computingsite="SLOW", **{"class": 0})
    made.add("task_class", jeditaskid=1, **{"class": 1})
    for name, rate in (("FAST", 40.0), ("SLOW", 1.0)):
        made.add("to_run_rate", computingsite=name, jobs_per_hour=rate)
    decisions = made.decided()
    result = compare_rule_sets(replay_of(decisions), decisions, sample=12, **DICE)
    kinds = totals(result.totals)
    parts = sum(kinds.get(name, 0) for name in ("gained", "lost", "other_reason"))
    assert kinds.get("pairs", 0) == parts
    assert set(result.switches["switch"]) == {*few, *MatchingRules.SWITCHES}
    shifts = dict(result.switches.select("switch", "shift").iter_rows())
    assert shifts["basic_weight"] > 0 == shifts["use_base_ram"]
    assert result.n_sample == 1


def test_rules_of_ones_own_are_those_of_every_decision() -> None:
    rule = Rule(name="shut_out", source="ours", says="", when=pl.col("q_candidate"))
    tables = {name: pl.DataFrame(rows) for name, rows in busy().rows.items()}
    decisions = ANALYSIS.brokerage.with_rule(rule, after="status").decide(tables)
    replay = replace(replay_of(decisions), tables=tables)
    effects = which_keys_matter(decisions, ["TW_DONE_JOB_STAT"], replay=replay, points=3, **DICE)
    assert effects.curves["without"].unique().to_list() == [0]
    result = compare_rule_sets(replay_of(decisions), decisions, sample=0, **DICE)
    assert totals(result.totals).get("gained", 0) == 0


def test_the_brokerage_is_known_by_its_decisions() -> None:
    assert kind_of(busy().decided()) is ANALYSIS
    assert kind_of(World().queue("A_X").decided()) is PRODUCTION


def test_factors_divide_the_spread_of_the_weight() -> None:
    made = World().queue("A_X", running=400).queue("B_X", running=50).queue("C_X", running=100)
    made.link("B", mbps=1.0)
    decisions = made.decided(NW_ACTIVE=True)
    spread = weight_spread(decisions, replay_of(decisions).tasks)
    parts = dict(factor_shares(spread, **DICE).select("part", "share").iter_rows())
    assert sum(parts.values()) == pytest.approx(1)
    assert parts["work"] > parts["network"] > 0
    assert parts["data"] == parts["t1"] == 0
    logs = np.log(competing_queues(decisions)["weight"].to_numpy())
    assert spread["spread"][0] == pytest.approx(((logs - logs.mean()) ** 2).sum())
    single = World().queue("A_X").decided()
    nothing = weight_spread(single, replay_of(single).tasks)
    assert factor_shares(nothing, by=["gshare"], **DICE).is_empty()


def test_switches_are_tried_on_one_brokerage_of_a_task_and_on_the_same_ones_again() -> None:
    tasks = pl.DataFrame({"jeditaskid": [1, 1, 1, 2, 3, 4], "snapshot": [0, 1, 2, 0, 1, 0]})
    drawn = alternatives.draw_brokerages(tasks, 3, seed=2)
    assert drawn.height == drawn["jeditaskid"].n_unique() == 3
    assert drawn.join(tasks, on=["jeditaskid", "snapshot"], how="semi").equals(drawn)
    assert alternatives.draw_brokerages(tasks.reverse(), 3, seed=2).equals(drawn)
    assert alternatives.draw_brokerages(tasks, 9, seed=2)["jeditaskid"].to_list() == [1, 2, 3, 4]
