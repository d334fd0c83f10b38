"""Classes of queues and tasks, usage of users and shares: as they were evaluated last before each instant.

The deployed system evaluates queues every 30 minutes and the rest about every 10 (site-task-classification.md 3, 8). So
each is evaluated here on such a grid of the clock, and an instant sees the last evaluation: a value is up to 30 or 10
minutes old, and ``timestamp`` says when it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.brokerage.replay.clock import rounded
from brokerlab.brokerage.replay.tables import INT, collect, narrow
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classes

SITES_EVERY, USERS_EVERY = "30m", "10m"
"""How often queues, and users, tasks and shares are evaluated."""


@dataclass(frozen=True)
class Ticks:
    """The times of evaluation that instants see.

    Attributes:
        instants: ``snapshot, at``, ``tick`` (number of the last evaluation), ``timestamp`` (its time).
        ticks: ``snapshot`` (that number), ``at``.
    """

    instants: pl.DataFrame
    ticks: pl.DataFrame

    @classmethod
    def of(cls, instants: pl.DataFrame, every: str) -> Ticks:
        """Round instants down to a grid of the clock.

        Example:
            >>> from datetime import datetime
            >>> at = pl.DataFrame({"snapshot": [4], "at": [datetime(2026, 3, 1, 12, 47)]})
            >>> Ticks.of(at, "30m").ticks.rows()
            [(0, datetime.datetime(2026, 3, 1, 12, 30))]
        """
        timed = instants.select("snapshot", "at", timestamp=rounded(pl.col("at"), every))
        times = timed.select("timestamp").unique().sort("timestamp").with_row_index("tick")
        numbered = times.with_columns(pl.col("tick").cast(pl.Int64))
        joined = timed.join(numbered, on="timestamp", maintain_order="left")
        return cls(joined, numbered.select(snapshot="tick", at="timestamp"))

    def seen(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Return for each instant the rows of its evaluation: ``snapshot``, the columns, ``timestamp``."""
        own = rows.select(*columns, tick="snapshot")
        joined = self.instants.select("snapshot", "tick", "timestamp").join(own, on="tick")
        return joined.select("snapshot", *columns, "timestamp").sort("snapshot", *columns)


def site_ratings(
    jobs: Any,
    queues: pl.DataFrame,
    instants: pl.DataFrame,
    *,
    status_log: Any = None,
    rules: classes.ClassRules | None = None,
) -> pl.DataFrame:
    """Rate the queues.

    Args:
        jobs: Table ``jobs`` of any engine.
        queues: Table ``queues``, one row per queue.
        instants: ``snapshot``, ``at``.
        status_log: Table ``job_status_log`` of the same engine, if every job is in it.
        rules: Rule set of the classes.

    Returns:
        ``snapshot, computingsite, resource_type, class`` (null: not classified), ``timestamp``, sorted.

    Source:
        site-task-classification.md 1 to 3.
    """
    at = Ticks.of(instants, SITES_EVERY)
    found = classes.site_classes_at(jobs, queues, status_log=status_log, at=at.ticks, rules=rules)
    return at.seen(found.classes, "computingsite", "resource_type", "class")


@dataclass(frozen=True)
class Usage:
    """What users occupy at each evaluation.

    Attributes:
        at: The times of evaluation.
        users: :attr:`brokerlab.lifecycle.classes.UserUsage.users` by evaluation.
    """

    at: Ticks
    users: pl.DataFrame

    def table(self, units: pl.DataFrame) -> pl.DataFrame:
        """Return contract ``UserEval`` of the users of tasks.

        Args:
            units: ``snapshot, username`` (as in ``produsername``), ``origusername`` (name of the row; null: ``username``).
        """
        seen = self.at.seen(self.users, "produsername", "rem_slots_a", "rem_slots_b")
        names = units.select(
            "snapshot", produsername="username", user=pl.coalesce("origusername", "username")
        )
        joined = names.drop_nulls().unique().join(seen, on=["snapshot", "produsername"])
        columns = ["snapshot", "user", "rem_slots_a", "rem_slots_b", "timestamp"]
        return joined.select(columns).sort(columns)


def usage(
    jobs: Any,
    rated: pl.DataFrame,
    instants: pl.DataFrame,
    *,
    config: Config,
    status_log: Any = None,
    rules: classes.ClassRules | None = None,
) -> Usage:
    """Sum the slots of users by class of queue.

    Args:
        jobs: Table ``jobs`` of any engine.
        rated: Result of :func:`site_ratings`.
        instants: ``snapshot``, ``at``.
        config: Thresholds.
        status_log: Table ``job_status_log`` of the same engine, if every job is in it.
        rules: Rule set of the classes.

    Source:
        site-task-classification.md 4.
    """
    at = Ticks.of(instants, USERS_EVERY)
    slots = classes.user_slots(jobs, status_log=status_log, at=at.ticks)
    # instants of one tick lie in the same half hour and see the same classes
    first = at.instants.unique("tick", keep="first", maintain_order=True)
    known = first.select("snapshot", "tick").join(rated, on="snapshot").drop("snapshot")
    found = classes.user_usage(
        slots, known.rename({"tick": "snapshot"}), config=config, rules=rules
    )
    return Usage(at, found.users)


def share_ratings(
    jobs: Any, shares: pl.DataFrame, instants: pl.DataFrame, *, status_log: Any = None
) -> pl.DataFrame:
    """Hold what runs in each share against its target (contract ``GshareUsage``).

    Args:
        jobs: Table ``jobs`` of any engine.
        shares: Table ``gshares``.
        instants: ``snapshot``, ``at``.
        status_log: Table ``job_status_log`` of the same engine, if every job is in it.

    Source:
        site-task-classification.md 7.
    """
    at = Ticks.of(instants, USERS_EVERY)
    stats = classes.share_job_stats(jobs, status_log=status_log, at=at.ticks)
    found = classes.share_usage(shares, stats).usage
    return at.seen(found, "gshare", "usage_perc", "eqiv_usage_perc")


def task_ratings(
    tables: Any,
    pairs: pl.DataFrame,
    used: Usage,
    *,
    config: Config,
    rules: classes.ClassRules | None = None,
) -> pl.DataFrame:
    """Rate the tasks to be brokered (contract ``TaskClass``).

    Args:
        tables: ``tasks``, ``files``, ``datasets``, ``jobs`` and ``task_status_log`` (or None) of one engine.
        pairs: ``jeditaskid``, ``snapshot``: what is asked for.
        used: Result of :func:`usage`.
        config: Thresholds.
        rules: Rule set of the classes.

    Returns:
        Sorted; no row for a task that was not active at its evaluation, e.g. before it began.

    Source:
        site-task-classification.md 5.
    """
    at = used.at
    ids = pairs["jeditaskid"].unique().to_list()

    def own(name: str) -> Any:
        frame = nw.from_native(tables[name]).lazy()
        return frame.filter(nw.col("jeditaskid").is_in(ids)).to_native()

    log = None if tables["task_status_log"] is None else own("task_status_log")
    states = classes.task_states(own("tasks"), status_log=log, at=at.ticks)
    asked = pairs.join(at.instants.select("snapshot", "tick"), on="snapshot")
    wanted = asked.select("jeditaskid", snapshot="tick").unique()
    active = states.join(wanted, on=["jeditaskid", "snapshot"], how="semi")
    progress = None
    if active.height:
        progress = classes.task_progress(active, own("files"), own("datasets"), own("jobs"))
    found = classes.task_classes(
        active, progress, used.users, at=at.ticks, config=config, rules=rules
    ).classes
    seen = at.seen(found, "jeditaskid", "class")
    theirs = seen.join(pairs, on=["jeditaskid", "snapshot"], how="semi")
    return theirs.sort("snapshot", "jeditaskid")


def covered(jobs: Any, status_log: Any) -> bool:
    """Whether every job has an entry in the status log."""
    ids = {"pandaid": INT}
    table = narrow(jobs, "jobs", ids, ("pandaid",))
    log = narrow(status_log, "job_status_log", ids, ("pandaid",))
    return collect(table.join(log, on="pandaid", how="anti").head(1)).is_empty()
