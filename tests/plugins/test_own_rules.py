"""A rule of one's own is one value: decision, funnel, explanation, table and sensitivity know it, in every brokerage."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import polars as pl
import pytest

from brokerlab.brokerage import explain, funnel, what_if
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE as ANALYSIS
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.rule import Rule, setting
from brokerlab.brokerage.engine.steps import LEFT
from brokerlab.brokerage.live import prepare
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE as JOBS
from brokerlab.brokerage.production_tasks.brokerage import BROKERAGE as NUCLEI
from brokerlab.brokerage.replaying.build import Replay
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from tests.brokerage_toys import World as JobWorld
from tests.unit.brokerage.analysis_jobs.toys import World as UserWorld
from tests.unit.brokerage.production_tasks.world import endpoint
from tests.unit.brokerage.production_tasks.world import frames as nuclei_frames
from tests.unit.brokerage.production_tasks.world import world as nuclei_world


def pair_rule(column: str, key: str) -> Rule:
    """Skip places of which a number is under a setting."""
    return Rule(
        name="small", source="ours 1", says=f"{{{column}}} is under {{limit}}",
        when=pl.col(column) < setting(key), numbers={"limit": setting(key)},
    )  # fmt: skip


def task_rule(column: str, key: str) -> Rule:
    """Skip places that are further than a setting behind the best one that is left."""
    best = pl.col(column).filter(LEFT).max().over("t")
    return Rule(
        name="behind", source="ours 2", says=f"{{{column}}} is more than {{limit}} behind the best",
        when=LEFT & (best - pl.col(column) > setting(key)), scope="task", numbers={"limit": setting(key)},
    )  # fmt: skip


def of_jobs() -> dict[str, pl.DataFrame]:
    return (
        JobWorld().queue("A", running=200).queue("B", running=20).queue("C", running=190).frames()
    )


def of_users() -> dict[str, pl.DataFrame]:
    world = UserWorld()
    for name, running in (("A", 200), ("B", 20), ("C", 190)):
        world.queue(name).jobs(name, "running", running)
    return {name: pl.DataFrame(rows) for name, rows in world.rows.items()}


def of_nuclei() -> dict[str, pl.DataFrame]:
    space = {"A": 2000, "B": 200, "C": 1900}
    disks = [endpoint(f"{name}_DATADISK", space_free=size * 1024.0) for name, size in space.items()]
    return nuclei_frames(nuclei_world(*space, storage_endpoints=disks))


Case = tuple[
    Brokerage[Any, Any], Callable[[], dict[str, pl.DataFrame]], str, str, Rule, str, float, float
]
"""Brokerage, tables, place of a key, key, rule, what it follows, a value that skips place B only, one that skips none."""
CASES: dict[str, Case] = {
    "jobs, pair": (
        JOBS, of_jobs, "jedi/jobbroker", "NUM_CUTOFF_TO_MOVE_INPUT",
        pair_rule("s_running", "NUM_CUTOFF_TO_MOVE_INPUT"), "status_offline", 50, 1,
    ),
    "jobs, task": (
        JOBS, of_jobs, "jedi/jobbroker", "NUM_CUTOFF_TO_MOVE_INPUT",
        task_rule("s_running", "NUM_CUTOFF_TO_MOVE_INPUT"), "queued_cap", 50, 1000,
    ),
    "analysis, pair": (
        ANALYSIS, of_users, "jedi/anal_jobbroker", "OVERLOAD_MIN_QUEUE",
        pair_rule("s_running", "OVERLOAD_MIN_QUEUE"), "status", 50, 1,
    ),
    "analysis, task": (
        ANALYSIS, of_users, "jedi/anal_jobbroker", "OVERLOAD_MIN_QUEUE",
        task_rule("s_running", "OVERLOAD_MIN_QUEUE"), "overloaded_vp", 50, 1000,
    ),
    "nuclei, pair": (
        NUCLEI, of_nuclei, "jedi/taskbrokerage", "INPUT_NUM_THRESHOLD",
        pair_rule("space_free", "INPUT_NUM_THRESHOLD"), "no_queue", 500 * 1024, 1,
    ),
    "nuclei, task": (
        NUCLEI, of_nuclei, "jedi/taskbrokerage", "INPUT_NUM_THRESHOLD",
        task_rule("space_free", "INPUT_NUM_THRESHOLD"), "full_chain", 500 * 1024, 5000 * 1024,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_everything_knows_the_rule(case: Case) -> None:
    ours, tables, place, key, rule, after, skips, lets_pass = case
    own = ours.with_rule(rule, after=after)
    config = Config.empty().with_values({f"{place}/{key}": skips})
    decisions = own.decide(tables(), config=config)
    seen = decisions
    checks = dict(seen.pairs.select(seen.place, pl.col("check").cast(pl.String)).iter_rows())
    assert {checks["A"], checks["C"]} == {None}
    assert checks["B"] == rule.name
    removed = funnel(decisions).filter(pl.col("check") == rule.name)
    assert removed["n_pairs"].to_list() == [1]
    answer = explain(decisions, jeditaskid=seen.tasks["jeditaskid"][0], **{seen.place: "B"})
    assert rule.name == answer.check
    assert f"under {skips:,}" in answer.text or f"than {skips:,} behind" in answer.text
    table = own.checks_table().filter(pl.col("check") == rule.name)
    assert table["keys"].to_list() == [[key]]
    assert table["looks_at"].to_list() == [{"pair": "one place", "task": "all places"}[rule.scope]]
    moved = what_if(asked(own, decisions, tables(), config), key, [skips, lets_pass], brokerage=own)
    assert moved["n_gained"].to_list() == [0, 1]
    assert moved["is_current"].to_list() == [True, False]


def asked(
    own: Brokerage[Any, Any], decisions: Any, tables: dict[str, pl.DataFrame], config: Config
) -> Any:
    """Return what is asked for its sensitivity: decisions on nuclei do not keep what they were decided on."""
    if own.name != "production-tasks":
        return decisions
    instants = tables["tasks"].select("snapshot", "at").unique()
    return Replay(
        tables=MappingProxyType(tables), instants=instants, stage="tasks", config=config, notes=(),
        archive_digest="", synthetic=True,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_null_is_no_reason(case: Case) -> None:
    ours, tables, *_, rule, after, _, _ = case
    column = next(name for name in rule.inputs)
    never = pl.when(pl.col(column) < 0).then(pl.lit(value=True))
    own = ours.with_rule(
        Rule(name="never", source="", says="", when=never, scope=rule.scope), after=after
    )
    found, plain = (each.decide(tables()).pairs for each in (own, ours))
    assert found["check"].cast(pl.String).equals(plain["check"].cast(pl.String))


def test_a_rule_behind_the_best_ten_takes_the_rank_away() -> None:
    rule = Rule(name="all", source="", says="", when=pl.col("weight") >= 0, scope="task")
    decisions = JOBS.with_rule(rule, after="rank").decide(of_jobs())
    assert decisions.queues["check"].cast(pl.String).to_list() == ["all"] * 3
    assert decisions.queues["rank"].null_count() == 3
    assert decisions.weighed["share"].null_count() == 3


def test_marked_queues_are_gone_before_a_rule_that_follows_the_first_of_a_task() -> None:
    tables = JobWorld().queue("A").queue("B", pilots=0).frames()
    rule = Rule(name="all", source="", says="", when=pl.col("s_running") >= 0)
    decisions = JOBS.with_rule(rule, after="input_to_move").decide(tables)
    assert decisions.queues["check"].cast(pl.String).to_list() == ["all", "no_pilot"]


@pytest.mark.parametrize("case", ["jobs, pair", "analysis, pair"])
def test_a_standing_brokerage_knows_the_rule(case: str) -> None:
    ours, tables, place, key, rule, after, skips, lets_pass = CASES[case]
    own = ours.with_rule(rule, after=after)
    config, other = (
        Config.empty().with_values({f"{place}/{key}": value}) for value in (skips, lets_pass)
    )
    given = tables()
    tasks = given["tasks"].with_columns(snapshot=pl.lit(0, pl.Int64))
    standing = prepare(given | {"tasks": tasks}, brokerage=own, config=config)
    wanted = tasks.select("jeditaskid", "snapshot", world=pl.lit(0, pl.Int64))
    counts = (
        given["job_stats"].with_columns(world=pl.lit(0, pl.Int64)).drop("snapshot", strict=False)
    )
    for brokerage, names in (
        (standing, ["A", "C"]),
        (standing.with_config(other), ["A", "B", "C"]),
    ):
        ranked = brokerage.decide(wanted, {"job_stats": counts}).queues
        assert ranked["panda_queue"].cast(pl.String).to_list() == names


@pytest.mark.parametrize("brokerage", [JOBS, ANALYSIS, NUCLEI], ids=lambda each: each.name)
def test_a_rule_needs_a_place_and_a_name_of_its_own(brokerage: Brokerage[Any, Any]) -> None:
    rule = pair_rule("s_running", "NQUEUED_SAT_CAP")
    with pytest.raises(ConfigError, match="there is no 'no_such_rule'"):
        brokerage.with_rule(rule, after="no_such_rule").checks_table()
    first = first_check(brokerage)
    named = Rule(name=first, source="ours", says="", when=rule.when)
    with pytest.raises(ConfigError, match=f"{first}: there is one of that name"):
        brokerage.with_rule(named, after=first).checks_table()


@pytest.mark.parametrize("brokerage", [JOBS, ANALYSIS], ids=lambda each: each.name)
def test_a_rule_that_cannot_work_is_refused(brokerage: Brokerage[Any, Any]) -> None:
    tables = of_jobs() if brokerage is JOBS else of_users()
    after = "queued_cap" if brokerage is JOBS else "overloaded_vp"
    key = "NQUEUED_SAT_CAP" if brokerage is JOBS else "OVERLOAD_MIN_QUEUE"
    wrong = [
        (pair_rule("s_runnin", key), "small: no column s_runnin, did you mean 's_running'"),
        (Rule(name="x", source="", says="", when=pl.col("s_running") + 1), "x: when is .*, not true or false"),
    ]  # fmt: skip
    for rule, message in wrong:
        with pytest.raises(ConfigError, match=message):
            brokerage.with_rule(rule, after=after).decide(tables)
    window = Rule(
        name="x", source="", says="", when=pl.col("q_corecount") == pl.col("q_corecount").max().over("t")
    )  # fmt: skip
    several = Rule(
        name="x", source="", says="", when=pl.any_horizontal(pl.col("s_running", "x_nq") < 0)
    )
    first = Rule(name="x", source="", says="", when=pl.first())
    early = Rule(name="x", source="", says="", when=pl.col("weight") > 1)
    for rule, message in (
        (window, "x looks at t, which only a rule of scope task may"),
        (several, "x: name the columns of its expression one by one"),
        (first, "x: (name the columns of its expression one by one|when cannot be evaluated)"),
        (early, "x: no column weight"),
    ):
        with pytest.raises(ConfigError, match=message):
            brokerage.with_rule(rule, after=first_check(brokerage)).decide(tables)
    of_task = task_rule("s_running", key)
    first = first_check(brokerage)
    with pytest.raises(ConfigError, match=r"looks at all places of a task, which .* does not"):
        brokerage.with_rule(of_task, after=first).decide(tables)


@pytest.mark.parametrize("when", [pl.col("nope") > 1, pl.col("position") + 1])
def test_a_rule_of_nuclei_that_cannot_work_is_refused(when: pl.Expr) -> None:
    rule = Rule(name="x", source="", says="", when=when)
    with pytest.raises(
        ConfigError, match=r"own rules: x: (no column nope|when is .*, not true or false)"
    ):
        NUCLEI.with_rule(rule, after="no_queue").decide(of_nuclei())


def first_check(brokerage: Brokerage[Any, Any]) -> str:
    """Return the name of the first check of single places."""
    name: str = brokerage.checks_table().filter(pl.col("kind") != "throttle")["check"][0]
    return name
