"""Core power and sites: what a configured number explains of run times, and what it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.readers import detect, read
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.estimators import sources
from brokerlab.estimators.walltime import corepower, sites, spread

TASK_FILES = "panda-invex-jobs/job_records_*.csv*"
NODES = "gridka-node-benchmarks-*/*.csv*"
USAGE = "osg-apel-monthly/*.parquet"
CPU_TIMES = "atlas-user-jobs-cputime-*/*.parquet"
MOST_TASKS = 20
"""Tasks of an archive that are looked at: those at most queues."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerInputs:
    """What is known of queues and sites.

    Attributes:
        timed: As :class:`sites.TimedJobs`; None: nothing.
        nodes: Of one site, as :class:`corepower.Nodes`.
        usage: As :class:`corepower.Usage`.
        cpu_times: ``queue, cpu_s`` of analysis jobs.
        synthetic: The timed jobs were generated.
    """

    timed: pl.DataFrame | None
    nodes: pl.DataFrame | None
    usage: pl.DataFrame | None
    cpu_times: pl.DataFrame | None
    synthetic: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerStudy:
    """What was found; None: no data.

    Attributes:
        inputs: What it was found in.
        slopes: Of :func:`sites.power_slopes`.
        shares: Of :func:`sites.queue_shares`.
        gain: Of :func:`sites.power_gain`.
        queues: ``jeditaskid, time, queue, jobs, corepower, per_event`` (mean logarithm, less the task's).
        inside: Of one site.
        drift: Over months.
        analysis: Of :func:`spread.between_queues`.
    """

    inputs: PowerInputs
    slopes: pl.DataFrame
    shares: pl.DataFrame
    gain: pl.DataFrame
    queues: pl.DataFrame
    inside: corepower.Inside | None
    drift: corepower.Drift | None
    analysis: dict[str, float] | None


def read_power(folder: Path | None, archive: Archive | None) -> PowerInputs:
    """Read what there is, from real data where it is, else the timed jobs of the archive.

    Raises:
        DataError: A file cannot be read, or is of another kind.
    """
    timed = None if folder is None else _of_files(sorted(folder.glob(TASK_FILES)))
    synthetic = timed is None
    if timed is None and archive is not None:
        timed = _of_archive(archive)
    return PowerInputs(
        timed=timed,
        nodes=_nodes(folder),
        usage=_usage(folder),
        cpu_times=_cpu_times(folder),
        synthetic=synthetic,
    )


def study_power(inputs: PowerInputs, *, n_boot: int, seed: int) -> PowerStudy | None:
    """Measure what core power explains; None without timed jobs.

    Args:
        inputs: From `read_power`.
        n_boot: Draws of queues for intervals.
        seed: Of the draws.
    """
    if inputs.timed is None:
        return None
    dice: dict[str, Any] = {"n_boot": n_boot, "seed": seed}
    cpu = inputs.cpu_times
    return PowerStudy(
        inputs=inputs,
        slopes=sites.power_slopes(inputs.timed),
        shares=sites.queue_shares(inputs.timed, **dice),
        gain=sites.power_gain(inputs.timed, **dice),
        queues=sites.queue_means(inputs.timed),
        inside=None if inputs.nodes is None else corepower.inside(inputs.nodes),
        drift=None if inputs.usage is None else corepower.drift(inputs.usage),
        analysis=None if cpu is None else _analysis(cpu, dice),
    )


def _analysis(cpu: pl.DataFrame, dice: dict[str, Any]) -> dict[str, float] | None:
    try:
        return spread.between_queues(cpu["queue"], cpu["cpu_s"], **dice)
    except InsufficientDataError:
        return None


def _of_files(paths: list[Path]) -> pl.DataFrame | None:
    """Return the timed production jobs of task files, scouts and merge jobs left out."""
    if not paths:
        return None
    records = sources.of_invex(paths, "walltime").records.filter(~pl.col("is_scout"))
    times = []
    for path in paths:
        batches = {batch.table: batch.frame for batch in read(path, detect(path))}
        times.append(
            batches["jobs"].select(
                pl.col("pandaid").cast(pl.Int64, strict=False),
                cpu_s=pl.col("cpuconsumptiontime").cast(pl.Float64, strict=False),
            )
        )
    cpu = pl.concat(times).unique("pandaid", keep="first", maintain_order=True)
    joined = records.join(cpu, on="pandaid", how="left", maintain_order="left")
    return _timed(joined)


def _of_archive(archive: Archive) -> pl.DataFrame | None:
    """Return the timed jobs of the tasks of an archive that ran at most queues."""
    records = sources.of_archive(archive, "walltime").records.filter(
        ~pl.col("is_scout"), ~pl.col("censored")
    )
    wide = records.group_by("jeditaskid").agg(pl.col("queue").n_unique(), pl.len())
    wide = wide.sort("queue", "len", "jeditaskid", descending=[True, True, False]).head(MOST_TASKS)
    cpu = archive.scan("jobs").select(
        "pandaid", cpu_s=pl.col("cpuconsumptiontime").cast(pl.Float64)
    )
    chosen = records.join(wide.select("jeditaskid"), on="jeditaskid", how="semi")
    return _timed(chosen.lazy().join(cpu, on="pandaid", how="left").collect())


def _timed(joined: pl.DataFrame) -> pl.DataFrame:
    return joined.filter(pl.col("queue").is_not_null()).select(
        "jeditaskid", "queue", "corepower", "cores", "events", "wall_s", "cpu_s"
    )


def _nodes(folder: Path | None) -> pl.DataFrame | None:
    paths = [] if folder is None else sorted(folder.glob(NODES))
    if not paths:
        return None
    wanted = {"jobslots": pl.Int64, "hs06": pl.Float64}
    frames = [pl.read_csv(path, columns=list(wanted), schema_overrides=wanted) for path in paths]
    return pl.concat(frames)


def _usage(folder: Path | None) -> pl.DataFrame | None:
    paths = [] if folder is None else sorted(folder.glob(USAGE))
    if not paths:
        return None
    named = {"site": "Site", "wall_s": "WallDuration", "normalised_hs06s": "NormalisedWallDuration"}
    return pl.concat([
        _selected(path, month=pl.date("Year", "Month", 1), **{new: pl.col(old) for new, old in named.items()})
        for path in paths
    ])  # fmt: skip


def _cpu_times(folder: Path | None) -> pl.DataFrame | None:
    paths = [] if folder is None else sorted(folder.glob(CPU_TIMES))
    if not paths:
        return None
    named = {"queue": pl.col("SITE"), "cpu_s": pl.col("CPU_CONSUMPTION_TIME").cast(pl.Float64)}
    return pl.concat([_selected(path, **named) for path in paths])


def _selected(path: Path, **columns: pl.Expr) -> pl.DataFrame:
    try:
        return pl.read_parquet(path).select(**columns)
    except pl.exceptions.ColumnNotFoundError as why:
        raise DataError(
            f"{path}: lacks a column ({why}); leave the file out of the folder"
        ) from why
