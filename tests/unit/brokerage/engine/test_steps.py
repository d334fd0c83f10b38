"""Steps over all places of a task: reasons, marks, orders, what if."""

from __future__ import annotations

import polars as pl
import pytest

from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.engine.steps import (
    LEFT,
    MARKED,
    Derived,
    Mark,
    Order,
    Step,
    any_left,
    made_by,
    marks_of,
    names_of,
    reads_of,
    rules_of,
    walk,
)

PAIRS = pl.DataFrame(
    {
        "t": [0, 0, 0, 0, 1, 1],
        "q": [0, 1, 2, 3, 0, 1],
        "mark": [None, "busy", None, None, None, None],
        "load": [5.0, 9.0, 1.0, 5.0, None, 2.0],
    }
)


def rule(name: str, when: pl.Expr, **more: object) -> Rule:
    return Rule(name=name, source="", says="", when=when, **more)


def taken(steps: list[Step], off: dict[str, pl.Expr] | None = None) -> pl.DataFrame:
    names = pl.Enum(["busy", *names_of((), steps)])
    frame = PAIRS.with_columns(pl.col("mark").cast(names)).lazy()
    return walk(frame, steps, names, off).collect()


def test_the_first_rule_gives_the_reason_and_null_is_no_reason() -> None:
    steps: list[Step] = [rule("high", pl.col("load") > 4), rule("any", pl.col("load") > 0)]
    assert taken(steps)["check"].to_list() == ["high", "high", "any", "high", None, "any"]


def test_a_rule_of_a_task_sees_what_is_left() -> None:
    lower = pl.col("load") < pl.col("load").filter(LEFT).max().over("t")
    steps: list[Step] = [MARKED, rule("lower", LEFT & lower, scope="task")]
    assert taken(steps)["check"].to_list() == [None, "busy", "lower", None, None, None]
    alone: list[Step] = [
        rule("high", pl.col("load") > 4),
        rule("low", ~any_left(pl.col("load") > 2), scope="task"),
    ]
    assert taken(alone)["check"].to_list() == ["high", "high", "low", "high", "low", "low"]


def test_equals_stand_by_name_and_only_those_left_are_numbered() -> None:
    steps: list[Step] = [
        rule("low", pl.col("load") < 2),
        Order(name="place", by=("load",), descending=(True,), among=pl.col("load").is_not_null()),
    ]
    assert taken(steps)["place"].to_list() == [2, 1, None, 3, None, 1]


def test_what_if_lets_rows_pass_one_rule_or_mark() -> None:
    steps: list[Step] = [
        Mark(rule("hot", pl.col("load") > 4)),
        rule("marked", pl.col("hot")),
        rule("high", pl.col("load") > 8),
    ]
    here = pl.col("q") == 1
    assert taken(steps)["check"].to_list()[:2] == ["marked", "marked"]
    assert taken(steps, {"hot": here})["check"].to_list()[:2] == ["marked", "high"]
    assert taken(steps, {"hot": here, "high": here})["check"].to_list()[:2] == ["marked", None]
    assert [each.name for each in marks_of(steps)] == ["hot"]
    assert [each.name for each in rules_of(steps)] == ["marked", "high"]


def test_what_steps_read_is_what_none_of_them_makes() -> None:
    steps: list[Step] = [
        Derived({"twice": 2 * pl.col("load")}),
        Derived({"more": pl.col("extra") + pl.col("twice")}),
        Mark(rule("hot", pl.col("more") > pl.col("twice"))),
        rule("marked", pl.col("hot") & LEFT),
        Order(name="place", by=("twice", "age"), descending=(True, False), among=pl.col("free")),
        rule("late", pl.col("place") > setting("MOST")),
    ]
    assert reads_of(steps) == ("load", "extra", "age", "free", "$MOST")
    assert made_by(steps) == {"twice", "more", "hot", "place"}
    assert rules_of(steps)[-1].keys == ("MOST",)
    assert rules_of(steps)[-1].inputs == ("place",)


@pytest.mark.parametrize("flag", [True, False])
def test_a_clause_is_chosen_by_its_flag(flag: bool) -> None:
    said = Rule(
        name="x", source="", says="{load} is much", when=pl.col("load") > 3,
        numbers={"flag": pl.lit(flag)}, variants={"flag": "{load} is too much"},
    )  # fmt: skip
    assert said.columns() == ("load",)
    assert said.clause({"load": 5.0, "flag": flag}) == ("5 is too much" if flag else "5 is much")
