"""Jobs by queue at the instants: over all shares, and by what a task is counted with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    if not frame["snapshot"].null_count():
        return frame
    everywhere = frame["snapshot"].is_null()
    common = frame.filter(everywhere).drop("snapshot")
    both = [frame.filter(~everywhere), snapshots.join(common, how="cross").select(frame.columns)]
    return pl.concat(both, rechunk=True)  # Polars 2.1 panics at texts made from empty chunks


def wide(frame: pl.LazyFrame, keys: list[str], statuses: tuple[str, ...]) -> pl.LazyFrame:
    """Return one row per key with a column per status: sums of ``njobs``, 0 where there is none."""
    # a sum over nulls is several times as fast as one over filtered rows
    sums = (pl.when(pl.col("jobstatus") == s).then("njobs").sum().alias(s) for s in statuses)
    return frame.group_by(keys).agg(*sums)


def by_queue(job_stats: pl.LazyFrame) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent) over all shares, ``s_<status>``."""
    statuses = ("running", "activated", "starting", "transferring")
    frame = wide(job_stats.rename({"computingsite": "parent"}), KEYS, statuses)
    return frame.rename({status: f"s_{status}" for status in statuses})


def of_all(job_stats: pl.LazyFrame, tag: str) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent) over all shares under one tag, a column per counted status."""
    found = wide(job_stats.rename({"computingsite": "parent"}), KEYS, COUNTED)
    return found.with_columns(tag=pl.lit(tag))


def by_tag(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent, tag), a column per counted status.

    The tag is ``share:<gshare>``, ``workqueue:<id>`` or, without the jobs of resource work queues,
    ``share only:<gshare>``.

    Source:
        production-jobs.md 7.
    """
    share = pl.col("gshare").fill_null("")
    tags = {
        "job_stats": ("share:", share),
        "job_stats_workqueue": ("workqueue:", pl.col("workqueue_id").cast(pl.String)),
        "job_stats_gshare_only": ("share only:", share),
    }
    parts = []
    for name, (prefix, key) in tags.items():
        rows = tables[name].select(
            "snapshot", "jobstatus", "njobs", parent="computingsite", key=key
        )
        tag = pl.concat_str(pl.lit(prefix), "key")
        parts.append(wide(rows, [*KEYS, "key"], COUNTED).select(*KEYS, *COUNTED, tag=tag))
    return pl.concat(parts)


def by_resource_type(tables: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return jobs per (snapshot, parent, share or work queue, resource type), a column per counted status."""
    stats = tables["job_stats_rt"].rename({"computingsite": "parent"})
    return wide(stats, [*KEYS, "gshare", "resource_type"], COUNTED)


def by_parent(parts: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """Lay tables of (snapshot, parent) side by side, each of other columns; null where one has no row."""
    columns = [name for part in parts for name in part.collect_schema().names() if name not in KEYS]
    together = pl.concat(parts, how="diagonal")
    # one row of each table at most: its value is the largest; a group by is cheaper than many joins
    return together.group_by(KEYS).agg(pl.col(columns).max())
