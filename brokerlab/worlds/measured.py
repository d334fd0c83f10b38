"""How a made-up archive looks beside what was measured on real ones: waits, use of slots, kills, failures, transfers.

Source of the measured numbers: the project's measurements on public data of 2016 to 2025 (job records of four production tasks,
one analysis site, transfers of four weeks of 2019); a range is that of the data sets, or of their quartiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from brokerlab.archive import Archive
from brokerlab.archive.contracts.jobs import ENDED
from brokerlab.scouts.quantities import MEMORY_CODES, WALLTIME_CODES
from brokerlab.units import HOUR_S

LEAST_JOBS = 50
"""Queues and tasks with fewer jobs do not show a shape."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a quantity; null: the data do not have it."""

    quantity: str
    unit: str
    low: float | None
    high: float | None
    where: str


MEASURED = (
    Measured("median wait at the median queue", "h", 0.25, 1.0, "job records, 54 queues"),
    Measured("median wait at the slowest twentieth of queues", "h", 3.0, 26.0, "job records"),
    Measured("sd of ln wait inside a queue", "1", 0.4, 0.7, "job records"),
    Measured("sd of ln median wait between queues", "1", 0.8, 1.2, "job records"),
    Measured("used part of the slots", "%", None, None, "not in the data"),
    Measured("failed jobs", "%", 2.0, 4.0, "one task at 60 queues"),
    Measured("failed jobs at the queue of rank 90 %", "%", 3.0, 15.0, "one task at 60 queues"),
    Measured("wall time of failed over finished jobs", "1", 1.3, 2.0, "one task at 60 queues"),
    Measured("killed for memory", "%", None, None, "not in the data: finished jobs only"),
    Measured("killed for wall time", "%", None, None, "not in the data: finished jobs only"),
    Measured("sd of ln peak memory inside a task", "1", 0.046, 0.125, "four tasks"),
    Measured("sd of ln wall time at a queue inside a task", "1", 0.1, 0.25, "four tasks"),
    Measured("time from a job's making to its input", "h", None, None, "not in the data"),
    Measured("output over the busiest 1 % of links", "%", 24.0, 35.0, "transfers of 2019"),
    Measured("output over the busiest 10 % of links", "%", 70.0, 81.0, "transfers of 2019"),
)


def shapes(archive: Archive) -> pl.DataFrame:
    """Measure an archive as the real ones were measured.

    Args:
        archive: With jobs; the used part of the slots needs ``truth/capacity``, which worlds that are lived have.

    Returns:
        One row per quantity of `MEASURED`, in their order: ``quantity``, ``unit``, ``low``, ``high`` (measured, null: not in
        the data), ``where``, ``here`` (null: cannot be told), ``differs`` (outside of what was measured; null: not known).

    Raises:
        MissingTableError: The archive has no jobs.
    """
    jobs = _jobs(archive)
    values = {**_waits(jobs), **_ends(jobs), **_needs(jobs), **_moves(jobs), **_use(archive, jobs)}
    rows = [
        (one.quantity, one.unit, one.low, one.high, one.where, values[one.quantity])
        for one in MEASURED
    ]
    schema = {
        **dict.fromkeys(("quantity", "unit"), pl.String),
        **dict.fromkeys(("low", "high"), pl.Float64),
        "where": pl.String,
        "here": pl.Float64,
    }
    result = pl.DataFrame(rows, schema=schema, orient="row")
    return result.with_columns(differs=~pl.col("here").is_between("low", "high"))


def _jobs(archive: Archive) -> pl.DataFrame:
    ready = pl.coalesce("activatedtime", "creationtime")
    hour = pl.lit(float(HOUR_S))
    return (
        archive.scan("jobs")
        .select(
            *("jeditaskid", "computingsite", "nucleus", "jobstatus", "processingtype"),
            *("maxpss", "outputfilebytes", "piloterrorcode", "actualcorecount", "corecount"),
            *("starttime", "endtime"),
            wait_h=(pl.col("starttime") - ready).dt.total_seconds() / hour,
            input_h=(ready - pl.col("creationtime")).dt.total_seconds() / hour,
            wall_h=(pl.col("endtime") - pl.col("starttime")).dt.total_seconds() / hour,
        )
        .collect()
    )


def _value(frame: pl.DataFrame, what: pl.Expr) -> float | None:
    value = frame.select(what).item()
    return None if value is None else float(value)


def _spread(jobs: pl.DataFrame, column: str, by: list[str]) -> float | None:
    """Return the median over groups of the sd of a logarithm inside them."""
    known = jobs.filter(pl.col(column) > 0)
    groups = known.group_by(by).agg(pl.len(), sd=pl.col(column).log().std())
    return _value(groups.filter(pl.col("len") >= LEAST_JOBS), pl.col("sd").median())


def _waits(jobs: pl.DataFrame) -> dict[str, float | None]:
    ran = jobs.filter(pl.col("wait_h") > 0)
    queues = ran.group_by("computingsite").agg(pl.len(), wait=pl.col("wait_h").median())
    queues = queues.filter(pl.col("len") >= LEAST_JOBS)
    return {
        "median wait at the median queue": _value(queues, pl.col("wait").median()),
        "median wait at the slowest twentieth of queues": _value(
            queues, pl.col("wait").quantile(0.95)
        ),
        "sd of ln wait inside a queue": _spread(ran, "wait_h", ["computingsite"]),
        "sd of ln median wait between queues": _value(queues, pl.col("wait").log().std()),
    }


def _ends(jobs: pl.DataFrame) -> dict[str, float | None]:
    over = jobs.filter(pl.col("jobstatus").is_in(ENDED))
    failed = pl.col("jobstatus") == "failed"
    queues = over.group_by("computingsite").agg(pl.len(), part=failed.mean())
    queues = queues.filter(pl.col("len") >= LEAST_JOBS)
    wall, code = pl.col("wall_h"), pl.col("piloterrorcode").fill_null(0)
    return {
        "failed jobs": _value(over, failed.mean() * 100),
        "failed jobs at the queue of rank 90 %": _value(queues, pl.col("part").quantile(0.9) * 100),
        "wall time of failed over finished jobs": _value(
            over, wall.filter(failed).median() / wall.filter(~failed).median()
        ),
        "killed for memory": _value(over, code.is_in(MEMORY_CODES).mean() * 100),
        "killed for wall time": _value(over, code.is_in(WALLTIME_CODES).mean() * 100),
    }


def _needs(jobs: pl.DataFrame) -> dict[str, float | None]:
    good = jobs.filter(pl.col("jobstatus") == "finished", pl.col("processingtype") != "pmerge")
    return {
        "sd of ln peak memory inside a task": _spread(good, "maxpss", ["jeditaskid"]),
        "sd of ln wall time at a queue inside a task": _spread(
            good, "wall_h", ["jeditaskid", "computingsite"]
        ),
    }


def _moves(jobs: pl.DataFrame) -> dict[str, float | None]:
    sent = jobs.filter(pl.col("nucleus").is_not_null(), pl.col("outputfilebytes") > 0)
    links = (
        sent.group_by("computingsite", "nucleus")
        .agg(pl.col("outputfilebytes").cast(pl.Float64).sum())
        .sort("outputfilebytes", descending=True)
    )
    total = pl.col("outputfilebytes").sum()

    def part(share: float) -> float | None:
        most = links.head(max(1, round(share * links.height)))
        whole = _value(links, total)
        return 100 * (_value(most, total) or 0.0) / whole if whole else None

    return {
        "time from a job's making to its input": _value(jobs, pl.col("input_h").mean()),
        "output over the busiest 1 % of links": part(0.01),
        "output over the busiest 10 % of links": part(0.1),
    }


def _use(archive: Archive, jobs: pl.DataFrame) -> dict[str, float | None]:
    """Return the used part of the slots there are, from the first start to the last end; jobs that run have run until then."""
    name = "used part of the slots"
    if "capacity" not in archive.manifest.truth:
        return {name: None}
    last = pl.col("endtime").max()
    span = _value(jobs, (last - pl.col("starttime").min()).dt.total_seconds())
    if not span:
        return {name: None}
    capacity = archive.truth("capacity").group_by("panda_queue").agg(pl.col("slots").max())
    ran_h = (pl.coalesce("endtime", last) - pl.col("starttime")).dt.total_seconds() / HOUR_S
    used = _value(jobs, (ran_h * pl.coalesce("actualcorecount", "corecount")).sum()) or 0.0
    there = _value(capacity, pl.col("slots").sum()) or 0.0
    return {name: 100 * used / (there * span / HOUR_S) if there else None}
