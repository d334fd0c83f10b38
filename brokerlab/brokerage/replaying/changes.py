"""When a job was in which status, and the counts at the instants: changes over time, added up in the engine.

A status holds from its beginning up to, not including, its end. With a status log it says which; from times alone a job is

    assigned      from ``creationtime`` to ``activatedtime``
    activated     from ``activatedtime`` (``creationtime`` if that is null and the job started) to ``starttime``
    running       from ``starttime`` to ``endtime``
    transferring  from ``endtime`` to its last change of status, if it finished for a nucleus
    holding       in that time otherwise

and nothing after it finished, failed, was cancelled or closed. Times alone cannot tell ``defined``, ``pending``,
``waiting`` from ``assigned``, ``sent`` and ``starting`` from ``activated``, ``merging``, ``stagein``, ``stageout``
from ``running`` or ``holding``, and know of one queue per job: the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.archive.contracts import read_as
from brokerlab.archive.contracts.jobs import OVER
from brokerlab.brokerage.replaying.clock import Clock, spread
from brokerlab.engines import collect, narrow, same_engine, unpivot
from brokerlab.lifecycle.states import entries

GROUP = ("computingsite", "gshare", "workqueue_id", "resource_type", "nucleus")
"""What jobs are counted by, besides their status."""
DISKIO_UNIT = 1_000_000
"""Disk traffic per core is added up in whole millionths of kB/s: integers add exactly, in any order."""

JOB_COLUMNS = read_as(
    "jobs",
    *("pandaid", "jeditaskid", "jobstatus", "computingsite", "gshare", "workqueue_id"),
    *("resource_type", "nucleus", "corecount", "diskio", "creationtime", "activatedtime"),
    *("starttime", "endtime", "statechangetime", "modificationtime"),
)
JOB_REQUIRED = ("pandaid", "jobstatus", "computingsite", "creationtime", "modificationtime")
LOG_COLUMNS = read_as("job_status_log", "pandaid", "jobstatus", "modificationtime", "computingsite")
LOG_REQUIRED = ("pandaid", "jobstatus", "modificationtime")

BOUNDARIES = ("created", "released", "started", "stopped", "left")
"""The five times of a job without log, in order."""
ENTERED = ("assigned", "activated", "running", "after", "now")
"""Status that begins at each of the five; ``after`` and ``now`` are columns of the job."""
WEIGHTS = ("ncores", "diskio_sum", "diskio_jobs")
"""What is added up over jobs, besides their number."""
LAST = nw.coalesce("statechangetime", "modificationtime", "endtime", "starttime")
"""When a job was over, or took its present status."""
MERGES = nw.coalesce("processingtype", nw.lit("")) == "pmerge"
"""A job merges."""


def prepared(jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Add what is summed over jobs, and ``over_at``, the time at which a job was over (null while it lives)."""
    cores = nw.when(nw.col("corecount") > 0).then(nw.col("corecount")).otherwise(nw.lit(1))
    is_over = nw.col("jobstatus").is_in(OVER)
    diskio = nw.when(nw.col("diskio") >= 0).then(nw.col("diskio"))
    return jobs.with_columns(
        last=LAST,
        over_at=nw.when(is_over).then(LAST),
        is_over=is_over,
        ncores=cores,
        diskio_sum=nw.coalesce(diskio * DISKIO_UNIT // cores, nw.lit(0)),
        diskio_jobs=nw.when(diskio.is_null()).then(nw.lit(0)).otherwise(nw.lit(1)),
    )


def times(jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Put the five times of each job in order; jobs without them are left out.

    Returns:
        The columns of :func:`prepared`, ``created <= released <= started <= stopped <= left``, ``after``, ``now``
        (null once the job is over). A job that never started has ``started = stopped = left``.
    """
    left = nw.col("last")
    usable = jobs.filter(~nw.col("creationtime").is_null() & ~left.is_null())
    ran = nw.min_horizontal("starttime", "last")
    begun = usable.with_columns(
        left=left,
        started=nw.when(nw.col("starttime").is_null()).then(left).otherwise(ran),
        activated=nw.when(nw.col("starttime").is_null())
        .then(nw.coalesce("activatedtime", "last"))
        .otherwise(nw.coalesce("activatedtime", "creationtime")),
        ended=nw.coalesce("endtime", "last"),
    )
    clipped = begun.with_columns(
        created=nw.min_horizontal("creationtime", "started"),
        stopped=nw.max_horizontal(nw.min_horizontal("ended", "left"), "started"),
    )
    finished = (nw.col("jobstatus").is_in(("finished", "transferring"))) & ~nw.col(
        "nucleus"
    ).is_null()
    return clipped.with_columns(
        released=nw.max_horizontal(nw.min_horizontal("activated", "started"), "created"),
        after=nw.when(finished).then(nw.lit("transferring")).otherwise(nw.lit("holding")),
        now=nw.when(~nw.col("is_over")).then(nw.col("jobstatus")),
    )


def spans(
    log: nw.LazyFrame[Any], jobs: nw.LazyFrame[Any], keep: Sequence[str] = GROUP
) -> nw.LazyFrame[Any]:
    """Turn log entries into spans of one status each, ``enter`` to ``leave`` (null: to this day), with what is kept of the jobs.

    An entry holds until the next one of the job (:func:`~brokerlab.lifecycle.states.entries`); the last one until
    the job was over, or to this day. An entry without queue has the job's.
    """
    logged = entries(log.with_columns(queue=nw.col("computingsite")), "queue")
    kept = dict.fromkeys(["pandaid", "computingsite", *keep, *WEIGHTS, "over_at"])
    joined = jobs.select(*kept).join(logged, on="pandaid", how="inner")
    end = nw.coalesce("following", "over_at")
    return joined.with_columns(
        computingsite=nw.coalesce("queue", "computingsite"),
        jobstatus=nw.col("entry"),
        leave=nw.when(end < nw.col("enter")).then(nw.col("enter")).otherwise(end),
    )


MEASURES = ("njobs", *WEIGHTS)
"""What is counted: jobs, cores, disk traffic."""


@dataclass(frozen=True)
class Side:
    """What a group of rows of :class:`Changes` adds to (``sign`` 1), or takes from (-1).

    ``groups``: ``group`` and its columns; groups that are not here count for nothing on this side.
    """

    groups: pl.DataFrame
    sign: int


def by_parent(frame: pl.DataFrame, parents: Mapping[str, str] | None) -> pl.DataFrame:
    """Name queues by their parent: as ``queues`` says, else the part before ``/`` (production-jobs.md)."""
    known = dict(parents or {})
    return frame.with_columns(
        pl.col("computingsite").replace(known).str.split("/").list.first().alias("computingsite")
    )


@dataclass(frozen=True)
class Changes:
    """What happens to the counts of each group.

    The same rows may stand on two sides: a job that starts is one more that runs and one less that waits.

    Attributes:
        sides: What the groups of the rows are.
        rows: ``group``, ``place`` (position of the first instant that sees the change), and one column per measure;
            several rows may be of one group and place.
        n_groups: Number of groups, numbered from 0.
        clock: The instants.
    """

    sides: tuple[Side, ...]
    rows: pl.DataFrame
    n_groups: int
    clock: Clock

    def by_parent(self, parents: Mapping[str, str] | None) -> Changes:
        """Return the changes by the parents of the queues."""
        sides = (replace(side, groups=by_parent(side.groups, parents)) for side in self.sides)
        return replace(self, sides=tuple(sides))

    def at_instants(
        self,
        by: Sequence[str],
        measures: Sequence[str],
        where: pl.Expr | None = None,
        *,
        only: pl.DataFrame | None = None,
    ) -> pl.DataFrame:
        """Add changes up over time: what there is of the ``measures`` at every instant by some columns of the groups.

        ``where`` is a condition on the groups; ``only`` has ``snapshot`` and columns of ``by``: the combinations that are wanted.

        Returns:
            ``snapshot``, ``by``, the measures; no row where the first measure is 0; sorted by ``snapshot`` and ``by``.
        """
        keys, levels = self._levels(by, measures, where)
        if only is not None:
            shared = [name for name in only.columns if name != "snapshot"]
            wanted = only.unique().join(keys, on=shared, nulls_equal=True)
            only = wanted.select("snapshot", "key")
        there = levels.filter(pl.col(measures[0]) != 0)
        result = spread(there, self.clock, ["key", *measures], only)
        shown = keys.drop("key")[result["key"]]
        return pl.DataFrame([result["snapshot"], *shown, *result.select(measures)])

    def _levels(
        self, by: Sequence[str], measures: Sequence[str], where: pl.Expr | None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Add the changes of each combination of some columns up over time.

        The combinations come sorted, with their number ``key``; and by ``key`` what there is of the measures from ``place`` to
        before ``until``.
        """
        meant = pl.lit(value=True) if where is None else where.fill_null(value=False)
        inside = [side.groups.filter(meant).select("group", *by) for side in self.sides]
        keys = pl.concat(inside).select(by).unique().sort(by)
        keys = keys.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("key"), *by)
        instants = max(len(self.clock), 1)
        signed = []
        for side, own in zip(self.sides, inside, strict=True):
            numbered = own.join(keys, on=list(by), nulls_equal=True)
            number = np.full(self.n_groups, -1, np.int64)
            number[numbered["group"].to_numpy()] = numbered["key"].to_numpy()
            slot = pl.Series(number[self.rows["group"].to_numpy()])
            change = [pl.col(name).cast(pl.Int64) * side.sign for name in measures]
            kept = self.rows.with_columns(key=slot).filter(pl.col("key") >= 0)
            signed.append(kept.select(pl.col("key") * instants + pl.col("place"), *change))
        summed = (
            pl.concat(signed)
            .group_by("key")
            .agg(pl.col(name).sum() for name in measures)
            .sort("key")
        )
        key, place = np.divmod(summed["key"].to_numpy(), instants)
        begins = np.searchsorted(key, key)
        until = np.append(np.where(key[1:] == key[:-1], place[1:], instants), instants)[: len(key)]
        levels = {"key": key, "place": place, "until": until}
        for name in measures:
            total = np.concatenate([[0], np.cumsum(summed[name].to_numpy())])
            levels[name] = total[1:] - total[begins]
        return keys, pl.DataFrame(levels)


def job_changes(
    jobs: nw.LazyFrame[Any],
    log: nw.LazyFrame[Any] | None,
    clock: Clock,
    by: Sequence[str] = GROUP,
) -> Changes:
    """Add up in the engine what every job's changes of status do to the counts: changes by ``by`` and ``jobstatus``.

    Jobs with an entry in ``log`` (:func:`log_of`) are read from it, the others from their times.
    """
    jobs = prepared(jobs)
    boundary, status = pl.col("boundary"), pl.col("jobstatus")
    begins = dict(zip(BOUNDARIES, ENTERED, strict=True))
    ends = dict(zip(BOUNDARIES[1:], ENTERED[:-1], strict=True))
    plain, parts = jobs, []
    if log is not None:
        plain = jobs.join(log.select("pandaid").unique(), on="pandaid", how="anti")
        logged = spans(log, jobs, by)
        passed = _passed(logged, ("enter", "leave"), [*by, "jobstatus"], clock)
        sides = [pl.when(boundary == name).then(status) for name in ("enter", "leave")]
        parts.append(_with_status(passed, sides, by))
    passed = _passed(times(plain), BOUNDARIES, [*by, "after", "now"], clock)
    parts.append(_with_status(passed, [_name(boundary, begins), _name(boundary, ends)], by))
    return _join(parts)


def log_of(status_log: Any, jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any] | None:
    """Return the status log as it is read; none where there is none."""
    if status_log is None:
        return None
    log = narrow(status_log, "job_status_log", LOG_COLUMNS, LOG_REQUIRED)
    same_engine({"jobs": jobs, "job_status_log": log})
    return log


def span_changes(spans: nw.LazyFrame[Any], clock: Clock, by: Sequence[str]) -> Changes:
    """Add up in the engine how many rows (``njobs``) hold at each instant: from ``enter`` to before ``leave`` (null: always)."""
    nothing = {name: nw.lit(0) for name in WEIGHTS}
    passed = _passed(spans.with_columns(**nothing), ("enter", "leave"), by, clock)
    groups = passed.sides[0].groups
    begin, end = (groups.filter(pl.col("boundary") == name) for name in ("enter", "leave"))
    return replace(passed, sides=(Side(begin, 1), Side(end, -1)))


def _name(boundary: pl.Expr, status: dict[str, str]) -> pl.Expr:
    """Return the status at a boundary; null where there is none."""
    state = boundary.replace_strict(status, default=None, return_dtype=pl.String)
    own = pl.when(state == "after").then("after").when(state == "now").then("now")
    return own.otherwise(state)


def _with_status(passed: Changes, statuses: Sequence[pl.Expr], by: Sequence[str]) -> Changes:
    """Name the status that begins at each boundary, and the one that ends; null is none."""
    groups = passed.sides[0].groups
    named = [groups.select("group", *by, jobstatus=s).drop_nulls("jobstatus") for s in statuses]
    return replace(passed, sides=(Side(named[0], 1), Side(named[1], -1)))


def _join(parts: Sequence[Changes]) -> Changes:
    sides: list[Side] = []
    rows: list[pl.DataFrame] = []
    first = 0
    for part in parts:
        further = pl.col("group") + first
        sides += [replace(side, groups=side.groups.with_columns(further)) for side in part.sides]
        rows.append(part.rows.with_columns(further))
        first += part.n_groups
    return Changes(tuple(sides), pl.concat(rows), first, parts[0].clock)


def _passed(
    jobs: nw.LazyFrame[Any], boundaries: Sequence[str], keys: Sequence[str], clock: Clock
) -> Changes:
    """Add up in the engine what passes each boundary (a column of times) at each moment, by ``keys`` and ``boundary``."""
    stacked = unpivot(jobs, boundaries, [*keys, *WEIGHTS], name="boundary", value="time")
    return happened(stacked, clock, [*keys, "boundary"], WEIGHTS)


def happened(
    rows: nw.LazyFrame[Any], clock: Clock, by: Sequence[str], measures: Sequence[str]
) -> Changes:
    """Add up in the engine how much happens at each moment, ``time``, by columns: ``njobs`` (rows) and the measures."""
    sums = [nw.col(name).sum().cast(nw.Int64).alias(name) for name in measures]
    moments = clock.moments(rows).group_by(*by, "moment")
    result = collect(moments.agg(nw.len().cast(nw.Int64).alias("njobs"), *sums))
    texts = [name for name in by if result.schema[name] == pl.String]
    # a number for many texts
    coded = result.with_columns(
        pl.col(texts).cast(pl.Categorical), place=clock.place(result["moment"])
    )
    groups = coded.select(by).unique().with_row_index("group")
    numbered = coded.join(groups, on=by, nulls_equal=True)
    named = groups.with_columns(pl.col("group").cast(pl.Int32), pl.col(texts).cast(pl.String))
    kept = numbered.select(pl.col("group", "place", "njobs").cast(pl.Int32), *measures)
    return Changes((Side(named, 1),), kept, len(groups), clock)
