"""The checks as values: every clause can be told, and other engines decide the same."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from brokerlab.brokerage.analysis_jobs import AnalysisRules, decide
from brokerlab.brokerage.production_jobs.recipe import schema_of
from tests.unit.brokerage.analysis_jobs.toys import World


def _world() -> World:
    world = World(ramcount=4000, architecture="x86_64-el9-gcc13-opt")
    world.queue("A", maxrss=3000.0).queue("B", status="paused").queue("C", catchall="gpu")
    return world.queue("D", corecount=8).queue("E", maxtime=10).queue("F")


@pytest.mark.parametrize("rules", ["document", "production"])
def test_checks_can_be_told(rules: str) -> None:
    decided = _world().decided(rules)
    known = {*schema_of(decided.world.facts), "t_local"}
    lost = {check.name: check.columns() - known for check in decided.checks}
    assert not {name: columns for name, columns in lost.items() if columns}


@pytest.mark.parametrize("rules", ["document", "production"])
def test_duckdb_decides_the_same(rules: str) -> None:
    session = duckdb.connect()
    tables = {name: pl.DataFrame(rows) for name, rows in _world().rows.items()}
    ours = decide(tables, rules=AnalysisRules(rules))
    theirs = decide(
        tables, rules=AnalysisRules(rules), into=lambda frame: session.from_arrow(frame.to_arrow())
    )
    assert ours.queues.equals(theirs.queues)
    assert ours.tasks.equals(theirs.tasks)
    assert ours.to_dict()["rules"]["rules"] == rules
