"""Classes of queues and tasks, usage of users and shares: as they were evaluated last before each instant.

The deployed system evaluates queues every 30 minutes and the rest about every 10 (classes.md 3, 8). So
each is evaluated here on such a grid of the clock, and an instant sees the last evaluation: a value is up to 30 or 10
minutes old, and ``timestamp`` says when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.engines import INT, collect, narrow
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.times import rounded

SITES_EVERY, USERS_EVERY = "30m", "10m"
"""How often queues, and users, tasks and shares are evaluated."""
PROGRESS = ("files", "datasets", "jobs")
"""Tables that tell the progress of tasks."""


@dataclass(frozen=True)
class Ticks:
    """The times of evaluation, ``snapshot, at``, that instants see: ``snapshot, at, tick`` (its number), ``timestamp``."""

    instants: pl.DataFrame
    ticks: pl.DataFrame

    @classmethod
    def of(cls, instants: pl.DataFrame, every: str) -> Ticks:
        """Round instants down to a grid of the clock."""
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
    status_log: Any,
    rules: classification.ClassRules | None = None,
) -> pl.DataFrame:
    """Rate the queues: ``snapshot, computingsite, resource_type, class`` (null: not classified), ``timestamp``, sorted.

    Unless every job is in the status log, waits are those of the jobs' own times (switch ``wait_time``).

    Source: classes.md 1 to 3.
    """
    at = Ticks.of(instants, SITES_EVERY)
    rules = classification.ClassRules() if rules is None else rules
    if status_log is not None and not covered(jobs, status_log):
        rules = classification.ClassRules(**{**rules.to_dict(), "wait_time": "recorded"})
    result = classification.site_classes_at(
        jobs, queues, status_log=status_log, at=at.ticks, rules=rules
    )
    return at.seen(result.classes, "computingsite", "resource_type", "class")


def users(
    jobs: Any, rated: pl.DataFrame, instants: pl.DataFrame, *, status_log: Any
) -> dict[str, pl.DataFrame]:
    """Return what users occupy at each evaluation, and the classes of queues then (classes.md 4).

    ``slots`` by queue, see :func:`brokerlab.lifecycle.classification.user_slots`, and ``rated``.
    """
    at = Ticks.of(instants, USERS_EVERY)
    slots = classification.user_slots(jobs, status_log=status_log, at=at.ticks)
    # instants of one tick lie in the same half hour and see the same classes
    first = at.instants.unique("tick", keep="first", maintain_order=True)
    known = first.select("snapshot", "tick").join(rated, on="snapshot").drop("snapshot")
    return {"slots": slots, "rated": known.rename({"tick": "snapshot"})}


def user_ratings(at: Ticks, usage: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Return what is left to the users of tasks (contract ``UserEval``), sorted.

    ``usage`` is by evaluation, ``units`` are ``snapshot, username`` (as in ``produsername``), ``origusername`` (name of the
    row; null: ``username``).
    """
    seen = at.seen(usage, "produsername", "rem_slots_a", "rem_slots_b")
    names = units.select(
        "snapshot", produsername="username", user=pl.coalesce("origusername", "username")
    )
    joined = names.drop_nulls().unique().join(seen, on=["snapshot", "produsername"])
    columns = ["snapshot", "user", "rem_slots_a", "rem_slots_b", "timestamp"]
    return joined.select(columns).sort(columns)


def share_ratings(
    jobs: Any, shares: pl.DataFrame, instants: pl.DataFrame, *, status_log: Any
) -> pl.DataFrame:
    """Hold what runs in each share against its target (contract ``GshareUsage``; classes.md 7)."""
    at = Ticks.of(instants, USERS_EVERY)
    stats = classification.share_job_stats(jobs, status_log=status_log, at=at.ticks)
    result = classification.share_usage(shares, stats).usage
    return at.seen(result, "gshare", "usage_perc", "eqiv_usage_perc")


def task_ratings(
    at: Ticks, usage: pl.DataFrame, basis: Mapping[str, pl.DataFrame], pairs: pl.DataFrame, *,
    config: Config, rules: classification.ClassRules | None,
) -> pl.DataFrame:  # fmt: skip
    """Return the classes of the tasks asked for, ``pairs``, under thresholds (contract ``TaskClass``), sorted.

    A task that was not active at its evaluation, e.g. before it began, has no row.
    """
    result = classification.task_classes(
        basis["states"], basis.get("progress"), usage, at=at.ticks, config=config, rules=rules
    ).classes
    seen = at.seen(result, "jeditaskid", "class")
    theirs = seen.join(pairs, on=["jeditaskid", "snapshot"], how="semi")
    return theirs.sort("snapshot", "jeditaskid")


def active_tasks(
    tables: Mapping[str, Any], pairs: pl.DataFrame, at: Ticks
) -> dict[str, pl.DataFrame]:
    """Return the tasks to be brokered that are active at each evaluation, ``states``, and their ``progress`` where it is known.

    Without one of ``files``, ``datasets``, ``jobs`` among the tables it is not.

    Source: classes.md 5.
    """
    ids = pairs["jeditaskid"].unique().to_list()
    own = {
        name: nw.from_native(table).lazy().filter(nw.col("jeditaskid").is_in(ids)).to_native()
        for name, table in tables.items()
    }
    states = classification.task_states(
        own["tasks"], status_log=own.get("task_status_log"), at=at.ticks
    )
    asked = pairs.join(at.instants.select("snapshot", "tick"), on="snapshot")
    wanted = asked.select("jeditaskid", snapshot="tick").unique()
    active = states.join(wanted, on=["jeditaskid", "snapshot"], how="semi")
    if active.height and all(name in own for name in PROGRESS):
        progress = classification.task_progress(active, *(own[name] for name in PROGRESS))
        return {"states": active, "progress": progress}
    return {"states": active}


def covered(jobs: Any, status_log: Any) -> bool:
    """Whether every job has an entry in the status log."""
    ids = {"pandaid": INT}
    table = narrow(jobs, "jobs", ids, ("pandaid",))
    log = narrow(status_log, "job_status_log", ids, ("pandaid",))
    return collect(table.join(log, on="pandaid", how="anti").head(1)).is_empty()
