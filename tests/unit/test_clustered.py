"""The one clustered interval, and rule sets compared switch by switch."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from brokerlab.intervals import bootstrap_totals, clustered, percentile_interval, shares
from brokerlab.rulesets import RuleSet, Switch, changed_outcomes, single_switches, switch_by_switch


def jobs(n_tasks: int = 40, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = 12 * n_tasks
    return pl.DataFrame(
        {
            "task": rng.integers(n_tasks, size=n),
            "share": rng.choice(["a", "b"], n),
            "good": rng.integers(0, 2, n),
            "all": rng.integers(1, 4, n),
        }
    )


def test_ratio_is_total_over_total_with_the_bootstrap_over_whole_tasks() -> None:
    frame = jobs()
    found = clustered(frame, {"rate": ("good", "all")}, unit="task", n_boot=300, seed=4)
    totals = frame.group_by("task").agg("good", "all").sort("task")
    cells = np.array([[sum(row["good"]), sum(row["all"])] for row in totals.to_dicts()], float)
    drawn = bootstrap_totals(cells, n_boot=300, seed=4)
    ends = percentile_interval((drawn[:, 0] / drawn[:, 1])[:, None], 0.95, n_tasks=len(cells))
    assert found.row(0)[:3] == pytest.approx(
        (cells[:, 0].sum() / cells[:, 1].sum(), ends[0][0], ends[1][0])
    )
    assert found.select("resampled", "n_units").row(0) == ("task", len(cells))


@given(st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(random: Any) -> None:
    frame = jobs(8)
    order = list(range(frame.height))
    random.shuffle(order)
    asked = {"rate": ("good", "all"), "rest": lambda sums: sums["all"] - sums["good"]}
    one, other = (
        clustered(f, asked, unit="task", by=["share"], n_boot=50) for f in (frame, frame[order])
    )
    assert one.equals(other)


def test_units_without_a_row_are_drawn_too() -> None:
    frame = pl.DataFrame({"queue": ["a"], "jobs": [10]})
    alone = clustered(frame, {"jobs": "jobs"}, unit="queue", n_boot=100).row(0, named=True)
    every = clustered(frame, {"jobs": "jobs"}, unit="queue", units=["a", "b", "c"], n_boot=100)
    assert (alone["jobs"], alone["jobs_lo"]) == (10, None)
    assert every.row(0, named=True)["jobs_lo"] == 0
    assert every["n_units"].item() == 3


def test_shares_are_null_where_the_whole_is_nothing() -> None:
    frame = pl.DataFrame({"task": [1, 2], "part": [0, 0], "whole": [0, 0]})
    row = shares(frame, ["part"], "whole", unit="task", n_boot=50).row(0, named=True)
    assert (row["share"], row["share_lo"], row["total"]) == (None, None, 0)
    assert shares(frame.clear(), ["part"], "whole", unit="task").is_empty()


@dataclass(frozen=True, init=False)
class Toy(RuleSet, chapter="none"):
    """A rule set without a table: its switches stand here."""

    SWITCHES: ClassVar = {
        "floor": Switch((2, 1), "The first that passes.", "T1"),
        "odd": Switch((False, True), "Even ones fail.", "T2"),
        "same": Switch((True, True), "Nothing.", "T3"),
    }
    floor: int
    odd: bool
    same: bool


def passed(rules: Toy) -> pl.DataFrame:
    return pl.DataFrame({"n": range(6)}).with_columns(
        passes=(pl.col("n") >= rules.floor) & ((pl.col("n") % 2 == 1) | (not rules.odd))
    )


def test_each_switch_is_told_alone() -> None:
    document, production = Toy(), Toy("production")
    assert set(single_switches(document, production)) == {"floor", "odd"}
    moved = changed_outcomes(passed(document), passed(production), ["n"])
    assert moved.sort("n").rows() == [(1, True), (2, False), (4, False)]
    table = switch_by_switch(passed, document, production, keys=["n"])
    assert table.select("switch", "note", "source", "n_changed").rows() == [
        ("odd", "Even ones fail.", "T2", 2),
        ("floor", "The first that passes.", "T1", 1),
    ]
    assert table["explained"].to_list() == pytest.approx([2 / 3, 1 / 3])


def test_groups_drawn_together_are_those_drawn_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"task": [1, 2, 3, 1, 4], "share": ["a", "a", "a", "b", "c"], "jobs": [3, 1, 2, 7, 5]}
    frame = pl.DataFrame(rows)
    asked: dict[str, Any] = {"unit": "task", "units": [1, 2, 3, 4], "n_boot": 200}
    together = clustered(frame, {"jobs": "jobs"}, by=["share"], **asked)
    alone = [clustered(frame.filter(share=name), {"jobs": "jobs"}, **asked) for name in "abc"]
    assert_frame_equal(together.drop("share"), pl.concat(alone))
    monkeypatch.setattr("brokerlab.intervals.CELLS", 500)  # two groups at once, then one
    assert_frame_equal(clustered(frame, {"jobs": "jobs"}, by=["share"], **asked), together)


def test_switches_are_held_to_a_side_that_differs_in_more() -> None:
    document, production = Toy(), Toy("production")
    nothing = passed(document).with_columns(passes=pl.lit(value=False))
    table = switch_by_switch(passed, document, production, keys=["n"], only=["odd"], there=nothing)
    columns = ["switch", "here", "there", "n_changed"]
    assert table.select(columns).rows() == [("odd", "False", "True", 2)]
    assert table["explained"].to_list() == pytest.approx([2 / 4])  # of 2, 3, 4 and 5
