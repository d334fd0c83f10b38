"""When a job was in which status: from the status log, else from its times.

A status holds from its beginning up to, not including, its end. From times alone a job is

    assigned      from ``creationtime`` to ``activatedtime``
    activated     from ``activatedtime`` (``creationtime`` if that is null and the job started) to ``starttime``
    running       from ``starttime`` to ``endtime``
    transferring  from ``endtime`` to its last change of status, if it finished for a nucleus
    holding       in that time otherwise

and nothing after it finished, failed, was cancelled or closed. Times alone cannot tell ``defined``, ``pending``,
``waiting`` from ``assigned``, ``sent`` and ``starting`` from ``activated``, ``merging``, ``stagein``, ``stageout``
from ``running`` or ``holding``, and know of one queue per job: the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw

from brokerlab.archive.contracts import read_as
from brokerlab.archive.contracts.jobs import OVER
from brokerlab.lifecycle.status_log import entries

GROUP = ("computingsite", "gshare", "workqueue_id", "resource_type", "nucleus")
"""What jobs are counted by, besides their status."""
DISKIO_UNIT = 1_000_000
"""Disk traffic per core is added up in whole millionths of kB/s: integers add exactly, in any order."""

JOB_COLUMNS = read_as(
    "jobs",
    *("pandaid", "jeditaskid", "jobstatus", "computingsite", "gshare", "workqueue_id"),
    *("resource_type", "nucleus", "corecount", "diskio", "creationtime", "activatedtime"),
    *("starttime", "endtime", "statechangetime", "modificationtime"),
)
JOB_REQUIRED = ("pandaid", "jobstatus", "computingsite", "creationtime", "modificationtime")
LOG_COLUMNS = read_as("job_status_log", "pandaid", "jobstatus", "modificationtime", "computingsite")
LOG_REQUIRED = ("pandaid", "jobstatus", "modificationtime")

BOUNDARIES = ("created", "released", "started", "stopped", "left")
"""The five times of a job without log, in order."""
ENTERED = ("assigned", "activated", "running", "after", "now")
"""Status that begins at each of the five; ``after`` and ``now`` are columns of the job."""
WEIGHTS = ("ncores", "diskio_sum", "diskio_jobs")
"""What is added up over jobs, besides their number."""
LAST = nw.coalesce("statechangetime", "modificationtime", "endtime", "starttime")
"""When a job was over, or took its present status."""
MERGES = nw.coalesce("processingtype", nw.lit("")) == "pmerge"
"""A job merges."""


def prepared(jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Add what is summed over jobs, and ``over_at``, the time at which a job was over (null while it lives)."""
    cores = nw.when(nw.col("corecount") > 0).then(nw.col("corecount")).otherwise(nw.lit(1))
    is_over = nw.col("jobstatus").is_in(OVER)
    diskio = nw.when(nw.col("diskio") >= 0).then(nw.col("diskio"))
    return jobs.with_columns(
        last=LAST,
        over_at=nw.when(is_over).then(LAST),
        is_over=is_over,
        ncores=cores,
        diskio_sum=nw.coalesce(diskio * DISKIO_UNIT // cores, nw.lit(0)),
        diskio_jobs=nw.when(diskio.is_null()).then(nw.lit(0)).otherwise(nw.lit(1)),
    )


def times(jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Put the five times of each job in order; jobs without them are left out.

    Returns:
        The columns of :func:`prepared`, ``created <= released <= started <= stopped <= left``, ``after``, ``now``
        (null once the job is over). A job that never started has ``started = stopped = left``.
    """
    left = nw.col("last")
    usable = jobs.filter(~nw.col("creationtime").is_null() & ~left.is_null())
    ran = nw.min_horizontal("starttime", "last")
    begun = usable.with_columns(
        left=left,
        started=nw.when(nw.col("starttime").is_null()).then(left).otherwise(ran),
        activated=nw.when(nw.col("starttime").is_null())
        .then(nw.coalesce("activatedtime", "last"))
        .otherwise(nw.coalesce("activatedtime", "creationtime")),
        ended=nw.coalesce("endtime", "last"),
    )
    clipped = begun.with_columns(
        created=nw.min_horizontal("creationtime", "started"),
        stopped=nw.max_horizontal(nw.min_horizontal("ended", "left"), "started"),
    )
    finished = (nw.col("jobstatus").is_in(("finished", "transferring"))) & ~nw.col(
        "nucleus"
    ).is_null()
    return clipped.with_columns(
        released=nw.max_horizontal(nw.min_horizontal("activated", "started"), "created"),
        after=nw.when(finished).then(nw.lit("transferring")).otherwise(nw.lit("holding")),
        now=nw.when(~nw.col("is_over")).then(nw.col("jobstatus")),
    )


def spans(
    log: nw.LazyFrame[Any], jobs: nw.LazyFrame[Any], keep: Sequence[str] = GROUP
) -> nw.LazyFrame[Any]:
    """Turn log entries into spans of one status each, ``enter`` to ``leave`` (null: to this day), with what is kept of the jobs.

    An entry holds until the next one of the job (:func:`~brokerlab.lifecycle.status_log.entries`); the last one until
    the job was over, or to this day. An entry without queue has the job's.
    """
    logged = entries(log.with_columns(queue=nw.col("computingsite")), "queue")
    kept = dict.fromkeys(["pandaid", "computingsite", *keep, *WEIGHTS, "over_at"])
    joined = jobs.select(*kept).join(logged, on="pandaid", how="inner")
    end = nw.coalesce("following", "over_at")
    return joined.with_columns(
        computingsite=nw.coalesce("queue", "computingsite"),
        jobstatus=nw.col("entry"),
        leave=nw.when(end < nw.col("enter")).then(nw.col("enter")).otherwise(end),
    )
