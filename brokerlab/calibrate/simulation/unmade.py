"""Jobs that no brokerage has made yet: the files of open tasks that were never used.

The system makes a job once a queue may take it. So the jobs of an archive are those that a setting let through, and what a
setting that starves tasks costs is in none of them: it is in the files that still wait.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.brokerage.replaying.inputs import INPUTS
from brokerlab.brokerage.replaying.work import OPEN

UNMADE = "unmade"
"""What was observed of such a job."""
MERGE = "pmerge"
SCOUT = r"(^|,)sj(,|$)"
"""What ``specialhandling`` of a scout contains."""
_USED = ("jeditaskid", "masterid", "type", "nfiles", "nfilesused")


def unmade_jobs(
    archive: Any, ran: pl.DataFrame, label: str, begin: datetime, end: datetime
) -> pl.DataFrame:
    """Return the jobs that the unused files of open tasks would make.

    They ask for a queue from when their task's scouts were over, or from when its last job was made: nothing but the
    brokerage holds them back then. Those that asked before the beginning are left out: under another setting they would
    not wait any more, and what is asked is what a setting does once it rules. A task's files make as many jobs as those used
    did. They need what the finished jobs of their task needed, one after the other; a task none of whose jobs finished says
    nothing of what others would need.

    Args:
        archive: The archive; without ``datasets`` it does not know which files were used.
        ran: Jobs of the archive that ran.
        label: ``prodsourcelabel`` of the jobs that the brokerage places.
        begin: Of the simulation.
        end: Of it.

    Returns:
        Rows as those of ``ran``: copies of finished jobs with a ``pandaid`` of their own, made (``creationtime``,
        ``readytime``) when they asked; ``reason`` is `UNMADE`.
    """
    none = ran.clear()
    if not archive.has("datasets") or not archive.has("tasks"):
        return none
    datasets, tasks, jobs = (archive.scan(name) for name in ("datasets", "tasks", "jobs"))
    names = tasks.collect_schema().names()
    known = datasets.collect_schema().names()
    if "status" not in names or not set(_USED) <= set(known):
        return none
    priority = pl.col("currentpriority") if "currentpriority" in names else pl.lit(None, pl.Int64)
    files = (
        datasets.filter(pl.col("type").is_in(INPUTS), pl.col("masterid").is_null())
        .group_by("jeditaskid")
        .agg(pl.col("nfiles", "nfilesused").sum())
        .filter(pl.col("nfilesused").is_between(1, pl.col("nfiles") - 1))
    )
    scout = pl.col("specialhandling").fill_null("").str.contains(SCOUT)
    root = pl.col(
        "parentid"
    ).is_null()  # a retry uses no file of its own; one of a scout is a scout
    made = (
        jobs.filter(
            pl.col("prodsourcelabel") == label,
            pl.col("processingtype").fill_null("") != MERGE,
        )
        .group_by("jeditaskid")
        .agg(
            n_made=root.sum().cast(pl.Int64),
            last_made=pl.col("creationtime").filter(root).max(),
            scouted=pl.col("endtime").filter(scout).max(),
            scouts_run=(scout & pl.col("endtime").is_null()).any(),
        )
    )
    rest = (pl.col("nfiles") - pl.col("nfilesused")) * pl.col("n_made") / pl.col("nfilesused")
    waiting = (
        tasks.filter(pl.col("status").is_in(OPEN))
        .select("jeditaskid", task_priority=priority.cast(pl.Int64))
        .join(files, on="jeditaskid")
        .join(made, on="jeditaskid")
        .filter(~pl.col("scouts_run"))
        .select(
            "jeditaskid",
            "task_priority",
            n=rest.round().cast(pl.Int64),
            asked=pl.max_horizontal("last_made", "scouted"),
        )
        .filter(pl.col("asked").is_between(begin, end, closed="left"))
        .collect()
    )
    like = (
        ran.filter(
            pl.col("jobstatus") == "finished", pl.col("processingtype").fill_null("") != MERGE
        )
        .sort("pandaid")
        .group_by("jeditaskid")
        .agg(like="pandaid")
    )
    each: pl.DataFrame = (
        waiting.join(like, on="jeditaskid")
        .filter(pl.col("n") > 0)
        .sort("jeditaskid")
        .with_columns(number=pl.int_ranges("n"))
        .explode("number")
    )
    first = jobs.select(pl.col("pandaid").max()).collect().item() + 1
    return (
        each.with_columns(
            like=pl.col("like").list.get(pl.col("number") % pl.col("like").list.len()),
            own=pl.lit(first, pl.Int64) + pl.int_range(pl.len()),
        )
        .select("like", "own", "asked", "task_priority")
        .join(ran, left_on="like", right_on="pandaid", how="left", maintain_order="left")
        .with_columns(
            pandaid="own",
            parentid=pl.lit(None, pl.Int64),
            specialhandling=pl.lit(None, pl.String),
            creationtime="asked",
            readytime="asked",
            activatedtime=pl.lit(None, pl.Datetime("us")),
            currentpriority=pl.coalesce("task_priority", "currentpriority"),
            reason=pl.lit(UNMADE),
        )
        .select(ran.columns)
    )
