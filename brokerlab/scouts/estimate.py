"""Scouts at work: which jobs are used, and the new parameters of every task at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import polars as pl

from brokerlab.archive.given import Source, tables_of
from brokerlab.carry import Chunk
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.numerics import IntArray
from brokerlab.results import Result, Shows
from brokerlab.scouts import parameters
from brokerlab.scouts.benchmarks import host_tables
from brokerlab.scouts.parameters import Jobs, ScoutConfig, new_ng, origins_of
from brokerlab.scouts.per_job import deal
from brokerlab.scouts.quantities import floats, known_times
from brokerlab.scouts.rules import ScoutRules
from brokerlab.scouts.used_jobs import (
    Choice,
    all_settings,
    expected_jobs,
    queue_settings,
    refuse_impossible,
    success,
)

MAX_SCOUTS = 1000
TABLES = ("jobs", "files", "tasks", "datasets", "queues")  # without them scouts say nothing
OPTIONAL = ("jobs_files", "worker_nodes", "cpu_benchmarks")
PARAMETER_KEYS = {
    "cputime": "SCOUT_CPUTIME_RANK",
    "ramcount": "SCOUT_RAMCOUNT_RANK",
    "ramcount margin": "SCOUT_RAMCOUNT_MARGIN",
    "ramcount minimum": "SCOUT_RAMCOUNT_MIN",
    "diskio": "SCOUT_DISK_IO_CAP",
}
"""What the same setting does for every task -> its gdpconfig key; ``cputime_rank_key`` may let cpuTime read the rank of ramCount."""


@dataclass(frozen=True, repr=False)
class ScoutResult(Result):
    """What scouts said of each task.

    Attributes:
        parameters: One row per task, sorted by ``jeditaskid``; columns of docs/rules/scouts.md 13. The written
            parameters are null where they are not set.
        tags: ``jeditaskid, pandaid, parameter``: the jobs that defined each parameter.
        rules: The rule set it was made under.
        config_digest: Digest of the gdpconfig it was made under.
    """

    shows = Shows(
        about="what scouts say of each task, one row per task",
        columns=(
            "jeditaskid, n_jobs_used, success_rate [1], ramcount [MB], cputime, outdiskcount, "
            "walltime [s], iointensity [kB/s], expected_jobs"
        ),
        keys=("jeditaskid", "trigger"),
        next=("scouts.exhausted(archive, scouts=result)", "compare(result, other)"),
    )

    parameters: pl.DataFrame
    tags: pl.DataFrame
    rules: ScoutRules
    config_digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values."""
        return {
            "parameters": self.parameters.to_dicts(),
            "tags": self.tags.to_dicts(),
            "rules": self.rules.to_dict(),
            "config_digest": self.config_digest,
        }


@call("scouts.estimate")
def estimate(
    source: Source,
    *,
    rules: ScoutRules | str | None = None,
    config: Config | None = None,
    at: datetime | pl.DataFrame | None = None,
    merge: bool = False,
    by_host: bool | None = None,
    seed: int = 0,
    max_scouts: int | None = MAX_SCOUTS,
) -> ScoutResult:
    """Compute every parameter that scouts set, for every task.

    Args:
        source: An archive, or its tables by name, of any engine narwhals reads (``brokerlab tables jobs``): ``jobs``,
            ``files`` (4), ``tasks`` (2; those to be estimated), ``datasets`` (3), ``queues`` (5; without both ``maxinputsize``
            and ``direct_access_lan`` the jobs with forced copy to scratch are not known and counted as 0). If they are there:
            ``jobs_files``, needed for ``newng`` only; ``worker_nodes`` with ``cpu_benchmarks``: core power by host (3.2).
        rules: Rule set, or its name; default the document's.
        config: gdpconfig; default the catalogue's defaults.
        at: Look at the archive as it was at an instant [UTC], or at one per task (frame with
            ``jeditaskid, at``; tasks that are not in it are left out). None: all that is recorded.
        merge: Estimate the merge jobs of the tasks instead (10).
        by_host: Whether core power by host is looked up where its tables are there; None: as PanDA does, for ordinary jobs,
            not for merge jobs.
        seed: Draw of the jobs where a task has more than ``max_scouts`` (11).
        max_scouts: Most jobs per task; None for no cap.

    Returns:
        One row per task; null = not set.

    Raises:
        SchemaError: Columns are missing, or a table has an unknown name.
        MissingTableError: A needed table is missing.
        DataError: A task occurs twice, or tables come from different engines.
        ConfigError: An argument or a percentile rank of the configuration is out of range, or one of two tables of benchmarks is missing.

    Source: 003; docs/rules/scouts.md 2 to 11.
    """
    rules = ScoutRules.of(rules)
    config = config or Config.empty()
    refuse_impossible(at, max_scouts)
    tables = tables_of(source, TABLES, OPTIONAL)
    looked_up = not merge if by_host is None else by_host
    nodes, benchmarks = (tables.get(name) for name in ("worker_nodes", "cpu_benchmarks"))
    hosts = host_tables(nodes, benchmarks) if looked_up else None
    choice = Choice(
        rules=rules,
        sites=queue_settings(tables["queues"]),
        hosts=hosts,
        merge=merge,
        seed=seed,
        max_scouts=max_scouts,
    )
    settings = all_settings(tables["tasks"], tables["datasets"], config, rules, at, merge=merge)
    chunks = deal(
        tables["jobs"],
        tables["files"],
        tables["datasets"],
        {"tasks": settings},
        hosts=hosts is not None,
        history=at is not None,
    )
    result = chunks.map(partial(_estimate, choice=choice, config=scout_config(config, rules)))
    values, tags, origins = (pl.concat(parts) for parts in zip(*result, strict=True))
    if "jobs_files" in tables and not merge:  # merge jobs set no nGBPerJob (10)
        values = values.update(new_ng(origins, tables["jobs_files"], rules), on="jeditaskid")
    return ScoutResult(
        values.sort("jeditaskid"),
        tags.sort("jeditaskid", "pandaid", "parameter"),
        rules,
        config.digest,
    )


def job_quantities(
    source: Source,
    *,
    rules: ScoutRules | str | None = None,
    at: datetime | pl.DataFrame | None = None,
    seed: int = 0,
    max_jobs: int | None = None,
) -> pl.DataFrame:
    """Compute what every finished job says about its task, before any percentile.

    One row per (jeditaskid, pandaid) with a finished primary input file, sorted by both:
    the job's columns as recorded, ``finish_time`` (its last change), ``is_scout``, ``cores``,
    ``corepower`` [HS06/core], ``duration_s``, ``n_events``, ``input_mb``, ``cputime_hs06s`` [HS06 s per
    event], ``cputime_eligible``, ``ram_kb`` (per core where ``ram_per_core``, else whole job),
    ``outdisk_bytes`` (per event where ``outdisk_per_event``, else per MB of input), ``workdisk_mb``,
    ``iointensity_kbps``, ``diskio_kbps``, ``leak_kbps`` (per core), ``leak_x2``, ``cpu_efficiency_pct``,
    ``maxpss_kb``. Null where the job says nothing about the quantity.

    Source: docs/rules/scouts.md 2, 3, 5, 12.
    """
    rules = ScoutRules.of(rules)
    refuse_impossible(at, max_jobs)
    tables = tables_of(source, TABLES)
    sites = queue_settings(tables["queues"])
    choice = Choice(rules=rules, sites=sites, seed=seed, max_scouts=max_jobs)
    settings = all_settings(tables["tasks"], tables["datasets"], Config.empty(), rules, at)
    chunks = deal(
        tables["jobs"], tables["files"], tables["datasets"], {"tasks": settings}, history=True
    )
    result = pl.concat(chunks.map(partial(quantities, choice=choice)))
    return result.sort("jeditaskid", "pandaid", maintain_order=True)


def quantities(chunk: Chunk, choice: Choice) -> pl.DataFrame:
    """Compute the columns of :func:`job_quantities` for the jobs of a chunk, dealt with their history."""
    columns = [
        *("jeditaskid", "pandaid", "computingsite", "is_scout", "creationtime", "starttime"),
        *("endtime", "cores", "corepower", "duration_s", "n_events", "input_mb", "cputime_hs06s"),
        *("cputime_eligible", "ram_kb", "ram_per_core", "outdisk_bytes", "outdisk_per_event"),
        *("workdisk_mb", "iointensity_kbps", "diskio_kbps", "leak_kbps", "leak_x2"),
        *("cpu_efficiency_pct", "cpuconsumptiontime", "outputfilebytes", "inputfilebytes"),
        "eventservice",
    ]
    result = choice.of(chunk).jobs.frame.with_columns(known_times())
    return result.select(
        *columns, maxpss_kb=pl.col("maxpss"), finish_time=pl.col("modificationtime")
    )


def scout_config(config: Config, rules: ScoutRules) -> ScoutConfig:
    """Read the settings that are the same for every task."""
    ranks = {key: config.get(key) for key in (rules.cputime_rank_key, PARAMETER_KEYS["ramcount"])}
    wrong = [f"{key}={rank}" for key, rank in ranks.items() if not 0 <= rank <= 100]
    if wrong:
        raise ConfigError(f"gdpconfig {', '.join(wrong)}: a percentile rank is from 0 to 100")
    return ScoutConfig(
        cputime_rank=ranks[rules.cputime_rank_key],
        ramcount_rank=ranks[PARAMETER_KEYS["ramcount"]],
        ramcount_margin_pct=config.get(PARAMETER_KEYS["ramcount margin"]),
        ramcount_min_mb=config.get(PARAMETER_KEYS["ramcount minimum"]) or None,
        diskio_cap_kbps=config.get(PARAMETER_KEYS["diskio"]),
    )


def _estimate(
    chunk: Chunk, choice: Choice, config: ScoutConfig
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Compute one row per task of a chunk, its tags, and the origins of nGBPerJob."""
    used, rules = choice.of(chunk), choice.rules
    tasks, jobs = used.tasks, used.jobs
    cpu_table, cpu = parameters.cputime(tasks, jobs, config.cputime_rank)
    ram_table, ram = parameters.ramcount(tasks, jobs, config, rules)
    disk_table, disk = parameters.outdiskcount(tasks, jobs, rules)
    work_table = parameters.workdiskcount(tasks, jobs)
    io_table, io_row = parameters.io_parameters(jobs, config, rules)
    wall_table, wall_row = parameters.walltime(tasks, jobs)
    efficiency, efficiency_row = parameters.cpu_efficiency(
        jobs, floats(tasks, "cpu_efficiency_cap")
    )
    sized = tasks.with_columns(
        outdiskcount=disk_table["outdiskcount"], workdiskcount=work_table["workdiskcount"]
    )
    newng = pl.repeat(None, tasks.height, dtype=pl.Int64, eager=True).to_frame("newng")
    measured = [cpu_table, ram_table, disk_table, work_table, io_table, wall_table]
    measured += [parameters.memory_leak(jobs), newng, efficiency]
    rows = {
        "outDiskCount": (disk.lower_row, disk.upper_row),
        "walltime": (wall_row,),
        "cpuTime": (cpu.lower_row, cpu.upper_row),
        "ioIntensity": (io_row,),
        "ramCount": (ram.lower_row, ram.upper_row),
        "cpuEfficiency": (efficiency_row,),
    }
    values = _with_counts(tasks, jobs, measured, merge=choice.merge)
    return values, _tags(jobs, rows), origins_of(sized, jobs, disk)


def _with_counts(
    tasks: pl.DataFrame, jobs: Jobs, measured: list[pl.DataFrame], *, merge: bool
) -> pl.DataFrame:
    """Put what the exhausted checks need beside the measured parameters."""
    return pl.concat(
        [
            tasks.select("jeditaskid", n_jobs_used=pl.Series(jobs.count())),
            success(tasks, merge=merge),
            *measured,
            parameters.short_jobs(jobs, floats(tasks, "short_exec_time") * 60),
            parameters.most_cpu(jobs),
            tasks.select("short_exec_time", "cpu_efficiency_cap", old_ramcount="old_ram_mb"),
            expected_jobs(tasks, merge=merge),
            tasks.select("num_finished_jobs", "nfiles", "nfilesfinished"),
        ],
        how="horizontal",
    )


def _tags(jobs: Jobs, rows: dict[str, tuple[IntArray, ...]]) -> pl.DataFrame:
    """List the jobs that defined each parameter."""
    keys = jobs.frame.select("jeditaskid", "pandaid")
    parts = [
        keys[result[result >= 0]].with_columns(parameter=pl.lit(name))
        for name, origins in rows.items()
        for result in origins
    ]
    return pl.concat(parts).unique()
