"""The job brokerage decides the same, to the bit, wherever its checks run.

The checks are expressions that Polars, DuckDB or Spark evaluate on pairs of tasks and queues; in Polars the facts of
the pairs are looked up by position, elsewhere they are joined.
"""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.production_jobs.decide import decide
from brokerlab.brokerage.production_jobs.decisions import Decisions
from brokerlab.brokerage.production_jobs.pairs import ToEngine
from brokerlab.brokerage.rules import ProductionRules
from tests.twins import compare
from tests.twins.instants import with_instants
from tests.twins.worlds import random_world

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

SEED = 0
SETTINGS = {
    "WORK_SHORTAGE": True,
    "NQUEUED_NUC_CAP_FOR_JOBS": 1000,
    "NQUEUED_SAT_CAP": 100,
    "MAX_DISKIO_DEFAULT": 300,
    "STORAGE_MIN_FREE_SIZE": 500,
}
"""Limits at which the checks bite."""


@pytest.fixture(scope="session")
def world() -> dict[str, Any]:
    """A world at three instants, with lists of queues, where every check says skip to some pair."""
    tables = random_world(SEED, 250, 100)
    settings = [row for row in tables["gdpconfig"] if row["key"] not in SETTINGS]
    for key, value in SETTINGS.items():
        component = "core" if key == "WORK_SHORTAGE" else "jobbroker"
        settings.append({"component": component, "key": key, "value": value})
    tables["gdpconfig"] = settings
    closed = {"N2_DATADISK": {"write_wan": "OFF"}}
    tables["storage_endpoints"] = [
        row | closed.get(row["ddm_endpoint_name"], {}) for row in tables["storage_endpoints"]
    ]
    return with_instants(tables, SEED)


def decided(
    world: dict[str, Any], rules: str, into: ToEngine | None = None, **more: Any
) -> Decisions:
    return decide(
        compare.frames(world), rules=ProductionRules(rules), config=compare.config(world), into=into, **more
    )  # fmt: skip


@pytest.fixture(scope="session", params=["document", "production"])
def polars_says(request: pytest.FixtureRequest, world: dict[str, Any]) -> tuple[str, Decisions]:
    return request.param, decided(world, request.param)


def same(ours: Decisions, expected: Decisions) -> None:
    for name in ("queues", "weighed", "tasks"):
        assert_frame_equal(getattr(ours, name), getattr(expected, name), check_exact=True)


def test_the_world_is_odd_enough(polars_says: tuple[str, Decisions]) -> None:
    rules, found = polars_says
    failed = found.queues["failed"]
    idle = {
        check.name
        for bit, check in enumerate(found.checks)
        if not ((failed & (1 << bit)) != 0).any()
    }
    assert idle == ({"name_test"} if rules == "production" else set())
    tasks = found.world.tasks
    assert tasks["snapshot"].n_unique() == 3
    assert tasks["t_listed"].any()
    assert tasks["t_single"].any()
    assert found.queues["rank"].max() > 3


def test_polars_with_joins(world: dict[str, Any], polars_says: tuple[str, Decisions]) -> None:
    rules, expected = polars_says
    same(decided(world, rules, lambda frame: frame.lazy()), expected)


def test_duckdb(world: dict[str, Any], polars_says: tuple[str, Decisions]) -> None:
    rules, expected = polars_says
    session = duckdb.connect()
    same(decided(world, rules, lambda frame: session.from_arrow(frame.to_arrow())), expected)


@pytest.mark.spark
def test_spark(spark: Any, world: dict[str, Any]) -> None:
    """One rule set: Spark takes its time to plan."""
    ours = decided(world, "document", lambda frame: spark.createDataFrame(frame.to_arrow()))
    same(ours, decided(world, "document"))


def test_hints_in_duckdb(world: dict[str, Any]) -> None:
    session = duckdb.connect()
    ours = decided(world, "production", lambda f: session.from_arrow(f.to_arrow()), hint=True)
    expected = decided(world, "production", hint=True)
    assert_frame_equal(ours.queues, expected.queues, check_exact=True)
    assert ours.queues.filter(pl.col("check").is_null()).height
