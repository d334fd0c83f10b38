"""Scouts at work: which jobs are used, and the new parameters of every task at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from brokerlab.gdpconfig import Config
from brokerlab.numerics import FloatArray
from brokerlab.scouts import expected, gather, parameters
from brokerlab.scouts.benchmarks import bench_corepower
from brokerlab.scouts.ngb import new_ng
from brokerlab.scouts.parameters import Jobs, ScoutConfig
from brokerlab.scouts.quantities import (
    EVENT_SERVICE,
    cputime_eligible,
    floats,
    job_quantities_of,
)
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.settings import task_settings

MAX_SCOUTS = 1000
CHUNK_FILES = 4_000_000  # rows of `files` worked on at once; bounds the memory

TAGS = ("outDiskCount", "walltime", "cpuTime", "ioIntensity", "ramCount", "cpuEfficiency")


@dataclass(frozen=True)
class ScoutResult:
    """What scouts said of each task.

    Attributes:
        parameters: One row per task, sorted by ``jeditaskid``; columns of scouts.md 13. The written
            parameters are null where they are not set.
        tags: ``jeditaskid, pandaid, parameter``: the jobs that defined each parameter.
        rules: The rule set it was made under.
        config_digest: Digest of the gdpconfig it was made under.
    """

    parameters: pl.DataFrame
    tags: pl.DataFrame
    rules: ScoutRules
    config_digest: str

    def to_frame(self) -> pl.DataFrame:
        """Return the parameters."""
        return self.parameters

    def _repr_html_(self) -> str:
        return self.parameters._repr_html_()


@dataclass(frozen=True)
class _Chunk:
    """A run of tasks with their jobs, ready for the parameters."""

    tasks: pl.DataFrame
    jobs: Jobs
    tables: gather.Tables


def estimate(
    jobs: Any,
    files: Any,
    tasks: Any,
    datasets: Any,
    queues: Any,
    *,
    jobs_files: Any = None,
    worker_nodes: Any = None,
    cpu_benchmarks: Any = None,
    rules: ScoutRules | None = None,
    config: Config | None = None,
    at: datetime | pl.DataFrame | None = None,
    merge: bool = False,
    seed: int = 0,
    max_scouts: int | None = MAX_SCOUTS,
) -> ScoutResult:
    """Compute every parameter that scouts set, for every task.

    Args:
        jobs: ``jobs`` table (archive-schema.md 1) of any engine narwhals reads.
        files: ``files`` table (4).
        tasks: ``tasks`` table (2); the tasks to be estimated.
        datasets: ``datasets`` table (3).
        queues: ``queues`` table (5). Without both ``maxinputsize`` and ``direct_access_lan`` the jobs
            with forced copy to scratch are not known and counted as 0.
        jobs_files: Output files of jobs, needed for ``newng`` only.
        worker_nodes: With ``cpu_benchmarks``, core power by host (3.2).
        cpu_benchmarks: See ``worker_nodes``. PanDA looks them up for ordinary jobs only, not for merge jobs.
        rules: Rule set; default the document's.
        config: gdpconfig; default the catalogue's defaults.
        at: Look at the archive as it was at an instant [UTC], or at one per task (frame with
            ``jeditaskid, at``; tasks that are not in it are left out). None: all that is recorded.
        merge: Estimate the merge jobs of the tasks instead (10).
        seed: Draw of the jobs where a task has more than ``max_scouts`` (11).
        max_scouts: Most jobs per task; None for no cap.

    Returns:
        One row per task; null = not set.

    Raises:
        SchemaError: Columns are missing.
        DataError: A task occurs twice.

    Source: Dynamic Optimization of Task Parameters (seed 003); scouts.md 2 to 11.
    """
    rules = rules or ScoutRules()
    config = config or Config.empty()
    settings = scout_config(config, rules)
    parts = [
        _parameters(chunk, settings, rules, jobs_files=jobs_files, merge=merge)
        for chunk in _chunks(
            (jobs, files, tasks, datasets, queues),
            hosts=None if worker_nodes is None else (worker_nodes, cpu_benchmarks),
            rules=rules,
            config=config,
            at=at,
            merge=merge,
            seed=seed,
            max_scouts=max_scouts,
        )
    ]
    return ScoutResult(
        pl.concat([part[0] for part in parts]).sort("jeditaskid"),
        pl.concat([part[1] for part in parts]).sort("jeditaskid", "pandaid", "parameter"),
        rules,
        config.digest,
    )


def job_quantities(
    jobs: Any,
    files: Any,
    tasks: Any,
    datasets: Any,
    queues: Any,
    *,
    rules: ScoutRules | None = None,
    at: datetime | pl.DataFrame | None = None,
    seed: int = 0,
    max_jobs: int | None = None,
) -> pl.DataFrame:
    """Compute what every finished job says about its task, before any percentile.

    Args:
        jobs: As for :func:`estimate`, as the other tables.
        files: See there.
        tasks: See there.
        datasets: See there.
        queues: See there.
        rules: Rule set; default the document's.
        at: See there.
        seed: See there.
        max_jobs: Most jobs per task; None for all.

    Returns:
        One row per (jeditaskid, pandaid) with a finished primary input file, sorted by both:
        the job's columns as recorded, ``finish_time`` (its last change), ``is_scout``, ``cores``,
        ``corepower`` [HS06/core], ``duration_s``, ``n_events``, ``input_mb``, ``cputime_hs06s`` [HS06 s per
        event], ``cputime_eligible``, ``ram_kb`` (per core where ``ram_per_core``, else whole job),
        ``outdisk_bytes`` (per event where ``outdisk_per_event``, else per MB of input), ``workdisk_mb``,
        ``iointensity_kbps``, ``diskio_kbps``, ``leak_kbps`` (per core), ``leak_x2``, ``cpu_efficiency_pct``,
        ``maxpss_kb``. Null where the job says nothing about the quantity.

    Source: scouts.md 2, 3, 5, 12.
    """
    chunks = _chunks(
        (jobs, files, tasks, datasets, queues),
        hosts=None,
        rules=rules or ScoutRules(),
        config=Config.empty(),
        at=at,
        merge=False,
        seed=seed,
        max_scouts=max_jobs,
    )
    columns = [
        *("jeditaskid", "pandaid", "computingsite", "is_scout", "creationtime", "starttime"),
        *("endtime", "cores", "corepower", "duration_s", "n_events", "input_mb", "cputime_hs06s"),
        *("cputime_eligible", "ram_kb", "ram_per_core", "outdisk_bytes", "outdisk_per_event"),
        *("workdisk_mb", "iointensity_kbps", "diskio_kbps", "leak_kbps", "leak_x2"),
        *("cpu_efficiency_pct", "cpuconsumptiontime", "outputfilebytes", "inputfilebytes"),
        "eventservice",
    ]
    return pl.concat(
        [
            chunk.jobs.frame.select(
                *columns, maxpss_kb=pl.col("maxpss"), finish_time=pl.col("modificationtime")
            )
            for chunk in chunks
        ]
    ).sort("jeditaskid", "pandaid")


def scout_config(config: Config, rules: ScoutRules) -> ScoutConfig:
    """Read the settings that are the same for every task."""
    return ScoutConfig(
        cputime_rank=config.get(rules.cputime_rank_key),
        ramcount_rank=config.get("SCOUT_RAMCOUNT_RANK"),
        ramcount_margin_pct=config.get("SCOUT_RAMCOUNT_MARGIN"),
        ramcount_min_mb=config.get("SCOUT_RAMCOUNT_MIN") or None,
        diskio_cap_kbps=config.get("SCOUT_DISK_IO_CAP"),
    )


def label_settings(config: Config, labels: pl.Series) -> pl.DataFrame:
    """Read the settings that depend on the task's label, one row per ``prodsourcelabel``."""
    keys = {
        "short_exec_time": ("SCOUT_SHORT_EXECTIME", 0),
        "cpu_efficiency_cap": ("SCOUT_LOW_CPU_EFFICIENCY", 0),
        "min_ok_rate": ("SCOUT_MIN_OK_RATE_EXHAUSTED", None),
    }
    rows = [
        {"prodsourcelabel": label}
        | {
            name: config.get(f"{key}_<prodsourcelabel>", prodsourcelabel=label or "")
            for name, (key, _) in keys.items()
        }
        for label in labels.unique(maintain_order=True)
    ]
    schema = {"prodsourcelabel": pl.String} | dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(rows, schema=schema).with_columns(
        pl.col(name).fill_null(default) for name, (_, default) in keys.items() if default is not None
    )


def _chunks(
    frames: tuple[Any, Any, Any, Any, Any],
    *,
    hosts: tuple[Any, Any] | None,
    rules: ScoutRules,
    config: Config,
    at: datetime | pl.DataFrame | None,
    merge: bool,
    seed: int,
    max_scouts: int | None,
) -> Iterator[_Chunk]:
    """Cut the archive into runs of tasks and derive every job's quantities."""
    jobs, files, tasks, datasets, queues = frames
    tables = gather.Tables.of(jobs, files, datasets, merge=merge, hosts=hosts is not None)
    settings = _all_settings(tasks, tables, config, rules, at, merge=merge)
    sites = _queue_settings(queues)
    for span in gather.task_ranges(tables.files, CHUNK_FILES):
        part = gather.within(tables, span)
        own = settings if span is None else settings.filter(
            pl.col("jeditaskid").is_between(*span)
        )
        found = gather.rows(part)
        if at is not None:
            found = as_of(found, own.select("jeditaskid", "at"))
            own = _recount(own, found)
        own = own.join(expected.file_sums(found), on="jeditaskid", how="left", maintain_order="left")
        zeros = [*SUMMED, "nfiles", "nfilesused", "nfilesfinished"]
        own = own.with_columns(pl.col(zeros).fill_null(0))
        used = _used_jobs(found, part, max_scouts, seed)
        power = bench_corepower(used, sites, hosts)
        frame = (
            used.with_columns(bench_corepower=power)
            .join(sites, left_on="computingsite", right_on="panda_queue", how="left")
            .join(
                own.select("jeditaskid", *JOB_SETTINGS).with_row_index("task"),
                on="jeditaskid",
                how="inner",
            )
            .with_columns(copies_to_scratch=_copies_to_scratch(known="maxinputsize" in sites.columns))
            .sort("jeditaskid", "bringer", "pandaid")
        )
        derived = job_quantities_of(frame, rules).with_columns(
            cputime_eligible=cputime_eligible(rules)
        )
        yield _Chunk(own, Jobs(derived, derived["task"].to_numpy().astype(np.int64), own.height), part)


SUMMED = ("num_finished_jobs", "n_bad", "plain_bytes", "events_all", "events_finished")
JOB_SETTINGS = (
    *("base_time_s", "efficiency_pct", "base_ram_mb", "ram_per_core", "ram_fixed"),
    *("outdisk_per_event", "outdisk_fixed", "LI", "IL"),
)


def _all_settings(
    tasks: Any,
    tables: gather.Tables,
    config: Config,
    rules: ScoutRules,
    at: datetime | pl.DataFrame | None,
    *,
    merge: bool,
) -> pl.DataFrame:
    """Join to every task its own settings, its label's, its datasets' counts and its library."""
    settings = task_settings(gather.small(tasks, "tasks", gather.TASK_COLUMNS), rules, merge=merge)
    if isinstance(at, pl.DataFrame):
        settings = settings.join(at.select("jeditaskid", "at"), on="jeditaskid", how="inner")
    elif at is not None:
        settings = settings.with_columns(at=pl.lit(at, dtype=pl.Datetime("us")))
    datasets = tables.datasets.collect("polars").to_native()
    labels = label_settings(config, settings["prodsourcelabel"])
    joined = settings.join(labels, on="prodsourcelabel", how="left", nulls_equal=True)
    for other in (expected.dataset_sums(datasets, merge=merge), gather.library_mb(tables)):
        joined = joined.join(other, on="jeditaskid", how="left")
    return joined.sort("jeditaskid")


def _queue_settings(queues: Any) -> pl.DataFrame:
    """Collect the queues; the access modes are kept only where the table has them."""
    import narwhals.stable.v2 as nw

    present = nw.from_native(queues).lazy().collect_schema().names()
    access = [name for name in ("maxinputsize", "direct_access_lan") if name in present]
    frame = gather.small(queues, "queues", gather.QUEUE_COLUMNS)
    kept = ["panda_queue", "atlas_site", *(["maxinputsize", "direct_access_lan"] if access else [])]
    return frame.select(*kept, queue_corepower="corepower").unique("panda_queue", keep="last")


def _copies_to_scratch(*, known: bool) -> pl.Expr:
    """Tell whether copy to scratch is forced at the job's queue, not by the task (8)."""
    if not known:
        return pl.lit(value=False)
    local = (pl.col("LI") != 0).fill_null(value=False)
    lan = pl.col("IL").is_in([1, 2]) & pl.col("direct_access_lan")
    direct = (pl.col("maxinputsize") == -1).fill_null(value=False) | lan.fill_null(value=False)
    return ~local & ~direct


def _used_jobs(
    found: pl.DataFrame, tables: gather.Tables, max_scouts: int | None, seed: int
) -> pl.DataFrame:
    """Choose the jobs that speak: finished, capped, event service replaced by its jobset (2)."""
    candidates = found.filter((pl.col("n_ok") > 0) & pl.col("pandaid").is_not_null())
    finished = gather.cap(candidates, max_scouts, seed).filter(pl.col("jobstatus") == "finished")
    service = (pl.col("eventservice") == EVENT_SERVICE).fill_null(value=False)
    own = finished.filter(~service).with_columns(
        bringer=pl.col("pandaid"), through_jobset=pl.lit(value=False)
    )
    event_service = finished.filter(service)
    if event_service.is_empty():
        return own
    brought = gather.jobset_rows(tables, event_service)
    return pl.concat([own, brought.select(own.columns)])


def as_of(found: pl.DataFrame, at: pl.DataFrame) -> pl.DataFrame:
    """Take back what happened after an instant: later jobs have not finished, or do not exist.

    Args:
        found: Output of ``gather.rows``.
        at: ``jeditaskid, at`` [UTC].

    Returns:
        The rows of jobs created by then; files of jobs that ended later count as unfinished.
    """
    known = found.join(at, on="jeditaskid", how="inner")
    created = pl.coalesce("creationtime", "starttime", "modificationtime") <= pl.col("at")
    ended = (pl.col("modificationtime") <= pl.col("at")).fill_null(value=False)
    sums = ["n_ok", "is_bad", "input_bytes", "plain_bytes", "file_events", "has_pseudo"]
    return known.with_columns(
        *(pl.when(ended).then(name).otherwise(0).alias(name) for name in sums),
        pl.when(ended).then("events_finished").otherwise(0).alias("events_finished"),
        n_files=pl.when(created.fill_null(value=False)).then("n_files").otherwise(0),
    ).drop("at")


def _recount(tasks: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Replace the datasets' counts of used and finished files by those of the instant."""
    counts = found.group_by("jeditaskid").agg(
        used=pl.col("n_files").sum(), done=pl.col("n_ok").sum()
    )
    joined = tasks.join(counts, on="jeditaskid", how="left", maintain_order="left")
    return joined.with_columns(nfilesused="used", nfilesfinished="done").drop("used", "done")


def _parameters(
    chunk: _Chunk, config: ScoutConfig, rules: ScoutRules, *, jobs_files: Any, merge: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Compute one row per task of a chunk, and its tags."""
    tasks, jobs = chunk.tasks, chunk.jobs
    # no finished file at all: nothing is set, the unit of walltime alone is written (6)
    cpu_table, cpu_found = parameters.cputime(tasks, jobs, config.cputime_rank)
    ram_table, ram_found = parameters.ramcount(tasks, jobs, config, rules)
    disk_table, disk_found = parameters.outdiskcount(tasks, jobs)
    io_table, io_row = parameters.io_parameters(jobs, config, rules)
    wall_table, wall_row = parameters.walltime(tasks, jobs)
    efficiency, efficiency_row = parameters.cpu_efficiency(
        jobs, floats(tasks, "cpu_efficiency_cap")
    )
    work_table = parameters.workdiskcount(tasks, jobs)
    sized = tasks.with_columns(
        outdiskcount=disk_table["outdiskcount"], workdiskcount=work_table["workdiskcount"]
    )
    ng = (
        pl.Series("newng", [None] * tasks.height, dtype=pl.Int64)
        if merge
        else new_ng(sized, jobs, disk_found, jobs_files, rules)
    )
    table = pl.concat(
        [
            tasks.select("jeditaskid", n_jobs_used=pl.Series(jobs.count(_every(jobs)))),
            expected.success(tasks, merge=merge),
            *(cpu_table, ram_table, disk_table, work_table, io_table, wall_table),
            parameters.memory_leak(jobs),
            pl.DataFrame({"newng": ng}),
            efficiency,
            parameters.short_jobs(jobs, floats(tasks, "short_exec_time") * 60),
            parameters.most_cpu(jobs),
            tasks.select("short_exec_time", "cpu_efficiency_cap", old_ramcount="old_ram_mb"),
            expected.expected_jobs(tasks, merge=merge),
            tasks.select("num_finished_jobs", "nfiles", "nfilesfinished"),
        ],
        how="horizontal",
    )
    rows = {
        "outDiskCount": (disk_found.lower_row, disk_found.upper_row),
        "walltime": (wall_row,),
        "cpuTime": (cpu_found.lower_row, cpu_found.upper_row),
        "ioIntensity": (io_row,),
        "ramCount": (ram_found.lower_row, ram_found.upper_row),
        "cpuEfficiency": (efficiency_row,),
    }
    return table, _tags(jobs, rows)


def _every(jobs: Jobs) -> np.ndarray:
    return np.ones(jobs.frame.height, dtype=bool)


def _tags(jobs: Jobs, rows: dict[str, tuple[FloatArray, ...]]) -> pl.DataFrame:
    """List the jobs that defined each parameter."""
    keys = jobs.frame.select("jeditaskid", "pandaid")
    parts = [
        keys[found[found >= 0]].with_columns(parameter=pl.lit(name))
        for name, origins in rows.items()
        for found in origins
    ]
    return pl.concat(parts).unique()
