"""Whether the scouts succeeded, and how many jobs are still to come (docs/rules/scouts.md 6 and 8)."""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.scouts.quantities import floats
from brokerlab.scouts.settings import has_no_job_limits, uses_scouts
from brokerlab.scouts.tables import INPUT_TYPES
from brokerlab.units import MB

INPUT_PER_JOB_MB = 500_000  # after the avalanche
INPUT_PER_SCOUT_MB = 50_000  # while scouting


def file_sums(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum the rows of each task before jobs are capped or replaced.

    Per ``jeditaskid``: ``num_finished_jobs`` (jobs with a finished primary file), ``n_bad``,
    ``plain_bytes``, ``events_all``, ``events_finished``.
    """
    return rows.group_by("jeditaskid").agg(
        num_finished_jobs=((pl.col("n_ok") > 0) & pl.col("pandaid").is_not_null()).sum(),
        n_bad=((pl.col("is_bad") > 0) & pl.col("pandaid").is_not_null()).sum(),
        plain_bytes=pl.col("plain_bytes").sum(),
        events_all=pl.col("events_all").sum(),
        events_finished=pl.col("events_finished").sum(),
    )


def dataset_sums(datasets: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Sum the files of the primary input datasets of each task: all, used, finished.

    Merge jobs have no such datasets and no sums.
    """
    datasets = datasets.clear() if merge else datasets
    primary = datasets.filter(pl.col("type").is_in(INPUT_TYPES) & pl.col("masterid").is_null())
    return primary.group_by("jeditaskid").agg(
        pl.col("nfiles", "nfilesused", "nfilesfinished").sum()
    )


def expected_jobs(tasks: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Extrapolate the number of jobs, in all and still to be made.

    ``expected_jobs, expected_jobs_event, new_jobs`` Int64, one row per task.
    """
    if merge:
        zero = pl.zeros(tasks.height, dtype=pl.Int64, eager=True)
        return pl.select(expected_jobs=zero, expected_jobs_event=zero, new_jobs=zero)
    n, finished = pl.col("num_finished_jobs").cast(pl.Int64), pl.col("nfilesfinished")
    per_finished = pl.when(finished > 0).then(finished)
    with_events = pl.when(pl.col("events_finished") > 0).then(pl.col("events_finished"))
    counts = tasks.select(
        expected_jobs=(pl.col("nfiles") * n // per_finished).fill_null(0),
        new_jobs=((pl.col("nfiles") - pl.col("nfilesused")) * n // per_finished).fill_null(0),
        expected_jobs_event=(pl.col("events_all") * n // with_events).fill_null(0),
        free=has_no_job_limits(),
        free_scouts=has_no_job_limits() & uses_scouts(),
    )
    return _rescale(counts, tasks)


def _rescale(counts: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """Allow for the larger input per job after the avalanche where nothing limits it."""
    jobs = floats(tasks, "num_finished_jobs")
    with np.errstate(all="ignore"):
        mean_mb = floats(tasks, "plain_bytes") / MB / np.where(jobs > 0, jobs, np.nan)
    free = counts["free"].to_numpy() & ~np.isnan(mean_mb)
    by_event = counts["free_scouts"].to_numpy()
    columns = {}
    for name in ("expected_jobs", "new_jobs"):
        count = floats(counts, name)
        scaled = np.trunc(count * mean_mb / np.float64(INPUT_PER_JOB_MB))
        columns[name] = np.where(free, scaled, count)
    count = floats(counts, "expected_jobs_event")
    scaled = np.trunc(count * INPUT_PER_SCOUT_MB / np.float64(INPUT_PER_JOB_MB))
    columns["expected_jobs_event"] = np.where(by_event, scaled, count)
    return pl.DataFrame({k: v.astype(np.int64) for k, v in columns.items()})


def success(tasks: pl.DataFrame, *, merge: bool) -> pl.DataFrame:
    """Decide whether the scouts of each task succeeded.

    ``success_rate`` (null unless the task uses scouts or nothing finished) and ``succeeded``.
    """
    ok, bad = pl.col("num_finished_jobs"), pl.col("n_bad")
    formed = uses_scouts() & pl.lit(not merge)
    rate = pl.when(ok == 0).then(0.0).when(formed).then(ok / (ok + bad))
    # x/10 with a literal would be a multiplication; a column divides
    required = pl.col("SS") / pl.col("ten")
    lowered = pl.min_horizontal(required, pl.when(required.is_not_null()).then("min_ok_rate"))
    threshold = lowered.fill_null(0.0)
    return tasks.with_columns(ten=pl.lit(10.0)).select(
        success_rate=rate, succeeded=(ok > 0) & (rate.fill_null(1.0) >= threshold)
    )
