"""The throttle of the analysis brokerage against recorded vectors, under the rule set ``production``.

Every case is a task at an instant (``snapshot``) of its own, so all cases are looked up at once.
"""

from __future__ import annotations

import json

import polars as pl

from brokerlab.brokerage.analysis_jobs import AnalysisRules
from brokerlab.brokerage.analysis_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.analysis_jobs.throttle import TABLES
from brokerlab.brokerage.engine.world import World
from tests.one_value import throttled
from tests.oracle import vectors
from tests.oracle.anal_cases import Case, settings, tables, together


def key(inputs: Case) -> str:
    return json.dumps(inputs, sort_keys=True)


def world_of(cases: list[Case]) -> World:
    given = tables(cases[0]["inputs"]) | together(cases, ("tasks", *TABLES))
    return BROKERAGE.prepare(given, rules=AnalysisRules("production"))


def answers(cases: list[Case]) -> dict[str, Case]:
    """Return the answers of all cases by inputs."""
    world, found = world_of(cases), {}
    configs = [settings(case["inputs"].get("gdpconfig") or []) for case in cases]
    under = {config.digest: throttled(world.with_config(config)) for config in configs}
    for number, (case, config) in enumerate(zip(cases, configs, strict=True)):
        of_case = under[config.digest].filter(pl.col("snapshot") == number)
        found[key(case["inputs"])] = of_case.select("throttle", "outcome").row(0, named=True)
    return found


def test_every_throttle_vector_agrees() -> None:
    found = answers(vectors.load("anal_throttle"))
    vectors.check("anal_throttle", {"analysis_throttle": lambda **inputs: found[key(inputs)]})
