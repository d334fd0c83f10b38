"""Read from an archive what the classes of queues, tasks and shares need at every instant of a period.

Source: docs/rules/classes.md 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import polars as pl

from brokerlab.archive.store import Archive
from brokerlab.errors import DataError, EmptyPeriodError
from brokerlab.frames import latest
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classification
from brokerlab.lifecycle.classification import ClassRules
from brokerlab.lifecycle.classification.wait_stats import (
    MERGE,
    PROBE_USER,
    SAMPLE_S,
    USER,
    USER_ANALYSIS,
)
from brokerlab.times import duration_us, instants_of, time_of

COVERED = 0.99  # part of the sampled jobs that a status log must know to be asked for their waits
KEYS = ["snapshot", "queue"]
_MERGED_OR_PROBE = (
    (pl.col("processingtype") == MERGE) | (pl.col("produsername") == PROBE_USER)
).fill_null(value=False)
RATES_QUEUES = (_MERGED_OR_PROBE & (pl.col("gshare") == USER_ANALYSIS)).fill_null(value=False)
"""Jobs whose waits rate queues."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """What the classes of a period are made from."""

    archive: Archive
    # rule set; waits are the jobs' ``recorded`` ones where the status log knows too few of them
    rules: ClassRules
    config: Config  # gdpconfig
    every: str  # step of the instants
    instants: pl.DataFrame  # ``snapshot`` from 0, ``at``
    # ``panda_queue, resource_type, workflow`` of every queue that may run analysis or did
    queues: pl.DataFrame
    # what queues started, see `brokerlab.lifecycle.classification.queue_activity`
    activity: pl.DataFrame
    # slots of users by queue, see `brokerlab.lifecycle.classification.user_slots`
    user_slots: pl.DataFrame
    # analysis jobs made in the period: ``snapshot`` (the last instant before), ``queue``, ``is_sampled`` (merge
    # job or probe), ``wait_s`` (null: not started)
    jobs: pl.DataFrame
    # tasks as they were, see `brokerlab.lifecycle.classification.task_states`; None without a table of
    # tasks
    states: pl.DataFrame | None
    progress: pl.DataFrame | None  # progress of their input; None where a table for it is missing
    # shares against their targets, with ``at``; None without a tree of shares
    share_usage: pl.DataFrame | None
    n_sampled: int  # jobs of the archive whose waits rate queues
    n_logged: int | None  # how many of them the status log knows; None without a log
    # tables of the archive that tasks would be rebuilt from and that are missing
    lacking: tuple[str, ...]
    # why the tree of shares is none; empty where it is one, or there is no table
    share_problem: str

    @property
    def window(self) -> tuple[datetime, datetime]:
        """First and last instant."""
        return self.instants["at"][0], self.instants["at"][-1]

    @property
    def step_days(self) -> float:
        """Step of the instants [d]."""
        return duration_us(self.every) / 86_400e6

    def wait_stats(self, rules: ClassRules) -> pl.DataFrame:
        """Return the statistics of the waits at every instant under a rule set."""
        return classification.wait_stats(
            self.archive.joinable("jobs"),
            self.queues,
            status_log=self.archive.joinable_if_there("job_status_log"),
            at=self.instants,
            rules=rules,
        )


def read_period(
    archive: Archive,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    every: str = "1h",
    rules: ClassRules | str | None = None,
) -> Period:
    """Read what the classes of a period are made from."""
    rules = ClassRules.of(rules)
    first, last, n_sampled = _span(archive)
    instants = _instants(first, last, time_of(start, "start"), time_of(end, "end"), every)
    n_logged = _logged(archive)
    if n_logged is None or n_logged < COVERED * n_sampled:
        # a log that leaves out most queues must not take their jobs out of the sample
        rules = replace(rules, wait_time="recorded")
    log = archive.joinable_if_there("job_status_log")
    states, progress, lacking = _tasks(archive, instants)
    share_usage, share_problem = _shares(archive, instants)
    return Period(
        archive=archive,
        rules=rules,
        config=Config.recorded(archive),
        every=every,
        instants=instants,
        queues=_queues(archive),
        activity=classification.queue_activity(archive.joinable("jobs"), at=instants),
        user_slots=classification.user_slots(archive.joinable("jobs"), status_log=log, at=instants),
        jobs=_jobs(archive, instants, every),
        states=states,
        progress=progress,
        share_usage=share_usage,
        n_sampled=n_sampled,
        n_logged=n_logged,
        lacking=lacking,
        share_problem=share_problem,
    )


def _analysis_jobs(archive: Archive) -> pl.LazyFrame:
    return archive.scan("jobs").filter(pl.col("prodsourcelabel") == USER)


def _span(archive: Archive) -> tuple[datetime, datetime, int]:
    """Return when sampled jobs (without any: analysis jobs) were made first and last, and how many there are."""
    made = pl.col("creationtime")
    row = (
        _analysis_jobs(archive)
        .select(
            first=pl.coalesce(made.filter(RATES_QUEUES).min(), made.min()),
            last=pl.coalesce(made.filter(RATES_QUEUES).max(), made.max()),
            n_sampled=RATES_QUEUES.sum(),
        )
        .collect()
        .row(0, named=True)
    )
    if row["first"] is None:
        raise EmptyPeriodError(
            f"no analysis job; {archive.path} has none with a creation time "
            f"(jobs.prodsourcelabel = '{USER}')"
        )
    return row["first"], row["last"], row["n_sampled"]


def _instants(
    first: datetime, last: datetime, start: datetime | None, end: datetime | None, every: str
) -> pl.DataFrame:
    """Number the instants of the period, on the grid of their step."""
    begin = start or first + min(timedelta(seconds=SAMPLE_S), (last - first) / 2)
    until = end or last
    result = instants_of(begin, until, every, closed="both")
    if result.is_empty():
        raise EmptyPeriodError(
            f"no instant from {begin} to {until} in steps of {every}; jobs that queues are rated "
            f"by were made from {first} to {last}: choose start, end and every within"
        )
    return result


def _logged(archive: Archive) -> int | None:
    """Count the sampled jobs that the status log knows; None without a log."""
    if not archive.has("job_status_log"):
        return None
    sampled = _analysis_jobs(archive).filter(RATES_QUEUES)
    known = sampled.join(archive.scan("job_status_log"), on="pandaid", how="semi")
    return int(known.select(pl.len()).collect().item())


def _queues(archive: Archive) -> pl.DataFrame:
    """Return the queues that may run analysis, and those that did."""
    used = (
        _analysis_jobs(archive).select(panda_queue="computingsite").drop_nulls().unique().collect()
    )
    if not archive.has("queues"):
        names = ("panda_queue", "resource_type", "workflow")
        known = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    else:
        table = latest(archive.scan("queues").collect())
        wanted = ("panda_queue", "resource_type_q", "workflow", "type")
        lacking = [pl.lit(None, pl.String).alias(name) for name in wanted if name not in table]
        named = table.with_columns(lacking)
        may = pl.col("type").is_in(["analysis", "unified"])
        ran = pl.col("panda_queue").is_in(used["panda_queue"].implode())
        known = named.filter(may | ran).select(
            "panda_queue", pl.col("resource_type_q").alias("resource_type"), "workflow"
        )
    return used.join(known, on="panda_queue", how="full", coalesce=True).sort("panda_queue")


def _jobs(archive: Archive, instants: pl.DataFrame, every: str) -> pl.DataFrame:
    """Return the analysis jobs made in the period, and how long they waited."""
    step = duration_us(every)
    first, last = (int(instants["at"].cast(pl.Int64)[place]) for place in (0, -1))
    made = pl.col("creationtime").dt.epoch("us")
    ready = pl.coalesce("activatedtime", "creationtime").dt.epoch("us")
    wait = pl.col("starttime").dt.epoch("us") - ready
    chosen = _analysis_jobs(archive).filter(
        pl.col("computingsite").is_not_null(), made >= first, made < last + step
    )
    return (
        chosen.select(
            snapshot=(made - first) // step,
            queue="computingsite",
            is_sampled=_MERGED_OR_PROBE,
            wait_s=pl.when(wait >= 0).then(wait / 1e6),
        )
        .sort(pl.all())
        .collect()
    )


def _tasks(
    archive: Archive, instants: pl.DataFrame
) -> tuple[pl.DataFrame | None, pl.DataFrame | None, tuple[str, ...]]:
    """Rebuild the tasks and the progress of their input; name the tables that are missing for it."""
    if not archive.has("tasks"):
        return None, None, ()
    lacking = tuple(n for n in ("task_status_log", "files", "datasets") if not archive.has(n))
    log = archive.joinable_if_there("task_status_log")
    states = classification.task_states(archive.joinable("tasks"), status_log=log, at=instants)
    if "files" in lacking or "datasets" in lacking:
        return states, None, lacking
    progress = classification.task_progress(
        states, archive.joinable("files"), archive.joinable("datasets"), archive.joinable("jobs")
    )
    return states, progress, lacking


def _shares(archive: Archive, instants: pl.DataFrame) -> tuple[pl.DataFrame | None, str]:
    """Hold the shares against their targets; says why where the tree is none."""
    if not archive.has("gshares"):
        return None, ""
    log = archive.joinable_if_there("job_status_log")
    stats = classification.share_job_stats(archive.joinable("jobs"), status_log=log, at=instants)
    try:
        usage = classification.share_usage(archive.scan("gshares").collect(), stats).usage
    except DataError as problem:
        return None, str(problem)
    return usage.join(instants, on="snapshot").sort("snapshot", "gshare"), ""
