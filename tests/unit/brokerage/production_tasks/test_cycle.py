"""Tasks of one cycle make nuclei busier for each other, as deployed by work queue and priority."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab.brokerage.production_tasks import TaskDecisions
from tests.unit.brokerage.production_tasks.world import decided, task, world


def seen(result: TaskDecisions, jeditaskid: int) -> float:
    row = result.nuclei.filter(pl.col("jeditaskid") == jeditaskid, pl.col("nucleus") == "A")
    value: float = row["rw"].item()
    return value


def cycle(*tasks: dict[str, Any]) -> TaskDecisions:
    base = [
        {"nucleus": "A", "workqueue_name": "MC", "currentpriority_min": p, "rw": 100.0}
        for p in (500, 400)
    ]
    return decided(world("A", tasks=list(tasks), remaining_work=base), "production")


def test_a_task_adds_its_work_for_the_same_and_lower_priority() -> None:
    result = cycle(
        task(jeditaskid=1, task_rw=1000.0),
        task(jeditaskid=2, task_rw=10.0),
        task(jeditaskid=3, currentpriority=400, task_rw=None),
        task(jeditaskid=4, currentpriority=600),
        task(jeditaskid=5, currentpriority=400),
    )
    assert [seen(result, n) for n in (1, 2, 3, 4, 5)] == [100.0, 1100.0, 1110.0, 0.0, 1110.0]
    assert result.nuclei["rw_all"].to_list() == [0.0] * 5


def test_other_work_queues_and_other_snapshots_are_not_touched() -> None:
    result = cycle(
        task(jeditaskid=1, task_rw=1000.0),
        task(jeditaskid=2, gshare="Other"),
        task(jeditaskid=3, snapshot=2),
    )
    assert [seen(result, n) for n in (2, 3)] == [0.0, 100.0]


def test_a_task_that_has_its_nucleus_adds_too_and_one_without_does_not() -> None:
    busy = cycle(task(jeditaskid=1, nucleus="A", task_rw=1000.0), task(jeditaskid=2))
    assert seen(busy, 2) == 1100.0
    chained = cycle(task(jeditaskid=1, fullchain="only", task_rw=1000.0), task(jeditaskid=2))
    assert seen(chained, 2) == 100.0


def test_position_gives_the_order_of_the_cycle() -> None:
    late = task(jeditaskid=1, task_rw=1000.0, position=2)
    assert seen(cycle(late, task(jeditaskid=2, position=1)), 2) == 100.0
    assert seen(cycle(task(jeditaskid=2, position=3), late), 2) == 1100.0
