"""Decisions compared: who is decided differently, by which check, and where the jobs go."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from brokerlab.brokerage import compare
from brokerlab.brokerage.production_jobs.ranking import Decisions
from brokerlab.errors import DataError
from tests.brokerage_toys import World
from tests.unit.brokerage.production_tasks.world import decided, world


def toy(**task: object) -> World:
    return World(**task).queue("A").queue("B", status="standby").queue("T_test")


@cache
def by(rules: str) -> Decisions:
    return toy().decided(rules)


def test_decisions_do_not_differ_from_themselves() -> None:
    decisions = by("document")
    found = compare(decisions, decisions)
    assert (found.n_changed(), found.n_tasks_changed, found.weight_shift) == (0, 0, 0.0)
    assert found.text.startswith("0 pairs of 3 decided differently (0 gained, 0 lost")


def test_rule_sets_differ_by_the_checks_that_say_so() -> None:
    found = compare(by("document"), by("production"))
    assert found.pairs.select("panda_queue", "check_a", "check_b", "change").rows() == [
        ("B", "status_offline", None, "gained"),
        ("T_test", "name_test", None, "gained"),
    ]
    back = compare(by("production"), by("document"))
    assert back.pairs["change"].to_list() == ["lost", "lost"]
    assert back.weight_shift == found.weight_shift


def test_another_reason_is_told() -> None:
    found = compare(
        World().queue("A", status="offline").decided(), World(ramcount=9000).queue("A").decided()
    )
    assert found.pairs.select("check_a", "check_b", "change").rows() == [
        ("status_offline", "memory_max", "other_reason")
    ]


def test_the_shift_is_the_share_of_jobs_that_goes_elsewhere() -> None:
    a = World().queue("A").queue("B")
    b = World().queue("A").queue("B", maxrss=1.0)
    found = compare(a.decided(), b.decided())
    assert found.weight_shift == pytest.approx(0.5)
    assert found.tasks.row(0, named=True)["best_b"] == "A"
    none = World().queue("A", maxrss=1.0).queue("B", maxrss=1.0)
    assert compare(a.decided(), none.decided()).weight_shift == 1.0
    assert compare(none.decided(), none.decided()).weight_shift is None


def test_queues_of_weight_0_share_alike() -> None:
    idle = {"running": 0, "activated": 0}
    a = World(currentpriority=100).queue("A", **idle).queue("B", **idle)
    b = World(currentpriority=100).queue("A", **idle).queue("B", **idle, maxrss=1.0)
    assert compare(a.decided(), b.decided()).weight_shift == pytest.approx(0.5)


def test_pairs_that_one_side_does_not_look_at_are_named() -> None:
    lists = World(site="A,B").queue("A").queue("B").queue("C")
    all_ = World().queue("A").queue("B").queue("C")
    found = compare(all_.decided(), lists.decided())
    assert found.pairs.select("panda_queue", "check_a", "check_b", "change").rows() == [
        ("C", None, "not looked at", "lost")
    ]
    assert found.n_pairs == 3


def test_other_tasks_and_queues_are_refused() -> None:
    a = by("document")
    with pytest.raises(DataError, match=r"1 tasks of b are not in the other.*\(2, 0\)"):
        compare(a, toy().task(2).decided())
    with pytest.raises(DataError, match="1 queues of b are not in the other, such as NEW"):
        compare(a, toy().queue("NEW").decided())
    with pytest.raises(DataError, match="a is of the job brokerage, b of the task brokerage"):
        compare(a, decided(world("N")))


def test_nuclei_are_compared_too() -> None:
    a, b = decided(world("N", "M"), draw=0.1), decided(world("N", "M"), draw=0.9)
    found = compare(a, b)
    assert (found.n_best, found.n_changed(), found.n_outcomes) == (1, 0, 0)
    worse = decided(world("N", "M"), settings={"jedi/taskbrokerage/DISK_THRESHOLD": 10**6})
    assert compare(a, worse).pairs["check_b"].to_list() == ["disk_space", "disk_space"]


def test_it_can_be_read_and_stored() -> None:
    found = compare(by("document"), by("production"))
    assert found.to_dict()["n_tasks"] == 1
    assert "decided differently" in found._repr_html_()
    assert found.frame().equals(found.pairs)
    assert found.by_check["n_pairs"].sum() == found.n_changed() == found.n_changed("gained")
    assert isinstance(found.by_check, pl.DataFrame)
