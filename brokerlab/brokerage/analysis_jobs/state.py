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
from brokerlab.brokerage.production_jobs.state import DISKIO, PILOTS, WORKERS, Sums, jobs_in, summed

QUEUED = ("defined", "assigned", "activated", "starting")
"""Statuses of ``nq``."""
ENDED_TABLES = ("failure_counts", "sites_used")
SHARE = ("snapshot", "t_gshare")
ENDED = ("failed", "closed", "finished")


def of_state() -> tuple[Lookup, ...]:
    """Return what changes from cycle to cycle."""
    nothing = {f"x_{status}": 0 for status in ENDED} | {"x_used": False}
    waiting, running = jobs_in(*QUEUED), jobs_in("running")
    at_queue = {
        "s_running": (0, running),
        "s_waiting": (0, waiting),
        "s_starting": (0, jobs_in("starting")),
    }
    users = {
        "x_users": (0, pl.col("produsername").n_unique().cast(pl.Int64)),
        "x_users_running": (0, pl.col("nrunning").sum()),
    }
    mine = {
        "u_queued": (0, pl.col("nqueue").sum()),
        "u_running": (0, pl.col("nrunning").sum()),
        "u_known": (False, pl.lit(value=True)),
    }
    # waiting per running job of the task's share over all queues (4.13)
    grand: Sums = {"t_grand": (None, pl.when(running > 0).then(waiting / running))}
    return (
        summed("job_stats", grand, SHARE, place=()),
        Lookup(
            task=TASK, facts={"t_class": CLASS_A}, rows=_class, tables=("task_class",), reads=("at",)
        ),
        summed("site_activity", PILOTS),
        WORKERS,
        summed("job_stats", at_queue),
        DISKIO,
        summed("to_run_rate", {"s_rate": (0.0, pl.col("jobs_per_hour").last())}),
        summed("site_class", {"s_class": (0, pl.col("class").last())}),
        Lookup(
            task=("t",), place=PARENT, facts={"x_over_quota": False}, rows=_quota,
            tables=("quota",), made=("endpoints",), reads=("snapshot", "t_unit"),
        ),
        summed("job_stats", _counts("x_"), SHARE),
        summed("job_stats", _counts("x_rt_"), SLOTS),
        summed("user_job_stats", users, SHARE),
        summed("user_job_stats", mine, (*SHARE, "t_user")),
        Lookup(
            task=("t",), place=PARENT, facts=nothing, rows=_ended, tables=ENDED_TABLES, reads=TASK
        ),
    )  # fmt: skip


def _counts(prefix: str) -> Sums:
    sums = {"nr": jobs_in("running"), "nq": jobs_in(*QUEUED), "starting": jobs_in("starting")}
    return {f"{prefix}{name}": (0, sum_) for name, sum_ in sums.items()}


def _class(known: Known) -> pl.LazyFrame:
    return task_classes(known).rename({"class": "t_class"})


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
