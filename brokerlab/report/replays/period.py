"""What a replay of a period asks of the archive besides the brokerage's tables: which tasks, and what really ran."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.brokerage import replay

CYCLE = "1h"
"""Jobs of a task made within one such cycle come from one brokerage."""
RAN = """
select jeditaskid, computingsite, coalesce(resource_type, '') as resource_type, min(creationtime) as made,
    count(*) as n_jobs, sum(epoch_us(starttime) - epoch_us(creationtime)) / 3.6e9 as wait_h,
    sum((epoch_us(coalesce(endtime, starttime)) - epoch_us(starttime))
        * coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1)) / 3.6e9 as core_h
from jobs
where prodsourcelabel = $label and coalesce(processingtype, '') <> 'pmerge' and starttime is not null
    and computingsite is not null and jeditaskid is not null
group by jeditaskid, computingsite, resource_type, time_bucket(interval '1 hour', creationtime)
order by all
"""
"""Jobs that really started, by brokerage cycle; merge jobs have brokerages of their own and are left out."""


def ran(opened: Archive, label: str, tasks: pl.DataFrame) -> pl.DataFrame:
    """Return where jobs really started.

    Args:
        opened: The archive.
        label: ``prodsourcelabel`` of the jobs.
        tasks: ``jeditaskid`` of the tasks wanted.

    Returns:
        ``jeditaskid, computingsite, resource_type``, ``made`` (when the first of them was), ``n_jobs``; ``wait_h``
        (from being made to the start) and ``core_h`` (from start to end), sums over them.
    """
    found: pl.DataFrame = opened.sql(RAN, {"label": label}).pl()
    return found.join(tasks.select("jeditaskid").unique(), on="jeditaskid", how="semi")


def drawn(
    opened: Archive, first: datetime | None, last: datetime | None, *, label: str, most: int, seed: int
) -> tuple[list[int] | None, int]:  # fmt: skip
    """Draw the tasks to replay.

    Args:
        opened: The archive.
        first: First brokerage; null = no bound.
        last: Brokerages at or after it are left out; null = no bound.
        label: ``prodsourcelabel`` of the jobs.
        most: How many tasks at most; 0: all.
        seed: Of the draw.

    Returns:
        The tasks, null = all of them; and how many there are (0 where it was not asked).
    """
    if not most or not opened.has("jobs"):
        return None, 0
    found = replay.job_brokerages(opened.jobs, cycle=CYCLE, label=label)
    found = found.filter(~pl.col("is_merging"))
    late = found if first is None else found.filter(pl.col("at") >= first)
    inside = late if last is None else late.filter(pl.col("at") < last)
    ids = inside["jeditaskid"].unique().sort().to_numpy()
    if len(ids) <= most:
        return None, len(ids)
    chosen = np.random.default_rng(seed).choice(ids, size=most, replace=False)
    return sorted(chosen.tolist()), len(ids)


def grain(window: tuple[datetime, datetime]) -> str:
    """Return the step of charts over time: days, weeks beyond two months.

    Example:
        >>> grain((datetime(2026, 3, 1), datetime(2026, 3, 28)))
        '1d'
    """
    return "1d" if window[1] - window[0] <= timedelta(days=62) else "1w"
