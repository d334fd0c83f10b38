"""What an archive saw of a period: its jobs with what they need, also those that were not over at its end, and its queues.

The system makes a job once a queue may take it. So the jobs of an archive are those that a setting let through, and what a
setting that starves tasks costs is in none of them: it is in the files of open tasks that were never used, `unmade_jobs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.archive.contracts.jobs import OVER
from brokerlab.brokerage.replaying.changes import by_parent
from brokerlab.brokerage.replaying.task_tables import INPUTS, OPEN
from brokerlab.calibrate.simulation.capacity import (
    capacity_of,
    full_windows,
    in_use,
    stalls,
    stated_slots,
    with_sources,
    without_stalls,
)
from brokerlab.engines import collect, narrow
from brokerlab.errors import DataError, InsufficientDataError
from brokerlab.frames import latest
from brokerlab.units import SECOND_US

UNMADE = "unmade"
"""What was observed of such a job."""
MERGES = pl.col("processingtype").fill_null("") == "pmerge"
SCOUTS = pl.col("specialhandling").fill_null("").str.contains(r"(^|,)sj(,|$)")
"""Whether jobs merge, or are scouts."""
_READ = read_as(
    "jobs",
    *("pandaid", "jeditaskid", "parentid", "computingsite", "jobstatus"),
    *("creationtime", "activatedtime", "starttime", "endtime"),
    *("corecount", "actualcorecount", "maxpss", "currentpriority", "gshare", "produsername"),
    *("workinggroup", "prodsourcelabel", "processingtype", "specialhandling", "nucleus"),
    *("resource_type", "workqueue_id", "diskio", "inputfilebytes", "outputfilebytes"),
)
"""What is read of the archive's jobs."""
_FREE = 0.8
"""Part of the slots up to which a queue counts as free, for start-up delays."""
_LEAST_DELAYS = 20
"""Start-up delays that a queue needs to have its own; others take those of all queues."""
_LONGEST_STARTUP_S = 900.0
"""Where the mean delay is longer it is no start-up: what it is at such a queue says nothing of others."""
_NEAR = 0.99  # of the limit of wall time: pilots stop a little before or after


@dataclass(frozen=True)
class Period:
    """The instants of a simulation: it begins, jobs are judged from ``start`` to ``end``, it is over."""

    begin: datetime
    start: datetime
    end: datetime
    until: datetime


def read(
    archive: Any,
    period: Period,
    *,
    window: timedelta,
    quantile: float,
    label: str | None,
    attempts: int,
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Read jobs and queues, jobs by the parents of pseudo-queues.

    A job is ready when it was activated (``activatedtime``, else ``creationtime``) and needs the wall time it had. Its peak
    is ``maxpss``, the limits are the queue's ``maxtime`` and ``maxrss``. A failed job at its limit counts as killed there,
    and its true need is unknown: it is taken as a second more wall time, or, for memory, twice the wall time it had, since the
    simulator kills halfway on average. Jobs that wait or run at the end need the median of their task, else of all.

    Slots are a state of the world, not a setting, so they are read from the period itself: those set (``slots``), else the
    busiest time of a window in which jobs waited, else the pledge, else the busiest time, a lower bound; start-up delays
    are a model and are read from the time before it.

    What jobs need and are comes first, those of the stage that were made from the beginning on marked ``ours``; then ``queues``
    (without slots), ``capacity`` (see :func:`.capacity.with_sources`), ``delays``, ``left_out`` and ``seen`` as a
    :class:`.world.World` has them, and ``known``: the latest row of every queue of the archive.
    """
    known = latest(archive.scan("queues").collect())
    rows = _rows(archive, known, period.until)
    ran = rows.filter(pl.col("reason").is_null())
    if ran.filter(pl.col("readytime") >= period.start).is_empty():
        raise InsufficientDataError(
            f"no job of the period has run; none became ready from {period.start} to {period.until}: choose a period of the "
            "archive"
        )
    queues, capacity, delays = _queues(archive, known, ran, period, window, quantile)
    names = queues["panda_queue"].implode()
    wait = rows.filter(pl.col("reason") == "waits", pl.col("computingsite").is_in(names))
    live = pl.concat([ran.filter(pl.col("endtime") > period.begin), wait])
    if label is not None:
        live = pl.concat([live, unmade_jobs(archive, ran, label, period.begin, period.until)])
    jobs = _with_needs(live.sort("pandaid"), queues)
    seen = _mark(jobs, period, label)
    own = _mark(_without_retries(jobs, attempts), period, label) if attempts > 1 else seen
    if label is not None and not own["ours"].any():
        raise InsufficientDataError(
            f"{archive.path}: no job of label {label} was made from {period.begin} to {period.until} and has run; choose "
            "another period or stage"
        )
    absent = rows.filter(pl.col("reason").is_not_null(), pl.col("readytime") < period.until)
    absent = absent.join(wait, on="pandaid", how="anti")
    reason = pl.col("reason").replace("waits", "never started")
    return own, {
        "known": known,
        "queues": queues,
        "capacity": capacity.filter(pl.col("panda_queue").is_in(names)),
        "delays": delays.filter(pl.col("panda_queue").is_in(names)),
        "left_out": absent.group_by(reason).agg(n_jobs=pl.len().cast(pl.Int64)).sort("reason"),
        "seen": _seen(seen),
    }


def _rows(archive: Any, known: pl.DataFrame, until: datetime) -> pl.DataFrame:
    """Return the jobs made or ready before the end, with ``readytime``, ``runs`` (at the end) and ``reason``.

    ``reason``: null for those that ran, ``waits`` for those that wait at the end, else why the simulation cannot have them.
    """
    jobs = archive.scan("jobs")
    if "computingsite" not in jobs.collect_schema():
        raise DataError(f"{archive.path}: jobs have no computingsite; ingest a source that has it")
    parents = dict(known.select("panda_queue", "unified_name").drop_nulls().iter_rows())
    rows = by_parent(collect(narrow(jobs, "jobs", _READ, ())), parents)
    over = pl.lit(until, pl.Datetime("us"))
    live = ~pl.col("jobstatus").is_in(OVER) & pl.col("computingsite").is_not_null()
    runs = live & (pl.col("starttime") < over) & pl.col("endtime").is_null()
    waits = live & pl.col("starttime").is_null() & (pl.col("creationtime") < over)
    cores = (pl.when(pl.col(name) > 0).then(name) for name in ("actualcorecount", "corecount"))
    reason = (
        pl.when(waits)
        .then(pl.lit("waits"))
        .when(pl.col("computingsite").is_null())
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
    return (
        rows.with_columns(
            corecount=pl.coalesce(*cores, pl.lit(1, pl.Int64)),
            readytime=pl.coalesce("activatedtime", "creationtime"),
            runs=runs.fill_null(value=False),
        )
        .with_columns(endtime=pl.when("runs").then(over).otherwise("endtime"))
        .with_columns(reason=reason)
        .filter(
            (pl.min_horizontal("creationtime", "readytime") < over) | (pl.col("reason") == "waits")
        )
    )


def _queues(
    archive: Any,
    known: pl.DataFrame,
    ran: pl.DataFrame,
    period: Period,
    window: timedelta,
    quantile: float,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the queues where jobs ran or of which slots are stated, slots, and start-up delays."""
    queues = known.filter(pl.coalesce("unified_name", "panda_queue") == pl.col("panda_queue"))
    use, before = in_use(ran), ran.filter(pl.col("readytime") < period.start)
    first = min(period.begin, cast("datetime", ran["starttime"].min()))
    earlier = capacity_of(use, begin=first, end=period.start, window=window, quantile=quantile)
    delays = delays_of(before, in_use(ran.with_columns(starttime="readytime")), earlier)
    busiest = capacity_of(
        use, begin=period.begin, end=period.until, window=window, quantile=quantile
    )
    slots = archive.scan("slots") if archive.has("slots") else None
    stated = stated_slots(slots, queues, begin=period.begin, end=period.until, window=window)
    capacity = with_sources(busiest, full_windows(ran, busiest, window=window), stated)
    prompt = delays.filter("own").group_by("panda_queue").agg(pl.col("delay_s").median())
    prompt = prompt.filter(pl.col("delay_s") <= _LONGEST_STARTUP_S).select("panda_queue")
    capacity = without_stalls(
        capacity, stalls(ran, capacity.join(prompt, on="panda_queue", how="semi"))
    )
    places = ran.filter(pl.col("endtime") > period.begin).select(panda_queue="computingsite")
    of_slots = capacity.filter(pl.col("source").is_in(["slots", "pledge"])).select("panda_queue")
    of_slots = of_slots.join(queues, on="panda_queue", how="semi")
    return limited(queues, pl.concat([places, of_slots])), capacity, delays


def delays_of(jobs: pl.DataFrame, claims: pl.DataFrame, capacity: pl.DataFrame) -> pl.DataFrame:
    """Return the start-up delays (``panda_queue, delay_s, own``) of jobs that became ready while their queue had free slots.

    Slots are free that are enough for everybody who runs or is ready, the jobs that became ready at the same time among
    them: of a batch larger than its queue most jobs wait for slots, though at first none of it runs. Where most of a queue's
    delays are those of a start-up, longer ones are not: the queue took no jobs then, or these jobs waited for something else.
    A delay that is not its ``own`` is of all queues where delays are those of a start-up.
    """
    rows = jobs.select("readytime", "starttime", "corecount", panda_queue="computingsite")
    seen = (
        rows.sort("readytime")
        .join_asof(
            claims.sort("time"),
            left_on="readytime",
            right_on="time",
            by="panda_queue",
            check_sortedness=False,
        )
        .join_asof(
            capacity.sort("ts"),
            left_on="readytime",
            right_on="ts",
            by="panda_queue",
            check_sortedness=False,
        )
        .filter(pl.col("cores") <= pl.col("slots") * _FREE)
        .select(
            "panda_queue",
            delay_s=(pl.col("starttime") - pl.col("readytime")).dt.total_microseconds()
            / pl.lit(1_000_000),
        )
    )
    enough = seen.filter(pl.len().over("panda_queue") >= _LEAST_DELAYS)
    prompt = pl.col("delay_s").median().over("panda_queue") <= _LONGEST_STARTUP_S
    own = enough.filter(~prompt | (pl.col("delay_s") <= _LONGEST_STARTUP_S)).with_columns(
        own=pl.lit(value=True)
    )
    others = capacity.select("panda_queue").unique().join(own, on="panda_queue", how="anti")
    short = own.filter(pl.col("delay_s").mean().over("panda_queue") <= _LONGEST_STARTUP_S)
    usual = _spread(seen if short.is_empty() else short)
    pooled = others.join(usual, how="cross").with_columns(own=pl.lit(value=False))
    return pl.concat([own, pooled]).sort("panda_queue", "delay_s")


def _spread(seen: pl.DataFrame, most: int = 100) -> pl.DataFrame:
    """Return at most so many delays, evenly spread over the sorted ones."""
    ordered = seen.select("delay_s").sort("delay_s")
    if ordered.height <= most:
        return ordered
    return ordered.gather_every(-(-ordered.height // most))


def limited(queues: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return queues, each once and sorted, with their limits; those that the archive does not know have none."""
    wanted = names.unique().sort("panda_queue")
    return wanted.join(queues, on="panda_queue", how="left", maintain_order="left").select(
        "panda_queue",
        pl.lit(0, pl.Int64).alias("slots"),
        pl.col("maxtime", "maxrss").cast(pl.Int64),
    )


def _with_needs(rows: pl.DataFrame, queues: pl.DataFrame) -> pl.DataFrame:
    """Return what jobs need, ``walltime_s`` and ``peak_memory_mb``, and how they ended as seen."""
    wall = (pl.col("endtime") - pl.col("starttime")).dt.total_microseconds() / pl.lit(SECOND_US)
    limit, most = (pl.col(name).replace(0, None) for name in ("maxtime", "maxrss"))
    failed = pl.col("jobstatus") == "failed"
    outcome = (
        pl.when(pl.col("reason") == "waits")
        .then(pl.lit("waiting"))
        .when(pl.col("reason") == UNMADE)
        .then(pl.lit(UNMADE))
        .when("runs")
        .then(pl.lit("running"))
        .when(failed & (pl.col("peak_memory_mb") > most))
        .then(pl.lit("killed_memory"))
        .when(failed & (pl.col("wall") >= limit * _NEAR))
        .then(pl.lit("killed_walltime"))
        .otherwise(pl.lit("finished"))
    )
    usual = pl.col("wall").filter(pl.col("observed_outcome") == "finished").median()
    of_task = pl.when(pl.col("jeditaskid").is_not_null()).then(usual.over("jeditaskid"))
    usual = pl.coalesce(of_task, usual, pl.lit(0.0))
    seen = pl.col("observed_outcome")
    need = (
        pl.when(seen == "killed_memory")
        .then(pl.col("wall") * 2)
        .when(seen == "killed_walltime")
        .then(pl.max_horizontal("wall", limit) + 1)
        .when(seen.is_in(["running", "waiting"]))
        .then(pl.max_horizontal("wall", usual))
        .otherwise("wall")
    )
    peak = pl.col("maxpss").cast(pl.Float64).replace(0, None) / 1024
    unmade = pl.col("reason").eq_missing(pl.lit(UNMADE))
    return (
        rows.join(queues, left_on="computingsite", right_on="panda_queue", how="left")
        .with_columns(wall=wall, peak_memory_mb=peak)
        .with_columns(observed_outcome=outcome)
        .with_columns(
            walltime_s=need,
            observed_start=pl.when(~unmade).then("starttime"),
            observed_end=pl.when(~unmade & ~pl.col("runs")).then("endtime"),
        )
        .sort("pandaid")
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


def _mark(jobs: pl.DataFrame, period: Period, label: str | None) -> pl.DataFrame:
    """Return the jobs made before the simulation is over; ``ours``: those that the brokerage of the stage places."""
    ours = (
        (pl.col("prodsourcelabel") == pl.lit(label, pl.String))
        & ~MERGES
        & ~SCOUTS
        & (pl.col("creationtime") >= period.begin)
        & pl.col("jeditaskid").is_not_null()
    )
    made = pl.coalesce("creationtime", "readytime").alias("creationtime")
    return (
        jobs.with_columns(made)
        .with_columns(ours=ours.fill_null(value=False))
        .filter(pl.col("creationtime") < period.until)
    )


def _seen(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return what was seen; a job that waited for its inputs was not ready."""
    made = jobs.filter(pl.col("observed_outcome") != UNMADE)
    waited = (pl.col("observed_outcome") != "waiting") | pl.col("activatedtime").is_not_null()
    return made.select(
        *("pandaid", "observed_start", "observed_end", "observed_outcome"),
        observed_site="computingsite",
        observed_ready=pl.when(waited).then("readytime"),
        observed_cores="corecount",
    )


# --- jobs that no brokerage has made yet ------------------------------------------------------------------------------


_USED = ("jeditaskid", "masterid", "type", "nfiles", "nfilesused")


def unmade_jobs(
    archive: Any, ran: pl.DataFrame, label: str, begin: datetime, end: datetime
) -> pl.DataFrame:
    """Return the jobs that the unused files of open tasks would make: rows of finished jobs with a ``pandaid`` of their own.

    They ask for a queue (``creationtime, readytime``) from when their task's scouts were over, or from when its last job was
    made: nothing but the brokerage holds them back then. Those that asked before the beginning are left out: under another
    setting they would not wait any more, and what is asked is what a setting does once it rules. A task's files
    (``nfilestobeused`` where that is known) make as many jobs as those used did. They need what the finished jobs of their task
    needed, one after the other; a task none of whose jobs finished says nothing of what others would need.
    """
    none = ran.clear()
    if not archive.has("datasets") or not archive.has("tasks"):
        return none
    datasets, tasks, jobs = (archive.scan(name) for name in ("datasets", "tasks", "jobs"))
    names = tasks.collect_schema().names()
    known = datasets.collect_schema().names()
    if "status" not in names or not set(_USED) <= set(known):
        return none
    priority = pl.col("currentpriority") if "currentpriority" in names else pl.lit(None, pl.Int64)
    usable = pl.col("nfiles")
    if "nfilestobeused" in known:
        usable = pl.coalesce("nfilestobeused", "nfiles")
    files = (
        datasets.filter(pl.col("type").is_in(INPUTS), pl.col("masterid").is_null())
        .group_by("jeditaskid")
        .agg(nfiles=usable.sum(), nfilesused=pl.col("nfilesused").sum())
        .filter(pl.col("nfilesused").is_between(1, pl.col("nfiles") - 1))
    )
    root = pl.col(
        "parentid"
    ).is_null()  # a retry uses no file of its own; one of a scout is a scout
    made = (
        jobs.filter(pl.col("prodsourcelabel") == label, ~MERGES)
        .group_by("jeditaskid")
        .agg(
            n_made=root.sum().cast(pl.Int64),
            last_made=pl.col("creationtime").filter(root).max(),
            scouted=pl.col("endtime").filter(SCOUTS).max(),
            scouts_run=(SCOUTS & pl.col("endtime").is_null()).any(),
        )
    )
    rest = (pl.col("nfiles") - pl.col("nfilesused")) * pl.col("n_made") / pl.col("nfilesused")
    waiting = (
        tasks.filter(pl.col("status").is_in(OPEN))
        .select("jeditaskid", task_priority=priority.cast(pl.Int64))
        .join(files, on="jeditaskid")
        .join(made, on="jeditaskid")
        .filter(~pl.col("scouts_run"))
        .select(
            "jeditaskid",
            "task_priority",
            n=rest.round().cast(pl.Int64),
            asked=pl.max_horizontal("last_made", "scouted"),
        )
        .filter(pl.col("asked").is_between(begin, end, closed="left"))
        .collect()
    )
    like = (
        ran.filter(pl.col("jobstatus") == "finished", ~MERGES)
        .sort("pandaid")
        .group_by("jeditaskid")
        .agg(like="pandaid")
    )
    each: pl.DataFrame = (
        waiting.join(like, on="jeditaskid")
        .filter(pl.col("n") > 0)
        .sort("jeditaskid")
        .with_columns(number=pl.int_ranges("n"))
        .explode("number")
    )
    first = jobs.select(pl.col("pandaid").max()).collect().item() + 1
    return (
        each.with_columns(
            like=pl.col("like").list.get(pl.col("number") % pl.col("like").list.len()),
            own=pl.lit(first, pl.Int64) + pl.int_range(pl.len()),
        )
        .select("like", "own", "asked", "task_priority")
        .join(ran, left_on="like", right_on="pandaid", how="left", maintain_order="left")
        .with_columns(
            pandaid="own",
            parentid=pl.lit(None, pl.Int64),
            specialhandling=pl.lit(None, pl.String),
            creationtime="asked",
            readytime="asked",
            activatedtime=pl.lit(None, pl.Datetime("us")),
            currentpriority=pl.coalesce("task_priority", "currentpriority"),
            reason=pl.lit(UNMADE),
        )
        .select(ran.columns)
    )
