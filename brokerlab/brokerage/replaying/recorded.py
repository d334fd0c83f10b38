"""Numbers of jobs that the system itself wrote down, instead of rebuilt ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.brokerage.replaying import states
from brokerlab.brokerage.replaying.asof import as_of
from brokerlab.brokerage.replaying.changes import MEASURES, Changes, Side
from brokerlab.brokerage.replaying.clock import Clock
from brokerlab.brokerage.replaying.counts import Counts, by_parent

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
    """Read the numbers of jobs from the system's own snapshots.

    All rows of the last snapshot before an instant hold, if it is not older than an hour. Cores are not recorded:
    ``ncores`` is 0.

    Args:
        job_stats: Table ``job_stats`` of any engine.
        instants: ``snapshot``, ``at``.
        parents: Parent of each pseudo-queue.

    Returns:
        Counts whose clock has the instants that are covered, no others.

    Source:
        archive.md section 8; production-jobs.md.
    """
    clock = Clock.of(instants)
    held = as_of(job_stats, "job_stats", _STATS, clock, entity=[], max_age_s=MAX_AGE_S)
    if "snapshot" not in held.columns:  # one snapshot covers every instant
        held = instants.select(pl.col("snapshot").cast(pl.Int64)).join(held, how="cross")
    covered = instants.join(held.select("snapshot").unique(), on="snapshot", how="semi")
    own = Clock.of(covered)
    keys = [*states.GROUP, "jobstatus"]
    groups = held.select(keys).unique().with_row_index("group")
    numbered = groups.with_columns(pl.col("group").cast(pl.Int32))
    places = pl.DataFrame({"snapshot": own.snapshots}).with_row_index("place")
    rows = held.join(numbered, on=keys, nulls_equal=True).join(places, on="snapshot")
    return Counts(_changes(rows, by_parent(numbered, parents), own), ())


def _changes(rows: pl.DataFrame, groups: pl.DataFrame, clock: Clock) -> Changes:
    """Let each number begin at its instant and end at the next one."""
    traffic = (pl.col("prorated_diskio_avg") * pl.col("njobs") * states.DISKIO_UNIT).round()
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
