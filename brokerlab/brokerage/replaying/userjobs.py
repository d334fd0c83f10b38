"""Jobs of users at the instants: by queue and share, and in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.analysis_jobs.lookups import QUEUED
from brokerlab.brokerage.replaying import states
from brokerlab.brokerage.replaying.changes import Changes, job_changes, log_of
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.engines import narrow

LABEL = "user"
"""``prodsourcelabel`` of the jobs that count for users."""
HELD = "throttled"
"""Counts as queued too where all jobs of a user are added up."""
NOT_YET = ("pending", "waiting")
"""Jobs in these statuses are in none of the tables that are read by queue."""
_JOBS = {
    **states.JOB_COLUMNS,
    **read_as("jobs", "prodsourcelabel", "processingtype", "produsername", "workinggroup"),
}
_BY = ("computingsite", "gshare", "produsername", "workinggroup", "merging")
_STATUS = pl.col("jobstatus")


def user_changes(
    jobs: Any, status_log: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> Changes:
    """Add up the changes of status of users' jobs by ``computingsite, gshare, produsername, workinggroup, merging`` (0/1)."""
    required = (*states.JOB_REQUIRED, "prodsourcelabel", "produsername")
    table = narrow(jobs, "jobs", _JOBS, required)
    log = log_of(status_log, table)
    own = table.filter((nw.col("prodsourcelabel") == LABEL) & ~nw.col("produsername").is_null())
    marked = own.with_columns(merging=nw.when(states.MERGES).then(nw.lit(1)).otherwise(nw.lit(0)))
    return job_changes(marked, log, clock, _BY).by_parent(parents)


def user_job_stats(changes: Changes, shares: pl.DataFrame) -> pl.DataFrame:
    """Count the jobs of each user at each queue, merge jobs aside, of ``shares``: ``snapshot``, ``gshare``.

    Returns:
        Contract ``UserJobStats``, sorted by key: a row for every user with a live job there, queued, running or in
        another status (such as holding); pending and waiting ones do not count.

    Source:
        analysis-jobs.md 1 (D20).
    """
    keys = ["snapshot", "computingsite", "gshare", "produsername"]
    meant = (pl.col("merging") == 0) & ~_STATUS.is_in(NOT_YET)
    result = changes.at_instants([*keys[1:], "jobstatus"], ["njobs"], meant, only=shares)
    counted = result.drop_nulls("computingsite").group_by(keys)
    return counted.agg(nqueue=_sum("njobs", QUEUED), nrunning=_sum("njobs", ("running",))).sort(
        keys
    )


def user_totals(changes: Changes, units: pl.DataFrame) -> pl.DataFrame:
    """Add up the jobs and cores of users and of working groups over all queues; null and 0 cores count as 1.

    ``units``: ``snapshot, username`` (as in ``produsername``), ``origusername`` (name of the user's row; null:
    ``username``), ``workinggroup``, of the tasks to be brokered.

    Returns:
        Contract ``UserTotals``, sorted: one row per instant and user (of jobs without working group), and one per
        instant and group that a task has; 0 where there are no jobs.
    """
    users = units.filter(pl.col("workinggroup").is_null()).drop_nulls("username")
    named = users.select(
        "snapshot", "username", origusername=pl.coalesce("origusername", "username")
    )
    groups = units.select("snapshot", "workinggroup").drop_nulls().unique()
    of_users = _totals(
        changes,
        "produsername",
        named.unique().rename({"username": "produsername"}),
        pl.col("workinggroup").is_null(),
    )
    of_groups = _totals(changes, "workinggroup", groups, pl.lit(value=True))
    numbers = ["nrunjobs", "nqueuedjobs", "nruncores", "nqueuedcores"]
    columns = ["snapshot", "origusername", "workinggroup", *numbers]
    none = pl.lit(None, pl.String)
    return pl.concat(
        [
            of_users.with_columns(workinggroup=none).select(columns),
            of_groups.with_columns(origusername=none).select(columns),
        ]
    ).sort(columns)


def _totals(changes: Changes, name: str, units: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    keys = ["snapshot", name]
    result = changes.at_instants(
        [name, "jobstatus"], ["njobs", "ncores"], where, only=units.select(keys)
    )
    waiting = (*QUEUED, HELD)
    sums = result.group_by(keys).agg(
        nrunjobs=_sum("njobs", ("running",)),
        nqueuedjobs=_sum("njobs", waiting),
        nruncores=_sum("ncores", ("running",)),
        nqueuedcores=_sum("ncores", waiting),
    )
    joined = units.join(sums, on=keys, how="left")
    return joined.with_columns(pl.col(n).fill_null(0) for n in sums.columns if n not in keys)


def _sum(measure: str, statuses: tuple[str, ...]) -> pl.Expr:
    return pl.col(measure).filter(_STATUS.is_in(statuses)).sum()
