"""What happened lately: starts at queues, and how the jobs of a task ended, where it has been."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.replaying.changes import by_parent, span_changes
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.states import LAST
from brokerlab.engines import collect, narrow
from brokerlab.units import HOUR_S

RATE_STATUSES = ("running", "holding", "transferring", "finished", "cancelled")
"""Jobs that started and are in one of these count as started."""
RATE_WINDOW_S, RATE_DELAY_S = 6 * HOUR_S, 300
"""Starts count from six hours to five minutes before the instant [s]."""
NOT_FAILED = 3
"""Value of ``relocationflag`` with which a closed job is nobody's failure."""
_US = timedelta(microseconds=1)
_TIMES = ("starttime", "endtime", "statechangetime", "modificationtime")
_STARTS = read_as("jobs", "computingsite", "jobstatus", *_TIMES)
_ENDS = read_as(
    "jobs",
    *("jeditaskid", "computingsite", "jobstatus", "jobsubstatus", "piloterrorcode"),
    *("relocationflag", *_TIMES),
)
_USED = read_as("jobs", "jeditaskid", "computingsite", "creationtime")


def to_run_rate(
    jobs: Any, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return how many jobs per hour started at each queue: starts in ``[t - 6 h, t - 300 s)`` over that time.

    Jobs of all labels, shares and tables count, running or ended, but those that had failed or were closed by then.
    No row where nothing started (contract ``ToRunRate``).

    Source: analysis-jobs.md 1 (D7).
    """
    table = narrow(jobs, "jobs", _STARTS, ("computingsite", "jobstatus", "starttime"))
    began = nw.col("starttime")
    # a span begins when it is seen and ends when it is seen no more: after t - 300 s, up to t - 6 h, to the microsecond
    seen = began + nw.lit(timedelta(seconds=RATE_DELAY_S) + _US)
    past = began + nw.lit(timedelta(seconds=RATE_WINDOW_S) + _US)
    lost = nw.when(~nw.col("jobstatus").is_in(RATE_STATUSES)).then(LAST)
    spans = (
        table.filter(~began.is_null() & ~nw.col("computingsite").is_null())
        .with_columns(enter=seen, past=past, lost=lost)
        .with_columns(leave=nw.min_horizontal("past", "lost"))
        .filter(nw.col("enter") < nw.col("leave"))
        .select("computingsite", "enter", "leave")
    )
    changes = span_changes(spans, clock, ["computingsite"]).by_parent(parents)
    result = changes.at_instants(["computingsite"], ["njobs"])
    rate = result["njobs"].to_numpy() / ((RATE_WINDOW_S - RATE_DELAY_S) / HOUR_S)
    return result.drop("njobs").with_columns(jobs_per_hour=pl.Series(rate, dtype=pl.Float64))


def failure_counts(
    jobs: Any,
    pairs: pl.DataFrame,
    clock: Clock,
    *,
    hours: float,
    parents: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Count the jobs of tasks that ended in the hours before each instant, by queue (contract ``FailureCounts``).

    Finished ones; failed ones with an error of the pilot; closed ones that were to be assigned anew, by force
    (``relocationflag`` is neither null nor 3). The window is ``(t - hours, t]``, ``hours`` TW_DONE_JOB_STAT.

    Source: analysis-jobs.md 1.
    """
    table = narrow(jobs, "jobs", _ENDS, ("jeditaskid", "computingsite", "jobstatus"))
    status = nw.col("jobstatus")
    pilot = (nw.coalesce("piloterrorcode", nw.lit(0)) != 0) & (status == "failed")
    again = nw.coalesce("jobsubstatus", nw.lit("")) == "toreassign"
    forced = nw.coalesce("relocationflag", nw.lit(NOT_FAILED)) != NOT_FAILED
    counted = (status == "finished") | pilot | ((status == "closed") & again & forced)
    known = ~nw.col("computingsite").is_null()
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    spans = table.filter(mine & known & counted).with_columns(enter=LAST)
    window = nw.lit(timedelta(hours=hours))
    by = ["jeditaskid", "computingsite", "jobstatus"]
    timed = spans.with_columns(leave=nw.col("enter") + window).select(*by, "enter", "leave")
    changes = span_changes(timed, clock, by).by_parent(parents)
    return changes.at_instants(by, ["njobs"], only=pairs.select("snapshot", "jeditaskid"))


def sites_used(
    jobs: Any, pairs: pl.DataFrame, clock: Clock, *, parents: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Return the queues at which a task had jobs by each instant: there its outputs have datasets (contract ``SitesUsed``).

    The archive knows of one queue per job, the last one.

    Source:
        analysis-jobs.md 1 and 8.
    """
    table = narrow(jobs, "jobs", _USED, tuple(_USED))
    mine = nw.col("jeditaskid").is_in(pairs["jeditaskid"].unique().to_list())
    first = (
        table.filter(mine & ~nw.col("computingsite").is_null())
        .group_by("jeditaskid", "computingsite")
        .agg(nw.col("creationtime").min().alias("since"))
    )
    keys = ["snapshot", "jeditaskid", "computingsite"]
    asked = pairs.select("jeditaskid", "snapshot").unique().join(clock.instants, on="snapshot")
    joined = asked.join(collect(first), on="jeditaskid").filter(pl.col("since") <= pl.col("at"))
    return by_parent(joined, parents).select(keys).unique().sort(keys)
