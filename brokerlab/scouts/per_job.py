"""The jobs of a chunk of tasks with the sums of their input files, one row per (task, job)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab import carry
from brokerlab.carry import Chunk
from brokerlab.engines import collect, last_attempts, lazy_of
from brokerlab.errors import DataError
from brokerlab.scouts.quantities import of_jobs
from brokerlab.scouts.settings import repeated
from brokerlab.scouts.tables import (
    DATASET_COLUMNS,
    FILE_COLUMNS,
    HISTORY_COLUMNS,
    HOST_COLUMN,
    INPUT_TYPES,
    JOB_COLUMNS,
    MERGE_TYPES,
    narrow,
    raise_for,
)
from brokerlab.units import MB

KEYS = ["jeditaskid", "pandaid"]


def deal(
    jobs: Any,
    files: Any,
    datasets: Any,
    beside: Mapping[str, pl.DataFrame],
    *,
    hosts: bool = False,
    history: bool = False,
    more: Mapping[str, nw.dtypes.DType] = MappingProxyType({}),
) -> carry.Chunks[Chunk]:
    """Deal jobs and files out by task, narrowed to what scouts read of them.

    Chunks with ``jobs`` of :func:`quantities.of_jobs` (the finished ones, or with their history all, as recorded), ``files`` of
    :func:`of_files`, ``datasets`` and the tables beside.
    """
    problems: list[str] = []
    columns = JOB_COLUMNS | (HOST_COLUMN if hosts else {}) | (HISTORY_COLUMNS if history else {})
    large = {
        "jobs": narrow(jobs, "jobs", {**columns, **more}, problems),
        "files": narrow(files, "files", FILE_COLUMNS, problems),
    }
    lazy = narrow(datasets, "datasets", DATASET_COLUMNS, problems)
    raise_for(problems)
    if not history:
        # the token of job cloning matters for event service only: no need to read the text of others
        service = nw.col("eventservice") == 1
        own = large["jobs"].filter(nw.col("jobstatus") == "finished")
        large["jobs"] = own.with_columns(
            specialhandling=nw.when(service).then(nw.col("specialhandling"))
        )
    narrows: dict[str, carry.Narrow] = {
        "jobs": partial(of_jobs, recorded=history),
        "files": of_files,
    }
    return carry.deal(large, {**beside, "datasets": collect(lazy)}, narrow=narrows)


def of_files(files: pl.DataFrame) -> pl.DataFrame:
    """Derive what files say whatever their dataset: flags without nulls, sizes [B] and events (docs/rules/scouts.md 3.3, 8)."""
    kind, status = pl.col("type"), pl.col("status")
    spent = (pl.col("maxattempt") <= pl.col("attemptnr")) | (
        pl.col("maxfailure") <= pl.col("failedattempt")
    )
    span = pl.col("endevent") - pl.col("startevent") + 1
    flags = {
        "is_input": kind.is_in(INPUT_TYPES),
        "is_pseudo": kind == "pseudo_input",
        "is_library": kind == "lib",
        "is_finished": status == "finished",
        "is_exhausted": (status == "ready") & spent,
    }
    return files.select(
        *("jeditaskid", "datasetid", "fileid", "attemptnr", "pandaid", "fsize"),
        effective_bytes=effective_bytes(),
        effective_events=effective_events(),
        events=pl.when(pl.col("endevent").is_not_null()).then(span).otherwise("nevents"),
        **{name: flag.fill_null(value=False) for name, flag in flags.items()},
    )


def effective_events() -> pl.Expr:
    """Events of one file: the range used (at least 1), else ``nevents``, else 1 (docs/rules/scouts.md 3.3)."""
    span = pl.col("endevent") - pl.col("startevent") + 1
    ranged = pl.when(span > 0).then(span).otherwise(1)
    return pl.when(span.is_not_null()).then(ranged).otherwise(pl.coalesce("nevents", 1))


def effective_bytes() -> pl.Expr:
    """Size of the part of one file that was read [B]: 1 MB where unknown or 0 (docs/rules/scouts.md 3.3).

    A file of 0 events with a range has no defined share; the whole file counts. The product of size and
    events may pass 64 bits, so quotient and remainder of the size are scaled apart; the result is the
    whole part, truncated toward zero as ``int()`` does.
    """
    size, nevents = pl.col("fsize"), pl.col("nevents")
    events = pl.when(nevents > 0).then(nevents)
    span = pl.col("endevent") - pl.col("startevent") + 1
    per_event = size // events
    length = span.abs()
    share = per_event * length + (size - per_event * events) * length // events
    used = pl.coalesce(pl.when(span >= 0).then(share).otherwise(-share), size)
    return pl.when(size.is_null() | (size == 0) | (used == 0)).then(MB).otherwise(used)


def _last(files: pl.DataFrame) -> pl.DataFrame:
    """Keep the last attempt of each file; one look at their numbers is enough where there is no other."""
    once = not files["fileid"].drop_nulls().is_duplicated().any()
    return files if once else collect(last_attempts(lazy_of(files, "files")))


def file_sums(chunk: Chunk, *, merge: bool) -> pl.DataFrame:
    """Sum the primary files of each (task, job), finished and not.

    One row per (jeditaskid, pandaid), also one for the files without a job (pandaid null):
    ``n_ok`` finished files, ``is_bad`` 1 if a file can no longer be tried, ``input_bytes`` effective,
    ``plain_bytes``, ``file_events`` effective, ``has_pseudo`` 0/1 (all four over finished files),
    ``n_files``, ``events_all`` and ``events_finished`` over the primary input datasets (docs/rules/scouts.md 8).
    """
    dataset = pl.col("type")
    known = chunk["datasets"].filter(pl.col("masterid").is_null())
    primary = known.select(
        *("jeditaskid", "datasetid"),
        is_counted=pl.lit(value=False) if merge else dataset.is_in(INPUT_TYPES),
        is_merged=dataset.is_in(MERGE_TYPES),
    )
    is_input, counted = pl.col("is_merged" if merge else "is_input"), pl.col("is_counted")
    used = is_input & pl.col("is_finished")
    joined = _last(chunk["files"]).join(primary, on=["jeditaskid", "datasetid"])
    derived = joined.filter(is_input | counted).select(
        *KEYS,
        n_ok=_when(used, pl.lit(1, pl.Int64)),
        is_bad=_when(is_input & pl.col("is_exhausted"), pl.lit(1, pl.Int64)),
        input_bytes=_when(used, pl.col("effective_bytes")),
        plain_bytes=_when(used, pl.col("fsize")),
        file_events=_when(used, pl.col("effective_events")),
        has_pseudo=_when(used & pl.col("is_pseudo"), pl.lit(1, pl.Int64)),
        n_files=_when(counted, pl.lit(1, pl.Int64)),
        events_all=_when(counted, pl.col("events")),
        events_finished=_when(counted & pl.col("is_finished"), pl.col("events")),
    )
    highest = ["is_bad", "has_pseudo"]
    # two sorts by one key are five times as fast as one by two
    ordered = derived.sort("pandaid").sort("jeditaskid", maintain_order=True)
    # runs of equal keys are grouped in half the time of the keys themselves
    by_run = ordered.group_by(run=pl.struct(KEYS).rle_id(), maintain_order=True)
    sums = [pl.exclude(*KEYS, *highest).sum(), pl.col(highest).max()]
    return by_run.agg(pl.col(KEYS).first(), *sums).drop("run")


def _when(condition: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Keep a value where a condition is surely true, else 0; a null value counts as 0 too."""
    return pl.when(condition).then(value).fill_null(0)


def rows(chunk: Chunk, *, merge: bool = False) -> pl.DataFrame:
    """Return one row per (task, job), sorted, with the sums of its files and the job's columns.

    Job columns are null, and ``is_finished`` with them, where the job is unknown or of another task.
    """
    own = pl.col("job_task") == pl.col("jeditaskid")
    # one key joins three times as fast as two
    jobs = chunk["jobs"].rename({"jeditaskid": "job_task"})
    sums = file_sums(chunk, merge=merge)
    result = sums.join(jobs, on="pandaid", how="left", maintain_order="left")
    if result.height > sums.height:
        twice = jobs.filter(pl.col("pandaid").is_duplicated())["pandaid"].drop_nulls()
        raise DataError(repeated("jobs.pandaid", twice, "job"))
    of_job = [name for name in jobs.columns if name not in ("pandaid", "job_task")]
    return result.with_columns(pl.when(own).then(pl.col(of_job))).drop("job_task")


def jobset_rows(jobs: pl.DataFrame, event_service: pl.DataFrame) -> pl.DataFrame:
    """Replace event-service jobs by all finished jobs of their jobset (docs/rules/scouts.md 2.5).

    Rows of the same columns: sizes of the row that brought each job in (``bringer``), the job's own columns, and
    ``through_jobset`` true where the job had no input file row of its own (it read no pseudo input).
    """
    sums = [name for name in event_service.columns if name not in jobs.columns]
    keys = event_service.select("jeditaskid", "jobsetid", *sums)
    finished = jobs.filter("is_finished")
    brought = keys.join(finished, on=["jeditaskid", "jobsetid"])
    through = pl.col("bringer") != pl.col("pandaid")
    return brought.with_columns(
        through_jobset=through, has_pseudo=pl.when(~through).then("has_pseudo").otherwise(0)
    )


def cap(frame: pl.DataFrame, max_scouts: int | None, seed: int) -> pl.DataFrame:
    """Keep at most ``max_scouts`` jobs per task, those with the smallest seeded hash (docs/rules/scouts.md 11)."""
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
    drawn = large.with_columns(key=pl.Series(hashes, dtype=pl.UInt64)).sort("key", "pandaid")
    left_out = drawn.filter(pl.int_range(pl.len()).over("jeditaskid") >= max_scouts)
    return frame.join(left_out, on=KEYS, how="anti", maintain_order="left")


def library_mb(chunk: Chunk) -> pl.DataFrame:
    """Return the largest finished library file of each task [MB] (docs/rules/scouts.md 5.4)."""
    libraries = chunk["datasets"].filter(type="lib").select("jeditaskid", "datasetid")
    largest = (
        _last(chunk["files"].filter("is_library"))
        .filter("is_finished")
        .join(libraries, on=["jeditaskid", "datasetid"])
        .group_by("jeditaskid")
        .agg(pl.col("fsize").max())
    )
    return largest.select("jeditaskid", library_mb=pl.col("fsize") / MB)
