"""Load what the waiting of a period is judged by: histories of jobs, settings, and how much waiting there is at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.store import Archive, open_archive
from brokerlab.brokerage.replay.plan import time_of
from brokerlab.engines import INT, TEXT, TIME, Types, collect, microseconds, narrow
from brokerlab.errors import ConfigError, DataError
from brokerlab.gdpconfig import Config
from brokerlab.lifecycle.timeouts import Histories, TimeoutRules, histories
from brokerlab.lifecycle.timeouts.facts import microseconds_of
from brokerlab.lifecycle.timeouts.rules import SWITCHES
from brokerlab.lifecycle.timeouts.spans import BEATING
from brokerlab.lifecycle.timeouts.statuses import LIVE
from brokerlab.report.replays.odd import noted
from brokerlab.units import HOUR_S

UNITS: Mapping[str, str] = {"queue": "computingsite", "task": "jeditaskid"}
"""What the bootstrap can draw, and the column that names it."""
ALWAYS = (0.5, 1.0, 2.0)
"""Scales of limits that are looked at whatever was asked: halved, as set, doubled."""
NO_HISTORY = ("fr_row_limit_bug", "fr_zero_running_triggers", "analysis_rebrokerage")
"""Switches that no history of single jobs shows."""
LOST = 100
"""``jobdispatchererrorcode`` of jobs that were failed for a lost heartbeat."""
HOUR_US = HOUR_S * 1_000_000
JOBS: Types = {
    **dict.fromkeys(["pandaid", "jeditaskid"], INT),
    **dict.fromkeys(["computingsite", "jobstatus"], TEXT),
    **dict.fromkeys(["creationtime", "starttime", "endtime", "modificationtime"], TIME),
    "jobdispatchererrorcode": INT,
}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What one study is made from.

    Attributes:
        archive: The archive.
        window: The period: rules that fire from its first instant on, before its last.
        until: End of the archive; what came after a rule fired is known up to it.
        rules: The rule set of the study.
        other: The other one.
        config: The settings at the end of the period.
        scales: How many times as long limits are made, ascending.
        soon_h: A job that went on by itself within this after a rule fired was interrupted for nothing [h].
        unit: ``queue`` or ``task``: what the bootstrap draws.
        read: The histories of jobs.
        units: One row per unit with jobs in the period: ``unit``, ``n_jobs``, ``waited_us`` (from creation to start,
            within the period), ``n_started, fresh_us`` (jobs that started in it, and their whole waits), ``n_ran``
            (jobs that ran and were over in it), ``n_lost, lost_us`` (those failed for a lost heartbeat, and what they had
            run).
        live: Live jobs in the archive: ``jobstatus``, ``n_jobs``.
        seen: Statuses that the archive tells of: ``jobstatus``.
        n_unlogged: Jobs without entries in the status log.
        odd: What was odd in the settings, each said once.
    """

    archive: Archive
    window: tuple[datetime, datetime]
    until: datetime
    rules: TimeoutRules
    other: TimeoutRules
    config: Config
    scales: tuple[float, ...]
    soon_h: float
    unit: str
    read: Histories
    units: pl.DataFrame
    live: pl.DataFrame
    seen: frozenset[str]
    n_unlogged: int
    odd: tuple[str, ...]

    @property
    def n_jobs(self) -> int:
        """Jobs of the period."""
        return int(self.units["n_jobs"].sum())

    @property
    def waited_h(self) -> float:
        """Waiting of all jobs from creation to start, within the period [h]."""
        return float(self.units["waited_us"].sum()) / HOUR_US

    @property
    def fresh_h(self) -> float | None:
        """Mean wait from creation to start of the jobs that started in the period [h]."""
        started = int(self.units["n_started"].sum())
        return float(self.units["fresh_us"].sum()) / started / HOUR_US if started else None

    @property
    def n_live(self) -> int:
        """Live jobs in the archive."""
        return int(self.live["n_jobs"].sum())


def load(
    archive: str | Path,
    *,
    start: str = "",
    end: str = "",
    rules: str = "document",
    scales: Sequence[float] = ALWAYS,
    soon_h: float = 1.0,
    unit: str = "queue",
) -> Inputs:
    """Read the waiting of a period.

    Args:
        archive: Archive folder.
        start: First instant at which a rule may fire, ISO 8601, UTC; empty, or earlier: the first creation of a job.
        end: Firings at or after it are left out; empty, or later: the end of the archive.
        rules: ``document`` or ``production``.
        scales: How many times as long limits are made; halved, as set and doubled are looked at always.
        soon_h: A job that went on by itself within this was interrupted for nothing [h].
        unit: ``queue`` or ``task``: what the bootstrap draws.

    Raises:
        ConfigError: A time that is not ISO 8601, or an unknown rule set.
        DataError: The archive cannot be read, has no jobs, or none in the period.
    """
    opened = open_archive(archive)
    if not opened.has("jobs") or opened.manifest.window is None:
        raise DataError(f"{opened.path}: has no jobs; ingest a source that holds them")
    until = datetime.fromisoformat(opened.manifest.window[1])
    jobs = narrow(opened.jobs, "jobs", JOBS, ("pandaid", "jobstatus", "creationtime", "modificationtime"))  # fmt: skip
    window = _window(opened, jobs, until, start, end)
    chosen = TimeoutRules(rules)
    other = TimeoutRules("production" if chosen.rules == "document" else "document")
    log = opened.job_status_log if opened.has("job_status_log") else None
    steps = tuple(sorted({*(float(scale) for scale in scales), *ALWAYS}))
    with noted() as odd:
        config = _config(opened, window[1])
        read = histories(
            opened.jobs, log, at=until, queues=opened.queues if opened.has("queues") else None,
            rules=chosen, config=config, least=steps[0], also=[other, *flipped(chosen, other).values()],
        )  # fmt: skip
    logged = set() if log is None else _statuses(log)
    return Inputs(
        archive=opened, window=window, until=until, rules=chosen, other=other, config=config,
        scales=steps, soon_h=soon_h, unit=unit, read=read, units=_units(jobs, window, UNITS[unit]),
        live=_live(jobs), seen=frozenset(logged | _statuses(jobs)), n_unlogged=_unlogged(jobs, log),
        odd=tuple(dict.fromkeys(odd)),
    )  # fmt: skip


def flipped(chosen: TimeoutRules, other: TimeoutRules) -> dict[str, TimeoutRules]:
    """Return the rule set with each single switch of the other one."""
    own, theirs = chosen.to_dict(), other.to_dict()
    return {
        name: TimeoutRules(chosen.rules, **{name: theirs[name]})
        for name in SWITCHES
        if own[name] != theirs[name] and name not in NO_HISTORY
    }


def _window(
    opened: Archive, jobs: Any, until: datetime, start: str, end: str
) -> tuple[datetime, datetime]:
    """Return the period, within the archive: nothing is known of live jobs beyond it."""
    made = collect(jobs.select(nw.col("creationtime").min()))["creationtime"][0]
    # the last change of the archive is part of it
    over = until + timedelta(microseconds=1)
    first = time_of(start or None, "start") or made
    last = time_of(end or None, "end") or over
    if first is None or first >= last:
        raise ConfigError(f"start={start!r}, end={end!r}: the period is empty")
    if first > until or (made is not None and last <= made):
        raise DataError(
            f"{opened.path}: no job in the period; the archive has jobs from {made} to {until}"
        )
    return max(first, made or first), min(last, over)


def _config(opened: Archive, at: datetime) -> Config:
    if not opened.has("gdpconfig"):
        return Config.empty()
    return Config.from_frame(opened.scan("gdpconfig").collect()).at(at)


def _units(jobs: Any, window: tuple[datetime, datetime], column: str) -> pl.DataFrame:
    """Add up, per unit, what waited and ran in the period."""
    first, last = (microseconds_of(moment) for moment in window)
    made, began, ended, changed = (
        microseconds(nw.col(name))
        for name in ("creationtime", "starttime", "endtime", "modificationtime")
    )
    times = jobs.with_columns(made=made, began=began, ended=ended, changed=changed)
    over = ~nw.col("jobstatus").is_in(LIVE)
    left = nw.when(over).then(nw.col("changed")).otherwise(nw.lit(last))
    inside = times.with_columns(left=left).filter(
        (nw.col("made") < last) & (nw.col("left") >= first)
    )
    waited = nw.min_horizontal(nw.coalesce("began", "left"), nw.lit(last))
    since = nw.max_horizontal(nw.col("made"), nw.lit(first))
    started = (nw.col("began") >= first) & (nw.col("began") < last)
    ended_in_it = over & (nw.col("changed") < last)
    lost = (nw.col("jobdispatchererrorcode") == LOST) & ended_in_it
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
    names = ["n_jobs", "waited_us", "n_started", "fresh_us", "n_ran", "n_lost", "lost_us"]
    sums = collect(counted.group_by("unit").agg(nw.col(name).sum() for name in names))
    found = sums.with_columns(pl.col("unit").fill_null("none"), pl.col(names).cast(pl.Int64)).sort(
        "unit"
    )
    if found.is_empty():
        raise DataError(f"no job in the period from {window[0]} to {window[1]}")
    return found


def _live(jobs: Any) -> pl.DataFrame:
    """Count the live jobs by status."""
    alive = jobs.filter(nw.col("jobstatus").is_in(LIVE)).group_by("jobstatus")
    return collect(alive.agg(n_jobs=nw.len().cast(nw.Int64))).sort("jobstatus")


def beating(inputs: Inputs) -> int:
    """Return how many live jobs give signs of life."""
    return int(inputs.live.filter(pl.col("jobstatus").is_in(BEATING))["n_jobs"].sum())


def _statuses(table: Any) -> set[str]:
    lazy = nw.from_native(table).lazy() if not isinstance(table, nw.LazyFrame) else table
    return set(collect(lazy.select("jobstatus").unique())["jobstatus"].drop_nulls().to_list())


def _unlogged(jobs: Any, log: Any) -> int:
    if log is None:
        plain = jobs
    else:
        ids = nw.from_native(log).lazy().select("pandaid").unique()
        plain = jobs.join(ids, on="pandaid", how="anti")
    return int(collect(plain.select(n=nw.len()))["n"][0])
