"""Facts that the analysis job brokerage looks up in counts of jobs, users, failures, in classes and quotas.

They may change from cycle to cycle. Everything is lazy until all of it is collected at once: these are many small steps.
"""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.analysis_jobs.lookups import SLOTS
from brokerlab.brokerage.analysis_jobs.task_facts import CLASS_A
from brokerlab.brokerage.analysis_jobs.throttle import task_classes
from brokerlab.brokerage.engine.lookup import Known, Lookup
from brokerlab.brokerage.inputs.valid import KEY as TASK
from brokerlab.brokerage.inputs.valid import valid_for
from brokerlab.brokerage.production_jobs.lookups import PARENT
from brokerlab.brokerage.production_jobs.state import (
    at_parent,
    diskio,
    of_parents,
    pilots,
    wide,
    workers,
)

QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses of ``nq``."""
ENDED_TABLES = ("failure_counts", "sites_used")
SHARE = ("snapshot", "t_gshare")
ENDED = ("failed", "closed", "finished")


def of_state() -> tuple[Lookup, ...]:
    """Return what changes from cycle to cycle."""
    nothing = {f"x_{status}": 0 for status in ENDED} | {"x_used": False}
    mine = {"u_queued": 0, "u_running": 0, "u_known": False}
    jobs, users = ("job_stats",), ("user_job_stats",)
    return (
        Lookup(task=SHARE, facts={"t_grand": None}, rows=_grand, tables=jobs),
        Lookup(
            task=TASK, facts={"t_class": CLASS_A}, rows=_class, tables=("task_class",), reads=("at",)
        ),
        of_parents("site_activity", {"s_pilots": 0}, _activity),
        of_parents("worker_stats", {"s_workers": 0}, workers),
        of_parents("job_stats", {"s_running": 0, "s_waiting": 0, "s_starting": 0}, _at_queue),
        of_parents("diskio_usage", {"s_diskio": 0.0}, diskio),
        of_parents("to_run_rate", {"s_rate": 0.0}, _rate),
        of_parents("site_class", {"s_class": 0}, _site_class),
        Lookup(
            task=("t",), place=PARENT, facts={"x_over_quota": False}, rows=_quota,
            tables=("quota",), made=("endpoints",), reads=("snapshot", "t_unit"),
        ),
        Lookup(task=SHARE, place=PARENT, facts=_counts("x_"), rows=_share, tables=jobs),
        Lookup(task=SLOTS, place=PARENT, facts=_counts("x_rt_"), rows=_types, tables=jobs),
        Lookup(
            task=SHARE, place=PARENT, facts={"x_users": 0, "x_users_running": 0}, rows=_users,
            tables=users,
        ),
        Lookup(task=(*SHARE, "t_user"), place=PARENT, facts=mine, rows=_mine, tables=users),
        Lookup(
            task=("t",), place=PARENT, facts=nothing, rows=_ended, tables=ENDED_TABLES, reads=TASK
        ),
    )  # fmt: skip


def _counts(prefix: str) -> dict[str, int]:
    return {f"{prefix}{name}": 0 for name in ("nr", "nq", "starting")}


def _grand(known: Known) -> pl.LazyFrame:
    """Return waiting per running job of the task's share over all queues (4.13)."""
    status = pl.col("jobstatus")
    sums = known.tables["job_stats"].group_by("snapshot", t_gshare="gshare").agg(
        waiting=pl.col("njobs").filter(status.is_in(QUEUED)).sum(),
        running=pl.col("njobs").filter(status == "running").sum(),
    )  # fmt: skip
    ratio = pl.when(pl.col("running") > 0).then(pl.col("waiting") / pl.col("running"))
    return sums.select(*SHARE, t_grand=ratio)


def _class(known: Known) -> pl.LazyFrame:
    return task_classes(known).rename({"class": "t_class"})


def _activity(known: Known) -> pl.LazyFrame:
    return at_parent(known, "site_activity").agg(s_pilots=pilots())  # type: ignore[no-any-return]


def _at_queue(known: Known) -> pl.LazyFrame:
    jobs = _wide(known, ("snapshot", "parent"))
    return jobs.select(
        "snapshot", "parent", s_running="running", s_waiting=pl.sum_horizontal(QUEUED),
        s_starting="starting",
    )  # fmt: skip


def _wide(known: Known, keys: tuple[str, ...]) -> pl.LazyFrame:
    names = {"computingsite": "parent", "gshare": "t_gshare", "resource_type": "t_resource_type"}
    return wide(known.tables["job_stats"].rename(names), keys, ("running", *QUEUED))


def _rate(known: Known) -> pl.LazyFrame:
    return at_parent(known, "to_run_rate").agg(s_rate=pl.col("jobs_per_hour").last())  # type: ignore[no-any-return]


def _site_class(known: Known) -> pl.LazyFrame:
    return at_parent(known, "site_class").agg(s_class=pl.col("class").last())  # type: ignore[no-any-return]


def _quota(known: Known) -> pl.LazyFrame:
    """Return the queues whose default output endpoint is over the local quota of the task's user or group."""
    over = known.tables["quota"].select("snapshot", "username", name="endpoints_over_local_quota")
    over = over.explode("name").drop_nulls("name")
    who, of = known.tasks.select("t", "snapshot", "t_unit"), ["snapshot", "username"]
    found = pl.concat(
        [
            who.join(over, left_on=["snapshot", "t_unit"], right_on=of).select("t", "name"),
            who.join(over.filter(pl.col("username").is_null()), on="snapshot").select("t", "name"),
        ]
    )
    defaults = known.made["endpoints"].lazy().select("parent", name="e_out_name").unique()
    rows = found.join(defaults, on="name").select("t", "parent").unique()
    return rows.with_columns(x_over_quota=pl.lit(value=True))


def _share(known: Known) -> pl.LazyFrame:
    return _of_jobs(_wide(known, (*SHARE, "parent")), "x_")


def _types(known: Known) -> pl.LazyFrame:
    return _of_jobs(_wide(known, (*SLOTS, "parent")), "x_rt_")


def _of_jobs(counts: pl.LazyFrame, prefix: str) -> pl.LazyFrame:
    queued = pl.sum_horizontal(QUEUED)
    sums = {"nr": pl.col("running"), "nq": queued, "starting": pl.col("starting")}
    return counts.with_columns(**{f"{prefix}{name}": value for name, value in sums.items()})


def _user_jobs(known: Known) -> pl.LazyFrame:
    return known.tables["user_job_stats"].select(
        "snapshot", "nqueue", "nrunning", parent="computingsite", t_gshare="gshare",
        t_user="produsername",
    )  # fmt: skip


def _users(known: Known) -> pl.LazyFrame:
    return _user_jobs(known).group_by(*SHARE, "parent").agg(
        x_users=pl.col("t_user").n_unique().cast(pl.Int64), x_users_running=pl.col("nrunning").sum()
    )  # fmt: skip


def _mine(known: Known) -> pl.LazyFrame:
    return _user_jobs(known).group_by(*SHARE, "t_user", "parent").agg(
        u_queued=pl.col("nqueue").sum(), u_running=pl.col("nrunning").sum(),
        u_known=pl.lit(value=True),
    )  # fmt: skip


def _ended(known: Known) -> pl.LazyFrame:
    """Return the jobs of the task that ended lately at a parent, and whether the task used it."""
    rows, used = (
        valid_for(known.tasks.select("t", *TASK), known.tables[name]) for name in ENDED_TABLES
    )
    ended = rows.group_by("t", parent="computingsite").agg(
        pl.col("njobs").filter(pl.col("jobstatus") == status).sum().alias(f"x_{status}")
        for status in ENDED
    )
    there = used.select("t", parent="computingsite").unique()
    there = there.with_columns(x_used=pl.lit(value=True))
    return ended.join(there, on=["t", "parent"], how="full", coalesce=True)
