"""Own checks, weights, facts: what they change, what is refused, and that all that follows a decision knows them."""

from __future__ import annotations

from dataclasses import replace

import dataframely as dy
import polars as pl
import pytest

from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import redecide
from brokerlab.brokerage.engine.own import inserted, replaced, without
from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.funnels import funnel
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE, decide
from brokerlab.brokerage.production_jobs.checks import queue_checks
from brokerlab.brokerage.production_jobs.ranking import product
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE as TASKS
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError
from tests.brokerage_toys import World, config, reasons

RULES = ProductionRules()
CHECKS = queue_checks(RULES)
NAMES = [check.name for check in CHECKS]


def check(**changed) -> Rule:
    """Return a check that skips queues of less than 10 cores, or one that differs."""
    given = {
        "name": "small",
        "source": "ours 1",
        "says": "{q_corecount} cores are few",
        "when": pl.col("q_corecount") < 10,
    }
    return Rule(**given | changed)


def ours(**replaced_by) -> Brokerage:
    return replace(BROKERAGE, name="ours", **replaced_by)


def with_check(**changed) -> Brokerage:
    return ours(checks=lambda rules: (*queue_checks(rules), check(**changed)))


def with_weight(weight: pl.Expr) -> Brokerage:
    return ours(own_weight=lambda *_: weight)


@pytest.fixture
def world() -> World:
    return World().queue("CERN_X", running=200).queue("BNL_Y").queue("TOKYO_Z", pilots=0)


def test_lists_of_checks_are_edited():
    assert [c.name for c in without(CHECKS, "no_pilot", "inactive")] == [
        name for name in NAMES if name not in {"no_pilot", "inactive"}
    ]
    place = NAMES.index("inactive")
    new = check()
    assert [c.name for c in replaced(CHECKS, "inactive", new)] == [
        *NAMES[:place],
        "small",
        *NAMES[place + 1 :],
    ]
    assert [c.name for c in inserted(CHECKS, new, after="inactive")][place : place + 2] == [
        "inactive",
        "small",
    ]
    for edit in (
        lambda: without(CHECKS, "no_pilots"),
        lambda: replaced(CHECKS, "no_pilots", new),
        lambda: inserted(CHECKS, new, after="no_pilots"),
    ):
        with pytest.raises(ConfigError, match="there is no 'no_pilots', did you mean 'no_pilot'"):
            edit()


def test_our_brokerages_are_the_functions_themselves(world):
    tables = world.frames()
    decided = BROKERAGE.decide(tables, rules=RULES)
    assert decided.queues.equals(decide(tables, rules=RULES).queues)
    assert decided.world.brokerage is BROKERAGE
    assert BROKERAGE.checks_table(RULES)["check"].to_list()[: len(NAMES)] == NAMES
    assert TASKS.checks_table(RULES)["check"][0] == "nucleus_inactive"
    assert {"tasks", "nuclei"} <= set(TASKS.tables)


def test_an_own_check_removes_and_is_told(world):
    for queue in ("CERN_X", "TOKYO_Z"):
        world.change("queues", {"panda_queue": queue}, corecount=16)
    decided = with_check().decide(world.frames())
    assert reasons(decided) == {"CERN_X": None, "BNL_Y": "small", "TOKYO_Z": "no_pilot"}
    assert decided.checks[-1].clause({"q_corecount": 8}) == "8 cores are few"
    removed = dict(funnel(decided).select("check", "n_pairs").iter_rows())
    assert removed["small"] == 1


def test_a_temporary_check_of_ones_own_is_the_last_mark(world):
    own = with_check(kind="temporary", when=pl.col("q_corecount") > 0)
    assert set(reasons(own.decide(world.frames())).values()) == {"small"}


def test_an_own_weight_ranks(world):
    fewest = with_weight(1 / pl.col("running") + 0 * pl.col("q_maxrss"))
    ranks = fewest.decide(world.frames()).queues.select("panda_queue", "weight", "rank")
    assert ranks.rows() == [("BNL_Y", 0.01, 1), ("CERN_X", 0.005, 2), ("TOKYO_Z", 0.01, None)]


def test_a_weight_of_ones_own_outlives_a_change_of_the_configuration(world):
    own = ours(own_weight=lambda _: setting("NUM_CUTOFF_TO_MOVE_INPUT"))
    before = own.decide(world.frames())
    after = redecide(before, config(NUM_CUTOFF_TO_MOVE_INPUT=7))
    assert after.world.brokerage is own
    assert after.queues["weight"].to_list() == [7.0] * 3
    assert after.to_dict()["brokerage"] == "ours"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"when": pl.col("q_corecout") < 10},
            r"small: no column q_corecout, did you mean 'q_corecount'\?",
        ),
        ({"says": "{q_cores} are few"}, "small: no column q_cores"),
        ({"when": pl.col("q_corecount") + 1}, "small: when is Int64, not true or false"),
        ({"when": pl.col("q_corecount") < "x"}, "small: when cannot be evaluated"),
        ({"name": "no_pilot"}, "two checks are called no_pilot"),
        ({"name": "rank"}, "rank is the name of a rule about all places"),
    ],
)
def test_checks_that_cannot_work_are_refused(world, changed, said):
    with pytest.raises(ConfigError, match=f"brokerage ours: checks: {said}"):
        with_check(**changed).decide(world.frames())


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ((), "0 checks, allowed are 1 to 52"),
        ([check(name=f"c{number}") for number in range(53)], "53 checks"),
        ((check(), "small"), "'small' is a str, not a Rule"),
    ],
)
def test_lists_that_cannot_work_are_refused(world, checks, said):
    with pytest.raises(ConfigError, match=said):
        ours(checks=lambda *_: checks).decide(world.frames())


def test_as_many_checks_as_allowed_keep_their_bits(world):
    few = [check(name=f"c{n}", when=pl.col("q_corecount") < 0) for n in range(51)]
    own = ours(checks=lambda *_: (*few, check()))
    decided = own.decide(world.frames())
    assert set(reasons(decided).values()) == {"small"}
    assert decided.queues["failed"].to_list() == [1 << 51] * 3


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (product(RULES) * pl.col("q_sun"), "no column q_sun"),
        (pl.col("running") * -1, "such as -1"),
        (pl.col("running") / 0, "such as inf"),
        (pl.col("q_max_io_intensity"), "such as None"),
    ],
)
def test_weights_that_cannot_rank_are_refused(world, weight, said):
    with pytest.raises(ConfigError, match=f"brokerage ours: weight: .*{said}"):
        with_weight(weight).decide(world.frames())


def test_a_check_reads_a_column_that_a_table_of_tasks_has_besides(world):
    class Tasks(BROKERAGE.tables["tasks"]):
        t_mine = dy.Int64(nullable=True)

    mine = check(when=pl.col("t_mine") == 1, says="it is mine")
    own = ours(
        tables={**BROKERAGE.tables, "tasks": Tasks}, checks=lambda r: (*queue_checks(r), mine)
    )
    frames = world.frames()
    decided = [
        own.decide(frames | {"tasks": frames["tasks"].with_columns(t_mine=pl.lit(number))})
        for number in (0, 1)
    ]
    assert ["small" in reasons(each).values() for each in decided] == [False, True]


def test_a_brokerage_of_ones_own_has_its_tables_and_name():
    own = ours(tables={**BROKERAGE.tables, "weather": BROKERAGE.tables["queues"]})
    assert own.name == "ours"
    assert set(own.tables) == {*BROKERAGE.tables, "weather"}
