"""From one plain count of jobs to the tables of a state."""

from __future__ import annotations

import dataframely as dy
import polars as pl

from brokerlab.brokerage.replay.counts import statistics
from brokerlab.brokerage.replay.work import large_types
from brokerlab.frames import prepared


class _Counts(dy.Schema):
    """Numbers of jobs."""

    world = dy.Int64(nullable=False)
    jeditaskid = dy.Int64(nullable=True)
    computingsite = dy.String(nullable=False)
    gshare = dy.String(nullable=True)
    workqueue_id = dy.Int64(nullable=True)
    resource_type = dy.String(nullable=True)
    nucleus = dy.String(nullable=True)
    jobstatus = dy.String(nullable=False)
    njobs = dy.Int64(nullable=False)
    ncores = dy.Int64(nullable=True)


def tables_of_counts(
    counts: pl.DataFrame, resource_work_queues: pl.DataFrame | None = None, *, stage: str = "jobs"
) -> dict[str, pl.DataFrame]:
    """Make those tables of a state that are counts of jobs.

    Args:
        counts: ``world, computingsite`` (parent name), ``gshare, workqueue_id, resource_type, nucleus, jobstatus,
            njobs`` [jobs], ``ncores`` [cores], perhaps ``jeditaskid``; rows are added up, absent columns are null.
        resource_work_queues: ``workqueue_id``, ``queue_name`` of the work queues that are resource queues.
        stage: ``jobs`` (production) or ``analysis``.

    Returns:
        Name to frame, for ``standing.decide``: of production ``job_stats, job_stats_rt, job_stats_workqueue,
        job_stats_gshare_only, transferring_by_nucleus, core_stats``, and ``task_resource_types`` where ``jeditaskid`` is
        given; of analysis ``job_stats``.

    Raises:
        SchemaError: Missing columns, values of another type, nulls where none is allowed.

    Source:
        production-job-brokerage.md 1.6.

    Example:
        >>> counts = pl.DataFrame({"world": 0, "computingsite": "Q", "gshare": "A", "jobstatus": "running", "njobs": [2, 3]})
        >>> tables_of_counts(counts)["job_stats"].row(0)
        (0, 'Q', 'A', 'running', 5)
    """
    rows = prepared({"counts": counts}, {"counts": _Counts})["counts"]

    def table(*by: str, where: pl.Expr | None = None, measure: str = "njobs") -> pl.DataFrame:
        kept = rows if where is None else rows.filter(where)
        keys = ["world", *by]
        found = kept.group_by(keys).agg(pl.col(measure).sum())
        return found.filter(pl.col(measure) > 0).sort(keys)

    if stage == "analysis":
        return {"job_stats": table("computingsite", "gshare", "resource_type", "jobstatus")}
    none = pl.DataFrame(schema={"workqueue_id": pl.Int64, "queue_name": pl.String})
    found = statistics(table, none if resource_work_queues is None else resource_work_queues)
    if "jeditaskid" in counts.columns:
        types = table("jeditaskid", "computingsite", "resource_type").drop_nulls("jeditaskid")
        found["task_resource_types"] = large_types(types, "world")
    return found
