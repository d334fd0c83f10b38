"""Stand-ins for the ``files`` and ``datasets`` of tasks whose dumps have none (section 13.4).

One row per job: its whole input as one file. The rows carry ``approximate = true``; they go as soon
as real files of the task arrive. Secondary files count as primary in them.
"""

import polars as pl

from brokerlab.archive import parquet
from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.contracts.files import APPROXIMATE
from brokerlab.archive.writer import ArchiveWriter

INPUT_DATASET = 0
"""Number of the stand-in for a task's primary input; real ones are positive."""
MERGE_DATASET = 1
"""Number of the stand-in for what merge jobs (``pmerge``) read."""

CHUNK_JOBS = 5_000_000
"""Jobs held at a time."""

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


def refresh(writer: ArchiveWriter, tasks: set[int]) -> int:
    """Bring the stand-ins of some tasks up to date.

    Args:
        writer: Open writer; its jobs and files decide.
        tasks: Tasks whose jobs or files have changed.

    Returns:
        How many tasks have stand-ins now.
    """
    if not tasks:
        return 0
    real = _tasks_with_real_files(writer, tasks)
    for table in ("files", "datasets"):
        _remove(writer, table, tasks)
    made = 0
    for chunk in _chunks(writer, tasks - real):
        jobs = _scan(writer, "jobs").filter(pl.col("jeditaskid").is_in(chunk))
        rows = files_of(jobs.select(_JOB_COLUMNS).collect(engine="streaming"))
        if rows.is_empty():
            continue
        made += rows["jeditaskid"].n_unique()
        writer.write("files", rows.drop("__n"), trusted=True)
        writer.write("datasets", datasets_of(rows), trusted=True)
    return made


def files_of(jobs: pl.DataFrame) -> pl.DataFrame:
    """Make one input file per job.

    Args:
        jobs: ``jeditaskid, pandaid, jobstatus, processingtype, inputfilebytes [B], nevents,
            ninputdatafiles``.

    Returns:
        Rows of ``files`` with ``approximate`` and ``__n`` (files of the job), sorted by task, job.

    Source:
        archive.md section 13.4; merge jobs read outputs of other jobs (scouts.md 10).
    """
    merge = (pl.col("processingtype") == "pmerge").fill_null(value=False)
    pseudo = pl.col("inputfilebytes").fill_null(0) == 0
    return (
        jobs.filter(pl.col("jeditaskid").is_not_null())
        .sort("jeditaskid", "pandaid")
        .select(
            "jeditaskid",
            pl.when(merge).then(MERGE_DATASET).otherwise(INPUT_DATASET).alias("datasetid"),
            pl.col("pandaid").alias("fileid"),
            "pandaid",
            pl.when(merge)
            .then(pl.lit("trn_output"))
            .when(pseudo)
            .then(pl.lit("pseudo_input"))
            .otherwise(pl.lit("input"))
            .alias("type"),
            pl.col("jobstatus").replace_strict(_FILE_STATUS, default="running").alias("status"),
            pl.col("inputfilebytes").alias("fsize"),
            pl.when(pl.col("nevents") > 0).then(pl.col("nevents")).alias("nevents"),
            pl.lit(value=True).alias(APPROXIMATE),
            pl.max_horizontal(pl.col("ninputdatafiles").fill_null(1), 1).alias("__n"),
        )
    )


def datasets_of(files: pl.DataFrame) -> pl.DataFrame:
    """Make the primary dataset of each task, and the one its merge jobs read.

    Args:
        files: Result of ``files_of``.

    Returns:
        Rows of ``datasets``, ``masterid`` null, with counts of files.
    """
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


def _scan(writer: ArchiveWriter, table: str) -> pl.LazyFrame:
    """Return a table as it would be if committed now."""
    parts = [parquet.lazy(writer.path / file.path) for file in writer.live(table)]
    if not parts:
        return pl.LazyFrame(schema=polars_schema(table))
    return pl.concat(parts, how="diagonal_relaxed")


def _tasks_with_real_files(writer: ArchiveWriter, tasks: set[int]) -> set[int]:
    """Return the tasks that have a row in ``files`` that is no stand-in."""
    rows = _scan(writer, "files").filter(pl.col("jeditaskid").is_in(list(tasks)))
    if APPROXIMATE in rows.collect_schema().names():
        rows = rows.filter(~pl.col(APPROXIMATE).fill_null(value=False))
    found = rows.select(pl.col("jeditaskid").unique()).collect(engine="streaming")
    return set(found["jeditaskid"].to_list())


def _remove(writer: ArchiveWriter, table: str, tasks: set[int]) -> None:
    """Take the old stand-ins of the tasks out of the table."""
    gone = []
    for file in writer.live(table):
        rows = parquet.lazy(writer.path / file.path)
        if APPROXIMATE not in rows.collect_schema().names():
            continue
        own = pl.col(APPROXIMATE).fill_null(value=False) & pl.col("jeditaskid").is_in(list(tasks))
        left = rows.filter(~own).collect(engine="streaming")
        if len(left) < file.rows:
            gone.append(file)
            writer.write(table, left, trusted=True)
    writer.drop(table, gone)


def _chunks(writer: ArchiveWriter, tasks: set[int]) -> list[list[int]]:
    """Cut tasks into groups of a bounded number of jobs."""
    sizes = (
        _scan(writer, "jobs")
        .filter(pl.col("jeditaskid").is_in(list(tasks)))
        .group_by("jeditaskid")
        .len()
        .sort("jeditaskid")
        .collect(engine="streaming")
    )
    group = (sizes["len"].cast(pl.Int64).cum_sum() - 1) // CHUNK_JOBS
    return [part["jeditaskid"].to_list() for _, part in sizes.group_by(group, maintain_order=True)]
