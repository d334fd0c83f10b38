"""What an archive says about its queues: cores in use, slots over time, start-up delays."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

TOGETHER, APART = timedelta(seconds=10), timedelta(minutes=1)
"""So close are jobs of one batch, and so far apart are batches at least."""
SHOWN = 0.75
"""Part of the jobs that follow another one so closely, from which batches show."""
LEAST_CYCLE = timedelta(minutes=30)
"""Shortest cycle that is read from an archive."""


def in_use(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the cores in use at every change: ``panda_queue``, ``time``, ``cores``, sorted by both.

    Args:
        jobs: ``computingsite``, ``starttime``, ``endtime``, ``corecount``, without nulls.
    """
    columns = {"panda_queue": "computingsite"}
    up = jobs.select(**columns, time="starttime", cores="corecount")
    down = jobs.select(**columns, time="endtime", cores=-pl.col("corecount"))
    return (
        pl.concat([up, down])
        .group_by("panda_queue", "time")
        .agg(pl.col("cores").sum())
        .sort("panda_queue", "time")
        .with_columns(pl.col("cores").cum_sum().over("panda_queue"))
    )


def cycle_of(jobs: pl.DataFrame) -> timedelta | None:
    """Return the time between two brokerages of a task, where its jobs' creation shows it.

    The system makes jobs in batches, right after a brokerage. It shows where three of four jobs follow another one of
    their task within `TOGETHER`: it is the median time between batches, but at least `LEAST_CYCLE`, as shorter cycles
    take long to simulate.

    Args:
        jobs: ``jeditaskid``, ``creationtime``, without retries.

    Returns:
        In whole minutes; null where it does not show.
    """
    ordered = jobs.drop_nulls().sort("jeditaskid", "creationtime")
    gaps = ordered.select(gap=pl.col("creationtime").diff().over("jeditaskid"))["gap"].drop_nulls()
    between = gaps.filter(gaps > APART)
    if between.is_empty() or (gaps <= TOGETHER).mean() < SHOWN:  # type: ignore[operator]
        return None
    minutes = round(between.dt.total_seconds().median() / 60)  # type: ignore[operator, arg-type]
    return max(timedelta(minutes=minutes), LEAST_CYCLE)


def capacity_of(
    use: pl.DataFrame, *, begin: datetime, end: datetime, window: timedelta, quantile: float
) -> pl.DataFrame:
    """Estimate the slots of every queue and window from the cores that were in use.

    With the quantile 1, the maximum: what was seen running fits, so that the order of starts seen is possible in the
    simulation too. A queue that was never full seems smaller than it is, which delays no job that was seen to start. A
    window in which nothing ran says nothing: the one before holds (before the first use, the first).

    Args:
        use: From :func:`in_use`.
        begin: First window's beginning.
        end: No window begins at or after it; the last one's slots hold from there on.
        window: Length of a window.
        quantile: Share of a window's time in which no more cores were in use, above 0 to 1.

    Returns:
        ``panda_queue``, ``ts``, ``slots``; one row per queue and window, sorted.
    """
    windows = pl.datetime_range(
        begin, end, window, time_unit="us", closed="left", eager=True
    ).to_frame("time")
    names = use.select("panda_queue").unique()
    marks = names.join(windows, how="cross").with_columns(ts=pl.col("time"))
    at_marks = marks.sort("time").join_asof(
        use.sort("time"), on="time", by="panda_queue", check_sortedness=False
    )
    inside = (
        use.filter(pl.col("time").is_between(begin, end, closed="left"))
        .sort("time")
        .join_asof(windows.with_columns(ts="time"), on="time", check_sortedness=False)
    )
    steps = pl.concat(
        [part.select("panda_queue", "ts", "time", "cores") for part in (at_marks, inside)]
    ).sort("panda_queue", "time", maintain_order=True)
    following = pl.col("time").shift(-1).over("panda_queue", order_by="time").fill_null(end)
    lasts = (following - pl.col("time")).dt.total_microseconds()
    found = (
        steps.with_columns(pl.col("cores").fill_null(0), lasts=lasts)
        .filter(pl.col("lasts") > 0)
        .sort("panda_queue", "ts", "cores")
        .with_columns(
            until=pl.col("lasts").cum_sum().over("panda_queue", "ts"),
            total=pl.col("lasts").sum().over("panda_queue", "ts"),
        )
        .filter(pl.col("until") >= pl.col("total") * quantile)
        .group_by("panda_queue", "ts")
        .agg(slots=pl.col("cores").min())
        .sort("panda_queue", "ts")
    )
    seen = pl.when(pl.col("slots") > 0).then("slots")
    held = seen.forward_fill().backward_fill().over("panda_queue", order_by="ts")
    return found.with_columns(slots=held.fill_null(0))


def delays_of(
    jobs: pl.DataFrame, use: pl.DataFrame, capacity: pl.DataFrame, *, free: float, least: int
) -> pl.DataFrame:
    """Return the start-up delays of jobs that became ready while their queue had free slots.

    Args:
        jobs: ``computingsite``, ``readytime``, ``starttime``, ``corecount``, without nulls.
        use: From :func:`in_use`.
        capacity: From :func:`capacity_of`.
        free: A queue has free slots while the job's cores and those in use make at most this part of its slots.
        least: Delays that a queue needs to have its own; others take those of all queues.

    Returns:
        ``panda_queue``, ``delay_s``, ``own`` (false: of all queues); sorted.
    """
    rows = jobs.select("readytime", "starttime", "corecount", panda_queue="computingsite")
    seen = (
        rows.sort("readytime")
        .join_asof(
            use.sort("time"),
            left_on="readytime",
            right_on="time",
            by="panda_queue",
            check_sortedness=False,
        )
        .join_asof(
            capacity.sort("ts"),
            left_on="readytime",
            right_on="ts",
            by="panda_queue",
            check_sortedness=False,
        )
        .filter(pl.col("cores").fill_null(0) + pl.col("corecount") <= pl.col("slots") * free)
        .select(
            "panda_queue",
            delay_s=(pl.col("starttime") - pl.col("readytime")).dt.total_microseconds()
            / pl.lit(1_000_000),
        )
    )
    own = seen.filter(pl.len().over("panda_queue") >= least).with_columns(own=pl.lit(value=True))
    others = capacity.select("panda_queue").unique().join(own, on="panda_queue", how="anti")
    pooled = others.join(_spread(seen), how="cross").with_columns(own=pl.lit(value=False))
    return pl.concat([own, pooled]).sort("panda_queue", "delay_s")


def _spread(seen: pl.DataFrame, most: int = 100) -> pl.DataFrame:
    """Return at most so many delays, evenly spread over the sorted ones."""
    ordered = seen.select("delay_s").sort("delay_s")
    if ordered.height <= most:
        return ordered
    return ordered.gather_every(-(-ordered.height // most))
