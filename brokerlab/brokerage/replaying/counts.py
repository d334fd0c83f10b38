"""Numbers of jobs at the instants, of users too, and the tables of the brokerages made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.archive.contracts.jobs import NOT_ACTIVATED
from brokerlab.brokerage.analysis_jobs.lookups import QUEUED
from brokerlab.brokerage.replaying import changes
from brokerlab.brokerage.replaying.changes import (
    MEASURES,
    Changes,
    Side,
    by_parent,
    job_changes,
    log_of,
)
from brokerlab.brokerage.replaying.clock import Clock, as_of
from brokerlab.engines import TIME, collect, narrow

UNTOLD = (
    "pending, waiting and defined count as assigned, sent and starting as activated, merging, stagein and stageout "
    "as running or holding"
)
"""Statuses that times cannot tell apart."""


@dataclass(frozen=True)
class Counts:
    """Numbers of jobs by group at every instant, kept as changes until they are asked for.

    Attributes:
        changes: Changes by ``changes.GROUP`` and ``jobstatus``.
        notes: What was approximated, with counts.
    """

    changes: Changes
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        jobs: Any,
        status_log: Any,
        instants: pl.DataFrame,
        *,
        parents: Mapping[str, str] | None = None,
    ) -> Counts:
        """Add up the changes of status of all jobs in the engine, once for all instants.

        The status is that of the last log entry at or before the instant. Jobs without log are counted by their times
        (see :mod:`~brokerlab.brokerage.replaying.changes`: some statuses cannot be told apart then), under the name of the parent.
        """
        clock = Clock.of(instants)
        table = narrow(jobs, "jobs", changes.JOB_COLUMNS, changes.JOB_REQUIRED)
        log = log_of(status_log, table)
        notes = _notes(table, log)
        return cls(job_changes(table, log, clock).by_parent(parents), notes)

    def table(self, *by: str, where: pl.Expr | None = None, measure: str = "njobs") -> pl.DataFrame:
        """Return the number of jobs, or the measure, by columns of ``changes.GROUP`` and ``jobstatus``; no row for 0; sorted."""
        return self.changes.at_instants(by, (measure,), where)


def job_tables(
    counts: Counts, resource_work_queues: pl.DataFrame, *, shares: pl.DataFrame | None = None
) -> dict[str, pl.DataFrame]:
    """Make the brokerage's statistics tables from the counts.

    ``shares`` (``snapshot``, ``gshare``): what ``job_stats_rt`` is read for, by share; None keeps all.

    Returns:
        ``job_stats``, ``job_stats_rt`` (by share; and by name of the resource work queue), ``job_stats_workqueue``,
        ``job_stats_gshare_only``, ``transferring_by_nucleus``, ``core_stats``, ``diskio_usage``, each with
        ``snapshot``, sorted by key.
    """
    ids = resource_work_queues["workqueue_id"].to_list()
    resource = pl.col("workqueue_id").is_in(ids).fill_null(value=False)
    site, status = "computingsite", "jobstatus"
    table, everything = counts.table, counts.table(site, "gshare", status)
    columns = ["gshare", site, "resource_type", status]
    types = [counts.changes.at_instants(columns, ["njobs"], only=shares)]
    if ids:
        queued = table("workqueue_id", site, "resource_type", status, where=resource)
        names = resource_work_queues.select(
            pl.col("workqueue_id").cast(pl.Int64), gshare=pl.col("queue_name").cast(pl.String)
        )
        types.append(queued.join(names, on="workqueue_id").select(types[0].columns))
    moving = pl.col(status) == "transferring"
    return {
        "job_stats": everything,
        "job_stats_rt": pl.concat(types),
        "job_stats_workqueue": table(site, "workqueue_id", status, where=resource),
        # the same table where no work queue is a resource queue; the brokerage reads it for their tasks only
        "job_stats_gshare_only": table(site, "gshare", status, where=~resource)
        if ids
        else everything.clear(),
        "transferring_by_nucleus": table(
            site, "nucleus", where=moving & pl.col("nucleus").is_not_null()
        ),
        "core_stats": table(
            site, status, where=pl.col(status).is_in(["running", "starting"]), measure="ncores"
        ),
        "diskio_usage": disk_traffic(counts),
    }


def disk_traffic(counts: Counts) -> pl.DataFrame:
    """Return the mean of ``diskio / corecount`` over the running jobs that have one [kB/s per core]."""
    running = pl.col("jobstatus") == "running"
    sums = counts.changes.at_instants(["computingsite"], ("diskio_jobs", "diskio_sum"), running)
    mean = sums["diskio_sum"].to_numpy() / sums["diskio_jobs"].to_numpy() / changes.DISKIO_UNIT
    return sums.select(
        "snapshot", "computingsite", diskio_per_core=pl.Series(mean, dtype=pl.Float64)
    )


def _notes(jobs: nw.LazyFrame[Any], log: nw.LazyFrame[Any] | None) -> tuple[str, ...]:
    """Count the jobs that are read from the log, from times, and not at all."""
    unknown = nw.col("creationtime").is_null() | changes.LAST.is_null()
    total, lost = _sizes(jobs, unknown)
    if log is not None:
        plain = jobs.join(log.select("pandaid").unique(), on="pandaid", how="anti")
        without, lost = _sizes(plain, unknown)
    else:
        without = total
    notes = []
    if without:
        notes.append(
            f"{without:,} of {total:,} jobs have no status log and are counted by their times: {UNTOLD}"
        )
    if lost:
        notes.append(f"{lost:,} jobs without time of creation or end are not counted")
    return tuple(notes)


def _sizes(jobs: nw.LazyFrame[Any], unknown: nw.Expr) -> tuple[int, int]:
    """Count rows, and those of them that a condition holds for."""
    flagged = jobs.select(one=nw.lit(1), bad=nw.when(unknown).then(nw.lit(1)).otherwise(nw.lit(0)))
    total, bad = collect(flagged.select(nw.col("one").sum(), nw.col("bad").sum())).row(0)
    return int(total or 0), int(bad or 0)


MAX_AGE_S = 3600
"""Recorded numbers count while they are younger [s]; before and after, numbers are rebuilt."""
_STATS = read_as(
    "job_stats",
    *("computingsite", "gshare", "workqueue_id", "resource_type", "nucleus", "jobstatus"),
    *("njobs", "prorated_diskio_avg"),
)


def recorded_counts(
    job_stats: Any, instants: pl.DataFrame, *, parents: Mapping[str, str] | None = None
) -> Counts:
    """Read the numbers of jobs from the system's own snapshots, at the instants that these cover.

    All rows of the last snapshot before an instant hold, if it is not older than an hour. Jobs that are not activated yet
    are in a table of their own: where its snapshots are never of the time of the others, each of the two has its last one,
    and instants with both are covered. Cores are not recorded: ``ncores`` is 0.

    Source:
        archive.md section 8; production-jobs.md.
    """
    clock = Clock.of(instants)
    early = nw.col("jobstatus").is_in(NOT_ACTIVATED)
    table = narrow(job_stats, "job_stats", {**_STATS, "ts": TIME}, ("ts", "jobstatus"))
    times = collect(table.select("ts", early=early).unique())
    apart = times["early"].n_unique() > 1 and times["ts"].is_unique().all()
    parts = [
        as_of(
            job_stats, "job_stats", _STATS, clock, entity=[], max_age_s=MAX_AGE_S, where=part, each=True,
        )
        for part in ((early, ~early) if apart else (None,))
    ]  # fmt: skip
    covered = instants
    for part in parts:
        covered = covered.join(part.select("snapshot").unique(), on="snapshot", how="semi")
    held = pl.concat(parts)
    own = Clock.of(covered)
    keys = [*changes.GROUP, "jobstatus"]
    groups = held.select(keys).unique().with_row_index("group")
    numbered = groups.with_columns(pl.col("group").cast(pl.Int32))
    places = pl.DataFrame({"snapshot": own.snapshots}).with_row_index("place")
    rows = held.join(numbered, on=keys, nulls_equal=True).join(places, on="snapshot")
    return Counts(_changes(rows, by_parent(numbered, parents), own), ())


def _changes(rows: pl.DataFrame, groups: pl.DataFrame, clock: Clock) -> Changes:
    """Let each number begin at its instant and end at the next one."""
    traffic = (pl.col("prorated_diskio_avg") * pl.col("njobs") * changes.DISKIO_UNIT).round()
    known = pl.col("prorated_diskio_avg").is_not_null()
    begins = rows.select(
        "group",
        pl.col("place").cast(pl.Int32),
        pl.col("njobs").cast(pl.Int32),
        ncores=pl.lit(0, pl.Int32),
        diskio_jobs=pl.when(known).then("njobs").otherwise(0).cast(pl.Int32),
        diskio_sum=traffic.fill_null(0.0).cast(pl.Int64),
    )
    ends = begins.with_columns(pl.col("place") + 1, *(-pl.col(name) for name in MEASURES))
    both = pl.concat([begins, ends.filter(pl.col("place") < len(clock))])
    return Changes((Side(groups, 1),), both, len(groups), clock)


LABEL = "user"
"""``prodsourcelabel`` of the jobs that count for users."""
HELD = "throttled"
"""Counts as queued too where all jobs of a user are added up."""
NOT_YET = ("pending", "waiting")
"""Jobs in these statuses are in none of the tables that are read by queue."""
_JOBS = {
    **changes.JOB_COLUMNS,
    **read_as("jobs", "prodsourcelabel", "processingtype", "produsername", "workinggroup"),
}
_BY = ("computingsite", "gshare", "produsername", "workinggroup", "merging")
_STATUS = pl.col("jobstatus")


def user_changes(
    jobs: Any, status_log: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> Changes:
    """Add up the changes of status of users' jobs by ``computingsite, gshare, produsername, workinggroup, merging`` (0/1)."""
    required = (*changes.JOB_REQUIRED, "prodsourcelabel", "produsername")
    table = narrow(jobs, "jobs", _JOBS, required)
    log = log_of(status_log, table)
    own = table.filter((nw.col("prodsourcelabel") == LABEL) & ~nw.col("produsername").is_null())
    marked = own.with_columns(merging=nw.when(changes.MERGES).then(nw.lit(1)).otherwise(nw.lit(0)))
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
