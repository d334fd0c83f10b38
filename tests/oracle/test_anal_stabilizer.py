"""The Analysis Stabilizer and the weights against recorded vectors, under the rule set ``production``.

Every case is a task at an instant of its own, and settings are columns of tasks: all cases are weighed at once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs import ranking
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.analysis_jobs.contracts import TABLES
from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from brokerlab.brokerage.engine.pairs import looked_up, matched
from brokerlab.brokerage.engine.steps import names_of, reads_of, walk
from brokerlab.brokerage.engine.world import World, with_settings_of
from brokerlab.brokerage.inputs.frames import run
from brokerlab.frames import prepared
from brokerlab.matching.rules import MatchingRules
from tests.oracle import vectors
from tests.oracle.anal_cases import Case, settings, tables, together

RULES = AnalysisRules("production")
BUDGETS = {1: "budget_hi", 0: "budget_mid", -1: "budget_lo"}
NUMBERS = {
    "orig": "orig", "new": "new", "class": "s_class", "max_q_len": "max_q_len", "user_q_len": "u_queued",
    "rem_q_len": "rem_q_len", "user_r": "u_running", "nq": "x_nq", "nr": "running",
}  # fmt: skip
REL = 1e-12


def close(got: Any, want: Any) -> bool:
    return got is not None and math.isclose(got, want, rel_tol=REL, abs_tol=1e-12)


def told_rate(row: Case) -> float:
    """Return the rate as it is recorded: scaled with R of the weight, where the stabilizer took running jobs."""
    return row["running"] * row["s_rate"] / row["s_running"] if row["s_running"] else 0.0


def weights_differ(rows: pl.DataFrame, expected: Case) -> list[str]:
    """Return what the weights and marks of queues with a weight have differently."""
    found = []
    by_queue = {row["parent"]: row for row in rows.iter_rows(named=True)}
    wanted = {row["queue"]: row for row in expected["basic_weights"]}
    found += [f"{name}: weight on one side only" for name in by_queue.keys() ^ wanted.keys()]
    for name in by_queue.keys() & wanted.keys():
        row = by_queue[name]
        found += [
            f"{name}.{what}: {row[column]}, expected {wanted[name][what]}"
            for what, column in NUMBERS.items()
            if not close(row[column], wanted[name][what])
        ]
        if not close(told := told_rate(row), wanted[name]["trr"]):
            found.append(f"{name}.trr: {told}, expected {wanted[name]['trr']}")
        if row["t_gshare"] in ("User Analysis", "Express Analysis"):
            found += [
                f"budget {part['class']}: {row[BUDGETS[part['class']]]}, expected {part['budget']}"
                for part in expected["class_budget"]
                if not close(row[BUDGETS[part["class"]]], part["budget"])
            ]
    marks = {name: {mark for mark in ranking.MARKS if row[mark]} for name, row in by_queue.items()}
    problems = {row["queue"]: set(row["reasons"]) for row in expected["problematic"]}
    found += [
        f"{name}: marks {got}, expected {problems.get(name, set())}"
        for name, got in marks.items()
        if got != problems.get(name, set())
    ]
    return found


def world_of(cases: list[Case]) -> World:
    """Return all cases as one world, each task under the settings of its case."""
    dated = [name for name, contract in TABLES.items() if "snapshot" in contract.columns()]
    world = BROKERAGE.prepare(
        prepared(tables(cases[0]["inputs"]) | together(cases, dated), TABLES),
        rules=RULES, matching=MatchingRules("production"),
    )  # fmt: skip
    tasks = [
        with_settings_of(world, one, settings(cases[one["snapshot"][0]]["inputs"].get("gdpconfig") or []))
        for one in world.facts.tasks.iter_slices(1)
    ]  # fmt: skip
    facts = replace(world.facts, tasks=pl.concat(tasks, how="vertical_relaxed"))
    return replace(world, facts=facts)


def weighed(world: World) -> pl.DataFrame:
    """Return what the steps make of the queues in the second loop: ``snapshot``, the number of the case, and more."""
    facts = world.in_loop(world.facts.tasks.select("t"), 2)
    pairs = looked_up(facts, matched(facts), {*reads_of(world.steps)})
    late = run(walk(pairs.lazy(), world.steps, pl.Enum(names_of((), world.steps))))
    names = world.facts.queues.select("q", "parent")
    return late.join(names, on="q").join(world.facts.tasks.select("t", "snapshot"), on="t")


def differences(late: pl.DataFrame, expected: Case) -> list[str]:
    gone = sorted(late.filter(pl.col("check").is_in(["overloaded", "overloaded_vp"]))["parent"])
    found = weights_differ(late.filter(pl.col("new").is_not_null()), expected)
    if gone != sorted(expected["overloaded"]):
        found.append(f"overloaded {gone}, expected {expected['overloaded']}")
    return found


def test_every_stabilizer_vector_agrees() -> None:
    cases = vectors.load("anal_stabilizer")
    late = weighed(world_of(cases))
    wrong = {}
    for number, case in enumerate(cases):
        if found := differences(late.filter(pl.col("snapshot") == number), case["expected"]):
            wrong[case["id"]] = found
    vectors.report("anal_stabilizer", len(cases), len(cases) - len(wrong))
    assert not wrong, list(wrong.items())[:8]
