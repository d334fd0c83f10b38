"""Load what the classification of a period needs: instants, waits, starts, slots, tasks and shares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.errors import DataError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle import classes as lifecycle
from brokerlab.lifecycle.classes import ClassRules
from brokerlab.lifecycle.classes.wait_stats import MERGE, PROBE_USER, SAMPLE_S, USER, USER_ANALYSIS
from brokerlab.times import duration_us, rounded

COVERED = 0.99
"""Part of the sample that a status log must know to be asked for the waits."""
SPAN = """
with made as (
    select creationtime, coalesce(gshare = $share and (processingtype = $merge or produsername = $probe), false) as is_sample
    from jobs where prodsourcelabel = $label
)
select coalesce(min(creationtime) filter (is_sample), min(creationtime)) as first,
    coalesce(max(creationtime) filter (is_sample), max(creationtime)) as last,
    count(*) as n_jobs, count(*) filter (is_sample) as n_sample
from made
"""
"""When jobs that queues are rated by were made; any analysis jobs where there are none of them."""
LOGGED = """
select count(*) as n_logged from jobs
where prodsourcelabel = $label and gshare = $share and (processingtype = $merge or produsername = $probe)
    and pandaid in (select pandaid from job_status_log)
"""
MADE = """
select computingsite, (epoch_us(creationtime) - $first) // $step as place,
    coalesce(processingtype, '') = $merge or coalesce(produsername, '') = $probe as is_sample,
    epoch_us(starttime) - epoch_us(coalesce(activatedtime, creationtime)) as wait_us
from jobs
where prodsourcelabel = $label and computingsite is not null and epoch_us(creationtime) >= $first
    and epoch_us(creationtime) < $end
order by all
"""
"""Analysis jobs by the last instant before they were made; the wait is null where they never started."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The tables of one study.

    Attributes:
        archive: The archive.
        rules: Rule set of the study, as asked for.
        config: gdpconfig.
        every: Step of the instants.
        instants: ``snapshot`` from 0, ``at``.
        queues: ``panda_queue, resource_type, workflow``, of every queue that may run analysis or did.
        activity: What queues started, see `lifecycle.queue_activity`.
        user_slots: Slots of users by queue, see `lifecycle.user_slots`.
        made: Analysis jobs of the period: ``snapshot, queue, is_sample`` (of the kind that queues are rated by),
            ``wait_s`` (null: not started).
        states: Tasks as they were; None where the archive has none. `progress` of their input.
        progress: See `lifecycle.task_progress`.
        share_usage: Shares against their targets; None where the archive has no tree of shares.
        n_sample: Jobs of the kind that queues are rated by, in the whole archive.
        notes: What the archive lacks and how it was approximated.
    """

    archive: Archive
    rules: ClassRules
    config: Config
    every: str
    instants: pl.DataFrame
    queues: pl.DataFrame
    activity: pl.DataFrame
    user_slots: pl.DataFrame
    made: pl.DataFrame
    states: pl.DataFrame | None
    progress: pl.DataFrame | None
    share_usage: pl.DataFrame | None
    n_sample: int
    notes: tuple[str, ...]

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
        stored = self.archive
        log = stored.job_status_log if stored.has("job_status_log") else None
        return lifecycle.wait_stats(
            stored.jobs, self.queues, status_log=log, at=self.instants, rules=rules
        )


def load(
    archive: str | Path,
    *,
    start: str = "",
    end: str = "",
    every: str = "1h",
    rules: str = "document",
) -> Inputs:
    """Read what the classification of a period needs.

    Args:
        archive: Archive folder.
        start: First instant, ISO 8601, UTC; empty: four days after the first merge job or probe was made, when the sample
            of waits is full, or half of a shorter archive.
        end: Last instant; empty: the last merge job or probe was made then. Later, classes fade for want of jobs.
        every: Step of the instants.
        rules: ``document`` or ``production``.

    Raises:
        ConfigError: A time or a step that is not readable, or an unknown rule set.
        DataError: The archive cannot be read, has no analysis jobs, or no instant lies in the period.
    """
    opened = open_archive(archive)
    span = _span(opened)
    instants = _instants(span, time_of(start or None, "start"), time_of(end or None, "end"), every)
    logged, notes = _log(opened, span["n_sample"])
    # a log that leaves out most queues must not take their jobs out of the sample
    rule_set = ClassRules(rules) if logged else ClassRules(rules, wait_time="recorded")
    jobs = opened.jobs
    log = opened.job_status_log if opened.has("job_status_log") else None
    states, progress = _tasks(opened, instants, notes)
    return Inputs(
        archive=opened,
        rules=rule_set,
        config=_config(opened),
        every=every,
        instants=instants,
        queues=_queues(opened),
        activity=lifecycle.queue_activity(jobs, at=instants),
        user_slots=lifecycle.user_slots(jobs, status_log=log, at=instants),
        made=_made(opened, instants, every),
        states=states,
        progress=progress,
        share_usage=_shares(opened, log, instants, notes),
        n_sample=span["n_sample"],
        notes=tuple(notes),
    )


def _words() -> dict[str, str]:
    return {"label": USER, "share": USER_ANALYSIS, "merge": MERGE, "probe": PROBE_USER}


def _span(opened: Archive) -> dict[str, Any]:
    """Return when jobs that queues are rated by were made first and last, and how many there are."""
    if not opened.has("jobs"):
        raise DataError(f"{opened.path}: no table jobs; the classification reads waits from it")
    row: dict[str, Any] = opened.sql(SPAN, _words()).pl().row(0, named=True)
    if not row["n_jobs"]:
        raise DataError(
            f"{opened.path}: no analysis job (jobs.prodsourcelabel = '{USER}'); nothing to classify"
        )
    return row


def _instants(
    span: dict[str, Any], start: datetime | None, end: datetime | None, every: str
) -> pl.DataFrame:
    """Number the instants of the period, on the grid of their step."""
    length = span["last"] - span["first"]
    first = start or span["first"] + min(timedelta(seconds=SAMPLE_S), length / 2)
    last = end or span["last"]
    step = timedelta(microseconds=duration_us(every))
    grid = pl.select(at=pl.lit(first).cast(pl.Datetime("us"))).select(rounded(pl.col("at"), every))
    begin = grid.item()
    begin += step if begin < first else timedelta(0)
    if begin > last:
        raise DataError(
            f"no instant from {first} to {last} in steps of {every}; jobs that queues are rated by were made from "
            f"{span['first']} to {span['last']}: choose start, end and every within"
        )
    at = pl.datetime_range(begin, last, step, time_unit="us", eager=True)
    return pl.DataFrame({"at": at}).with_row_index("snapshot").cast({"snapshot": pl.Int64})


def _log(opened: Archive, n_sample: int) -> tuple[bool, list[str]]:
    """Say whether the status log knows the jobs that waits are read from."""
    if not opened.has("job_status_log"):
        said = "waits run from activation, else creation, to the start of a job: there is no status log"
        return False, [said]
    n_logged = opened.sql(LOGGED, _words()).pl().item()
    if n_logged >= COVERED * n_sample:
        return True, []
    said = (
        f"waits run from activation, else creation, to the start of a job: the status log knows {n_logged:,} of the "
        f"{n_sample:,} jobs that queues are rated by"
    )
    return False, [said]


def _config(opened: Archive) -> Config:
    if not opened.has("gdpconfig"):
        return Config.empty()
    return Config.from_frame(opened.scan("gdpconfig").collect())


def _queues(opened: Archive) -> pl.DataFrame:
    """Return the queues that may run analysis, and those that did."""
    used = (
        opened.scan("jobs")
        .filter(pl.col("prodsourcelabel") == USER)
        .select(panda_queue="computingsite")
        .drop_nulls()
        .unique()
        .collect()
    )
    if not opened.has("queues"):
        known = pl.DataFrame(
            schema=dict.fromkeys(["panda_queue", "resource_type", "workflow"], pl.String)
        )
    else:
        table = opened.scan("queues").collect()
        wanted = ["panda_queue", "resource_type_q", "workflow", "type"]
        lacking = [pl.lit(None, pl.String).alias(name) for name in wanted if name not in table]
        named = table.with_columns(lacking).unique("panda_queue", keep="last", maintain_order=True)
        may = pl.col("type").is_in(["analysis", "unified"])
        ran = pl.col("panda_queue").is_in(used["panda_queue"].implode())
        known = named.filter(may | ran).select(
            "panda_queue", pl.col("resource_type_q").alias("resource_type"), "workflow"
        )
    return used.join(known, on="panda_queue", how="full", coalesce=True).sort("panda_queue")


def _made(opened: Archive, instants: pl.DataFrame, every: str) -> pl.DataFrame:
    """Return the analysis jobs made in the period, and how long they waited."""
    step = duration_us(every)
    first, last = (int(instants["at"].cast(pl.Int64)[place]) for place in (0, -1))
    asked = {"label": USER, "merge": MERGE, "probe": PROBE_USER}
    rows: pl.DataFrame = opened.sql(
        MADE, {**asked, "first": first, "step": step, "end": last + step}
    ).pl()
    wait = pl.when(pl.col("wait_us") >= 0).then(pl.col("wait_us") / 1e6)
    return rows.select(
        "is_sample", snapshot=pl.col("place").cast(pl.Int64), queue="computingsite", wait_s=wait
    )


def _tasks(
    opened: Archive, instants: pl.DataFrame, notes: list[str]
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """Rebuild the tasks and the progress of their input."""
    if not opened.has("tasks"):
        return None, None
    log = opened.task_status_log if opened.has("task_status_log") else None
    if log is None:
        notes.append(
            "tasks run from their start to their last change: there is no log of their status"
        )
    states = lifecycle.task_states(opened.tasks, status_log=log, at=instants)
    lacking = [name for name in ("files", "datasets") if not opened.has(name)]
    if lacking:
        notes.append(f"no task has progress: there is no table {' and no table '.join(lacking)}")
        return states, None
    return states, lifecycle.task_progress(states, opened.files, opened.datasets, opened.jobs)


def _shares(
    opened: Archive, log: Any, instants: pl.DataFrame, notes: list[str]
) -> pl.DataFrame | None:
    """Hold the shares against their targets; says why where the tree is none."""
    if not opened.has("gshares"):
        return None
    stats = lifecycle.share_job_stats(opened.jobs, status_log=log, at=instants)
    try:
        usage = lifecycle.share_usage(opened.scan("gshares").collect(), stats).usage
    except DataError as problem:
        notes.append(f"shares are not held against targets: {problem}")
        return None
    return usage.join(instants, on="snapshot").sort("snapshot", "gshare")
