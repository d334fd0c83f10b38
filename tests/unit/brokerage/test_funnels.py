"""The funnel adds up, whatever it is grouped by; what would help is decided again without the check, never guessed."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from brokerlab.brokerage import funnel, single_obstacles, what_would_help
from brokerlab.brokerage.engine.decide import trial, without_checks
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, DataError
from tests.brokerage_toys import SHARE, World
from tests.unit.brokerage.production_jobs.book import ADDED
from tests.unit.brokerage.production_tasks.world import decided, nucleus, world


def toy() -> World:
    made = World().queue("GOOD").queue("SMALL", maxrss=12000).queue("LAZY", pilots=0)
    made.queue("BOTH", pilots=0, maxrss=12000).queue("OFF", status="offline")
    return made.task(2, gshare="Express", ramcount=100).task(3, nucleus="NOWHERE")


@cache
def toy_decided() -> Decisions:
    return toy().decided()


def removed(table: pl.DataFrame) -> dict[str, int]:
    some = table.filter(pl.col("n_pairs") > 0)
    return dict(some.select("check", "n_pairs").iter_rows())


def test_one_column_may_be_named_as_it_is_and_twice() -> None:
    table = funnel(toy_decided(), by=["gshare"])
    for by in ("gshare", ["gshare", "gshare"]):
        assert funnel(toy_decided(), by=by).equals(table)


def test_every_pair_is_removed_by_one_check_or_left() -> None:
    decisions = toy_decided()
    table = funnel(decisions)
    assert removed(table) == {"status_offline": 2, "memory_max": 2, "no_pilot": 3}
    looked_at = decisions.queues.height
    assert looked_at == 10  # the task without a known nucleus has no pairs
    assert table["n_pairs"].sum() + decisions.tasks["n_candidates"].sum() == looked_at
    assert table["n_left"][-1] == decisions.tasks["n_candidates"].sum()
    assert table["share"].sum() == pytest.approx(0.7)


def test_temporary_problems_remove_together_after_the_input_to_move() -> None:
    table = funnel(toy_decided())
    kinds = table["kind"].to_list()
    first, last = kinds.index("temporary"), len(kinds) - kinds[::-1].index("temporary")
    assert set(kinds[first:last]) == {"temporary"}
    assert table["check"][first - 1] == "input_to_move"
    assert table["check"][last] == "locked"
    assert set(table.filter(pl.col("kind") == "temporary")["stage"]) == {"temporary problem"}


def test_it_counts_tasks_and_queues() -> None:
    row = funnel(toy_decided()).filter(pl.col("check") == "no_pilot").row(0, named=True)
    assert (row["n_pairs"], row["n_tasks"], row["n_queues"]) == (3, 2, 2)


@pytest.mark.parametrize("by", [["gshare"], ["day"], ["panda_queue"], ["gshare", "panda_queue"]])
def test_groups_add_up_to_the_whole(by: list[str]) -> None:
    decisions = toy_decided()
    whole, parts = funnel(decisions), funnel(decisions, by)
    summed = parts.group_by("check").agg(pl.col("n_pairs").sum())
    assert dict(summed.iter_rows()) == dict(whole.select("check", "n_pairs").iter_rows())
    assert parts.columns[: len(by)] == by
    last = parts.group_by(by, maintain_order=True).agg(pl.col("n_left").last())
    assert last["n_left"].sum() == whole["n_left"][-1]


def test_a_group_has_every_step() -> None:
    table = funnel(toy_decided(), ["gshare"]).filter(pl.col("gshare") == SHARE)
    assert table["step"].to_list() == list(range(1, table.height + 1))


def test_columns_may_be_brought_along() -> None:
    own = pl.DataFrame({"jeditaskid": [1, 2], "campaign": ["a", None]})
    table = funnel(toy_decided(), ["campaign"], tasks=own)
    assert table.group_by("campaign").agg(pl.col("n_pairs").sum()).height == 2


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="'ghsare': did you mean 'gshare'"):
        funnel(toy_decided(), ["ghsare"])


def test_hint_mode_has_a_funnel_without_late_checks() -> None:
    decisions = toy().decided(hint=True)
    table = funnel(decisions)
    left = decisions.queues["check"].null_count()
    assert table["n_left"][-1] == left
    assert table["n_pairs"].sum() == decisions.queues.height - left


def test_nuclei_have_the_same_funnel() -> None:
    tables = world("A", "B", "C")
    tables["nuclei"][1] = nucleus("B", state="BROKEROFF")
    table = funnel(decided(tables))
    assert removed(table) == {"nucleus_inactive": 1}
    assert (table["n_left"][-1], table["n_nuclei"][0]) == (2, 1)


def test_nuclei_behind_an_abort_were_not_reached() -> None:
    tables = world(
        "A", "B", output_datasets=[{"datasetname": "o", "storagetoken": "ATLASDATATAPE"}]
    )
    decisions = decided(tables, "production")
    assert decisions.tasks["outcome"].to_list() == ["abort"]
    assert removed(funnel(decisions)) == {"no_storage": 1, "not_reached": 1}


def test_no_tasks_have_an_empty_funnel() -> None:
    made = World().queue("A")
    made.tables["tasks"].clear()
    table = funnel(made.decided())
    assert table["n_pairs"].sum() == 0
    assert table["share"].null_count() == table.height


def told(
    made: World, rules: str | ProductionRules = ADDED, **settings: object
) -> dict[str, dict[str, object]]:
    table = what_would_help(made.decided(rules, **settings), jeditaskid=1)
    return {row["check"]: row for row in table.to_dicts()}


def test_only_queues_that_fail_nothing_else_would_pass() -> None:
    made = World().queue("A", maxrss=1.0).queue("B", maxrss=1.0, pilots=0).queue("C", pilots=0)
    table = told(made)
    memory = table["memory_max"]
    assert (memory["n_skipped"], memory["n_alone"], memory["n_gained"]) == (2, 1, 1)
    assert memory["change"] == "queue corecount, maxrss; task ramcount, baseramcount, ramcountunit"
    assert memory["queue_fields"] == ["corecount", "maxrss"]
    assert (table["no_pilot"]["n_skipped"], table["no_pilot"]["n_gained"]) == (1, 1)


def test_the_ranking_is_computed_again() -> None:
    made = World().queue("A", maxrss=1.0, running=50)
    for number in range(10):
        made.queue(f"M{number}", running=500)
    table = told(made)
    assert (table["memory_max"]["n_alone"], table["memory_max"]["n_gained"]) == (1, 0)
    assert table["memory_max"]["n_candidates"] == 10
    assert "rank" not in table  # exactly ten are left


def test_caps_behind_a_check_are_asked() -> None:
    made = World().queue("A", maxrss=1.0, running=1, activated=500).queue("B")
    assert told(made)["memory_max"]["n_gained"] == 0


def test_a_rule_about_all_queues_is_left_out_like_any_other() -> None:
    made = World().queue("A", running=1, activated=500)
    cap = told(made)["queued_cap"]
    assert (cap["n_skipped"], cap["n_alone"], cap["n_gained"]) == (1, 1, 1)
    assert cap["keys"] == ["NQUEUELIMITSITE_<gshare>"]
    light = told(World().queue("A"), MIN_WEIGHT_managed=1000.0)["below_min_weight"]
    assert (light["n_alone"], light["n_gained"]) == (1, 1)
    locked = told(World().queue("A").add("locks", panda_queue="A"))["locked"]
    assert locked["n_gained"] == 1


@pytest.mark.parametrize("rules", ["document", "production"])
def test_the_single_queue_of_a_negative_t1weight(rules: str) -> None:
    made = World(t1weight=-1).queue("NUC_A").queue("NUC_B", running=200).queue("FAR")
    table = told(made, rules)
    assert table["t1_weight"]["task_fields"] == ["t1weight"]
    expected = {"document": None, "production": 1}[rules]
    assert table.get("t1_not_largest", {}).get("n_gained") == expected


def test_input_to_move_may_be_left_out_for_one_queue() -> None:
    made = World(iointensity=1000).queue("FULL").queue("EMPTY").data(20, here={"FULL": 20})
    decisions = made.decided()
    q = decisions.world.facts.queues.filter(pl.col("panda_queue") == "EMPTY")["q"].item()
    found = without_checks(decisions, 0, q)
    assert found.checks == ("input_to_move",)
    assert found.ranked.height == 2
    with_all = trial(decisions, 0)(frozenset({"input_to_move"}))
    assert with_all.pairs["check"].null_count() == 2


def test_the_pairs_themselves() -> None:
    made = World().queue("A", maxrss=1.0).queue("B", maxrss=1.0, pilots=0).queue("C").task(2)
    made.add("locks", panda_queue="C", jeditaskid=1)
    decisions = made.decided(ADDED)
    rows = single_obstacles(decisions, jeditaskid=1, snapshot=0)
    assert rows.select("panda_queue", "check").rows() == [("A", "memory_max"), ("C", "locked")]
    assert single_obstacles(decisions).height == 3


def test_a_task_that_ended_before_has_none() -> None:
    assert what_would_help(World(nucleus="?").queue("A").decided(), jeditaskid=1).height == 0
    with pytest.raises(DataError, match="no decision about jeditaskid 9"):
        what_would_help(World().queue("A").decided(), jeditaskid=9)


def test_a_task_that_may_go_anywhere_needs_no_help() -> None:
    assert told(World().queue("A")) == {}


def test_hint_mode_counts_what_could_run() -> None:
    made = World(nucleus=None).queue("A", maxrss=1.0)
    table = what_would_help(made.decided(hint=True), jeditaskid=1)
    assert table.select("check", "n_gained").rows() == [("memory_max", 1)]


def test_nuclei_have_obstacles_too() -> None:
    tables = world("A", "B")
    tables["nuclei"][0] = nucleus("A", state="BROKEROFF")
    settings = {"jedi/taskbrokerage/DISK_THRESHOLD": 10**6}
    table = what_would_help(decided(tables, settings=settings), jeditaskid=7)
    assert table.select("check", "n_skipped", "n_alone", "n_gained").rows() == [
        ("disk_space", 1, 1, 1),
        ("nucleus_inactive", 1, 0, 0),
    ]
    assert table["n_candidates"].to_list() == [1, 0]
