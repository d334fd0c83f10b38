"""Jobs by queue at the instants: over all shares, and by what a task is counted with."""

from __future__ import annotations

import polars as pl

COUNTED = ("running", "defined", "assigned", "activated", "starting")
"""Statuses of the weight and the caps."""
KEYS = ["snapshot", "parent"]


def spread(frame: pl.DataFrame, snapshots: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a state table for every snapshot they hold for; null means for all.

    Args:
        frame: A table with ``snapshot``.
        snapshots: ``snapshot``, one row each.
    """
    everywhere = frame["snapshot"].is_null()
    if not everywhere.any():
        return frame
    common = frame.filter(everywhere).drop("snapshot")
    both = [frame.filter(~everywhere), snapshots.join(common, how="cross").select(frame.columns)]
    return pl.concat(both, rechunk=True)  # Polars 2.1 panics at texts made from empty chunks


def wide(frame: pl.LazyFrame, keys: list[str], statuses: tuple[str, ...]) -> pl.LazyFrame:
    """Return one row per key with a column per status: sums of ``njobs``, 0 where there is none."""
    sums = (pl.col("njobs").filter(pl.col("jobstatus") == s).sum().alias(s) for s in statuses)
    return frame.group_by(keys).agg(*sums)


def by_queue(job_stats: pl.LazyFrame) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent) over all shares, ``s_<status>``."""
    statuses = ("running", "activated", "starting", "transferring")
    frame = wide(job_stats.rename({"computingsite": "parent"}), KEYS, statuses)
    return frame.rename({status: f"s_{status}" for status in statuses})


def by_tag(tables: dict[str, pl.DataFrame]) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent, tag), a column per counted status.

    The tag is ``share:<gshare>``, ``workqueue:<id>`` or, without the jobs of resource work queues,
    ``share only:<gshare>``.

    Source:
        production-job-brokerage.md 1.6, 6.
    """
    tags = {
        "job_stats": pl.concat_str(pl.lit("share:"), pl.col("gshare").fill_null("")),
        "job_stats_workqueue": pl.format("workqueue:{}", "workqueue_id"),
        "job_stats_gshare_only": pl.concat_str(
            pl.lit("share only:"), pl.col("gshare").fill_null("")
        ),
    }
    parts = [
        tables[name]
        .lazy()
        .select("snapshot", "jobstatus", "njobs", parent="computingsite", tag=tag)
        for name, tag in tags.items()
    ]
    return wide(pl.concat(parts), [*KEYS, "tag"], COUNTED)


def by_resource_type(tables: dict[str, pl.DataFrame]) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent, share or work queue, resource type), a column per counted status."""
    stats = tables["job_stats_rt"].lazy().rename({"computingsite": "parent"})
    return wide(stats, [*KEYS, "gshare", "resource_type"], COUNTED)
