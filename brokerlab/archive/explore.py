"""What is asked first of a table of jobs: how many over time, what they need, what failed, how long they waited.

Each call takes an archive, or the lazy frame of `jobs` after filters of one's own, and returns a small frame that a chart of
`brokerlab.charts.explore` draws. Polars reads in a stream: only groups are in memory.

    few = explore.jobs(demo).filter(pl.col("jeditaskid") == 40000105)
    explore.over_time(few, by="computingsite")
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import polars as pl

from brokerlab.archive.contracts.jobs import ENDED, OVER
from brokerlab.archive.store import Archive
from brokerlab.errors import ConfigError, nearest
from brokerlab.intervals import clustered
from brokerlab.slots import positive
from brokerlab.times import FINE, STEPS, grain, instants_of, rounded, time_of
from brokerlab.units import HOUR_S

QUANTITIES = {
    "memory_mb": "memory, largest PSS [MB]",
    "cpu_s": "CPU time, all cores [s]",
    "run_s": "run time [s]",
    "wait_s": "wait, created to start [s]",
}
"""Measured columns of `jobs`, with what they are."""
OTHER, UNKNOWN = "all others", "not recorded"
"""Levels of a column: those with few jobs together, and null."""
MOST_STEPS = 62
"""Steps of time at most, without a length of their own."""
BINS = 8
"""Bins of a histogram in a factor of ten."""

_CODES = {
    "pilot": "piloterrorcode",
    "payload": "exeerrorcode",
    "data management": "ddmerrorcode",
    "dispatcher": "jobdispatchererrorcode",
    "brokerage": "brokerageerrorcode",
    "task buffer": "taskbuffererrorcode",
    "supervisor": "superrorcode",
}
"""Who reports an error, in the order in which a job is ascribed to one of several: column of its code."""

_OVER_TIME: dict[str, Any] = {"at": pl.Datetime("us"), "level": pl.String, "jobs": pl.Int64}

Jobs = Archive | pl.LazyFrame
"""An archive, or its `jobs` after filters of one's own."""


def jobs(
    archive: Archive, *, start: datetime | str | None = None, end: datetime | str | None = None
) -> pl.LazyFrame:
    """Return the jobs of an archive with what is asked of them as columns.

    Args:
        archive: With the table ``jobs``.
        start: Only jobs created from this instant on [UTC], as a time without zone or its text; null: all.
        end: Only jobs created before this instant [UTC].

    Returns:
        All columns of the table, and ``memory_mb, cpu_s, run_s, wait_s`` (see `QUANTITIES`; null: not recorded; 0 is not
        a measurement of memory or CPU time, nor of the wait where no job of the period waited), ``error`` (who reports it and the code, of failed jobs; null: of others).

    Raises:
        MissingTableError: The archive has no jobs.
        ConfigError: What is given is no time, or has a zone.
    """
    rows = archive.scan("jobs")
    if (first := time_of(start, "start")) is not None:
        rows = rows.filter(pl.col("creationtime") >= first)
    if (last := time_of(end, "end")) is not None:
        rows = rows.filter(pl.col("creationtime") < last)
    waited = rows.select((pl.col("starttime") > pl.col("creationtime")).any())
    # one time stands for both where the export had no other
    knows_waits = waited.collect(engine="streaming").item()
    return rows.with_columns(
        memory_mb=positive("maxpss") / 1024,
        cpu_s=positive("cpuconsumptiontime").cast(pl.Float64),
        run_s=_seconds("starttime", "endtime"),
        wait_s=_seconds("creationtime", "starttime")
        if knows_waits
        else pl.lit(None, dtype=pl.Float64),
        error=pl.when(jobstatus="failed").then(_error()),
    )


def totals(jobs: Jobs, *, n_boot: int = 2000, seed: int = 1) -> pl.DataFrame:
    """Count jobs, and say which share failed, with 95 % intervals from drawing tasks again.

    Args:
        jobs: An archive, or its `jobs`.
        n_boot: Bootstrap replicates.
        seed: Same seed, same replicates.

    Returns:
        One row: ``jobs, tasks, queues``; ``first, last`` creation [UTC]; ``n_ended`` (finished or failed), ``n_failed``,
        ``stopped`` (cancelled or closed), ``alive`` (none of these); ``no_task``; ``no_start`` (no wait known: no start, one before the
        creation, or no job waited); ``median_wait_min, p95_wait_min`` from creation to start [min]; of the ended jobs the ``failed_share``, of
        all CPU time the ``lost_share`` of failed jobs [1], each with ``_lo`` and ``_hi`` (null: fewer than two tasks).
    """
    rows, status, wait = _jobs(jobs), pl.col("jobstatus"), pl.col("wait_s") / 60
    failed, is_over = status == "failed", status.is_in(OVER)
    cpu = pl.col("cpu_s").fill_null(0.0)
    counts = rows.select(
        jobs=pl.len(),
        tasks=pl.col("jeditaskid").drop_nulls().n_unique(),
        queues=pl.col("computingsite").drop_nulls().n_unique(),
        first=pl.col("creationtime").min(),
        last=pl.col("creationtime").max(),
        n_ended=status.is_in(ENDED).sum(),
        n_failed=failed.sum(),
        stopped=(is_over & ~status.is_in(ENDED)).sum(),
        alive=(~is_over).sum(),
        no_task=pl.col("jeditaskid").null_count(),
        no_start=wait.null_count(),
        median_wait_min=wait.median(),
        p95_wait_min=wait.quantile(0.95, "linear"),
    ).collect(engine="streaming")
    by_task = rows.group_by("jeditaskid").agg(
        ended=status.is_in(ENDED).sum(),
        failed=failed.sum(),
        cpu=_hours(cpu),
        cpu_failed=_hours(cpu.filter(failed)),
    )
    shares = clustered(
        by_task.collect(engine="streaming"),
        {"failed_share": ("failed", "ended"), "lost_share": ("cpu_failed", "cpu")},
        unit="jeditaskid",
        n_boot=n_boot,
        seed=seed,
    )
    return pl.concat([counts, shares.drop("resampled", "n_units")], how="horizontal")


def over_time(
    jobs: Jobs,
    by: str = "jobstatus",
    *,
    at: str = "creationtime",
    every: str | None = None,
    most: int = 6,
) -> pl.DataFrame:
    """Count jobs by time and the levels of a column.

    Args:
        jobs: An archive, or its `jobs`.
        by: Column.
        at: Column with the time.
        every: Step, such as ``6h``; null: one that makes at most `MOST_STEPS`.
        most: Levels with most jobs; the others are one.

    Returns:
        ``at`` (beginning of the step), ``level``, ``jobs``: every step and level, the level with most jobs first. Jobs
        without the time are not counted.

    Raises:
        ConfigError: There is no such column, ``at`` has no times, or ``every`` is no length of time.
    """
    rows = _jobs(jobs, by, at).filter(pl.col(at).is_not_null())
    if (kind := rows.collect_schema()[at]) != pl.Datetime("us"):
        raise ConfigError(f"at={at!r}: the column is {kind}, a time is needed, e.g. creationtime")
    window = rows.select(first=pl.col(at).min(), last=pl.col(at).max()).collect(engine="streaming")
    first, last = window.row(0)
    if first is None:
        return pl.DataFrame(schema=_OVER_TIME)
    step = every or _step(first, last)
    grouped = _group(rows.with_columns(_at=rounded(pl.col(at), step)), by, "_at")
    counted = grouped.agg(jobs=pl.len().cast(pl.Int64)).collect(engine="streaming")
    levels = _levels(counted, most)
    counted = (
        counted.with_columns(level=_name(levels)).group_by("_at", "level").agg(pl.col("jobs").sum())
    )
    low, high = counted.select(low=pl.col("_at").min(), high=pl.col("_at").max()).row(0)
    steps = instants_of(low, high, step, closed="both").select("at")
    names = [name for name in [*levels, OTHER] if name in set(counted["level"])]
    grid = pl.DataFrame({"level": names}).join(steps, how="cross")
    result = grid.join(counted.rename({"_at": "at"}), on=["at", "level"], how="left")
    return result.select("at", "level", pl.col("jobs").fill_null(0))


def distributions(jobs: Jobs, by: str | None = None, *, most: int = 6) -> pl.DataFrame:
    """Return percentiles of what jobs needed and waited.

    Args:
        jobs: An archive, or its `jobs`.
        by: Column whose levels are set apart; null: all jobs together.
        most: Levels with most jobs; the others are one.

    Returns:
        ``quantity`` (column), ``what`` (with its unit), ``level`` (of ``by``), ``jobs`` (with a value), ``unknown``
        (without), ``p05, median, p95, p99, largest``.
    """
    rows = _jobs(jobs, *([by] if by else []))
    if by is None:
        rows = rows.with_columns(level=pl.lit("all jobs"))
    else:
        counted = _group(rows, by).agg(jobs=pl.len()).collect(engine="streaming")
        levels = _levels(counted, most)
        rows = rows.with_columns(_level=_text(by)).with_columns(level=_name(levels))
    parts = []
    for name, what in QUANTITIES.items():
        it = pl.col(name)
        ranks = {"p05": 0.05, "median": 0.5, "p95": 0.95, "p99": 0.99}
        parts.append(
            rows.select("level", name)
            .group_by("level")
            .agg(
                jobs=it.count().cast(pl.Int64),
                unknown=it.null_count().cast(pl.Int64),
                **{key: it.quantile(rank, "linear") for key, rank in ranks.items()},
                largest=it.max(),
            )
            .collect(engine="streaming")
            .sort(pl.col("jobs") + pl.col("unknown"), "level", descending=[True, False])
            .with_columns(quantity=pl.lit(name), what=pl.lit(what))
            .select("quantity", "what", "level", "jobs", "unknown", *ranks, "largest")
        )
    return pl.concat(parts)


def histograms(jobs: Jobs) -> pl.DataFrame:
    """Count jobs in logarithmic bins of each quantity, `BINS` in a factor of ten.

    Returns:
        ``quantity, what`` (as for `distributions`), ``lower, upper`` (ends of the bin), ``jobs``. Values of 0 are in none.
    """
    rows = _jobs(jobs)
    parts = []
    for name, what in QUANTITIES.items():
        place = (pl.col(name).log10() * BINS).floor().cast(pl.Int32)
        counted = (
            rows.filter(pl.col(name) > 0)
            .group_by(place=place)
            .agg(jobs=pl.len().cast(pl.Int64))
            .sort("place")
            .collect(engine="streaming")
        )
        parts.append(
            counted.select(
                quantity=pl.lit(name),
                what=pl.lit(what),
                lower=10.0 ** (pl.col("place") / BINS),
                upper=10.0 ** ((pl.col("place") + 1) / BINS),
                jobs="jobs",
            )
        )
    return pl.concat(parts)


def failures(jobs: Jobs, by: str = "error") -> pl.DataFrame:
    """Count failed jobs by the levels of a column: ``error``, ``computingsite``, ``jeditaskid``, or any other.

    Args:
        jobs: An archive, or its `jobs`.
        by: Column.

    Returns:
        ``level``, ``ended`` (jobs that finished or failed; for errors: all of them), ``failed``, ``failed_share`` [1] of
        them, ``part`` [1] of all failed jobs, ``tasks`` that they are of, ``cpu_h`` (CPU time of the failed jobs [h]): most failed
        first, levels without any left out.
    """
    is_failed = pl.col("jobstatus") == "failed"
    rows = _jobs(jobs, by).filter(pl.col("jobstatus").is_in(ENDED))
    counted = (
        _group(rows, by)
        .agg(
            ended=pl.len().cast(pl.Int64),
            failed=is_failed.sum().cast(pl.Int64),
            tasks=pl.col("jeditaskid").filter(is_failed).drop_nulls().n_unique().cast(pl.Int64),
            cpu_h=_hours(pl.col("cpu_s").filter(is_failed)),
        )
        .collect(engine="streaming")
    )
    if by == "error":
        counted = counted.with_columns(ended=pl.col("ended").sum())
    part = pl.col("failed") / pl.col("failed").sum()
    return (
        counted.filter(pl.col("failed") > 0)
        .sort("failed", "_level", descending=[True, False])
        .select(
            level="_level",
            ended="ended",
            failed="failed",
            failed_share=pl.col("failed") / pl.col("ended"),
            part=part,
            tasks="tasks",
            cpu_h="cpu_h",
        )
    )


def waits(jobs: Jobs, by: str = "computingsite") -> pl.DataFrame:
    """Return how long jobs waited from creation to start, by the levels of a column.

    Returns:
        ``level``, ``jobs``, ``not_started`` (without start, or none recorded: in no other number), ``median_h, p95_h``,
        ``waited_h`` (all together) [h], ``part`` [1] of all waiting (null: nobody waited): most first.
    """
    hours = pl.col("wait_s") / HOUR_S
    counted = (
        _group(_jobs(jobs, by), by)
        .agg(
            jobs=pl.len().cast(pl.Int64),
            not_started=hours.null_count().cast(pl.Int64),
            median_h=hours.median(),
            p95_h=hours.quantile(0.95, "linear"),
            waited_h=_hours(pl.col("wait_s")),
        )
        .collect(engine="streaming")
    )
    return (
        counted.sort("waited_h", "_level", descending=[True, False])
        .with_columns(part=(pl.col("waited_h") / pl.col("waited_h").sum()).fill_nan(None))
        .select("_level", pl.exclude("_level"))
        .rename({"_level": "level"})
    )


# --- pieces -----------------------------------------------------------------------------------------------------------


def _jobs(given: Jobs, *columns: str) -> pl.LazyFrame:
    """Return the jobs, which have these columns."""
    rows = jobs(given) if isinstance(given, Archive) else given
    names = rows.collect_schema().names()
    missing = [name for name in (*columns, *QUANTITIES) if name not in names]
    if missing and missing[0] in columns:
        raise ConfigError(f"jobs have no column {missing[0]!r}: {nearest(missing[0], names)}")
    if missing:
        raise ConfigError(f"jobs have no column {missing[0]!r}: begin with explore.jobs(archive)")
    return rows


def _seconds(first: str, last: str) -> pl.Expr:
    """Return the time between two columns [s]; null where the order is wrong."""
    length = (pl.col(last) - pl.col(first)).dt.total_microseconds() / 1e6
    return pl.when(length >= 0).then(length)


def _hours(seconds: pl.Expr) -> pl.Expr:
    """Return the sum [h], the same in any order of the rows."""
    return (seconds * 1e6).round().cast(pl.Int64).sum() / (1e6 * HOUR_S)


def _error() -> pl.Expr:
    """Return who reports the error and its code."""
    coded = [
        pl.when(pl.col(column) != 0).then(pl.format(f"{who} {{}}", column))
        for who, column in _CODES.items()
    ]
    exit_code = pl.col("transexitcode").str.strip_chars()
    exited = pl.when(~exit_code.is_in(["", "0"])).then(pl.format("payload exit {}", exit_code))
    return pl.coalesce(*coded, exited, pl.lit("no code"))


def _text(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null(UNKNOWN)


def _group(rows: pl.LazyFrame, by: str, *more: str) -> pl.lazyframe.group_by.LazyGroupBy:
    return rows.group_by(_text(by).alias("_level"), *more)


def _levels(counted: pl.DataFrame, most: int) -> list[str]:
    """Return the levels with most jobs."""
    sums = counted.group_by("_level").agg(pl.col("jobs").sum())
    return sums.sort("jobs", "_level", descending=[True, False])["_level"].head(most).to_list()


def _name(levels: list[str]) -> pl.Expr:
    return pl.when(pl.col("_level").is_in(levels)).then("_level").otherwise(pl.lit(OTHER))


def _step(first: datetime, last: datetime) -> str:
    """Return the step of time, whole days where the longest of `FINE` is too fine."""
    longest = STEPS[FINE[-1]]
    if last - first <= MOST_STEPS * longest:
        return grain((first, last), FINE, MOST_STEPS)
    return f"{math.ceil((last - first).days / MOST_STEPS)}d"
