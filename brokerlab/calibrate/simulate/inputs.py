"""A simulation of what an archive saw: its jobs at their own queues, and the queues as they seem to have been."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.calibrate.simulate.capacity import full_windows, stated_slots, with_sources
from brokerlab.calibrate.simulate.estimates import capacity_of, delays_of, in_use
from brokerlab.errors import ConfigError, InsufficientDataError

COLUMNS = (
    "pandaid", "jeditaskid", "computingsite", "jobstatus", "creationtime", "activatedtime", "starttime", "endtime",
    "corecount", "actualcorecount", "maxpss", "currentpriority", "gshare", "produsername",
)  # fmt: skip
"""What is read of the archive's jobs."""
_NEAR = 0.99  # of the limit of wall time: pilots stop a little before or after


@dataclass(frozen=True)
class Estimation:
    """How queues are read from an archive.

    Attributes:
        window: Length of a window of constant slots.
        quantile: Of the cores in use in a window that is taken for its slots; 1 is the maximum.
        free: Part of the slots up to which a queue counts as free, for start-up delays.
        least_delays: Start-up delays that a queue needs to have its own.
        warm_up: Simulated before the period that is judged, so that it does not begin with empty queues.
    """

    window: timedelta = timedelta(days=1)
    quantile: float = 1.0
    free: float = 0.8
    least_delays: int = 20
    warm_up: timedelta = timedelta(days=2)

    def __post_init__(self) -> None:
        """Refuse what makes no sense, all at once."""
        problems = []
        if self.window < timedelta(minutes=1):
            problems.append(f"window is {self.window}, at least a minute")
        if not (0 < self.quantile <= 1 and 0 < self.free <= 1):
            problems.append(f"quantile is {self.quantile}, free is {self.free}: above 0 to 1")
        if self.least_delays < 1 or self.warm_up < timedelta(0):
            problems.append("least_delays is from 1, warm_up 0 or longer")
        if problems:
            raise ConfigError("estimation of queues: " + "; ".join(problems))


@dataclass(frozen=True)
class Inputs:
    """What a simulation of a period needs, and what was seen.

    Attributes:
        jobs: As ``contracts.Jobs``, with ``observed_start``, ``observed_end``, ``observed_outcome``.
        queues: As ``contracts.Queues``.
        capacity: As ``contracts.Capacity``, with ``source``: where the slots come from, see
            :func:`.capacity.with_sources`; from the period itself.
        delays: As ``contracts.Delays``, with ``own``; from the time before the period.
        start: The period begins.
        end: It ends.
        left_out: ``reason``, ``n_jobs``: jobs of the archive that the simulation does not have.
    """

    jobs: pl.DataFrame
    queues: pl.DataFrame
    capacity: pl.DataFrame
    delays: pl.DataFrame
    start: datetime
    end: datetime
    left_out: pl.DataFrame


def of_archive(
    archive: Any, start: datetime, end: datetime, *, estimation: Estimation | None = None
) -> Inputs:
    """Read a period of an archive, see :func:`of_tables`."""
    slots = archive.scan("slots") if archive.has("slots") else None
    return of_tables(
        archive.jobs, archive.queues, slots=slots, start=start, end=end, estimation=estimation
    )


def of_tables(
    jobs: Any,
    queues: Any,
    *,
    start: datetime,
    end: datetime,
    slots: Any | None = None,
    estimation: Estimation | None = None,
) -> Inputs:
    """Read the jobs of a period with their own queue, and estimate the queues.

    A job is ready when it was activated (``activatedtime``, else ``creationtime``) and needs the wall time it had. Slots are
    a state of the world, not a setting, so they are read from the period itself: those set (``slots``), else the busiest
    time of a window in which jobs waited, else the pledge, else the busiest time, a lower bound; start-up delays are a model and are
    read from the time before it. The job's peak is ``maxpss``, the limits are the queue's ``maxtime`` and ``maxrss``. A
    failed job at its limit counts as killed there, and its true need is unknown: it is taken as a second more wall time,
    or, for memory, twice the wall time it had, since the simulator kills halfway on average.

    Args:
        jobs: The archive's jobs.
        queues: The archive's queues.
        start: The period that will be judged begins.
        end: It ends; jobs that become ready later are not read.
        slots: The archive's slots; null: none are set.
        estimation: How the queues are read.

    Returns:
        Tables of the simulator, and what was seen.

    Raises:
        ConfigError: The period is empty.
        InsufficientDataError: No job of the period has run.
    """
    chosen = estimation or Estimation()
    if start >= end:
        raise ConfigError(f"the period from {start} to {end} is empty: end it after its start")
    begin = start - chosen.warm_up
    rows, left_out = _jobs(jobs, end)
    if rows.filter(pl.col("readytime") >= start).is_empty():
        raise InsufficientDataError(
            f"no job of the period has run; none became ready from {start} to {end}: choose a period of the archive"
        )
    use = in_use(rows)
    first = min(begin, cast("datetime", rows["starttime"].min()))
    window, quantile = chosen.window, chosen.quantile
    earlier = capacity_of(use, begin=first, end=start, window=window, quantile=quantile)
    before = rows.filter(pl.col("readytime") < start)
    delays = delays_of(before, use, earlier, free=chosen.free, least=chosen.least_delays)
    capacity = capacity_of(use, begin=begin, end=end, window=window, quantile=quantile)
    known: pl.DataFrame = nw.from_native(queues).lazy().collect("polars").to_native()
    windows = pl.datetime_range(begin, end, window, time_unit="us", closed="left", eager=True)
    capacity = with_sources(
        capacity,
        full_windows(rows, capacity, window=window),
        stated_slots(slots, known, windows, window),
    )
    here = rows.filter(pl.col("endtime") > begin)
    stated = capacity.filter(pl.col("source").is_in(["slots", "pledge"])).select("panda_queue")
    stated = stated.join(known, on="panda_queue", how="semi")
    places = limited(queues, pl.concat([here.select(panda_queue="computingsite"), stated]))
    names = places["panda_queue"].implode()
    return Inputs(
        _needs(here, places),
        places,
        capacity.filter(pl.col("panda_queue").is_in(names)),
        delays.filter(pl.col("panda_queue").is_in(names)),
        start,
        end,
        left_out,
    )


def _jobs(jobs: Any, end: datetime) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the jobs that ran, ready before the end, and the number of others by reason."""
    lazy = nw.from_native(jobs).lazy()
    there = [name for name in COLUMNS if name in lazy.collect_schema().names()]
    rows: pl.DataFrame = lazy.select(there).collect("polars").to_native()
    missing = [pl.lit(None).alias(name) for name in COLUMNS if name not in there]
    cores = pl.coalesce(
        *(
            pl.when(pl.col(name).cast(pl.Int64) > 0).then(pl.col(name).cast(pl.Int64))
            for name in ("actualcorecount", "corecount")
        ),
        pl.lit(1, pl.Int64),
    )
    rows = rows.with_columns(missing).with_columns(
        corecount=cores,
        readytime=pl.coalesce(pl.col("activatedtime").cast(pl.Datetime("us")), "creationtime"),
    )
    reason = (
        pl.when(pl.col("computingsite").is_null())
        .then(pl.lit("no queue"))
        .when(pl.col("starttime").is_null())
        .then(pl.lit("never started"))
        .when(pl.col("endtime").is_null())
        .then(pl.lit("no end recorded"))
        .when(pl.col("starttime") < pl.col("readytime"))
        .then(pl.lit("started before it was ready"))
        .when(pl.col("endtime") < pl.col("starttime"))
        .then(pl.lit("ended before it started"))
    )
    judged = rows.filter(pl.col("readytime") < end).with_columns(reason=reason)
    left_out = judged.filter(pl.col("reason").is_not_null()).group_by("reason").agg(n_jobs=pl.len())
    return judged.filter(pl.col("reason").is_null()), left_out.sort("reason")


def limited(queues: Any, names: pl.DataFrame) -> pl.DataFrame:
    """Return queues, each once and sorted, with their limits; those that the archive does not know have none.

    Args:
        queues: The archive's.
        names: ``panda_queue``.
    """
    lazy = nw.from_native(queues).lazy().select("panda_queue", "maxtime", "maxrss")
    known: pl.DataFrame = lazy.collect("polars").to_native()
    limits = known.sort("panda_queue", "maxtime", "maxrss").unique(
        "panda_queue", keep="last", maintain_order=True
    )
    wanted = names.unique().sort("panda_queue")
    return wanted.join(limits, on="panda_queue", how="left", maintain_order="left").select(
        "panda_queue",
        pl.lit(0, pl.Int64).alias("slots"),
        pl.col("maxtime", "maxrss").cast(pl.Int64),
    )


def _needs(jobs: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return what the jobs need, and how they ended as seen."""
    wall = (pl.col("endtime") - pl.col("starttime")).dt.total_microseconds() / pl.lit(1_000_000)
    limit, most = (pl.col(name).replace(0, None) for name in ("maxtime", "maxrss"))
    failed = pl.col("jobstatus") == "failed"
    outcome = (
        pl.when(failed & (pl.col("peak_memory_mb") > most))
        .then(pl.lit("killed_memory"))
        .when(failed & (pl.col("wall") >= limit * _NEAR))
        .then(pl.lit("killed_walltime"))
        .otherwise(pl.lit("finished"))
    )
    need = (
        pl.when(pl.col("observed_outcome") == "killed_memory")
        .then(pl.col("wall") * 2)
        .when(pl.col("observed_outcome") == "killed_walltime")
        .then(pl.max_horizontal("wall", limit) + 1)
        .otherwise("wall")
    )
    peak = pl.col("maxpss").cast(pl.Float64).replace(0, None) / 1024
    return (
        jobs.join(queues, left_on="computingsite", right_on="panda_queue", how="left")
        .with_columns(wall=wall, peak_memory_mb=peak)
        .with_columns(observed_outcome=outcome)
        .with_columns(walltime_s=need)
        .select(
            *("pandaid", "computingsite", "readytime", "walltime_s", "corecount", "peak_memory_mb"),
            *("currentpriority", "gshare", "produsername", "jeditaskid", "observed_outcome"),
            observed_start="starttime",
            observed_end="endtime",
        )
        .sort("pandaid")
    )
