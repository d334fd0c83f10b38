"""What is known of the core power of queues and sites, read from real data or an archive, and studied in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.readers import detect, read
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.estimators import sources
from brokerlab.estimators.sources.invex import TASK_FILES
from brokerlab.estimators.walltime import corepower, sites, spread

NODE_FILES = "gridka-node-benchmarks-*/*.csv*"
USAGE_FILES = "osg-apel-monthly/*.parquet"
CPU_FILES = "atlas-user-jobs-cputime-*/*.parquet"
MOST_TASKS = 20  # tasks of an archive that are looked at: those at most queues


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerData:
    """What is known of queues and sites; null: nothing."""

    timed: pl.DataFrame | None  # production jobs as :class:`sites.TimedJobs`
    nodes: pl.DataFrame | None  # of one site, as :class:`corepower.Nodes`
    usage: pl.DataFrame | None  # as :class:`corepower.Usage`
    cpu_times: pl.DataFrame | None  # ``queue, cpu_s`` of analysis jobs
    from_archive: bool  # the timed jobs are those of the archive
    synthetic: bool  # the timed jobs were generated


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerStudy:
    """What core power explains.

    Attributes:
        slopes: Of :func:`sites.power_slopes`.
        shares: Of :func:`sites.queue_shares`.
        gain: Of :func:`sites.power_gain`.
        queues: Of :func:`sites.queue_means`.
        inside: Of the nodes of one site; null: no data.
        drift: Of sites over months; null: no data.
        analysis: Of :func:`spread.between_queues` on analysis jobs; null: no data.
        synthetic: The timed jobs were generated.
    """

    slopes: pl.DataFrame
    shares: pl.DataFrame
    gain: pl.DataFrame
    queues: pl.DataFrame
    inside: corepower.Inside | None
    drift: corepower.Drift | None
    analysis: dict[str, float] | None
    synthetic: bool

    @property
    def sites(self) -> pl.DataFrame:
        """Return what single numbers say of sites: ``name`` (such as ``drift moved``), ``x, x_lo, x_hi``.

        After ``inside``, ``drift`` and ``analysis`` stand the attributes of :class:`corepower.Inside`, keys of :func:`spread.between_queues`, and of the drift
        ``sites`` (seen in two months or more), ``months, moved, ln_sd, at_default`` (sites that report 12 throughout),
        ``left_out``.
        """
        numbers = {
            "inside": {} if self.inside is None else asdict(self.inside),
            "drift": {} if self.drift is None else _drift_numbers(self.drift),
            "analysis": self.analysis or {},
        }
        rows = [
            (f"{source} {name}", float(x), found.get(f"{name}_lo"), found.get(f"{name}_hi"))
            for source, found in numbers.items()
            for name, x in found.items()
            if not name.endswith(("_lo", "_hi"))
        ]
        ends = dict.fromkeys(("x", "x_lo", "x_hi"), pl.Float64)
        return pl.DataFrame(rows, schema={"name": pl.String, **ends}, orient="row")

    @property
    def scaling(self) -> dict[str, int]:
        """Return counts of tasks and slopes; empty without a task at enough queues.

        ``tasks`` whose wall times are told from other queues: scaling by core power ``helps`` or ``harms``, the jobs of the queue
        itself help (``own``), where the interval of the ratio excludes 1. ``slopes`` of CPU time, with the rule's -1
        (``with_rule``) and 0 (``with_none``) in their intervals.
        """
        wall = self.gain.filter(time="wall")
        scaled, own = wall.filter(way=sites.RULE), wall.filter(way=sites.OWN)
        cpu = self.slopes.filter(time="cpu").drop_nulls("slope")
        low, high = pl.col("slope_lo"), pl.col("slope_hi")
        counts = {
            "tasks": scaled.height,
            "helps": scaled.filter(pl.col("ratio_hi") < 1).height,
            "harms": scaled.filter(pl.col("ratio_lo") > 1).height,
            "own": own.filter(pl.col("ratio_hi") < 1).height,
            "slopes": cpu.height,
            "with_rule": cpu.filter(low <= -1, high >= -1).height,
            "with_none": cpu.filter(low <= 0, high >= 0).height,
        }
        return counts if scaled.height else {}


def _drift_numbers(drift: corepower.Drift) -> dict[str, float]:
    return {
        "sites": drift.by_site.filter(pl.col("months") > 1).height,
        "months": drift.months["month"].n_unique(),
        "moved": drift.moved,
        "moved_lo": drift.moved_lo,
        "moved_hi": drift.moved_hi,
        "ln_sd": drift.ln_sd,
        "at_default": int(drift.by_site["is_default"].sum()),
        "left_out": drift.left_out,
    }


def read_power(folder: Path | None, archive: Archive | None) -> PowerData:
    """Read timed jobs from the whole tasks of a folder, else from an archive, and the other tables of the folder."""
    files = _files(folder, TASK_FILES)
    stored = None if files else archive
    return PowerData(
        timed=_of_files(files) if files else _of_archive(stored),
        nodes=_nodes(_files(folder, NODE_FILES)),
        usage=_usage(_files(folder, USAGE_FILES)),
        cpu_times=_cpu_times(_files(folder, CPU_FILES)),
        from_archive=stored is not None,
        synthetic=stored is not None and stored.synthetic,
    )


def study_power(data: PowerData, *, n_boot: int = 1000, seed: int = 0) -> PowerStudy | None:
    """Measure what core power explains."""
    if data.timed is None:
        return None
    return PowerStudy(
        slopes=sites.power_slopes(data.timed),
        shares=sites.queue_shares(data.timed, n_boot=n_boot, seed=seed),
        gain=sites.power_gain(data.timed, n_boot=n_boot, seed=seed),
        queues=sites.queue_means(data.timed),
        inside=_if_enough(corepower.inside, data.nodes),
        drift=_if_enough(corepower.drift, data.usage),
        analysis=_if_enough(
            lambda jobs: spread.between_queues(
                jobs["queue"], jobs["cpu_s"], n_boot=n_boot, seed=seed
            ),
            data.cpu_times,
        ),
        synthetic=data.synthetic,
    )


T = TypeVar("T")


def _if_enough(measure: Callable[[pl.DataFrame], T], table: pl.DataFrame | None) -> T | None:
    """Return what is measured in a table; null without the table, or where it says too little."""
    try:
        return None if table is None else measure(table)
    except InsufficientDataError:
        return None


def _files(folder: Path | None, pattern: str) -> list[Path]:
    return [] if folder is None else sorted(folder.glob(pattern))


def _of_files(paths: Sequence[Path]) -> pl.DataFrame:
    """Return the timed production jobs of task files; scouts and merge jobs are left out."""
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
    return _timed(records.join(cpu, on="pandaid", how="left", maintain_order="left"))


def _of_archive(archive: Archive | None) -> pl.DataFrame | None:
    """Return the timed jobs of the tasks of an archive that ran at most queues; null where no job is timed."""
    if archive is None:
        return None
    try:
        records = sources.of_archive(archive, "walltime").records
    except InsufficientDataError:
        return None
    ended = records.filter(~pl.col("is_scout"), ~pl.col("censored"))
    wide = ended.group_by("jeditaskid").agg(pl.col("queue").n_unique(), pl.len())
    wide = wide.sort("queue", "len", "jeditaskid", descending=[True, True, False]).head(MOST_TASKS)
    cpu = archive.scan("jobs").select(
        "pandaid", cpu_s=pl.col("cpuconsumptiontime").cast(pl.Float64)
    )
    chosen = ended.join(wide.select("jeditaskid"), on="jeditaskid", how="semi")
    return _timed(chosen.lazy().join(cpu, on="pandaid", how="left").collect())


def _timed(joined: pl.DataFrame) -> pl.DataFrame:
    return joined.filter(pl.col("queue").is_not_null()).select(
        "jeditaskid", "queue", "corepower", "cores", "events", "wall_s", "cpu_s"
    )


def _nodes(paths: Sequence[Path]) -> pl.DataFrame | None:
    wanted = {"jobslots": pl.Int64, "hs06": pl.Float64}
    frames = [pl.read_csv(path, columns=list(wanted), schema_overrides=wanted) for path in paths]
    return pl.concat(frames) if frames else None


def _usage(paths: Sequence[Path]) -> pl.DataFrame | None:
    columns = {
        "site": pl.col("Site"),
        "month": pl.date("Year", "Month", 1),
        "wall_s": pl.col("WallDuration"),
        "normalised_hs06s": pl.col("NormalisedWallDuration"),
    }
    return _selected(paths, columns)


def _cpu_times(paths: Sequence[Path]) -> pl.DataFrame | None:
    columns = {"queue": pl.col("SITE"), "cpu_s": pl.col("CPU_CONSUMPTION_TIME").cast(pl.Float64)}
    return _selected(paths, columns)


def _selected(paths: Sequence[Path], columns: Mapping[str, pl.Expr]) -> pl.DataFrame | None:
    """Return the columns of all files; null without a file."""
    frames = []
    for path in paths:
        try:
            frames.append(pl.read_parquet(path).select(**columns))
        except pl.exceptions.ColumnNotFoundError as why:
            raise DataError(
                f"{path}: lacks a column ({why}); leave the file out of the folder"
            ) from why
    return pl.concat(frames) if frames else None
