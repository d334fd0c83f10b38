"""The funnel adds up, whatever it is grouped by, and tells temporary problems at their step."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from brokerlab.brokerage import funnel
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.errors import ConfigError
from tests.brokerage_toys import SHARE, World
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
