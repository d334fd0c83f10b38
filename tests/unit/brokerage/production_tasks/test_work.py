"""Work left at nuclei (chapter section 1, ``remaining_work``, row T18)."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.production_tasks import remaining_work
from brokerlab.brokerage.production_tasks.storage import work_left
from brokerlab.brokerage.rules import ProductionRules

TASKS = pl.DataFrame(
    {
        "snapshot": [1, 1, 1, 1],
        "nucleus": ["A", "A", "B", None],
        "workqueue_name": ["MC", "Other", "MC", "MC"],
        "currentpriority": [500, 900, 300, 500],
        "nevents": [1000, 100, 50, 7],
        "neventsused": [400, 0, None, 0],
        "cputime": [2000.0, None, 2.0, 1.0],
        "cputimeunit": ["mHS06sPerEvent", "HS06sPerEvent", "HS06sPerEvent", None],
    }
)
ASKED = pl.DataFrame(
    {"snapshot": [1, 1], "workqueue_name": ["MC", "MC"], "currentpriority": [300, 500]}
)


def found(rules: str) -> list[tuple[object, ...]]:
    result = remaining_work(TASKS, ASKED, rules=ProductionRules(rules))
    return result.select("nucleus", "workqueue_name", "currentpriority_min", "rw").rows()


def test_all_work_and_the_work_of_a_queue_at_a_priority_and_above() -> None:
    assert found("document") == [
        ("A", None, None, 600 * 2.0 + 100 * 300),
        ("A", "MC", 300, 1200.0),
        ("A", "MC", 500, 1200.0),
        ("B", None, None, 100.0),
        ("B", "MC", 300, 100.0),
    ]


def test_milli_units_count_a_thousandfold_as_deployed_but_not_in_task_rw() -> None:
    assert found("production")[1] == ("A", "MC", 300, 1_200_000.0)
    assert TASKS.select(work_left()).to_series().to_list() == [1200.0, 30000.0, 100.0, 7.0]
