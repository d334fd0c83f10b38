"""Which rule would have fired when, over the histories of an archive's jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts.histories import histories
from brokerlab.lifecycle.timeouts.rules import TimeoutRules


def would_fire(
    jobs: Any,
    status_log: Any = None,
    *,
    at: datetime,
    queues: Any = None,
    heartbeats: Any = None,
    rules: TimeoutRules | None = None,
    config: Config | None = None,
) -> pl.DataFrame:
    """Say which timeout rule would have fired when for which jobs: the first time of each job and rule.

    The job-sized part is one query of the engine, which leaves the spans that last longer than a limit; rule
    ``inactive_queue`` takes a second one for the times at which a queue started nothing.

    Args:
        jobs: Table ``jobs`` (Polars, DuckDB, Spark). Priority, labels and flags are those of the row.
        status_log: Table ``job_status_log`` of the same engine; jobs without entries, or all of them without the
            table, are read from their times, which know of no status but assigned, activated and running, and of the
            present one of live jobs.
        at: End of the history, UTC without zone.
        queues: Table ``queues``; with ``ts`` the latest row of each queue counts. None: no queue is known.
        heartbeats: ``pandaid, modificationtime`` of the same engine, one row per sign of life. Without it rules about
            heartbeats judge the present status of live jobs alone.
        rules: The rule set; ``document`` by default.
        config: The configuration; what holds at ``at`` is used for the whole history.

    Returns:
        One row per job, rule and action: ``pandaid, jeditaskid, computingsite, gshare, prodsourcelabel,
        currentpriority, jobstatus`` (then), ``number, rule, action, reference, since, limit_h``, ``entered``,
        ``fires`` (the rule fires right after), ``left`` (when the wait ended: with the status, or where silence is
        what counts with the next sign of life; null: it still lasts at ``at``), ``outcome`` (``went_on``;
        ``came_to_nothing``: the job failed or was cancelled or closed with this status, or after it had started;
        ``waiting``: nobody knows), ``waited_h`` from ``since`` to ``fires``, ``spared_h`` from ``fires`` to ``left`` or
        ``at``. Sorted by job and number. Rules are judged one by one: that another one would have taken the job
        before is not asked. Not told are analysis rebrokerage, which looks at groups, and pending output reports.

    Raises:
        SchemaError: Required columns are missing.
        DataError: The tables live in different engines.
        ConfigError: ``at`` has a zone.

    Source: docs/rules/waiting.md 2.

    Example:
        >>> day = datetime(2026, 3, 1)
        >>> jobs = pl.DataFrame(
        ...     {"pandaid": [1], "jobstatus": ["finished"], "creationtime": [day], "activatedtime": [day],
        ...      "starttime": [datetime(2026, 3, 4)], "modificationtime": [datetime(2026, 3, 5)]}
        ... )
        >>> found = would_fire(jobs, at=datetime(2026, 4, 1))
        >>> found.select("rule", "fires", "spared_h").rows()
        [('activated', datetime.datetime(2026, 3, 3, 0, 0), 24.0)]
    """
    read = histories(
        jobs, status_log, at=at, queues=queues, heartbeats=heartbeats, rules=rules, config=config
    )
    return read.fired()
