"""The analysis brokerage decides the same, to the bit, wherever its checks run.

The checks are expressions that Polars, DuckDB or Spark evaluate on pairs of tasks and queues; in Polars the facts of
the pairs are looked up by position, elsewhere they are joined.
"""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from brokerlab.brokerage.analysis_jobs import AnalysisDecisions, AnalysisRules
from brokerlab.brokerage.production_jobs.pairs import ToEngine
from tests.twins import analysis_compare as compare
from tests.twins.analysis_worlds import random_world

pytestmark = pytest.mark.filterwarnings("ignore::brokerlab.errors.BrokerlabWarning")

SEED = 1
TABLES = ("queues", "first_loop", "weighed", "tasks")
LEAST_CHECKS = 15


@pytest.fixture(scope="session")
def users() -> dict[str, Any]:
    """A world of user tasks at three instants."""
    return random_world(SEED, 40, 25, instants=True)


def decided(world: dict[str, Any], rules: str, into: ToEngine | None = None) -> AnalysisDecisions:
    return compare.decided(world, AnalysisRules(rules), into=into)


@pytest.fixture(scope="session", params=["document", "production"])
def polars_says(
    request: pytest.FixtureRequest, users: dict[str, Any]
) -> tuple[str, AnalysisDecisions]:
    return request.param, decided(users, request.param)


def same(ours: AnalysisDecisions, expected: AnalysisDecisions) -> None:
    for name in TABLES:
        assert_frame_equal(getattr(ours, name), getattr(expected, name), check_exact=True)


def test_the_world_is_odd_enough(polars_says: tuple[str, AnalysisDecisions]) -> None:
    _, found = polars_says
    assert found.first_loop.height
    assert found.tasks["snapshot"].n_unique() == 3
    assert found.queues["rank"].max() > 3
    walks = pl.concat([found.queues["check"], found.first_loop["check"]])
    assert walks.drop_nulls().n_unique() > LEAST_CHECKS


def test_polars_with_joins(
    users: dict[str, Any], polars_says: tuple[str, AnalysisDecisions]
) -> None:
    rules, expected = polars_says
    same(decided(users, rules, lambda frame: frame.lazy()), expected)


def test_duckdb(users: dict[str, Any], polars_says: tuple[str, AnalysisDecisions]) -> None:
    rules, expected = polars_says
    session = duckdb.connect()
    same(decided(users, rules, lambda frame: session.from_arrow(frame.to_arrow())), expected)


@pytest.mark.spark
def test_spark(spark: Any) -> None:
    """One rule set and few pairs: Spark takes its time to plan."""
    world = random_world(SEED, 12, 12)
    ours = decided(world, "production", lambda frame: spark.createDataFrame(frame.to_arrow()))
    same(ours, decided(world, "production"))
