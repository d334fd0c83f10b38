"""Facts of user tasks and queues that change from cycle to cycle: counts of jobs, users, failures, classes, quota.

Everything is lazy until all of it is collected at once: these are many small steps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from brokerlab.brokerage.analysis_jobs.sides import QUEUED, TASK_KEYS
from brokerlab.brokerage.analysis_jobs.task_facts import CLASS_A
from brokerlab.brokerage.analysis_jobs.throttle import CLASS_AGE_MIN, fresh
from brokerlab.brokerage.production_jobs.changing import LazySide, keyed, of_parents
from brokerlab.brokerage.production_jobs.counts import wide
from brokerlab.brokerage.production_jobs.ids import Ids
from brokerlab.brokerage.production_jobs.sides import of_tasks

Tables = Mapping[str, pl.LazyFrame]

PARTS: dict[str, dict[str, Any]] = {
    "site_activity": {"s_pilots": 0},
    "worker_stats": {"s_workers": 0},
    "job_stats": {"s_running": 0, "s_waiting": 0, "s_starting": 0},
    "diskio_usage": {"s_diskio": 0.0},
    "to_run_rate": {"s_rate": 0.0},
    "site_class": {"s_class": 0},
}
"""Table -> what it tells of a parent at an instant, whatever the task, and what holds without a row."""
NO_JOBS = {f"{prefix}{name}": 0 for prefix in ("x_", "x_rt_") for name in ("nr", "nq", "starting")}
NO_USERS = {"x_users": 0, "x_users_running": 0}
NOT_THERE = {"u_queued": 0, "u_running": 0, "u_known": False}
NOTHING_ENDED = {"x_failed": 0, "x_closed": 0, "x_finished": 0, "x_used": False}
IN_QUOTA = {"x_over_quota": False}
ENDED_TABLES = ("failure_counts", "sites_used")
TABLES = (*PARTS, "user_job_stats", *ENDED_TABLES, "quota")
"""Every table that these facts of pairs are made from."""
OF_TABLES: dict[str, dict[str, Any]] = {
    "job_stats": NO_JOBS,
    "user_job_stats": NO_USERS | NOT_THERE,
    **dict.fromkeys(ENDED_TABLES, NOTHING_ENDED),
    "quota": IN_QUOTA,
}


def facts_of(tables: Collection[str]) -> set[str]:
    """Return the names of the facts of pairs that are made from some of the tables."""
    return {
        name
        for table in tables
        for values in (PARTS.get(table, {}), OF_TABLES.get(table, {}))
        for name in values
    }


def changing(
    tasks: pl.LazyFrame, state: Tables, ids: Ids, places: pl.DataFrame,
    tables: Collection[str] | None = None,
) -> tuple[LazySide, ...]:  # fmt: skip
    """Return the sides of what changes from cycle to cycle; see :func:`~..production_jobs.changing.run_all`.

    Args:
        tasks: Facts of tasks with their numbers.
        state: The input tables, state tables for every snapshot.
        ids: The numbers.
        places: ``parent, e_out_name``, see :func:`~.endpoints.endpoint_facts`.
        tables: Only what is made from these tables; null: all of :data:`TABLES`.
    """
    wanted = set(TABLES if tables is None else tables)
    sides: list[LazySide] = []
    if wanted & PARTS.keys():
        sides.append(_state(tasks, state, ids, sorted(wanted & PARTS.keys())))
    if wanted & {"quota"}:
        sides.append(_quota(tasks, state, places, ids))
    if wanted & {"job_stats"}:
        sides += _shares(tasks, state, ids)
    if wanted & {"user_job_stats"}:
        sides += _users(tasks, state, ids)
    if wanted & set(ENDED_TABLES):
        sides.append(_ended(tasks, state, ids))
    return tuple(sides)


def with_grand(tasks: pl.LazyFrame, state: Tables) -> pl.LazyFrame:
    """Add ``t_grand``, waiting per running job of the task's share over all queues (4.13)."""
    status = pl.col("jobstatus")
    sums = state["job_stats"].group_by("snapshot", t_gshare="gshare").agg(
        waiting=pl.col("njobs").filter(status.is_in(QUEUED)).sum(),
        running=pl.col("njobs").filter(status == "running").sum(),
    )  # fmt: skip
    ratio = pl.when(pl.col("running") > 0).then(pl.col("waiting") / pl.col("running"))
    shares = sums.select("snapshot", "t_gshare", t_grand=ratio)
    on = ["snapshot", "t_gshare"]
    return tasks.join(shares, on=on, how="left", nulls_equal=True, maintain_order="left")


def with_class(tasks: pl.LazyFrame, state: Tables) -> pl.LazyFrame:
    """Add ``t_class``, the class of the task where it is not out of date (4.13)."""
    key = ["jeditaskid", "snapshot"]
    rows = state["task_class"].unique(key, keep="last", maintain_order=True)
    known = rows.select(*key, "timestamp", t_class="class")
    young = pl.when(fresh(CLASS_AGE_MIN)).then("t_class").fill_null(CLASS_A)
    joined = tasks.join(known, on=key, how="left", maintain_order="left")
    return joined.with_columns(young.alias("t_class")).drop("timestamp")


def _part(name: str, state: Tables) -> pl.LazyFrame:
    """Return what a table of :data:`PARTS` tells."""
    rows = state[name]
    if name == "worker_stats":
        seen = rows.filter(pl.col("status").is_in(["running", "submitted"]))
        of = seen.group_by("snapshot", parent="panda_queue")
        return of.agg(s_workers=pl.col("n_workers").fill_null(0).sum())
    if name == "job_stats":
        jobs = wide(
            rows.rename({"computingsite": "parent"}), ["snapshot", "parent"], ("running", *QUEUED)
        )
        return jobs.select(
            *("snapshot", "parent"),
            s_running="running",
            s_waiting=pl.sum_horizontal(QUEUED),
            s_starting="starting",
        )
    of_site = rows.group_by("snapshot", parent="computingsite", maintain_order=True)
    facts = {
        "site_activity": pl.col("getjob").fill_null(0).sum()
        + pl.col("updatejob").fill_null(0).sum(),
        "diskio_usage": pl.col("diskio_per_core").last(),
        "to_run_rate": pl.col("jobs_per_hour").last(),
        "site_class": pl.col("class").last(),
    }
    (column,) = PARTS[name]
    return of_site.agg(facts[name].alias(column))


def _state(tasks: pl.LazyFrame, state: Tables, ids: Ids, names: Collection[str]) -> LazySide:
    """Return what is true of a parent at an instant, whatever the task."""
    missing = {fact: value for name in names for fact, value in PARTS[name].items()}
    return of_parents([_part(name, state) for name in names], tasks, ids, missing)


def _quota(tasks: pl.LazyFrame, state: Tables, places: pl.DataFrame, ids: Ids) -> LazySide:
    """Return the queues whose default output endpoint is over the local quota of the task's user or group."""
    over = state["quota"].select("snapshot", "username", name="endpoints_over_local_quota")
    over = over.explode("name").drop_nulls("name")
    who = tasks.select("t", "snapshot", "t_unit")
    found = pl.concat(
        [
            who.join(over, left_on=["snapshot", "t_unit"], right_on=["snapshot", "username"]).select("t", "name"),
            who.join(over.filter(pl.col("username").is_null()), on="snapshot").select("t", "name"),
        ]
    )  # fmt: skip
    defaults = places.lazy().select("parent", name="e_out_name").unique()
    rows = found.join(defaults, on="name").select("t", "parent").unique()
    kept = keyed(rows, ids).with_columns(x_over_quota=pl.lit(value=True))
    return LazySide("t", "p_id", kept, IN_QUOTA)


def _shares(tasks: pl.LazyFrame, state: Tables, ids: Ids) -> tuple[LazySide, LazySide]:
    """Return the jobs of the task's share at a parent, and those of its resource type too."""
    stats = state["job_stats"].rename({"computingsite": "parent", "gshare": "t_gshare"})
    found = []
    for number, prefix, more in (("t_share", "x_", []), ("t_types", "x_rt_", ["resource_type"])):
        renamed = {"resource_type": "t_resource_type"} if more else {}
        keys = ["snapshot", "parent", "t_gshare", *more]
        counts = wide(stats, keys, ("running", *QUEUED)).rename(renamed)
        on = list(TASK_KEYS[number])
        wanted = tasks.select(number, *on).unique()
        rows = wanted.join(counts, on=on, nulls_equal=True).select(
            number, "parent",
            **{
                f"{prefix}nr": pl.col("running"),
                f"{prefix}nq": pl.sum_horizontal(QUEUED),
                f"{prefix}starting": pl.col("starting"),
            },
        )  # fmt: skip
        missing = {f"{prefix}{name}": 0 for name in ("nr", "nq", "starting")}
        found.append(LazySide(number, "p_id", keyed(rows, ids), missing))
    return found[0], found[1]


def _users(tasks: pl.LazyFrame, state: Tables, ids: Ids) -> tuple[LazySide, LazySide]:
    """Return the users of the task's share at a parent, and the jobs of the task's own user."""
    stats = state["user_job_stats"].select(
        "snapshot", "nqueue", "nrunning", parent="computingsite", t_gshare="gshare",
        t_user="produsername",
    )  # fmt: skip
    sums = stats.group_by("snapshot", "parent", "t_gshare").agg(
        x_users=pl.col("t_user").n_unique().cast(pl.Int64), x_users_running=pl.col("nrunning").sum()
    )
    mine = stats.group_by("snapshot", "parent", "t_gshare", "t_user").agg(
        u_queued=pl.col("nqueue").sum(), u_running=pl.col("nrunning").sum(), u_known=pl.lit(value=True)
    )  # fmt: skip
    found = []
    for number, rows, missing in (("t_share", sums, NO_USERS), ("t_mine", mine, NOT_THERE)):
        on = list(TASK_KEYS[number])
        wanted = tasks.select(number, *on).unique()
        kept = wanted.join(rows, on=on, nulls_equal=True).select(number, "parent", *missing)
        found.append(LazySide(number, "p_id", keyed(kept, ids), missing))
    return found[0], found[1]


def _ended(tasks: pl.LazyFrame, state: Tables, ids: Ids) -> LazySide:
    """Return the jobs of the task that ended lately at a parent, and whether the task used it."""
    rows = of_tasks(state["failure_counts"], tasks, "computingsite")
    ended = rows.group_by("t", "parent").agg(
        pl.col("njobs").filter(pl.col("jobstatus") == status).sum().alias(f"x_{status}")
        for status in ("failed", "closed", "finished")
    )
    used = of_tasks(state["sites_used"], tasks, "computingsite").select("t", "parent").unique()
    both = ended.join(
        used.with_columns(x_used=pl.lit(value=True)), on=["t", "parent"], how="full", coalesce=True
    )
    filled = both.with_columns(
        pl.col(name).fill_null(value) for name, value in NOTHING_ENDED.items()
    )
    return LazySide("t", "p_id", keyed(filled, ids), NOTHING_ENDED)
