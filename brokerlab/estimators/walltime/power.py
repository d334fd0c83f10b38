"""What is known of the core power of queues and sites, read from real data or an archive, and studied in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.readers import detect, read
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.estimators import sources
from brokerlab.estimators.sources.panda import TASK_FILES
from brokerlab.estimators.walltime import sites
from brokerlab.frames import prepared
from brokerlab.numerics import FloatArray

NODE_FILES = "gridka-node-benchmarks-*/*.csv*"
USAGE_FILES = "osg-apel-monthly/*.parquet"
CPU_FILES = "atlas-user-jobs-cputime-*/*.parquet"
MOST_TASKS = 20  # tasks of an archive that are looked at: those at most queues


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerData:
    """What is known of queues and sites; null: nothing."""

    timed: pl.DataFrame | None  # production jobs as `sites.TimedJobs`
    nodes: pl.DataFrame | None  # of one site, as `Nodes`
    usage: pl.DataFrame | None  # as `Usage`
    cpu_times: pl.DataFrame | None  # ``queue, cpu_s`` of analysis jobs
    from_archive: bool  # the timed jobs are those of the archive
    synthetic: bool  # the timed jobs were generated


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerStudy:
    """What core power explains."""

    slopes: pl.DataFrame  # `sites.power_slopes`
    shares: pl.DataFrame  # `sites.queue_shares`
    gain: pl.DataFrame  # `sites.power_gain`
    queues: pl.DataFrame  # `sites.queue_means`
    inside: dict[str, float] | None  # `inside`, the nodes of one site; null: no data
    drift: Drift | None  # of sites over months; null: no data
    analysis: dict[str, float] | None  # `sites.between_queues` of analysis jobs; null: no data
    synthetic: bool  # the timed jobs were generated

    @property
    def sites(self) -> pl.DataFrame:
        """Return what single numbers say of sites: ``name`` (such as ``drift moved``), ``x, x_lo, x_hi``.

        After ``inside``, ``drift`` and ``analysis`` stand the keys of `inside`, `Drift.numbers` and `sites.between_queues`.
        """
        numbers = {
            "inside": self.inside or {},
            "drift": self.drift.numbers if self.drift else {},
            "analysis": self.analysis or {},
        }
        rows = [
            (f"{source} {name}", float(x), result.get(f"{name}_lo"), result.get(f"{name}_hi"))
            for source, result in numbers.items()
            for name, x in result.items()
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
        inside=_if_enough(inside, data.nodes),
        drift=_if_enough(drift, data.usage),
        analysis=_if_enough(
            lambda jobs: sites.between_queues(
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
    return _select(paths, columns)


def _cpu_times(paths: Sequence[Path]) -> pl.DataFrame | None:
    columns = {"queue": pl.col("SITE"), "cpu_s": pl.col("CPU_CONSUMPTION_TIME").cast(pl.Float64)}
    return _select(paths, columns)


def _select(paths: Sequence[Path], columns: Mapping[str, pl.Expr]) -> pl.DataFrame | None:
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


SHORTEST_S = 10_000
"""Wall time below which the ratio of two whole numbers says little of a core power [s]."""
STEP = 0.01  # relative change from month to month that counts as a step
DEFAULT = 12.0  # core power of sites that have no benchmark [HS06 per core]


class Nodes(dy.Schema):
    """One row per worker node of one site."""

    jobslots = dy.Int64(metadata={"unit": "slots", "meaning": "jobs at a time, at least 1"})
    hs06 = dy.Float64(metadata={"unit": "HS06", "meaning": "of the node with all slots busy"})


class Usage(dy.Schema):
    """One row per site, month and whatever else it was summed by."""

    site = dy.String()
    month = dy.Date(metadata={"meaning": "first day of the month"})
    wall_s = dy.Int64(metadata={"unit": "s", "meaning": "summed over the jobs"})
    normalised_hs06s = dy.Int64(metadata={"unit": "HS06 s", "meaning": "wall times core power"})


class Drift(NamedTuple):
    """How configured core powers moved."""

    by_site: pl.DataFrame  # ``site, months, first, last, steps, range, is_default``; the most first
    # ``sites`` (seen in two months or more), ``months, moved, moved_lo, moved_hi`` (share of these with a step of more than 1 % in
    # a month, interval by Wilson), ``ln_sd`` (between sites, of the logarithm of the last core power), ``at_default`` (sites that
    # report 12 throughout), ``left_out`` (rows too short to tell)
    numbers: dict[str, float]


def inside(nodes: Any) -> dict[str, float]:
    """Say how core power is spread over the slots of one site.

    ``nodes, slots, kinds`` (distinct values: nodes of one model and number of slots share theirs), ``mean, sd, least, most`` [HS06 per
    slot], ``ln_sd`` (of the logarithm: about that of times which one core power leaves), ``within_tenth`` (share of slots within a tenth
    of the mean). All nodes of the site are there, so that there is no interval; another site has other nodes.

    Source: calibration.md 5.
    """
    frame = prepared({"nodes": nodes}, {"nodes": Nodes})["nodes"]
    frame = frame.filter(pl.col("jobslots") > 0, pl.col("hs06") > 0)
    if frame.is_empty():
        raise InsufficientDataError("nodes: none has job slots and an HS06 value above 0")
    weight = frame["jobslots"].to_numpy()
    power = frame["hs06"].to_numpy() / weight
    mean, ln_sd = float(np.average(power, weights=weight)), _spread(np.log(power), weight)
    return {
        "nodes": frame.height,
        "slots": int(weight.sum()),
        "kinds": int(np.unique(np.round(power, 6)).size),
        "mean": mean,
        "sd": _spread(power, weight),
        "ln_sd": ln_sd,
        "least": float(power.min()),
        "most": float(power.max()),
        "within_tenth": float(weight[np.abs(power / mean - 1) <= 0.1].sum() / weight.sum()),
    }


def _spread(values: FloatArray, weights: FloatArray) -> float:
    """Return a weighted standard deviation."""
    mean = np.average(values, weights=weights)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))


def drift(usage: Any) -> Drift:
    """Say how the core power of sites moved from month to month.

    The core power of a site in a month is the sum of normalised over the sum of plain wall time. Rows
    below 10,000 s are left out: both sums are whole numbers. Whether a site counts elapsed time or time of
    all cores does not matter, both sums do the same.

    Source: calibration.md 5; Wilson, JASA 22 (1927) 209, doi:10.2307/2276774.
    """
    from statsmodels.stats.proportion import proportion_confint

    frame = prepared({"usage": usage}, {"usage": Usage})["usage"]
    used = frame.filter(pl.col("wall_s") >= SHORTEST_S, pl.col("normalised_hs06s") > 0)
    if used.is_empty():
        raise InsufficientDataError(
            f"usage: none of {frame.height} rows has {SHORTEST_S} s of wall time"
        )
    months = used.group_by("site", "month").agg(
        pl.col("normalised_hs06s").sum(), pl.col("wall_s").sum(), rows=pl.len()
    )
    months = months.select(
        "site", "month", "rows", power=pl.col("normalised_hs06s") / pl.col("wall_s")
    ).sort("site", "month")
    change = (pl.col("power") / pl.col("power").shift(1).over("site") - 1).abs()
    by_site = months.with_columns(step=(change > STEP).fill_null(value=False)).group_by("site").agg(
        months=pl.len(),
        first=pl.col("power").first(),
        last=pl.col("power").last(),
        steps=pl.col("step").sum(),
        range=pl.col("power").max() / pl.col("power").min() - 1,
        is_default=((pl.col("power") - DEFAULT).abs() < 1e-3).all(),
    )  # fmt: skip
    by_site = by_site.sort("range", "site", descending=[True, False])
    several = by_site.filter(pl.col("months") > 1)
    moved = several.filter(pl.col("steps") > 0).height
    lo, hi = proportion_confint(moved, max(several.height, 1), method="wilson")
    numbers = {
        "sites": several.height,
        "months": months["month"].n_unique(),
        "moved": moved / max(several.height, 1),
        "moved_lo": float(lo),
        "moved_hi": float(hi),
        "ln_sd": float(np.std(np.log(by_site["last"].to_numpy()), ddof=1)) if by_site.height > 1 else 0.0,
        "at_default": int(by_site["is_default"].sum()),
        "left_out": frame.height - used.height,
    }  # fmt: skip
    return Drift(by_site, numbers)
