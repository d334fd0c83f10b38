"""Read what the waiting of a period is judged by: histories of jobs, settings, and how much waiting there is at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.given import Source, archive_of
from brokerlab.archive.store import Archive
from brokerlab.engines import INT, TEXT, TIME, Types, collect, microseconds, narrow
from brokerlab.errors import ConfigError, EmptyPeriodError, InsufficientDataError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.lazy import call
from brokerlab.lifecycle.timeouts import Histories, TimeoutRules, histories
from brokerlab.lifecycle.timeouts.facts import microseconds_of, queue_facts
from brokerlab.lifecycle.timeouts.histories import BEATING
from brokerlab.lifecycle.timeouts.rule import LIVE
from brokerlab.lifecycle.waits.firings import HOUR_US, label_outcomes
from brokerlab.results import Result, Shows
from brokerlab.rulesets import single_switches
from brokerlab.times import time_of

Unit = Literal["queue", "task"]
UNIT_COLUMNS: Mapping[str, str] = {"queue": "computingsite", "task": "jeditaskid"}
"""What intervals can be drawn over, and the column that names it."""
LOST_HEARTBEAT = 100  # ``jobdispatchererrorcode`` of jobs that were failed for a lost heartbeat
COUNTS = ("n_jobs", "waited_us", "n_started", "fresh_us", "n_ran", "n_lost", "lost_us")
JOBS: Types = {
    **dict.fromkeys(["pandaid", "jeditaskid"], INT),
    **dict.fromkeys(["computingsite", "jobstatus"], TEXT),
    **dict.fromkeys(["creationtime", "starttime", "endtime", "modificationtime"], TIME),
    "jobdispatchererrorcode": INT,
}
REQUIRED = ("pandaid", "jobstatus", "creationtime", "modificationtime")


@dataclass(frozen=True, kw_only=True, repr=False)
class Waiting(Result):
    """The waiting of a period.

    Attributes:
        archive: The archive.
        start, end: The period: rules that fire from its first instant on, before its last.
        until: End of the archive; what came after a rule fired is known up to it.
        rules: The rule set.
        other: The other one.
        config: The settings at the end of the period.
        soon_h: A job that went on by itself within this after a rule fired was interrupted needlessly [h].
        unit: What intervals are drawn over.
        histories: The histories of jobs.
        units: One row per unit with jobs in the period: ``unit``, ``n_jobs``, ``waited_us`` (from creation to start,
            within the period), ``n_started, fresh_us`` (jobs that started in it, and their whole waits), ``n_ran`` (jobs
            that ran and were over in it), ``n_lost, lost_us`` (those failed for a lost heartbeat, and what they had run).
        live: Live jobs in the archive: ``jobstatus``, ``n_jobs``.
        statuses: Statuses that the archive has any job in, or any entry of its log.
        n_unlogged: Jobs of the period without entries in the status log.
    """

    shows = Shows(
        about="timeouts that fire, one row per job, rule and action",
        columns="pandaid, computingsite, jobstatus, rule, action, fires, limit_h [h], waited_h [h], outcome",
        keys=("pandaid", "rule", "action"),
        next=(
            "lifecycle.waits.by_rule(result, result.frame())",
            "lifecycle.waits.compare_rule_sets(result, result.frame())",
        ),
    )

    archive: Archive
    start: datetime
    end: datetime
    until: datetime
    rules: TimeoutRules
    other: TimeoutRules
    config: Config
    soon_h: float
    unit: Unit
    histories: Histories
    units: pl.DataFrame
    live: pl.DataFrame
    statuses: frozenset[str]
    n_unlogged: int

    def total(self, name: str) -> int:
        """Return the sum of a column of `units`, such as ``n_jobs``."""
        return int(self.units[name].sum())

    @property
    def waited_h(self) -> float:
        """Waiting of all jobs from creation to start, within the period [h]."""
        return self.total("waited_us") / HOUR_US

    @property
    def fresh_h(self) -> float | None:
        """Mean wait from creation to start of the jobs that started in the period [h]; null without any."""
        started = self.total("n_started")
        return self.total("fresh_us") / started / HOUR_US if started else None

    @property
    def n_live(self) -> int:
        """Live jobs in the archive."""
        return int(self.live["n_jobs"].sum())

    @property
    def n_beating(self) -> int:
        """Live jobs in statuses in which they give signs of life."""
        return int(self.live.filter(pl.col("jobstatus").is_in(BEATING))["n_jobs"].sum())

    @property
    def n_exempt_queues(self) -> int:
        """Queues that are paused or have disableReassign."""
        flags = queue_facts(self.histories.places)
        return flags.filter(pl.col("queue_paused") | pl.col("queue_stays")).height

    def firings(
        self, scale: float = 1.0, *, rules: TimeoutRules | str | None = None, exempt: bool = True
    ) -> pl.DataFrame:
        """Return the firings of the period with every limit ``scale`` times as long, see :func:`brokerlab.lifecycle.waits.label_outcomes`.

        Perhaps of another rule set, or as if no queue were exempt from any rule. A scale below ``least`` of
        :func:`read_waiting` is a ConfigError.
        """
        return label_outcomes(
            self.histories.fired(scale, rules=rules, exempt=exempt),
            until=self.until,
            start=self.start,
            end=self.end,
            soon_h=self.soon_h,
            unit=UNIT_COLUMNS[self.unit],
        )

    @cached_property
    def _fired(self) -> pl.DataFrame:
        return self.firings()

    def exempted(self, firings: pl.DataFrame) -> pl.DataFrame:
        """Return what only paused queues and disableReassign prevent beside the firings of the period."""
        every = self.firings(exempt=False)
        return every.join(firings, on=["pandaid", "rule", "action"], how="anti")

    def frame(self) -> pl.DataFrame:
        """Return the firings of the period under its rules, see :meth:`firings`."""
        return self._fired


@call("lifecycle.waiting")
def read_waiting(
    source: Source,
    *,
    start: datetime | str | None = None,
    end: datetime | str | None = None,
    rules: TimeoutRules | str = "document",
    least: float = 1.0,
    soon_h: float = 1.0,
    unit: Unit = "queue",
) -> Waiting:
    """Read the waiting of a period.

    Args:
        source: An archive, or its tables by name, with ``jobs``; ``job_status_log``, ``queues`` and ``gdpconfig`` are used where they are.
        start: First instant at which a rule may fire, UTC; null, or earlier: the first creation of a job.
        end: Firings at or after it are left out; null, or later: the end of the archive.
        rules: ``document``, ``production``, or a rule set of timeouts.
        least: The smallest scale of limits that will be asked for, 0.25 for :func:`brokerlab.lifecycle.waits.study_waiting`.
        soon_h: A job that went on by itself within this was interrupted needlessly [h].
        unit: What intervals are drawn over.

    Raises:
        ConfigError: ``start`` is not before ``end``, one of them is no time or has a zone, or the rule set or unit is unknown.
        InsufficientDataError: The archive has no jobs, or none with a time of creation.
        EmptyPeriodError: It has none in the period.
    """
    archive = archive_of(source)
    if not archive.has("jobs") or archive.manifest.window is None:
        raise InsufficientDataError("the archive has no jobs; ingest a source that holds them")
    if unit not in UNIT_COLUMNS:
        raise ConfigError(f"unit={unit!r}: {nearest(str(unit), UNIT_COLUMNS)}")
    if not (least > 0 and soon_h >= 0):
        raise ConfigError(
            f"least={least}, soon_h={soon_h}: allowed are a scale above 0 and hours of at least 0"
        )
    until = datetime.fromisoformat(archive.manifest.window[1])
    jobs = narrow(archive.joinable("jobs"), "jobs", JOBS, REQUIRED)
    first, last = _window(jobs, until, time_of(start, "start"), time_of(end, "end"))
    chosen = TimeoutRules.of(rules)
    other = TimeoutRules("production" if chosen.rules == "document" else "document")
    log = archive.joinable_if_there("job_status_log")
    config = Config.recorded(archive, last)
    units = _units(jobs, first, last, UNIT_COLUMNS[unit])
    known = histories(
        archive.joinable("jobs"),
        log,
        at=until,
        queues=archive.joinable_if_there("queues"),
        rules=chosen,
        config=config,
        least=min(least, 1.0),
        also=[other, *single_switches(chosen, other).values()],
    )
    return Waiting(
        archive=archive,
        start=first,
        end=last,
        until=until,
        rules=chosen,
        other=other,
        config=config,
        soon_h=soon_h,
        unit=unit,
        histories=known,
        units=units,
        live=_live(jobs),
        statuses=frozenset(_statuses(jobs) | (set() if log is None else _statuses(log))),
        n_unlogged=_unlogged(_inside(jobs, first, last), log),
    )


def _window(
    jobs: nw.LazyFrame[Any], until: datetime, start: datetime | None, end: datetime | None
) -> tuple[datetime, datetime]:
    """Return the period, within the archive: nothing is known of live jobs beyond it."""
    made = collect(jobs.select(nw.col("creationtime").min()))["creationtime"][0]
    if made is None:
        raise InsufficientDataError("no job has a time of creation")
    # the last change of the archive is part of it
    over = until + timedelta(microseconds=1)
    first, last = start or made, end or over
    if start is not None and end is not None and start >= end:
        raise ConfigError(f"start={start}, end={end}: the period is empty")
    if first > until or last <= made:
        raise EmptyPeriodError(f"no job in the period; the archive has jobs from {made} to {until}")
    return max(first, made), min(last, over)


def _units(jobs: nw.LazyFrame[Any], start: datetime, end: datetime, column: str) -> pl.DataFrame:
    """Add up, per unit, what waited and ran in the period."""
    first, last = microseconds_of(start), microseconds_of(end)
    began, ended = (microseconds(jobs, nw.col(name)) for name in ("starttime", "endtime"))
    inside = _inside(jobs, start, end).with_columns(began=began, ended=ended)
    over = ~nw.col("jobstatus").is_in(LIVE)
    waited = nw.min_horizontal(nw.coalesce("began", "left"), nw.lit(last))
    since = nw.max_horizontal(nw.col("made"), nw.lit(first))
    started = (nw.col("began") >= first) & (nw.col("began") < last)
    ended_in_it = over & (nw.col("changed") < last)
    lost = (nw.col("jobdispatchererrorcode") == LOST_HEARTBEAT) & ended_in_it
    ran = nw.col("ended") - nw.col("began")
    one, none = nw.lit(1), nw.lit(0)
    counted = inside.select(
        unit=nw.col(column).cast(TEXT),
        n_jobs=one,
        waited_us=nw.when(waited > since).then(waited - since).otherwise(none),
        n_started=nw.when(started).then(one).otherwise(none),
        fresh_us=nw.when(started).then(nw.col("began") - nw.col("made")).otherwise(none),
        n_ran=nw.when(ended_in_it & ~nw.col("began").is_null()).then(one).otherwise(none),
        n_lost=nw.when(lost).then(one).otherwise(none),
        lost_us=nw.when(lost & (ran > 0)).then(ran).otherwise(none),
    )
    sums = collect(counted.group_by("unit").agg(nw.col(name).sum() for name in COUNTS))
    if sums.is_empty():
        raise EmptyPeriodError(f"no job in the period; it is {start} to {end}")
    whole = pl.col(COUNTS).cast(pl.Int64)
    return sums.with_columns(pl.col("unit").fill_null("none"), whole).sort("unit")


def _inside(jobs: nw.LazyFrame[Any], start: datetime, end: datetime) -> nw.LazyFrame[Any]:
    """Return the jobs that were there in the period: ``made``, ``changed``, ``left`` (its end while they are alive) [us]."""
    made, changed = (
        microseconds(jobs, nw.col(name)) for name in ("creationtime", "modificationtime")
    )
    first, last = microseconds_of(start), microseconds_of(end)
    over = ~nw.col("jobstatus").is_in(LIVE)
    times = jobs.with_columns(made=made, changed=changed)
    left = nw.when(over).then(nw.col("changed")).otherwise(nw.lit(last))
    known = times.with_columns(left=left)
    return known.filter((nw.col("made") < last) & (nw.col("left") >= first))


def _live(jobs: nw.LazyFrame[Any]) -> pl.DataFrame:
    """Count the live jobs by status."""
    alive = jobs.filter(nw.col("jobstatus").is_in(LIVE)).group_by("jobstatus")
    return collect(alive.agg(n_jobs=nw.len().cast(nw.Int64))).sort("jobstatus")


def _statuses(table: Any) -> set[str]:
    """Return the statuses that a table has."""
    result = collect(nw.from_native(table, pass_through=True).lazy().select("jobstatus").unique())
    return set(result["jobstatus"].drop_nulls().to_list())


def _unlogged(jobs: nw.LazyFrame[Any], log: Any) -> int:
    """Count the jobs without entries in the status log."""
    plain = jobs
    if log is not None:
        ids = nw.from_native(log).lazy().select("pandaid").unique()
        plain = jobs.join(ids, on="pandaid", how="anti")
    return int(collect(plain.select(n=nw.len()))["n"][0])
