"""Worlds decided together are decided as each would be alone; what no rule can work with is refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from brokerlab.errors import ConfigError
from tests.brokerage_toys import SHARE, World, reasons
from tests.unit.brokerage.production_jobs.book import ask, parent

WORLDS: dict[str, Any] = {
    "input": lambda: World(iointensity=300).queue("A").queue("B").data(20, here={"A": 20, "B": 1}),
    "nucleus": lambda: World(t1weight=-1).queue("AT", site="NUC").queue("FAR").queue("Far_test"),
    "unified": lambda: parent(World(site="SITE", workqueue_id=7), "SITE", {}, {"corecount": 1}),
    "first name": lambda: World().queue("A").link("A", queued=151).queue("B").link("B", queued=1),
    "moving": lambda: World().queue("A").jobs("A", transferring=2001).queue("B"),
    "links": lambda: World().queue("A", pilots=0).queue("B").link("B", queued=151).queue("C"),
}
ASKED = {name: ask(make(), "document") for name, make in WORLDS.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_among_many_is_decided_as_alone(name: str) -> None:
    decisions = WORLDS[name]().decided()
    columns = ["panda_queue", "check", "weight", "rank", "failed"]
    alone = decisions.queues.with_columns(pl.col("panda_queue").cast(pl.String)).select(columns)
    rows = [
        {column: row[column] for column in columns[1:]} | {"panda_queue": queue}
        for queue, row in ASKED[name].queues().items()
    ]
    assert alone.to_dicts() == [{column: row[column] for column in columns} for row in rows]
    assert decisions.tasks["outcome"].item() == ASKED[name].task["outcome"]
    told = {name: row.get("network_weight") for name, row in ASKED[name].queues().items()}
    network = dict(decisions.weighed.select("panda_queue", "network_weight").iter_rows())
    assert {name: weight for name, weight in told.items() if weight is not None} == network


def test_rows_without_an_instant_hold_for_every_instant() -> None:
    """Chapter 1.6 in a replay: a table's rows hold for their snapshot, or for all."""
    world = World().task(2, snapshot=5).queue("A", running=0, activated=21).queue("B", status=None)
    world.change("job_stats", snapshot=None)
    place = {"computingsite": "A", "gshare": SHARE, "jobstatus": "running"}
    world.add("job_stats", snapshot=5, njobs=11, **place)
    world.change("queues", {"panda_queue": "B"}, snapshot=5, status="online")
    decisions = world.decided()
    assert reasons(decisions, 1) == {"A": "queued_cap"}
    assert reasons(decisions, 2) == {"A": None, "B": None}


@pytest.mark.parametrize("cap", [0, -5])
@pytest.mark.parametrize("rules", ["document", "production"])
def test_a_cap_of_no_files_is_refused(cap: int, rules: str) -> None:
    """network-weight.md 2: "0 for NQUEUED_SAT_CAP is a configuration error (division by zero)"."""
    with pytest.raises(ConfigError, match=f"NQUEUED_SAT_CAP={cap}: "):
        World().queue("A").decided(rules, NQUEUED_SAT_CAP=cap)
