"""Records from the canonical archive, and from job tables of whole tasks without times of day (the InVEx kind)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import get_args

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab import archive as archives
from brokerlab.archive import Archive, given, merge
from brokerlab.archive.contracts import empty
from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.archive.readers import detect, read
from brokerlab.engines import last_attempts
from brokerlab.errors import ConfigError, DataError, InsufficientDataError
from brokerlab.estimators.records import Quantity
from brokerlab.estimators.sources.source import At, Source, check_choices, sift
from brokerlab.frames import latest
from brokerlab.scouts.quantities import core_count, has_scout_mark, kill_cause
from brokerlab.scouts.tables import INPUT_TYPES, PER_CORE
from brokerlab.units import KB, MB

NEEDED = (
    *("pandaid", "jeditaskid", "computingsite", "jobstatus", "piloterrorcode", "processingtype"),
    *("actualcorecount", "corecount", "jobmetrics", "specialhandling", "nevents"),
    *("inputfilebytes", "maxpss", "minramcount", "maxcpucount", "maxwalltime"),
    *("creationtime", "starttime", "endtime"),
)
"""Columns of the canonical jobs that the expressions here read."""

MERGE = "pmerge"
"""Processing type of merge jobs of a task: their memory and time are not those of its payload."""
MERGE_REASON = "merge job"


def positive(name: str) -> pl.Expr:
    """Return a column as a float; null where it is 0 or below: PanDA's way of saying that nothing is known."""
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value > 0).then(value)


def cores_of_jobs() -> pl.Expr:
    """Return the cores of a job, at least 1."""
    return core_count().clip(lower_bound=1).cast(pl.Int64)


def sent(quantity: Quantity) -> pl.Expr:
    """Return the limit that the job was given [MB of the whole job, or s]; null: none."""
    if quantity == "memory":
        return positive("minramcount")
    return pl.coalesce(positive("maxwalltime"), positive("maxcpucount"))


def wall_s() -> pl.Expr:
    """Return how long the job ran [s]; null where start or end is not known."""
    span = pl.col("endtime") - pl.col("starttime")
    return _of_microseconds(span.dt.total_microseconds())


def recorded(quantity: Quantity) -> pl.Expr:
    """Return what was measured [MB of the whole job, or s]; null where nothing was."""
    if quantity == "memory":
        return positive("maxpss") / KB
    return pl.when(wall_s() > 0).then(wall_s())


def killed(quantity: Quantity) -> pl.Expr:
    """Tell whether the job failed because it came to the limit of this quantity."""
    return ((pl.col("jobstatus") == "failed") & (kill_cause() == quantity)).fill_null(value=False)


def seconds(time: pl.Expr) -> pl.Expr:
    """Return a time as seconds since 1970."""
    return _of_microseconds(time.dt.epoch("us"))


def _of_microseconds(microseconds: pl.Expr) -> pl.Expr:
    """Return seconds, exact where they are whole: a column divided by 1e6 is off by the last bit."""
    return microseconds // 1_000_000 + microseconds % 1_000_000 / 1e6


def reasons_against(quantity: Quantity, at: At) -> dict[str, pl.Expr]:
    """Return why a job says nothing of a quantity, the first reason first; see `source.sift`."""
    failed = (pl.col("jobstatus") == "failed") & ~killed(quantity)
    measured = recorded(quantity).is_not_null()
    word = "memory" if quantity == "memory" else "duration"
    result = {
        MERGE_REASON: pl.col("processingtype") == MERGE,
        f"failed, and no {word} recorded": failed & ~measured,
        f"failed, though not at the limit of {quantity}": failed,
        "jobstatus is {}": ~pl.col("jobstatus").is_in(ENDED),
        "no start or end recorded": wall_s().is_null(),
        "ended before it started": wall_s() < 0,
        f"no {word} recorded": ~measured & ~(killed(quantity) & sent(quantity).is_not_null()),
    }
    if at == "submit":  # a start before the creation is a clock that is wrong
        result["ended before it was created"] = pl.col("endtime") < pl.col("creationtime")
    return result


def columns_of_jobs(quantity: Quantity, at: At) -> dict[str, pl.Expr]:
    """Return the columns of the records that follow from the job alone."""
    own_limit = pl.when(killed(quantity)).then(sent(quantity))
    decided = pl.col("creationtime") if at == "submit" else pl.col("starttime")
    return {
        "pandaid": pl.col("pandaid"),
        "jeditaskid": pl.col("jeditaskid"),
        "queue": pl.col("computingsite"),
        "cores": cores_of_jobs(),
        "events": pl.when(pl.col("nevents") > 0).then("nevents").cast(pl.Int64),
        "input_mb": positive("inputfilebytes") / MB,
        "sent": sent(quantity),
        "is_scout": has_scout_mark(),
        "decided_s": seconds(decided),
        "ended_s": seconds(pl.col("endtime")),
        "used": pl.coalesce(recorded(quantity), own_limit),
        "censored": killed(quantity),
        "wall_s": wall_s(),
    }


TASK_COLUMNS = ("jeditaskid", "ramunit", "orig_ramcount", "baseramcount", "maxwalltime")
_KIND = ("processingtype", "transformation")
_OF_JOBS = (*NEEDED, "parentid", "prodsourcelabel", "transformation")


def of_archive(
    archive: given.Source | str | Path,
    quantity: Quantity,
    *,
    at: At = "submit",
    labels: Collection[str] = ("managed",),
) -> Source:
    """Read what the jobs of an archive used.

    A finished job used what was recorded of it. One that failed at the limit of this quantity, by the
    pilot's error code, used at least what was recorded, else its limit: it is ``censored``. Left out are
    merge jobs, jobs that failed otherwise, jobs that failed and were tried again (the new try says what
    was needed, or is itself here), and those without a record. A new try has the moment and the limit of
    its own: after a kill it is a heavier job than most that are decided then, and was sent with more.

    ``kind`` is the processing type and the transformation. ``requested`` is, of memory, ``orig_ramcount``
    as a whole job's [MB]: per core times the cores plus ``baseramcount``; of walltime, the longest that
    the task allows (split rule ``MW``). ``sent`` is the job's own ``minramcount``; ``maxwalltime``, else
    ``maxcpucount``. ``events`` and ``input_mb`` are those recorded of the job. Of a job that failed no
    events are recorded, which nobody knows at submission: its events are those of its primary input
    files, where the archive has them. Both are null where 0. ``corepower`` is the queue's in the archive.
    Scouts are those marked ``sj``: where a task has none marked, none of its jobs is one.

    Args:
        archive: An archive, its folder, or its tables by name.
        quantity: ``memory`` [MB of the whole job] or ``walltime`` [s].
        at: When an estimate is needed: at the creation of a job (``submit``) or at its ``start``.
        labels: ``prodsourcelabel`` of the jobs to be read.

    Returns:
        Records with times in seconds since 1970, counts of the rows left out, and notes.

    Raises:
        ConfigError: A quantity or moment that does not exist, or no label.
        DataError: No archive, or one without jobs.
        InsufficientDataError: No job is left.

    Source: archive.md sections 1 to 4; scouts.md sections 3.1, 3.3 and 5.3.
    """
    check_choices(quantity, at)
    if isinstance(labels, str) or not labels:
        raise ConfigError(f"labels = {labels!r}: several are allowed, such as ('managed', 'user')")
    opened = (
        archives.open(archive) if isinstance(archive, str | Path) else given.archive_of(archive)
    )
    jobs = opened.scan("jobs").select(_OF_JOBS)
    jobs = jobs.filter(pl.col("prodsourcelabel").is_in(list(labels)))
    _check_labels(opened, jobs, labels)
    retried = opened.scan("jobs").select(pandaid="parentid", is_retried=True).drop_nulls().unique()
    failed = pl.col("jobstatus") == "failed"
    asked = _asked_events(opened, jobs.filter(failed))
    rows = (
        jobs.join(retried, on="pandaid", how="left")
        .join(_tasks(opened), on="jeditaskid", how="left")
        .join(_corepower(opened), on="computingsite", how="left")
        .join(asked, on=["jeditaskid", "pandaid"], how="left")
        .with_columns(nevents=pl.when(failed).then("asked_events").otherwise("nevents"))
    )
    own = reasons_against(quantity, at)
    reasons = {"failed, and tried again": failed & pl.col("is_retried"), **own}
    reasons = {MERGE_REASON: own[MERGE_REASON], **reasons}
    columns = columns_of_jobs(quantity, at) | {
        "kind": pl.concat_str(_KIND, separator=" ", ignore_nulls=True).replace("", None),
        "corepower": pl.col("corepower"),
        "requested": _asked_by_tasks(quantity),
    }
    return sift(rows, reasons, columns, quantity=quantity, notes=_notes(opened))


def _check_labels(opened: Archive, jobs: pl.LazyFrame, labels: Collection[str]) -> None:
    """Refuse labels that no job has, and say which there are."""
    if jobs.head(1).collect().is_empty():
        present = opened.scan("jobs").select(pl.col("prodsourcelabel").unique()).collect()
        there = ", ".join(present.to_series().drop_nulls().sort()) or "none"
        raise InsufficientDataError(
            f"jobs.prodsourcelabel: no job has {' or '.join(labels)}; there are {there}: give `labels`"
        )


def _notes(opened: Archive) -> tuple[str, ...]:
    """Say which tables were not there."""
    without = {
        "tasks": "no table of tasks: what was requested is not known",
        "queues": "no table of queues: core power is not known",
        "files": "no table of files: the events of failed jobs are not known",
    }
    return tuple(note for table, note in without.items() if not opened.has(table))


def _asked_events(opened: Archive, failed: pl.LazyFrame) -> pl.LazyFrame:
    """Return the events of the primary input files of failed jobs: ``jeditaskid, pandaid, asked_events``."""
    files, datasets = (
        opened.scan(table) if opened.has(table) else empty(table).lazy()
        for table in ("files", "datasets")
    )
    keys = ["jeditaskid", "pandaid"]
    primary = datasets.filter(pl.col("masterid").is_null()).select("jeditaskid", "datasetid")
    span = (pl.col("endevent") - pl.col("startevent") + 1).clip(lower_bound=1)
    events = pl.coalesce(span, pl.col("nevents"))
    own = (
        files.filter(pl.col("type").is_in(INPUT_TYPES))
        .join(failed.select(keys), on=keys, how="semi")
        .join(primary, on=["jeditaskid", "datasetid"], how="semi")
    )
    last: pl.LazyFrame = last_attempts(nw.from_native(own), "pandaid").to_native()
    summed = pl.when(events.count() > 0).then(events.sum())
    return last.group_by(keys).agg(asked_events=summed)


def _tasks(opened: Archive) -> pl.LazyFrame:
    """Return what tasks asked for: ``jeditaskid, task_*``."""
    tasks = opened.scan("tasks") if opened.has("tasks") else empty("tasks").lazy()
    renamed = {name: f"task_{name}" for name in TASK_COLUMNS[1:]}
    return (
        tasks.select(TASK_COLUMNS)
        .rename(renamed)
        .unique("jeditaskid", keep="last", maintain_order=True)
    )


def _corepower(opened: Archive) -> pl.LazyFrame:
    """Return the core power of the queues, where above 0: ``computingsite, corepower``."""
    queues = opened.scan("queues").collect() if opened.has("queues") else empty("queues")
    return (
        latest(queues).lazy().select(computingsite="panda_queue", corepower=positive("corepower"))
    )


def _asked_by_tasks(quantity: Quantity) -> pl.Expr:
    """Return what the task asked for before anything ran [MB of the whole job, or s]."""
    if quantity == "walltime":
        return positive("task_maxwalltime")
    per_core = pl.col("task_ramunit").is_in(PER_CORE).fill_null(value=False)
    asked = positive("task_orig_ramcount")
    base = positive("task_baseramcount").fill_null(0)
    whole = asked * cores_of_jobs() + base
    return pl.when(per_core).then(whole).otherwise(asked)


PATTERN = "job_records_*.csv*"
TASK_FILES = f"panda-invex-jobs/{PATTERN}"  # whole tasks in a folder of real data
FORMAT = "invex"


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
    jobs, refused = _read(_paths(files))
    rows = _with_clock(jobs, ids_per_s).lazy()
    reasons = {
        "recorded twice": ~pl.col("pandaid").is_first_distinct(),
        **reasons_against(quantity, at),
    }
    columns = columns_of_jobs(quantity, at) | {
        "corepower": pl.col("corepower"),
        "requested": _sent_to_scouts(quantity),
    }
    note = (
        f"creation by pandaid, {ids_per_s:g} ids/s; scouts by assignedpriority; core power from hs06sec;"
        " requested as the scouts were sent"
    )
    return sift(rows, reasons, columns, quantity=quantity, refused=refused, notes=(note,))


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


def _read(paths: list[Path]) -> tuple[pl.DataFrame, int]:
    """Return the jobs of all files as the archive would hold them, with ``corepower`` of their queues, and how many could not be read."""
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
        jobs, _ = merge.split("jobs", result.frame, source=path.name, rows=result.rows)
        refused += result.frame.height - jobs.height + result.refused.height
        queues = batches["queues"].frame if "queues" in batches else empty("queues")
        power = queues.select(computingsite="panda_queue", corepower="corepower")
        parts.append(jobs.select(NEEDED).join(power, on="computingsite", how="left"))
    return pl.concat(parts), refused


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


def _sent_to_scouts(quantity: Quantity) -> pl.Expr:
    """Return what the scouts of the task were sent with, most often; null: nothing, or no scout."""
    cores = cores_of_jobs()
    asked = positive("minramcount") / cores if quantity == "memory" else sent(quantity)
    scouts = asked.filter(has_scout_mark()).drop_nulls()
    usual = scouts.mode().max().over("jeditaskid")
    return usual * cores if quantity == "memory" else usual
