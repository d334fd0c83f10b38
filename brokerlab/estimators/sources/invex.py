"""Records from job tables of whole tasks without times of day (the InVEx kind)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import polars as pl

from brokerlab.archive import schema
from brokerlab.archive.readers import detect, read
from brokerlab.errors import ConfigError, DataError
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources import jobs as facts
from brokerlab.estimators.sources.source import At, Source, check_choices, sift
from brokerlab.scouts.quantities import has_scout_mark

PATTERN = "job_records_*.csv*"
TASK_FILES = f"panda-invex-jobs/{PATTERN}"  # whole tasks in a folder of real data
FORMAT = "invex"


@dataclass(frozen=True)
class _Read:
    """Jobs of all files as the archive would hold them, with ``corepower``; what could not be read."""

    jobs: pl.DataFrame
    refused: int


def real_tasks(folder: Path, quantity: Quantity, *, ids_per_s: float = 10.0) -> dict[At, Source]:
    """Read the whole tasks of a folder of real data by both clocks; empty where it has none."""
    files = sorted(folder.glob(TASK_FILES))
    clocks = get_args(At) if files else ()
    return {at: of_invex(files, quantity, at=at, ids_per_s=ids_per_s) for at in clocks}


def of_invex(
    files: str | Path | Iterable[str | Path],
    quantity: Quantity,
    *,
    at: At = "submit",
    ids_per_s: float = 10.0,
) -> Source:
    """Read what the jobs of whole tasks used, from files without times of day.

    Durations are in the files, times are not. A job is created ``(pandaid - smallest pandaid read) /
    ids_per_s`` seconds after the first one: the system numbers its jobs as it creates them. It starts
    ``queue_time`` later, and ends another ``wall_time`` later.

    Used are ``maxpss`` of the whole job, and ``wall_time``. Scouts are known by their priority. Asked
    for before anything ran is what the scouts were sent with: ``minramcount`` per core, times the cores
    of the job (a compensation of 0.9 or 0.95 in it is not removed), and ``maxcpucount`` where above 0.
    The core power of a queue follows from ``hs06sec`` of its jobs. The files hold no type and no error
    code: ``kind`` is null, and no job is known to be killed at a limit; failed ones are left out.

    ``files`` is a folder (files named ``job_records_<task>.csv``, also packed), a file, or several; ``quantity`` ``memory`` [MB of the
    whole job] or ``walltime`` [s]; ``ids_per_s`` [1/s], of all tasks.

    Source: calibration.md 1; archive.md section 13.5.
    """
    check_choices(quantity, at)
    if not 0 < ids_per_s < float("inf"):
        raise ConfigError(f"ids_per_s = {ids_per_s}: a finite number above 0 is allowed")
    result = _read(_paths(files))
    rows = _with_clock(result.jobs, ids_per_s).lazy()
    reasons = {
        "recorded twice": ~pl.col("pandaid").is_first_distinct(),
        **facts.reasons(quantity, at),
    }
    columns = facts.columns(quantity, at) | {
        "kind": pl.lit(None, dtype=pl.String),
        "corepower": pl.col("corepower"),
        "requested": _requested(quantity),
    }
    note = (
        f"creation by pandaid, {ids_per_s:g} ids/s; scouts by assignedpriority; core power from hs06sec;"
        " requested as the scouts were sent"
    )
    return sift(rows, reasons, columns, quantity=quantity, refused=result.refused, notes=(note,))


def _paths(files: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files, those of a folder by name."""
    if not isinstance(files, str | Path):
        paths = [Path(each) for each in files]
    elif Path(files).is_dir():
        paths = sorted(Path(files).glob(PATTERN))
    else:
        paths = [Path(files)]
    if not paths:
        raise DataError(f"{files}: no file {PATTERN} in it")
    return paths


def _read(paths: list[Path]) -> _Read:
    """Read every file as the archive's reader does, and join the core power of its queues."""
    parts, refused = [], 0
    for path in paths:
        kind = detect(path)
        if kind.format != FORMAT:
            raise DataError(
                f"{path}: no job table with the columns pandaid, wall_time, queue_time and"
                " actualcorecount; other job tables are read by brokerlab.archive.ingest"
            )
        batches = {batch.table: batch for batch in read(path, kind)}
        result = batches["jobs"]
        jobs, _ = schema.split("jobs", result.frame, source=path.name, rows=result.rows)
        refused += result.frame.height - jobs.height + result.refused.height
        power = pl.lit(None, dtype=pl.Float64).alias("corepower")
        jobs = jobs.select(facts.NEEDED)
        if "queues" in batches:
            queues = batches["queues"].frame.select("panda_queue", "corepower")
            jobs = jobs.join(queues, left_on="computingsite", right_on="panda_queue", how="left")
        else:
            jobs = jobs.with_columns(power)
        parts.append(jobs)
    return _Read(pl.concat(parts), refused)


def _with_clock(jobs: pl.DataFrame, ids_per_s: float) -> pl.DataFrame:
    """Move every job to the time of its creation by ``pandaid``; durations stay."""
    since_us = (pl.col("pandaid") - pl.col("pandaid").min()) / pl.lit(ids_per_s) * 1e6
    created = pl.lit(0).cast(pl.Datetime("us")) + pl.duration(
        microseconds=since_us.round().cast(pl.Int64)
    )
    shift = created - pl.col("creationtime")
    return jobs.with_columns(
        creationtime=created,
        starttime=pl.col("starttime") + shift,
        endtime=pl.col("endtime") + shift,
    )


def _requested(quantity: Quantity) -> pl.Expr:
    """Return what the scouts of the task were sent with, most often; null: nothing, or no scout."""
    cores = facts.cores()
    asked = facts.positive("minramcount") / cores if quantity == "memory" else facts.sent(quantity)
    scouts = asked.filter(has_scout_mark()).drop_nulls()
    usual = scouts.mode().max().over("jeditaskid")
    return usual * cores if quantity == "memory" else usual
