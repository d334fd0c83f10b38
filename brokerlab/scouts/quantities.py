"""What one job says: the quantities of docs/rules/scouts.md 3 and 5, job by job, before any percentile.

Floats are formed in NumPy in the order the chapter writes them; NaN stands for "not known" and carries
through every formula as null does in the database.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from brokerlab.engines import EPOCH
from brokerlab.numerics import FloatArray
from brokerlab.scouts.rules import ScoutRules
from brokerlab.units import HOUR_S, KB, MB

MEMORY_CODES = (1212, 1235)
"""Pilot error codes of a payload out of memory, or above its allowed memory."""
WALLTIME_CODES = (1213,)  # pilot error code of a job that reached its time limit


def kill_cause() -> pl.Expr:
    """Tell which limit ended a failed job: ``memory``, ``walltime``, or null for any other reason."""
    code = pl.col("piloterrorcode")
    return (
        pl.when(code.is_in(MEMORY_CODES)).then(pl.lit("memory"))
        .when(code.is_in(WALLTIME_CODES)).then(pl.lit("walltime"))
    )  # fmt: skip


EVENT_SERVICE, EVENT_SERVICE_MERGE = 1, 2
DEFAULT_COREPOWER = 10.0
LONG_JOB_S = 6 * HOUR_S
TIMES = ("starttime", "endtime")
SPENT = (*TIMES, "jobstatus", "actualcorecount", "corecount", "jobmetrics", "specialhandling")
"""What only :func:`of_jobs` reads."""


def floats(frame: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as float64, NaN where null. Whole numbers below 2**53 stay exact."""
    return frame[name].cast(pl.Float64).to_numpy()


def flags(frame: pl.DataFrame, name: str) -> np.ndarray:
    """Return a boolean column, False where null."""
    return np.asarray(floats(frame, name) == 1)


def core_count() -> pl.Expr:
    """Cores used: by the pilot (even 0), from jobmetrics, requested if not 0, else 1 (3.1)."""
    actual, requested = pl.col("actualcorecount"), pl.col("corecount")
    return pl.coalesce(
        actual,
        _metric("coreCount", where=actual.is_null()),
        pl.when(requested != 0).then(requested),
        pl.lit(1),
    )


def _metric(name: str, *, where: pl.Expr | None = None) -> pl.Expr:
    """Return the digits after ``name=`` in jobmetrics, first match; null where absent."""
    text = pl.col("jobmetrics") if where is None else pl.when(where).then(pl.col("jobmetrics"))
    # to find the whole and cut it takes two thirds of the time of a group
    result = text.str.extract(name + "=[0-9]+", 0).str.slice(len(name) + 1)
    return result.cast(pl.Int64, strict=False)


def is_job_cloning() -> pl.Expr:
    """Tell whether specialhandling has the token ``sc``, alone or as ``sc:...`` (2.7)."""
    return pl.col("specialhandling").str.contains(r"(?:^|,)sc(?:$|,|:)").fill_null(value=False)


def has_scout_mark() -> pl.Expr:
    """Tell whether specialhandling marks the job as a scout (token ``sj``)."""
    return pl.col("specialhandling").str.contains(r"(?:^|,)sj(?:$|,)").fill_null(value=False)


def known_times() -> list[pl.Expr]:
    """Return start and end of jobs; a time that is not known yet is recorded as 1970."""
    return [pl.when(pl.col(name) != EPOCH).then(pl.col(name)).alias(name) for name in TIMES]


def of_jobs(jobs: pl.DataFrame, *, recorded: bool) -> pl.DataFrame:
    """Derive what jobs say whatever their task (docs/rules/scouts.md 2.7, 3), before they are dealt out.

    ``is_finished, cores, span_us, is_scout, is_es, workdir_bytes, vm_peak_kb`` (where ``maxpss`` says nothing) beside the other
    columns, and beside those that they are made of where ``recorded``.
    """
    start, end = known_times()
    derived = jobs.with_columns(
        is_finished=pl.col("jobstatus") == "finished",
        cores=core_count().cast(pl.Float64),
        span_us=(end - start).dt.total_microseconds(),
        is_scout=has_scout_mark(),
        is_es=(pl.col("eventservice") == EVENT_SERVICE).fill_null(value=False) & ~is_job_cloning(),
        workdir_bytes=_metric("workDirSize"),
        vm_peak_kb=_metric("vmPeakMax", where=pl.col("maxpss") <= 0),
    )
    return derived if recorded else derived.drop(SPENT)


def job_quantities_of(rows: pl.DataFrame, rules: ScoutRules) -> pl.DataFrame:
    """Derive every quantity of every job of :func:`of_jobs` (docs/rules/scouts.md 2.7, 3, 5)."""
    own_events = pl.col("is_es") | pl.col("through_jobset")
    frame = rows.with_columns(
        corepower=_corepower(),
        es_merge=(pl.col("eventservice") == EVENT_SERVICE_MERGE).fill_null(value=False),
        input_mb=pl.col("input_bytes") / MB,
        n_events=pl.when(own_events).then(pl.col("nevents")).otherwise(pl.col("file_events")),
    )
    with np.errstate(all="ignore"):
        derived = _derive(frame, rules)
    return frame.with_columns(pl.Series(k, v, nan_to_null=True) for k, v in derived.items())


def _corepower() -> pl.Expr:
    """HS06 per core: host benchmark, else queue, else 10; 0 counts as unknown (3.2)."""
    bench, queue = pl.col("bench_corepower"), pl.col("queue_corepower")
    return pl.coalesce(
        pl.when(bench != 0).then(bench), pl.when(queue != 0).then(queue), pl.lit(DEFAULT_COREPOWER)
    )


def _derive(frame: pl.DataFrame, rules: ScoutRules) -> dict[str, FloatArray]:
    """Form the float quantities; NaN where a job says nothing about one of them."""
    cores, events, size = (floats(frame, name) for name in ("cores", "n_events", "input_mb"))
    span_us = floats(frame, "span_us")
    duration = np.floor_divide(span_us, 1e6)
    # jobs that cannot be divided by their time or cores say nothing about rates
    seconds = np.where(duration != 0, duration, np.nan)
    used_cores = np.where(cores != 0, cores, np.nan)
    out = floats(frame, "outputfilebytes")
    cpu = floats(frame, "cpuconsumptiontime")
    # a job without cores says nothing, whether or not the rule set divides by them (12)
    io = np.where(np.isnan(used_cores), np.nan, (size * 1024 + out / KB) / seconds)
    workdir = np.nan_to_num(floats(frame, "workdir_bytes"))
    result = {
        "duration_s": duration,
        "cputime_hs06s": _per_event(_hs06s(frame, duration, cores), events),
        "cputime_long": _long_enough(span_us, duration, rules),
        "ram_kb": _ram_kb(frame, used_cores),
        "outdisk_bytes": _outdisk_bytes(frame, events, size, out),
        "workdisk_mb": np.where(flags(frame, "is_es"), 0, workdir / MB),
        "iointensity_kbps": io / used_cores if rules.io_intensity_per_core else io,
        "diskio_kbps": (floats(frame, "totrbytes") + floats(frame, "totwbytes")) / seconds,
        "leak_kbps": np.ceil(floats(frame, "memory_leak") / used_cores),
        "leak_x2": np.trunc(floats(frame, "memory_leak_x2")),
        "cpu_efficiency_pct": np.ceil(cpu / (used_cores * seconds) * 100),
        "cpu_s": cpu,
        "payload_duration_s": duration,
    }
    everyone = {"duration_s", "outdisk_bytes", "workdisk_mb", "cputime_long"}
    merges = np.flatnonzero(flags(frame, "es_merge"))
    for name, values in result.items():
        if (
            name not in everyone and merges.size
        ):  # event-service merge jobs speak of disk only (2.7)
            result[name] = values.copy()
            result[name][merges] = np.nan
    result["cputime_long"][merges] = 0.0
    return result


def _hs06s(frame: pl.DataFrame, duration: FloatArray, cores: FloatArray) -> FloatArray:
    """HS06 seconds of a job beyond its base time, 0 at or below it (3.4)."""
    beyond = duration - floats(frame, "base_time_s")
    efficiency = floats(frame, "efficiency_pct")
    work = beyond * floats(frame, "corepower") * cores * efficiency / 100
    work = np.where((efficiency == 0) | (beyond <= 0), 0.0, work)
    return np.where(np.isnan(duration), np.nan, work)


def _per_event(work: FloatArray, events: FloatArray) -> FloatArray:
    """Divide by the events; a job of 0 events counts as a whole (5.1)."""
    return np.where(np.isnan(events), np.nan, np.where(events > 0, work / events, work))


def _long_enough(span_us: FloatArray, duration: FloatArray, rules: ScoutRules) -> FloatArray:
    """1 where a job of few events is long enough to count: 6 h (5.1)."""
    if rules.long_job_inclusive:
        return (duration >= LONG_JOB_S).astype(np.float64)
    return (span_us > LONG_JOB_S * 1e6).astype(np.float64)


def _ram_kb(frame: pl.DataFrame, used_cores: FloatArray) -> FloatArray:
    """Memory that sets ramCount [kB], per core or whole job by the task's unit (5.2)."""
    maxpss = floats(frame, "maxpss")
    base = floats(frame, "base_ram_mb")
    per_core = np.where(maxpss > 0, np.ceil((maxpss - base * 1024) / used_cores), np.nan)
    whole = np.where(maxpss > 0, maxpss, floats(frame, "vm_peak_kb"))
    values = np.where(flags(frame, "ram_per_core"), per_core, whole)
    return np.where(flags(frame, "ram_fixed"), np.nan, values)


def _outdisk_bytes(
    frame: pl.DataFrame, events: FloatArray, size: FloatArray, out: FloatArray
) -> FloatArray:
    """Output per event, or per MB of input, of jobs of ten events or more [B] (5.3)."""
    per = np.where(flags(frame, "outdisk_per_event"), events, size)
    values = np.ceil(out / per)
    skipped = flags(frame, "is_es") | flags(frame, "outdisk_fixed") | ~(events >= 10)
    return np.where(skipped, np.nan, values)


def cputime_eligible(rules: ScoutRules) -> pl.Expr:
    """Tell which jobs set cpuTime: ten events per core, pseudo input, or long enough (5.1)."""
    enough = pl.col("n_events") >= 10 * pl.col("cores")
    pseudo = (pl.col("has_pseudo") > 0) & pl.lit(rules.pseudo_input_eligible)
    eligible = enough | pseudo | (pl.col("cputime_long") > 0)
    return eligible.fill_null(value=False) & pl.col("cputime_hs06s").is_not_null()
