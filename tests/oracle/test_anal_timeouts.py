"""The timeouts and fast rebrokerage against recorded vectors, under the rule set ``production``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, decide, fast_rebrokerage
from brokerlab.lifecycle.timeouts.facts import FAST_TABLES, TABLES
from tests.oracle import vectors

RULES = TimeoutRules("production")
RESOURCE_WORK_QUEUES = (9,)
APART = ("transferring_hi", "transferring_lo")
"""Rules of a program of its own, which was not run for these vectors: the table's rules for transferring jobs."""
TIMES = ("creationtime", "modificationtime", "statechangetime", "starttime", "endtime", "laststart")
Case = dict[str, Any]


def time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def frame(rows: list[Case], contract: Any) -> pl.DataFrame:
    """Return rows as a table of the contract; columns that it does not have are left out."""
    schema = {name: column.dtype for name, column in contract.columns().items()}
    values = {
        name: [time(row.get(name)) if name in TIMES else row.get(name) for row in rows]
        for name in schema
    }
    return pl.DataFrame(values, schema=schema)


def config(rows: list[Case]) -> Config:
    return Config.empty().with_values(
        {f"pandaserver/{row['component']}/{row['key']}": row["value"] for row in rows}
    )


def timeouts(inputs: Case) -> Case:
    given = {name: inputs[name] for name in TABLES if name in inputs}
    given["output_reports"] = [{"pandaid": pandaid} for pandaid in inputs["output_reports"]]
    tables = {name: frame(rows, TABLES[name]) for name, rows in given.items()}
    found = decide(tables, at=time(inputs["now"]), rules=RULES, config=config(inputs["gdpconfig"]))
    recorded = ~pl.col("rule").is_in(APART)
    return {
        "hits": found.fired.filter(recorded).select("rule", "action", "pandaid").to_dicts(),
        "examined_not_failed": found.spared.filter(recorded).select("rule", "pandaid").to_dicts(),
    }


def fast(inputs: Case) -> Case:
    tables = {
        name: frame(inputs[name], FAST_TABLES[name]) for name in FAST_TABLES if name in inputs
    }
    tables["resource_work_queues"] = pl.DataFrame({"workqueue_id": RESOURCE_WORK_QUEUES})
    found = fast_rebrokerage(tables, rules=RULES, config=config(inputs["gdpconfig"]))
    met = found.shares.filter(pl.col("excess").is_not_null())
    return {
        "conditions_met": met.select("computingsite", "gshare").to_dicts(),
        "moved": found.moved["pandaid"].to_list(),
    }


def values(rows: list[Any]) -> set[Any]:
    return {tuple(sorted(row.items())) if isinstance(row, dict) else row for row in rows}


@pytest.mark.parametrize(
    ("name", "function"), [("anal_timeouts", timeouts), ("anal_fast_rebrokerage", fast)]
)
def test_every_vector_agrees(name: str, function: Callable[[Case], Case]) -> None:
    cases = vectors.load(name)
    wrong = []
    for case in cases:
        got, expected = function(case["inputs"]), case["expected"]
        for kind, rows in expected.items():
            ours, theirs = values(got[kind]), values(rows)
            if ours != theirs or len(got[kind]) != len(rows):
                wrong.append((case["id"], kind, sorted(ours - theirs), sorted(theirs - ours)))
    vectors.report(name, len(cases), len(cases) - len({row[0] for row in wrong}))
    assert not wrong, "\n".join(map(str, wrong[:10]))
