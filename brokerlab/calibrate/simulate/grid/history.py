"""The jobs of an archive as a grid simulation takes them, with those that were not over at its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.brokerage.replay.counts import by_parent
from brokerlab.calibrate.simulate.inputs import COLUMNS, Estimation, Inputs
from brokerlab.calibrate.simulate.inputs import of_tables as queues_of
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.lifecycle.status_log import OVER

_MORE: dict[str, Any] = {
    "pandaid": pl.Int64, "creationtime": pl.Datetime("us"), "prodsourcelabel": pl.String,
    "processingtype": pl.String, "workinggroup": pl.String, "specialhandling": pl.String,
    "nucleus": pl.String, "resource_type": pl.String, "workqueue_id": pl.Int64, "diskio": pl.Int64,
    "inputfilebytes": pl.Int64, "outputfilebytes": pl.Int64, "parentid": pl.Int64,
}  # fmt: skip
"""Columns of the archive's jobs that the queue core does not need."""
_MERGE = "pmerge"
_SECOND = 1_000_000


@dataclass(frozen=True)
class Period:
    """The instants of a simulation: it begins, jobs are judged from ``start`` to ``end``, it is over."""

    begin: datetime
    start: datetime
    end: datetime
    until: datetime


@dataclass(frozen=True)
class History:
    """What an archive saw.

    Attributes:
        jobs: What jobs need and are; ``ours``: of the stage, made from the beginning on.
        queues: As ``simulate.contracts.Queues``, and so on.
        capacity: Slots with ``source``, see :func:`~brokerlab.calibrate.simulate.inputs.of_tables`.
        delays: Start-up delays.
        left_out: ``reason``, ``n_jobs``.
        observed: See :attr:`~brokerlab.calibrate.simulate.grid.world.GridWorld.seen`.
    """

    jobs: pl.DataFrame
    queues: pl.DataFrame
    capacity: pl.DataFrame
    delays: pl.DataFrame
    left_out: pl.DataFrame
    observed: pl.DataFrame


def read(archive: Any, period: Period, chosen: Estimation, *, label: str, attempts: int) -> History:
    """Read jobs and queues, jobs by the parents of pseudo-queues.

    Args:
        archive: The archive.
        period: When the simulation is.
        chosen: How queues are read.
        label: ``prodsourcelabel`` of the stage.
        attempts: Of a job in the simulation; above 1 the archive's own retries of killed jobs are left out.

    Raises:
        DataError: Jobs have no queues.
        InsufficientDataError: No job of the stage was made in the period.
    """
    rows = _rows(archive)
    until = pl.lit(period.until, pl.Datetime("us"))
    live = ~pl.col("jobstatus").is_in(OVER) & pl.col("computingsite").is_not_null()
    runs = live & (pl.col("starttime") < until) & pl.col("endtime").is_null()
    marked = rows.with_columns(runs=runs.fill_null(value=False))
    ended = marked.with_columns(endtime=pl.when("runs").then(until).otherwise("endtime"))
    seen = queues_of(
        ended, _parents(archive), start=period.start, end=period.until,
        slots=archive.scan("slots") if archive.has("slots") else None,
        estimation=replace(chosen, warm_up=period.start - period.begin),
    )  # fmt: skip
    waits = live & pl.col("starttime").is_null() & (pl.col("creationtime") < until)
    waiting = _waiting(marked.filter(waits.fill_null(value=False)), seen)
    more = marked.select(*_MORE, "runs", activated=pl.col("activatedtime").is_not_null())
    known = pl.concat([seen.jobs, waiting], how="diagonal").join(
        more, on="pandaid", how="left", maintain_order="left"
    )
    jobs = _with_needs(known)
    observed = _observed(_marked(jobs, period, label))
    if attempts > 1:
        jobs = _without_retries(jobs, attempts)
    own = _marked(jobs, period, label)
    if not own["ours"].any():
        raise InsufficientDataError(
            f"{archive.path}: no job of label {label} was made from {period.begin} to {period.until} and has run; choose "
            "another period or stage"
        )
    return History(
        own,
        seen.queues,
        seen.capacity,
        seen.delays,
        _left_out(seen, waiting.height),
        observed,
    )


def _rows(archive: Any) -> pl.DataFrame:
    """Return the jobs with every column that is needed, queues by the parents of pseudo-queues."""
    lazy = nw.from_native(archive.jobs).lazy()
    names = lazy.collect_schema().names()
    if "computingsite" not in names:
        raise DataError(f"{archive.path}: jobs have no computingsite; ingest a source that has it")
    wanted = list(dict.fromkeys([*COLUMNS, *_MORE]))
    rows: pl.DataFrame = (
        lazy.select([name for name in wanted if name in names]).collect("polars").to_native()
    )
    kinds = {"activatedtime": pl.Datetime("us"), **_MORE}
    lacking = [pl.lit(None, kinds.get(name)).alias(name) for name in wanted if name not in names]
    full = rows.with_columns(lacking).with_columns(
        pl.col(name).cast(kind) for name, kind in kinds.items()
    )
    known = archive.scan("queues").select("panda_queue", "unified_name").unique("panda_queue")
    return by_parent(full, dict(known.drop_nulls().collect().iter_rows()))


def _parents(archive: Any) -> pl.DataFrame:
    """Return the archive's queues but pseudo-queues, whose slots are their parents'."""
    queues: pl.DataFrame = archive.scan("queues").collect()
    return queues.filter(pl.coalesce("unified_name", "panda_queue") == pl.col("panda_queue"))


def _waiting(rows: pl.DataFrame, seen: Inputs) -> pl.DataFrame:
    """Return the jobs that wait at the archive's end, at queues that ran others, as those that ran."""
    cores = pl.col("corecount").cast(pl.Int64)
    here = rows.filter(pl.col("computingsite").is_in(seen.queues["panda_queue"].implode()))
    return here.select(
        *("pandaid", "computingsite", "gshare", "produsername"),
        pl.col("jeditaskid", "currentpriority").cast(pl.Int64),
        corecount=pl.when(cores > 0).then(cores).otherwise(1),
        readytime=pl.coalesce("activatedtime", "creationtime"),
        observed_outcome=pl.lit("waiting"),
    ).cast({"currentpriority": seen.jobs.schema["currentpriority"], "jeditaskid": seen.jobs.schema["jeditaskid"]})  # fmt: skip


def _with_needs(jobs: pl.DataFrame) -> pl.DataFrame:
    """Guess the wall time of jobs that were not over: the median of their task, else of all; at least what was seen."""
    runs = pl.col("runs").fill_null(value=False)
    over = (pl.col("observed_outcome") == "finished") & ~runs
    ended = jobs.filter(over)
    of_task = ended.group_by("jeditaskid").agg(usual=pl.col("walltime_s").median())
    usual = pl.coalesce("usual", pl.lit(ended["walltime_s"].median(), pl.Float64), pl.lit(0.0))
    never = pl.col("observed_outcome") == "waiting"
    return (
        jobs.join(of_task, on="jeditaskid", how="left", maintain_order="left")
        .with_columns(
            walltime_s=pl.when(runs)
            .then(pl.max_horizontal("walltime_s", usual))
            .when(never)
            .then(usual)
            .otherwise("walltime_s"),
            observed_end=pl.when(~runs).then("observed_end"),
            observed_outcome=pl.when(runs).then(pl.lit("running")).otherwise("observed_outcome"),
        )
        .drop("usual", "runs")
    )


def _without_retries(jobs: pl.DataFrame, attempts: int) -> pl.DataFrame:
    """Leave the retries of killed jobs out, and let these need what their last retry needed."""
    killed = pl.col("observed_outcome").str.starts_with("killed")
    need = jobs.select("pandaid", "parentid", "walltime_s", last="observed_outcome")
    for _ in range(attempts):
        after = need.drop_nulls("parentid").unique("parentid", maintain_order=True)
        joined = need.join(
            after.select(pandaid="parentid", then_s="walltime_s", then="last"),
            on="pandaid",
            how="left",
            maintain_order="left",
        )
        again = pl.col("last").str.starts_with("killed") & pl.col("then").is_not_null()
        need = joined.with_columns(
            walltime_s=pl.when(again).then("then_s").otherwise("walltime_s"),
            last=pl.when(again).then("then").otherwise("last"),
        ).drop("then_s", "then")
    roots = jobs.filter(killed)["pandaid"]
    retry = pl.col("parentid").is_in(roots.implode()).fill_null(value=False)
    return jobs.with_columns(walltime_s=need["walltime_s"]).filter(~retry)


def _marked(jobs: pl.DataFrame, period: Period, label: str) -> pl.DataFrame:
    """Return the jobs made before the simulation is over; ``ours``: those that the brokerage of the stage places."""
    made = pl.coalesce("creationtime", "readytime").alias("creationtime")
    ordinary = pl.col("processingtype").fill_null("") != _MERGE
    return (
        jobs.with_columns(made)
        .with_columns(
            ours=(pl.col("prodsourcelabel") == label).fill_null(value=False)
            & ordinary
            & (pl.col("creationtime") >= period.begin)
            & pl.col("jeditaskid").is_not_null()
        )
        .filter(pl.col("creationtime") < period.until)
        .sort("pandaid")
    )


def _left_out(seen: Inputs, waiting: int) -> pl.DataFrame:
    """Return what is left out still: not the jobs that wait or run at the archive's end."""
    here = {"no end recorded": pl.col("n_jobs"), "never started": pl.lit(waiting)}
    kept = pl.col("n_jobs").cast(pl.Int64)
    for reason, n in here.items():
        kept = kept - pl.when(pl.col("reason") == reason).then(n).otherwise(0)
    return seen.left_out.with_columns(n_jobs=kept).filter(pl.col("n_jobs") > 0)


def _observed(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return what was seen; a job that waited for its inputs was not ready."""
    waited = (pl.col("observed_outcome") != "waiting") | pl.col("activated")
    return jobs.select(
        *("pandaid", "observed_start", "observed_end", "observed_outcome"),
        observed_site="computingsite",
        observed_ready=pl.when(waited).then("readytime"),
        observed_cores="corecount",
    )
