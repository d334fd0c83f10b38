"""Stand-ins, made from jobs, for what the dumps lack; their rows carry ``approximate = true`` (archive.md section 14).

Files and datasets of a task without any are written when jobs are ingested, and go as soon as real ones of the task
arrive. A whole table that is absent is made when it is asked for (``Archive.derive``) and is never written. What jobs
cannot say is null.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from brokerlab.archive.contracts import fitted
from brokerlab.archive.contracts.jobs import APPROXIMATE
from brokerlab.archive.merge import FILE_ROWS
from brokerlab.archive.spill import TASK, Spill, in_order
from brokerlab.archive.writer import ArchiveWriter
from brokerlab.slots import positive
from brokerlab.words import listed

INPUT_DATASET = 0
"""Number of the stand-in for a task's primary input; real ones are positive."""
MERGE_DATASET = 1
"""Number of the stand-in for what merge jobs (``pmerge``) read."""

BUILD_LABEL = "panda"
"""Label of jobs that build software, which speak for no task."""
SCOUT_MARK = r"(?:^|,)sj(?:$|,)"
"""Token in ``specialhandling`` of scouts."""
USUAL = {
    "ramunit": "MBPerCore",
    "outdiskunit": "kBPerEvent",
    "cputimeunit": "HS06sPerEvent",
    "cpuefficiency": 90,
    "basewalltime": 600,
}
"""PanDA's defaults for production tasks, where nothing says what a task has: units, efficiency [%], base time [s]."""
MOST_HS06SEC = 999_999_999
"""Most work [HS06 s] that is recorded of a job, whatever it did."""
TASK_TYPES = {"managed": "prod", "user": "anal"}
"""Type of the tasks of a label."""

_SHARED = [
    "vo", "prodsourcelabel", "processingtype", "workinggroup", "gshare", "workqueue_id", "resource_type",
    "container_name",
]  # fmt: skip
_CORES = pl.coalesce(positive("corecount"), positive("actualcorecount"))
"""Cores that a job asked for, else those it used; null: not known."""
_MERGE = (pl.col("processingtype") == "pmerge").fill_null(value=False)

_JOB_COLUMNS = [
    "jeditaskid", "pandaid", "jobstatus", "processingtype", "inputfilebytes", "nevents",
    "ninputdatafiles",
]  # fmt: skip
_FILE_STATUS = {
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "closed": "cancelled",
}


def refresh(writer: ArchiveWriter, tasks: pl.Series) -> int:
    """Bring the stand-ins of tasks whose jobs or files have changed up to date; return how many have some now."""
    if tasks.is_empty():
        return 0
    without = tasks.filter(~tasks.is_in(_tasks_with_real_files(writer, tasks).implode()))
    stand_ins = pl.col(APPROXIMATE).fill_null(value=False) & pl.col(TASK).is_in(tasks.implode())
    for table in ("files", "datasets"):
        writer.remove(table, stand_ins)
    made = Spill(writer.scratch(), "files")
    for file in writer.live("jobs"):
        jobs = writer.scan("jobs", file).select(_JOB_COLUMNS)
        own = files_of(jobs.filter(pl.col(TASK).is_in(without.implode())))
        made.put(fitted("files", own).collect())
    datasets = []
    for piece in made.pieces(FILE_ROWS):
        rows = fitted("files", in_order(piece, [TASK, "pandaid"]))
        datasets.append(datasets_of(rows.lazy()).collect())
        writer.write("files", rows.drop("__n"), trusted=True)
    if not datasets:
        return 0
    rows = pl.concat(datasets, how="diagonal_relaxed")
    writer.write("datasets", rows, trusted=True)
    return rows[TASK].n_unique()


def files_of(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Make one input file per job: ``files`` with ``approximate`` and ``__n`` (files of the job).

    Source:
        archive.md section 13.4; merge jobs read outputs of other jobs (scouts.md 10).
    """
    pseudo = pl.col("inputfilebytes").fill_null(0) == 0
    return jobs.filter(pl.col("jeditaskid").is_not_null()).select(
        "jeditaskid",
        pl.when(_MERGE).then(MERGE_DATASET).otherwise(INPUT_DATASET).alias("datasetid"),
        pl.col("pandaid").alias("fileid"),
        "pandaid",
        pl.when(_MERGE)
        .then(pl.lit("trn_output"))
        .when(pseudo)
        .then(pl.lit("pseudo_input"))
        .otherwise(pl.lit("input"))
        .alias("type"),
        pl.col("jobstatus").replace_strict(_FILE_STATUS, default="running").alias("status"),
        pl.col("inputfilebytes").alias("fsize"),
        positive("nevents"),
        pl.lit(value=True).alias(APPROXIMATE),
        pl.max_horizontal(pl.col("ninputdatafiles").fill_null(1), 1).alias("__n"),
    )


def datasets_of(files: pl.LazyFrame) -> pl.LazyFrame:
    """Make, of the result of ``files_of``, the primary dataset of each task and the one its merge jobs read, with counts."""
    n = pl.col("__n").cast(pl.Int64)
    real = (pl.col("type") == "input").any()
    kind = pl.when(real).then(pl.lit("input")).otherwise(pl.col("type").first())
    return (
        files.group_by("jeditaskid", "datasetid")
        .agg(
            type=kind,
            nfiles=n.sum(),
            nfilestobeused=n.sum(),
            nfilesused=n.sum(),
            nfilesfinished=n.filter(pl.col("status") == "finished").sum(),
            nfilesfailed=n.filter(pl.col("status") == "failed").sum(),
            # no event information in any file is null, not 0 events
            nevents=pl.when(pl.col("nevents").count() > 0).then(pl.col("nevents").sum()),
        )
        .with_columns(pl.lit(value=True).alias(APPROXIMATE))
        .sort("jeditaskid", "datasetid")
    )


def tasks_of(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Make one task per ``jeditaskid`` of the jobs, sorted.

    Names, label, share and cores are those of most of its jobs, merge and build jobs aside; ``corecount`` is 0 where
    cores differ. Requests of memory are the jobs' own: ``ramcount`` that of most, ``orig_ramcount`` that of the first
    job created, which is a scout if the task had any. Production tasks have the `USUAL` units, efficiency and base time.
    ``usescout`` is 3 where jobs are marked as scouts. Status, base memory, CPU time per event and other rules of the task
    are not known.
    """
    own = _MERGE.not_() & pl.col("prodsourcelabel").ne_missing(BUILD_LABEL)
    production = pl.col("prodsourcelabel") == "managed"
    request = positive("minramcount")
    first = pl.struct("creationtime", "pandaid")

    def most(value: pl.Expr) -> pl.Expr:
        return value.filter(own | own.any().not_()).drop_nulls().mode().min()

    per_core = (request / pl.coalesce(_CORES, 1)).round()
    per_unit = pl.when(production).then(per_core).otherwise(request)
    asked = own & request.is_not_null()
    ended = pl.col("jobstatus").is_in(_FILE_STATUS)
    counts = _CORES.filter(own).drop_nulls().unique()
    marked = pl.col("specialhandling").str.contains(SCOUT_MARK).any()
    usual = {name: pl.when(production).then(pl.lit(value)) for name, value in USUAL.items()}
    return (
        jobs.filter(pl.col("jeditaskid").is_not_null())
        .with_columns(__per_unit=per_unit.cast(pl.Int64), __asked=asked)
        .group_by("jeditaskid")
        .agg(
            *(most(pl.col(name)) for name in _SHARED),
            username=most(pl.col("produsername")),
            transpath=most(pl.col("transformation")),
            corecount=pl.when(counts.len() > 1).then(0).otherwise(counts.first()),
            ramcount=most(pl.col("__per_unit")),
            orig_ramcount=pl.col("__per_unit")
            .filter("__asked")
            .sort_by(first.filter("__asked"))
            .first(),
            __events=(pl.col("nevents") > 0).filter(own).any(),
            usescout=pl.when(marked).then(3),
            creationdate=pl.col("creationtime").min(),
            modificationtime=pl.col("modificationtime").max(),
            starttime=pl.col("starttime").min(),
            endtime=pl.when(ended.all()).then(pl.col("endtime").max()),
        )
        .with_columns(
            tasktype=pl.col("prodsourcelabel").replace_strict(TASK_TYPES, default=None),
            splitrule=pl.format("US={}", "usescout"),
            **usual,
        )
        .with_columns(
            ramunit=pl.col("ramunit").fill_null("MB"),
            outdiskunit=pl.when("__events").then("outdiskunit"),
        )
        .drop("__events")
        .sort("jeditaskid")
    )


def queues_of(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Make one queue per ``computingsite`` of the jobs, sorted.

    ``status`` is online, as jobs ran there, and ``resource_type_q`` GRID, as of most. ``maxrss``, ``corecount`` and
    ``maxtime`` are the largest requests and limits of jobs that started there: the least that the queue can take.
    ``corepower`` is what ``hs06sec`` implies. All else is not known.
    """
    labels = pl.col("prodsourcelabel")
    both = labels.eq("managed").any() & labels.eq("user").any()
    there = jobs.filter(pl.col("computingsite").is_not_null()).rename(
        {"computingsite": "panda_queue"}
    )
    ran = pl.col("starttime").is_not_null()
    largest = {
        "maxrss": pl.col("minramcount"),
        "corecount": _CORES,
        "maxtime": pl.col("maxwalltime"),
    }
    wall_s = (pl.col("endtime") - pl.col("starttime")).dt.total_seconds()
    work = there.select("panda_queue", "hs06sec", work=wall_s * pl.col("actualcorecount"))
    return (
        there.group_by("panda_queue")
        .agg(
            type=pl.when(both).then(pl.lit("unified")).otherwise(pl.lit("unknown")),
            status=pl.lit("online"),
            resource_type_q=pl.lit("GRID"),
            **{name: most.filter(ran & (most > 0)).max() for name, most in largest.items()},
        )
        .join(core_power(work), on="panda_queue", how="left")
        .sort("panda_queue")
    )


def core_power(work: pl.LazyFrame) -> pl.LazyFrame:
    """Infer ``panda_queue, corepower`` [HS06/core] from ``hs06sec = floor(power x wall x cores)``; ``work`` is wall x cores [core s].

    The number of fewest decimals that fits all jobs of the queue; where none does the median, rounded. Queues without such
    a job have no row.
    """
    hs06sec, core_s = pl.col("hs06sec"), pl.col("work")
    return (
        work.filter((core_s > 0) & (hs06sec > 0) & (hs06sec < MOST_HS06SEC))
        .group_by("panda_queue")
        .agg(
            low=(hs06sec / core_s).max(),
            high=((hs06sec + 1) / core_s).min(),
            middle=((hs06sec + 0.5) / core_s).median(),
        )
        .with_columns(
            corepower=pl.struct("low", "high", "middle").map_batches(_simplest, pl.Float64)
        )
        .select("panda_queue", "corepower")
    )


def _simplest(bounds: pl.Series) -> pl.Series:
    """Return the number of fewest decimals in [low, high); the rounded middle if there is none."""
    low, high, middle = (bounds.struct.field(name).to_numpy() for name in ("low", "high", "middle"))
    result = np.round(middle, 3)
    open_ = np.ones(len(low), dtype=bool)
    for decimals in range(7):
        scale = 10.0**decimals
        candidate = np.ceil(low * scale - 1e-6) / scale
        fits = open_ & (candidate < high)
        result[fits] = candidate[fits]
        open_ &= ~fits
    return pl.Series(result)


@dataclass(frozen=True)
class Derivation:
    """How an absent table is made from jobs, and what its rows are, for a reader."""

    make: Callable[[pl.LazyFrame], pl.LazyFrame]
    says: str


FROM_JOBS: Mapping[str, Derivation] = {
    "tasks": Derivation(
        tasks_of,
        "requests and times are those of their jobs, units, efficiency and base time those usual in production",
    ),
    "datasets": Derivation(lambda jobs: datasets_of(files_of(jobs)), "one per task"),
    "files": Derivation(
        lambda jobs: files_of(jobs).drop("__n").sort(TASK, "pandaid"), "one per job"
    ),
    "queues": Derivation(
        queues_of,
        "all are online grid queues that take no more than the largest job that ran there",
    ),
}
"""The tables that can be made from jobs, in the order of the contracts."""


def derived(table: str, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Make an absent table of `FROM_JOBS`: all columns of its contract, null where not known, and ``approximate``."""
    made = FROM_JOBS[table].make(fitted("jobs", jobs))
    return fitted(table, made.with_columns(pl.lit(value=True).alias(APPROXIMATE)))


def caveat(tables: Collection[str]) -> str:
    """Say in one sentence which tables were made from jobs and what that means; empty text for none.

    Example:
        >>> caveat(["files"])
        'Made from the jobs, as the archive lacks them: files (one per job).'
    """
    if not tables:
        return ""
    parts = [f"{table} ({FROM_JOBS[table].says})" for table in FROM_JOBS if table in tables]
    return f"Made from the jobs, as the archive lacks them: {listed(parts)}."


def _tasks_with_real_files(writer: ArchiveWriter, tasks: pl.Series) -> pl.Series:
    """Return the tasks that have a row in ``files`` that is no stand-in."""
    result = [pl.Series(TASK, dtype=pl.Int64)]
    for file in writer.live("files"):
        rows = writer.scan("files", file)
        real = pl.col(TASK).is_in(tasks.implode())
        if APPROXIMATE in rows.collect_schema():
            real &= ~pl.col(APPROXIMATE).fill_null(value=False)
        result.append(rows.filter(real).select(pl.col(TASK).unique()).collect()[TASK])
    return pl.concat(result)
