"""The job-sized part: join, filter and group in the caller's engine, one row per (task, job) out.

Only whole-number arithmetic happens here, so that Polars, DuckDB and Spark cannot differ: file sizes are
summed as whole bytes and divided by a power of two later, which is the same float in every order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.errors import DataError, SchemaError, nearest
from brokerlab.units import MB

INPUT_TYPES = ["input", "pseudo_input"]
MERGE_TYPES = ["trn_log", "trn_output"]
_FIRST_ID, _LAST_ID = -(2**62), 2**62
CHUNK_FILES = 1_000_000  # rows of `files` worked on at once; bounds the memory

_I, _F, _S, _B, _T = nw.Int64(), nw.Float64(), nw.String(), nw.Boolean(), nw.Datetime("us")

FILE_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "datasetid", "pandaid", "fsize", "nevents"], _I),
    **dict.fromkeys(["startevent", "endevent", "attemptnr", "maxattempt"], _I),
    **dict.fromkeys(["failedattempt", "maxfailure"], _I),
    **dict.fromkeys(["type", "status"], _S),
}
DATASET_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "datasetid", "masterid"], _I),
    **dict.fromkeys(["nfiles", "nfilesused", "nfilesfinished"], _I),
    "type": _S,
}
JOB_COLUMNS = {
    **dict.fromkeys(["pandaid", "jeditaskid", "eventservice", "jobsetid"], _I),
    **dict.fromkeys(["cpuconsumptiontime", "actualcorecount", "corecount", "maxpss"], _I),
    **dict.fromkeys(["nevents", "outputfilebytes", "inputfilebytes"], _I),
    **dict.fromkeys(["totrbytes", "totwbytes", "memory_leak"], _I),
    "memory_leak_x2": _F,
    **dict.fromkeys(["jobstatus", "specialhandling", "computingsite", "jobmetrics"], _S),
    **dict.fromkeys(["starttime", "endtime"], _T),
}
HISTORY_COLUMNS = dict.fromkeys(["creationtime", "modificationtime"], _T)
HOST_COLUMN = {"modificationhost": _S}
QUEUE_COLUMNS = {
    "panda_queue": _S,
    "atlas_site": _S,
    "corepower": _F,
    "maxinputsize": _I,
    "direct_access_lan": _B,
}
TASK_COLUMNS = {
    **dict.fromkeys(["jeditaskid", "baseramcount", "workdiskcount", "walltime"], _I),
    **dict.fromkeys(["basewalltime", "orig_ramcount", "orig_mergeramcount"], _I),
    **dict.fromkeys(["cpuefficiency", "orig_cputime"], _F),
    **dict.fromkeys(["prodsourcelabel", "status", "splitrule", "ramunit", "outdiskunit"], _S),
    **dict.fromkeys(["cputimeunit", "orig_cputimeunit"], _S),
}
JOBS_FILES_COLUMNS = {"pandaid": _I, "type": _S, "dataset": _S, "fsize": _I}

REQUIRED = {
    "files": ["jeditaskid", "datasetid", "pandaid", "type", "status"],
    "datasets": ["jeditaskid", "datasetid", "type", "masterid"],
    "jobs": ["pandaid", "jeditaskid", "jobstatus", "starttime", "endtime"],
    "queues": ["panda_queue"],
    "tasks": ["jeditaskid"],
    "jobs_files": ["pandaid", "type", "dataset", "fsize"],
    "resource_types": ["resource_name"],
}


@dataclass(frozen=True)
class Tables:
    """The engine's tables, lazy and narrowed to the columns that scouts read."""

    jobs: nw.LazyFrame[Any]
    files: nw.LazyFrame[Any]
    datasets: nw.LazyFrame[Any]
    merge: bool

    @classmethod
    def of(
        cls, jobs: Any, files: Any, datasets: Any, *, merge: bool, hosts: bool, history: bool
    ) -> Tables:
        """Narrow three tables of one engine, reporting every missing column at once.

        Args:
            jobs: Table of any engine.
            files: Table of the same engine.
            datasets: Table of the same engine.
            merge: The merge jobs are meant.
            hosts: The jobs' hosts are needed too.
            history: Unfinished jobs, times of creation and change, and scout marks are needed too.
        """
        problems: list[str] = []
        columns = (
            JOB_COLUMNS | (HOST_COLUMN if hosts else {}) | (HISTORY_COLUMNS if history else {})
        )
        narrowed = (
            narrow(jobs, "jobs", columns, problems),
            narrow(files, "files", FILE_COLUMNS, problems),
            narrow(datasets, "datasets", DATASET_COLUMNS, problems),
        )
        raise_for(problems)
        _refuse_mixed_engines(dict(zip(("jobs", "files", "datasets"), narrowed, strict=True)))
        if history:
            return cls(*narrowed, merge=merge)
        # the token of job cloning matters for event service only: no need to carry the text of others
        service = nw.col("eventservice") == 1
        own = narrowed[0].filter(nw.col("jobstatus") == "finished")
        own = own.with_columns(specialhandling=nw.when(service).then(nw.col("specialhandling")))
        return cls(own, *narrowed[1:], merge=merge)


def narrow(
    frame: Any, table: str, columns: Mapping[str, nw.dtypes.DType], problems: list[str]
) -> nw.LazyFrame[Any]:
    """Select the named columns in their types; an absent optional one becomes null.

    NaN and infinities become null too: they say nothing (``brokerlab ingest`` quarantines their rows).

    Args:
        frame: What narwhals accepts: Polars, a DuckDB relation, a Spark DataFrame.
        table: Name for messages.
        columns: Name to type.
        problems: Missing required columns are appended here.
    """
    lazy: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
    present = lazy.collect_schema().names()
    problems += [
        f"{table}.{name}: column missing, {nearest(name, present)}"
        for name in REQUIRED[table]
        if name not in present
    ]
    typed = lazy.select(
        *(
            (nw.col(name) if name in present else nw.lit(None)).cast(dtype).alias(name)
            for name, dtype in columns.items()
        )
    )
    numbers = [name for name, dtype in columns.items() if dtype == _F and name in present]
    return typed.with_columns(
        nw.when(nw.col(name).is_finite()).then(nw.col(name)).alias(name) for name in numbers
    )


def raise_for(problems: list[str]) -> None:
    """Raise one SchemaError for all problems found."""
    if problems:
        raise SchemaError("scouts cannot read their tables: " + "; ".join(problems))


def _refuse_mixed_engines(frames: Mapping[str, nw.LazyFrame[Any]]) -> None:
    """Raise where tables that are to be joined live in different engines or DuckDB connections."""
    engines = {name: frame.implementation.value for name, frame in frames.items()}
    wrong = len(set(engines.values())) > 1
    if not wrong and set(engines.values()) == {"duckdb"}:
        import duckdb

        try:
            frames["files"].join(frames["datasets"], on="jeditaskid").join(
                frames["jobs"], on="jeditaskid"
            )
        except duckdb.InvalidInputException:  # what DuckDB says of two connections
            wrong = True
    if wrong:
        found = ", ".join(f"{name}: {engine}" for name, engine in engines.items())
        raise DataError(
            f"jobs, files and datasets must come from one engine and one connection; found {found}; "
            "open them from one archive, or convert them to one engine"
        )


def small(frame: Any, table: str, columns: Mapping[str, nw.dtypes.DType]) -> pl.DataFrame:
    """Collect a task- or queue-sized table as Polars."""
    problems: list[str] = []
    lazy = narrow(frame, table, columns, problems)
    raise_for(problems)
    collected: pl.DataFrame = lazy.collect("polars").to_native()
    return collected


def effective_events(start: nw.Expr, end: nw.Expr, nevents: nw.Expr) -> nw.Expr:
    """Events of one file: the range used (at least 1), else ``nevents``, else 1 (scouts.md 3.3)."""
    span = end - start + 1
    ranged = nw.when(span > 0).then(span).otherwise(nw.lit(1))
    known = ~start.is_null() & ~end.is_null()
    return nw.when(known).then(ranged).otherwise(nw.coalesce(nevents, nw.lit(1)))


def effective_bytes(fsize: nw.Expr, start: nw.Expr, end: nw.Expr, nevents: nw.Expr) -> nw.Expr:
    """Size of the part of one file that was read [B]: 1 MB where unknown or 0 (scouts.md 3.3).

    A file of 0 events with a range has no defined share; the whole file counts. The product of size and
    events may pass 64 bits, so quotient and remainder of the size are scaled apart; the result is the
    whole part, truncated toward zero as ``int()`` does.
    """
    events = nw.when(nevents > 0).then(nevents)
    span = end - start + 1
    per_event = fsize // events
    length = span.abs()
    share = per_event * length + (fsize - per_event * events) * length // events
    used = nw.coalesce(nw.when(span >= 0).then(share).otherwise(-share), fsize)
    return nw.when(fsize.is_null() | (fsize == 0) | (used == 0)).then(nw.lit(MB)).otherwise(used)


def per_job(tables: Tables) -> nw.LazyFrame[Any]:
    """Sum the primary files of each (task, job), finished and not, in the engine.

    Returns:
        One row per (jeditaskid, pandaid), also one for the files without a job (pandaid null):
        ``n_ok`` finished files, ``is_bad`` 1 if a file can no longer be tried, ``input_bytes`` effective,
        ``plain_bytes``, ``file_events`` effective, ``has_pseudo`` 0/1 (all four over finished files),
        ``events_all`` and ``events_finished`` over the primary input datasets (scouts.md 8).
    """
    file, dataset = nw.col("type"), nw.col("dataset_type")
    primary = tables.datasets.filter(nw.col("masterid").is_null()).select(
        "jeditaskid", "datasetid", dataset_type=nw.col("type")
    )
    joined = tables.files.join(primary, on=["jeditaskid", "datasetid"], how="inner")
    if tables.merge:
        is_input = dataset.is_in(MERGE_TYPES)
        joined = joined.filter(is_input)
        counted = nw.lit(0) == 1
    else:
        is_input = file.is_in(INPUT_TYPES)
        counted = dataset.is_in(INPUT_TYPES)
        joined = joined.filter(is_input | counted)
    finished = nw.col("status") == "finished"
    exhausted = (nw.col("status") == "ready") & (
        (nw.col("maxattempt") <= nw.col("attemptnr"))
        | (nw.col("maxfailure") <= nw.col("failedattempt"))
    )
    start, end, nevents = nw.col("startevent"), nw.col("endevent"), nw.col("nevents")
    span = nw.when(~end.is_null()).then(end - start + 1).otherwise(nevents)
    used = is_input & finished
    derived = joined.select(
        "jeditaskid",
        "pandaid",
        n_ok=_when(used, nw.lit(1)),
        is_bad=_when(is_input & exhausted, nw.lit(1)),
        input_bytes=_when(used, effective_bytes(nw.col("fsize"), start, end, nevents)),
        plain_bytes=_when(used, nw.coalesce(nw.col("fsize"), nw.lit(0))),
        file_events=_when(used, effective_events(start, end, nevents)),
        has_pseudo=_when(used & (file == "pseudo_input"), nw.lit(1)),
        n_files=_when(counted, nw.lit(1)),
        events_all=_when(counted, span),
        events_finished=_when(counted & finished, span),
    )
    sums = ["n_ok", "n_files", "input_bytes", "plain_bytes", "file_events"]
    sums += ["events_all", "events_finished"]
    return derived.group_by("jeditaskid", "pandaid").agg(
        *(nw.col(name).sum().cast(nw.Int64).alias(name) for name in sums),
        *(nw.col(name).max().cast(nw.Int64).alias(name) for name in ["is_bad", "has_pseudo"]),
    )


def _when(condition: nw.Expr, value: nw.Expr) -> nw.Expr:
    """Keep a value where a condition is surely true, else 0; a null value counts as 0 too."""
    return nw.coalesce(nw.when(condition).then(value), nw.lit(0))


def task_ranges(files: nw.LazyFrame[Any], max_rows: int) -> Iterator[tuple[int, int] | None]:
    """Cut the tasks into runs of neighbouring ids of about ``max_rows`` files each.

    Yields:
        First and last jeditaskid of each run; None once if everything fits into one run.
    """
    counts: pl.DataFrame = (
        files.select("jeditaskid")
        .group_by("jeditaskid")
        .agg(nw.len().alias("n"))
        .collect("polars")
        .to_native()
        .sort("jeditaskid")
    )
    if counts["n"].sum() <= max_rows:
        yield None
        return
    run = (counts["n"].cum_sum() - 1) // max_rows
    starts = counts.group_by(run.alias("run")).agg(pl.col("jeditaskid").min()).sort("run")
    # the runs cover every id, so that tasks without files are not lost between them
    edges = [_FIRST_ID, *starts["jeditaskid"][1:].to_list(), _LAST_ID + 1]
    for first, after in pairwise(edges):
        yield first, after - 1


def within(tables: Tables, span: tuple[int, int] | None) -> Tables:
    """Restrict the tables to a run of task ids; the engine skips the rest of the Parquet."""
    if span is None:
        return tables
    inside = nw.col("jeditaskid").is_between(*span)
    return Tables(
        tables.jobs.filter(inside),
        tables.files.filter(inside),
        tables.datasets.filter(inside),
        merge=tables.merge,
    )


def rows(tables: Tables) -> pl.DataFrame:
    """Collect one row per (task, job) with the sums of its files and the job's columns.

    Job columns are null, and ``jobstatus`` with them, where the job is unknown or of another task. Rows
    come in the engine's order.
    """
    joined = per_job(tables).join(tables.jobs, on=["jeditaskid", "pandaid"], how="left")
    collected: pl.DataFrame = joined.collect("polars").to_native()
    return collected


def jobset_rows(tables: Tables, event_service: pl.DataFrame) -> pl.DataFrame:
    """Replace event-service jobs by all finished jobs of their jobset (scouts.md 2.5).

    Args:
        tables: The engine's tables.
        event_service: Rows of :func:`rows` with ``eventservice`` 1.

    Returns:
        Rows of the same columns: sizes of the row that brought each job in, the job's own columns, and
        ``through_jobset`` true where the job had no input file row of its own (it read no pseudo input).
    """
    own = JOB_COLUMNS | HOST_COLUMN | HISTORY_COLUMNS
    sums = [name for name in event_service.columns if name not in own]
    keys = event_service.select("jeditaskid", "jobsetid", *sums, bringer="pandaid")
    finished: pl.DataFrame = (
        tables.jobs.filter(
            (nw.col("jobstatus") == "finished")
            & nw.col("jobsetid").is_in(keys["jobsetid"].drop_nulls().unique().to_list())
        )
        .collect("polars")
        .to_native()
    )
    brought = keys.join(finished, on=["jeditaskid", "jobsetid"], how="inner")
    through = pl.col("bringer") != pl.col("pandaid")
    return brought.with_columns(
        through_jobset=through, has_pseudo=pl.when(~through).then("has_pseudo").otherwise(0)
    )


def cap(frame: pl.DataFrame, max_scouts: int | None, seed: int) -> pl.DataFrame:
    """Keep at most ``max_scouts`` jobs per task, those with the smallest seeded hash (scouts.md 11).

    Args:
        frame: Rows with jeditaskid, pandaid.
        max_scouts: The cap; None keeps all.
        seed: Part of the hash, so that another draw can be made.
    """
    if max_scouts is None or frame.is_empty():
        return frame
    size = pl.len().over("jeditaskid")
    large = frame.filter(size > max_scouts).select("jeditaskid", "pandaid")
    if large.is_empty():
        return frame
    hashes = [
        int.from_bytes(hashlib.blake2b(f"{seed}:{task}:{job}".encode(), digest_size=8).digest())
        for task, job in large.iter_rows()
    ]
    kept = (
        large.with_columns(key=pl.Series(hashes, dtype=pl.UInt64))
        .sort("key", "pandaid")
        .group_by("jeditaskid", maintain_order=True)
        .head(max_scouts)
        .select("jeditaskid", "pandaid")
    )
    return pl.concat(
        [frame.filter(size <= max_scouts), frame.join(kept, on=["jeditaskid", "pandaid"])]
    )


def library_mb(tables: Tables) -> pl.DataFrame:
    """Return the largest finished library file of each task [MB] (scouts.md 5.4)."""
    libraries = tables.datasets.filter(nw.col("type") == "lib").select("jeditaskid", "datasetid")
    largest: pl.DataFrame = (
        tables.files.filter((nw.col("type") == "lib") & (nw.col("status") == "finished"))
        .join(libraries, on=["jeditaskid", "datasetid"], how="inner")
        .group_by("jeditaskid")
        .agg(nw.col("fsize").max().alias("library_bytes"))
        .collect("polars")
        .to_native()
    )
    return largest.select("jeditaskid", library_mb=pl.col("library_bytes") / MB)
