"""The checks as values: every clause can be said."""

from __future__ import annotations

import pytest

from tests.unit.brokerage.analysis_jobs.toys import World


def _world() -> World:
    world = World(ramcount=4000, architecture="x86_64-el9-gcc13-opt")
    world.queue("A", maxrss=3000.0).queue("B", status="paused").queue("C", catchall="gpu")
    return world.queue("D", corecount=8).queue("E", maxtime=10).queue("F")


@pytest.mark.parametrize("rules", ["document", "production"])
def test_checks_can_be_told(rules: str) -> None:
    decided = _world().decided(rules)
    known = {*decided.world.facts.schema, "t_local"}
    lost = {check.name: {*check.columns()} - known for check in decided.checks}
    assert not {name: columns for name, columns in lost.items() if columns}
