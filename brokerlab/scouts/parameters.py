"""From the jobs of each task to its new parameters: percentiles, maxima, means (docs/rules/scouts.md 5).

Every function takes the tasks as columns of settings, the jobs as arrays grouped by task, and returns
columns with one value per task; NaN or null means "not set".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.numerics import FloatArray, IntArray, SortedGroups
from brokerlab.scouts.quantities import flags, floats
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.tables import JOBS_FILES_COLUMNS, narrow, raise_for
from brokerlab.units import GB, KB, MB

OUTDISK_RANK = 75
OUTDISK_CAP_KB = 10_240
MILLI_BELOW = 10  # cpuTime below this is written in mHS06s
CPUTIME_SAFETY = 1.5
WALLTIME_SAFETY = 1.5
MIN_WALLTIME_CPU_S = 3600
MAX_WALLTIME = 999_999_999


@dataclass(frozen=True)
class ScoutConfig:
    """The settings of gdpconfig that do not depend on the task (app jedi, component dbproxy)."""

    cputime_rank: float = 95  # percentile rank of cpuTime
    ramcount_rank: float = 75  # percentile rank of ramCount
    ramcount_margin_pct: float = 10  # margin on ramCount [%]
    ramcount_min_mb: float | None = None  # lower limit of ramCount [MB]; None for none
    diskio_cap_kbps: float | None = None  # upper limit of diskIO [kB/s]; None for none


@dataclass(frozen=True)
class Jobs:
    """Jobs in the order in which they are processed, with the number of their task."""

    frame: pl.DataFrame  # one row per job, sorted by (jeditaskid, pandaid)
    task: IntArray  # (n_jobs,) row number of the job's task
    n_tasks: int  # number of tasks, those without jobs included

    @cached_property
    def first(self) -> IntArray:
        """The row of the first job of each task that has jobs."""
        return np.flatnonzero(np.diff(self.task, prepend=-1))

    def values(self, name: str) -> FloatArray:
        """Return a column as float64, NaN where null."""
        return floats(self.frame, name)

    def maximum(self, values: FloatArray) -> FloatArray:
        """Return the largest known value per task; NaN where there is none."""
        best = np.full(self.n_tasks, np.nan)
        if values.size:
            best[self.task[self.first]] = np.fmax.reduceat(values, self.first)
        return best

    def total(self, values: FloatArray) -> FloatArray:
        """Add the known values per task one after the other, in order; 0 where there is none."""
        known = ~np.isnan(values)
        sums = np.bincount(self.task[known], weights=values[known], minlength=self.n_tasks)
        return sums.astype(np.float64)

    def count(self, mask: np.ndarray | None = None) -> IntArray:
        """Count the jobs per task, all or where a mask holds."""
        counted = self.task if mask is None else self.task[mask]
        return np.bincount(counted, minlength=self.n_tasks).astype(np.int64)

    def last_equal(self, values: FloatArray, wanted: FloatArray) -> IntArray:
        """Return the row of the last job per task whose value is the wanted one; -1 for none."""
        hits = np.flatnonzero(values == wanted[self.task])
        result = np.full(self.n_tasks, -1, dtype=np.int64)
        np.maximum.at(result, self.task[hits], hits)
        return result

    def pick(self, name: str, rows: IntArray) -> FloatArray:
        """Return a column at one row per task; NaN where the row is -1."""
        known = rows >= 0
        picked = np.full(self.n_tasks, np.nan)
        picked[known] = self.values(name)[rows[known]]
        return picked

    def sorted_by_task(self, values: FloatArray) -> SortedGroups:
        """Sort the known values inside each task."""
        known = ~np.isnan(values)
        return SortedGroups.of(self.task[known], values[known], self.n_tasks)


@dataclass(frozen=True)
class Percentile:
    """A percentile per task and the rows of the two jobs it was made of (-1: none).

    The lower and upper job are the same row where one order statistic decides.
    """

    value: FloatArray
    lower_row: IntArray
    upper_row: IntArray

    @classmethod
    def of(cls, jobs: Jobs, values: FloatArray, rank: float) -> Percentile:
        """Take the percentile of each task; tag the last job that has an origin value (4)."""
        groups = jobs.sorted_by_task(values)
        lower, upper, _ = groups.order_statistics(rank)
        return cls(
            groups.percentile(rank), jobs.last_equal(values, lower), jobs.last_equal(values, upper)
        )


def cputime(tasks: pl.DataFrame, jobs: Jobs, rank: float) -> tuple[pl.DataFrame, Percentile]:
    """Compute cpuTime: percentile of HS06 s per event, times 1.5, in milli below 10 (5.1).

    ``cputime``, ``cputimeunit`` (null: unit unchanged), ``exec_time`` [s], ``old_cputime``.
    """
    eligible = flags(jobs.frame, "cputime_eligible") & ~flags(tasks, "cputime_fixed")[jobs.task]
    result = Percentile.of(jobs, np.where(eligible, jobs.values("cputime_hs06s"), np.nan), rank)
    value = result.value * CPUTIME_SAFETY
    milli = value < MILLI_BELOW
    number = np.ceil(np.where(milli, value * 1000, value))
    asked = tasks["asked_unit"]
    unit = (
        pl.when(pl.lit(pl.Series(milli)))
        .then(pl.lit("mHS06sPerEvent"))
        .when(pl.lit(asked).is_not_null() & pl.lit(pl.Series(~np.isnan(value))))
        .then(pl.lit("HS06sPerEvent"))
    )
    exec_time = jobs.pick("duration_s", result.upper_row)
    asked_milli = asked.str.starts_with("m").fill_null(value=False).to_numpy()
    old = floats(tasks, "orig_cputime")
    old = np.where(asked_milli, old / np.full_like(old, 1000), old)
    columns = pl.select(
        cputime=integers(number),
        cputimeunit=unit,
        exec_time=nullable(exec_time),
        old_cputime=nullable(np.where(milli, np.trunc(old * 1000), old)),
    )
    return columns, result


def ramcount(
    tasks: pl.DataFrame, jobs: Jobs, config: ScoutConfig, rules: ScoutRules
) -> tuple[pl.DataFrame, Percentile]:
    """Compute ramCount: percentile of memory with margin and minimum [MB] (5.2).

    ``ramcount`` and ``ramunit`` (null: not set).
    """
    minimum = -np.inf if config.ramcount_min_mb is None else config.ramcount_min_mb
    per_job = jobs.values("ram_kb")
    if rules.ram_min_per_job:
        # np.fmax would turn "not known" into the minimum; np.maximum keeps NaN
        factor = 1 + config.ramcount_margin_pct / 100
        per_job = np.maximum(per_job / 1024 * factor, minimum)
        result = Percentile.of(jobs, per_job, config.ramcount_rank)
        value = np.trunc(result.value)
        value = np.where(value < 0, 1, value)
    else:
        result = Percentile.of(jobs, per_job, config.ramcount_rank)
        value = whole_ram_mb(result.value, config.ramcount_margin_pct, minimum)
    unit = pl.select(
        pl.when(pl.lit(pl.Series(~np.isnan(value)))).then(
            pl.when(pl.lit(tasks["ram_per_core"])).then(pl.lit("MBPerCore")).otherwise(pl.lit("MB"))
        )
    ).to_series()
    return pl.select(ramcount=integers(value), ramunit=unit), result


def whole_ram_mb(percentile_kb: FloatArray, margin_pct: Any, minimum_mb: Any) -> FloatArray:
    """Put margin and minimum on percentiles of memory and cut to whole MB, as production does (5.2)."""
    value = np.trunc(np.floor_divide(percentile_kb * (100 + margin_pct), 100) / KB)
    return np.asarray(np.maximum(np.where(value < 0, 1, value), minimum_mb))


def whole_cputime(percentile_hs06s: FloatArray) -> FloatArray:
    """Round HS06 s per event up in the unit that is chosen; the result is in milli in any case (5.1)."""
    milli = percentile_hs06s < MILLI_BELOW
    return np.where(milli, np.ceil(percentile_hs06s * 1000), np.ceil(percentile_hs06s) * 1000)


def whole_outdisk_kb(percentile_bytes: FloatArray, rules: ScoutRules) -> FloatArray:
    """Cut percentiles of output to whole kB, at most 10 MB under ``outdisk_capped`` (5.3); NaN stays."""
    cap = OUTDISK_CAP_KB if rules.outdisk_capped else np.inf
    return np.asarray(np.trunc(np.minimum(percentile_bytes / KB, cap)))


def outdiskcount(
    tasks: pl.DataFrame, jobs: Jobs, rules: ScoutRules
) -> tuple[pl.DataFrame, Percentile]:
    """Compute outDiskCount: 75th percentile of output [kB], in production at most 10 MB (5.3)."""
    result = Percentile.of(jobs, jobs.values("outdisk_bytes"), OUTDISK_RANK)
    value = whole_outdisk_kb(result.value, rules)
    unit = pl.select(
        pl.when(pl.lit(pl.Series(~np.isnan(value)))).then(
            pl.when(pl.lit(tasks["outdisk_per_event"]))
            .then(pl.lit("kBPerEvent"))
            .otherwise(pl.lit("kB"))
        )
    ).to_series()
    return pl.select(outdiskcount=integers(value), outdiskunit=unit), result


def workdiskcount(tasks: pl.DataFrame, jobs: Jobs) -> pl.DataFrame:
    """Compute workDiskCount: the largest work directory or library, never below the preset (5.4)."""
    largest = jobs.maximum(jobs.values("workdisk_mb"))
    library = floats(tasks, "library_mb")
    bigger = np.where(library > largest, library, largest)
    value = np.trunc(bigger)
    preset = floats(tasks, "workdiskcount")
    value = np.where(preset > value, preset, value)
    return pl.select(workdiskcount=integers(value), workdiskunit=label(value, "MB"))


def io_parameters(
    jobs: Jobs, config: ScoutConfig, rules: ScoutRules
) -> tuple[pl.DataFrame, IntArray]:
    """Compute ioIntensity (maximum) and diskIO (floored mean) [kB/s] (5.5, 5.6).

    ``iointensity, iointensityunit, diskio, diskiounit`` and the row of the job with the maximum.
    """
    per_job = jobs.values("iointensity_kbps")
    highest = jobs.maximum(per_job)
    rates = jobs.values("diskio_kbps")
    cap = np.inf if config.diskio_cap_kbps is None else config.diskio_cap_kbps
    if rules.diskio_cap_per_job:
        rates = np.minimum(rates, cap)
    n = jobs.count(~np.isnan(rates))
    with np.errstate(all="ignore"):
        mean = np.floor_divide(jobs.total(rates), np.where(n > 0, n, np.nan))
    mean = mean if rules.diskio_cap_per_job else np.minimum(mean, cap)
    intensity, diskio = np.ceil(highest), np.ceil(mean)
    columns = pl.select(
        iointensity=integers(intensity),
        iointensityunit=label(intensity, "kBPerS"),
        diskio=integers(diskio),
        diskiounit=label(diskio, "kBPerS"),
    )
    return columns, jobs.last_equal(per_job, highest)


def walltime(tasks: pl.DataFrame, jobs: Jobs) -> tuple[pl.DataFrame, IntArray]:
    """Compute walltime: CPU time per MB of input, never below the task's value (5.7).

    ``walltime`` [s per MB of input] and ``walltimeunit``, and the row of the deciding job.
    """
    cpu = jobs.values("cpu_s")
    longest = jobs.maximum(cpu)
    size = jobs.maximum(jobs.values("input_mb"))
    with np.errstate(all="ignore"):
        value = np.where(longest < MIN_WALLTIME_CPU_S, 0, longest)
        value = np.ceil(value / size * WALLTIME_SAFETY)
    preset = floats(tasks, "walltime")
    keep = ~np.isnan(value) & ((preset > value) | (preset < 0))
    value = np.minimum(np.where(keep, preset, value), MAX_WALLTIME)
    unit = pl.repeat("kSI2kseconds", jobs.n_tasks, eager=True)
    return pl.select(walltime=integers(value), walltimeunit=unit), jobs.last_equal(cpu, longest)


def memory_leak(jobs: Jobs) -> pl.DataFrame:
    """Compute the mean leak per core [kB/s] and its fit quality, rounded up (5.8)."""

    def mean_up(name: str) -> pl.Series:
        values = jobs.values(name)
        n = jobs.count(~np.isnan(values))
        with np.errstate(all="ignore"):
            return integers(np.ceil(jobs.total(values) / np.where(n > 0, n, np.nan)))

    return pl.select(memory_leak_core=mean_up("leak_kbps"), memory_leak_x2=mean_up("leak_x2"))


def cpu_efficiency(jobs: Jobs, low_pct: FloatArray) -> tuple[pl.DataFrame, IntArray]:
    """Compute the median CPU efficiency [%] and count the inefficient jobs (5.9)."""
    values = jobs.values("cpu_efficiency_pct")
    median = np.trunc(jobs.sorted_by_task(values).percentile(50))
    columns = pl.select(
        min_cpu_efficiency=integers(median),
        n_inefficient=pl.Series(jobs.count(values < low_pct[jobs.task])),
        n_total_for_ineff=pl.Series(jobs.count(~np.isnan(values))),
    )
    return columns, jobs.last_equal(values, median)


def short_jobs(jobs: Jobs, limit_s: FloatArray) -> pl.DataFrame:
    """Count the short jobs, at all queues and at those that force copy to scratch (8)."""
    duration = jobs.values("payload_duration_s")
    short = duration <= limit_s[jobs.task]
    longest = jobs.maximum(np.where(short, duration, np.nan))
    return pl.select(
        n_short=pl.Series(jobs.count(short)),
        n_short_copy=pl.Series(jobs.count(short & flags(jobs.frame, "copies_to_scratch"))),
        total_short_base=pl.Series(jobs.count(~np.isnan(duration))),
        longest_short=integers(np.nan_to_num(longest)),
    )


def most_cpu(jobs: Jobs) -> pl.DataFrame:
    """Return the job with the largest CPU time: seconds, duration [s], cores (8)."""
    cpu = jobs.values("cpu_s")
    longest = jobs.maximum(cpu)
    row = jobs.last_equal(cpu, longest)
    return pl.select(
        max_cpu_time=integers(longest),
        max_cpu_time_duration=nullable(jobs.pick("duration_s", row)),
        max_cpu_time_cores=integers(jobs.pick("cores", row)),
    )


def integers(values: FloatArray) -> pl.Series:
    """Turn whole floats into Int64, null where NaN."""
    return nullable(values).cast(pl.Int64)


def nullable(values: FloatArray) -> pl.Series:
    """Turn NaN into null."""
    return pl.Series(values, dtype=pl.Float64, nan_to_null=True)


def label(values: FloatArray, text: str) -> pl.Series:
    """Return a text where there is a value, else null."""
    known = pl.lit(pl.Series(~np.isnan(values)))
    return pl.select(pl.when(known).then(pl.lit(text))).to_series()


SAFETY_BYTES = 300 * MB
POOL_BYTES = 1500 * MB
MAX_GB = 100


@dataclass(frozen=True)
class Origin:
    """One job that defined outDiskCount, and what its task asks for."""

    out_total: int  # bytes of all outputs, logs excluded
    out_big: int  # bytes of the largest output dataset
    target_gb: int  # wanted size of the largest output, ``TN`` [GB]
    outdiskcount: int  # new outDiskCount [kB per event or MB]
    workdiskcount: int  # new workDiskCount [MB]
    per_event: bool  # the unit of outDiskCount is per event
    input_mb: float | None  # effective primary input [MB]
    n_events: int | None  # effective events
    inputfilebytes: int | None  # all input of the job [B]
    plain_bytes: int  # plain size of the primary input [B]


def gb_per_job(origin: Origin, rules: ScoutRules) -> int | None:
    """Compute nGBPerJob from one origin; null where something needed is missing.

    Source: docs/rules/scouts.md 5.10.

    Example:
        >>> job = Origin(4 * GB, 2 * GB, 5, 100, 2000, False, 1000.0, 10, 10**9, 10**9)
        >>> gb_per_job(job, ScoutRules("production"))
        100
    """
    if not origin.out_total or not origin.out_big:
        return None
    expected = origin.out_total * origin.target_gb * GB // origin.out_big
    steps = expected // (origin.outdiskcount * 1024 or 1)
    if origin.per_event:
        needed = origin.input_mb, origin.inputfilebytes, origin.n_events
        if None in needed or not origin.n_events:
            return None
        own = (origin.input_mb or 0.0) * (MB if rules.ng_input_in_bytes else 1)
        whole = own + (origin.inputfilebytes or 0) - origin.plain_bytes
        read = whole * steps // origin.n_events
        work = origin.workdiskcount * MB + SAFETY_BYTES
        total = expected + read + work - POOL_BYTES
    else:
        total = expected + steps * MB - POOL_BYTES
    size = total / GB
    number = int(1 if size <= 0 else min(size, MAX_GB))
    return max(number, 1) if rules.ng_at_least_one else number


def new_ng(origins: pl.DataFrame, outputs: Any, rules: ScoutRules) -> pl.DataFrame:
    """Compute nGBPerJob of every task that sets a target size of its output.

    ``jeditaskid, newng`` [GB] of the tasks where it is set. The last valid origin wins.
    """
    sized = origins.join(_output_sizes(outputs, origins["pandaid"]), on="pandaid", how="inner")
    result = [
        (row.pop("jeditaskid"), row.pop("order"), gb_per_job(Origin(**row), rules))
        for row in sized.drop("pandaid").iter_rows(named=True)
    ]
    schema = {"jeditaskid": pl.Int64, "order": pl.Int64, "newng": pl.Int64}
    return (
        pl.DataFrame(result, schema=schema, orient="row")
        .drop_nulls("newng")
        .sort("jeditaskid", "order")
        .group_by("jeditaskid")
        .agg(pl.col("newng").last())
    )


def origins_of(tasks: pl.DataFrame, jobs: Jobs, outdisk: Percentile) -> pl.DataFrame:
    """Return one row per (task with a target size, origin), lower origin first."""
    per_task = tasks.select(
        "jeditaskid",
        target_gb="TN",
        outdiskcount="outdiskcount",
        workdiskcount="workdiskcount",
        per_event="outdisk_per_event",
    )
    parts = []
    for order, rows in enumerate((outdisk.lower_row, outdisk.upper_row)):
        chosen = per_task.with_columns(job=pl.Series(rows), order=pl.lit(order))
        parts.append(
            chosen.filter(
                (pl.col("job") >= 0)
                & (pl.col("target_gb").fill_null(0) != 0)
                & pl.col("workdiskcount").is_not_null()
            )
        )
    chosen = pl.concat(parts).unique(["jeditaskid", "job"], keep="first", maintain_order=True)
    job = jobs.frame.select(
        "pandaid", "input_mb", "n_events", "inputfilebytes", "plain_bytes"
    ).with_columns(job=pl.int_range(pl.len(), dtype=pl.Int64))
    return chosen.join(job, on="job", how="inner").drop("job")


def _output_sizes(outputs: Any, jobs: pl.Series) -> pl.DataFrame:
    """Return the bytes of all outputs and of the largest output dataset of each job."""
    problems: list[str] = []
    lazy = narrow(outputs, "jobs_files", JOBS_FILES_COLUMNS, problems)
    raise_for(problems)
    per_dataset = (
        lazy.filter((nw.col("type") == "output") & nw.col("pandaid").is_in(jobs.unique().to_list()))
        .group_by("pandaid", "dataset")
        .agg(nw.col("fsize").sum().cast(nw.Int64).alias("bytes"))
    )
    sizes: pl.DataFrame = (
        per_dataset.group_by("pandaid")
        .agg(
            nw.col("bytes").sum().cast(nw.Int64).alias("out_total"),
            nw.col("bytes").max().alias("out_big"),
        )
        .collect("polars")
        .to_native()
    )
    return sizes


def jobs_of_files(
    sizes: Sequence[int],
    events: Sequence[int],
    *,
    limit_gb: float,
    outdiskcount: int,
    workdiskcount: int,
    per_event: bool,
) -> list[int]:
    """Deal the input files of a task to jobs whose expected disk usage is less than nGBPerJob.

    A job takes files in order as long as input, output and work directory together stay below the limit; a file that
    does not fit even alone makes a job by itself.

    Source: 003, nGBPerJob.
    """
    numbers: list[int] = []
    job, used = 0, 0.0
    for size, n_events in zip(sizes, events, strict=True):
        amount = n_events if per_event else size / MB
        need = size + outdiskcount * KB * amount
        full = used + need + workdiskcount * MB >= limit_gb * GB
        if numbers and numbers[-1] == job and full:
            job, used = job + 1, 0.0
        numbers.append(job)
        used += need
    return numbers
