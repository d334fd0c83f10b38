"""Changes of counts over time, added up in the engine, and the counts at the instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.brokerage.replaying import states
from brokerlab.brokerage.replaying.clock import Clock, spread
from brokerlab.engines import collect, narrow, same_engine, unpivot

MEASURES = ("njobs", *states.WEIGHTS)
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
    by: Sequence[str] = states.GROUP,
) -> Changes:
    """Add up in the engine what every job's changes of status do to the counts: changes by ``by`` and ``jobstatus``.

    Jobs with an entry in ``log`` (:func:`log_of`) are read from it, the others from their times.
    """
    jobs = states.prepared(jobs)
    boundary, status = pl.col("boundary"), pl.col("jobstatus")
    begins = dict(zip(states.BOUNDARIES, states.ENTERED, strict=True))
    ends = dict(zip(states.BOUNDARIES[1:], states.ENTERED[:-1], strict=True))
    plain, parts = jobs, []
    if log is not None:
        plain = jobs.join(log.select("pandaid").unique(), on="pandaid", how="anti")
        spans = states.spans(log, jobs, by)
        passed = _passed(spans, ("enter", "leave"), [*by, "jobstatus"], clock)
        sides = [pl.when(boundary == name).then(status) for name in ("enter", "leave")]
        parts.append(_with_status(passed, sides, by))
    passed = _passed(states.times(plain), states.BOUNDARIES, [*by, "after", "now"], clock)
    parts.append(_with_status(passed, [_name(boundary, begins), _name(boundary, ends)], by))
    return _join(parts)


def log_of(status_log: Any, jobs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any] | None:
    """Return the status log as it is read; none where there is none."""
    if status_log is None:
        return None
    log = narrow(status_log, "job_status_log", states.LOG_COLUMNS, states.LOG_REQUIRED)
    same_engine({"jobs": jobs, "job_status_log": log})
    return log


def span_changes(spans: nw.LazyFrame[Any], clock: Clock, by: Sequence[str]) -> Changes:
    """Add up in the engine how many rows (``njobs``) hold at each instant: from ``enter`` to before ``leave`` (null: always)."""
    nothing = {name: nw.lit(0) for name in states.WEIGHTS}
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
    stacked = unpivot(jobs, boundaries, [*keys, *states.WEIGHTS], name="boundary", value="time")
    return happened(stacked, clock, [*keys, "boundary"], states.WEIGHTS)


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
