"""One job at one queue, and what the rules say about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import TimeoutRules, Timeouts, decide
from brokerlab.lifecycle.timeouts.facts import TABLES

NOW = datetime(2026, 3, 10, 12)
SECOND = timedelta(seconds=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TIMES = ("creationtime", "modificationtime", "statechangetime", "starttime", "endtime")


def frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a table of the contracts; a timedelta is the age of a time."""
    schema = {name: column.dtype for name, column in TABLES[table].columns().items()}
    values = {name: [_time(row.get(name)) for row in rows] for name in schema}
    return pl.DataFrame(values, schema=schema)


def _time(value: Any) -> Any:
    return NOW - value if isinstance(value, timedelta) else value


def job(status: str, **columns: Any) -> dict[str, Any]:
    """Return a managed job under JEDI at queue Q that did nothing wrong yet."""
    fresh = dict.fromkeys(TIMES[:3], timedelta(minutes=1))
    plain = {
        "pandaid": 1,
        "jeditaskid": 7,
        "jobstatus": status,
        "currentpriority": 500,
        "prodsourcelabel": "managed",
        "processingtype": "simul",
        "computingsite": "Q",
        "lockedby": "jedi",
        "relocationflag": 0,
    }
    return {**plain, **fresh, **columns}


def queue(**columns: Any) -> dict[str, Any]:
    return {"panda_queue": "Q", "status": "online", **columns}


def judge(
    *jobs: dict[str, Any],
    queues: list[dict[str, Any]] | None = None,
    config: dict[str, Any] | None = None,
    rules: TimeoutRules | str = "document",
    **tables: list[dict[str, Any]],
) -> Timeouts:
    given = {"jobs": list(jobs), "queues": [queue()] if queues is None else queues, **tables}
    return decide(
        {name: frame(name, rows) for name, rows in given.items()},
        at=NOW,
        rules=TimeoutRules(rules) if isinstance(rules, str) else rules,
        config=Config.empty().with_values(config or {}),
    )


def names(*jobs: dict[str, Any], **context: Any) -> list[str]:
    """Return the rules that fire, in order."""
    return judge(*jobs, **context).fired["rule"].unique(maintain_order=True).to_list()
