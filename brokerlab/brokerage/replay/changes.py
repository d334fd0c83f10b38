"""Changes of counts over time, added up in the engine, and the counts at the instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from brokerlab.brokerage.replay import states
from brokerlab.brokerage.replay.clock import Clock
from brokerlab.brokerage.replay.tables import collect
from brokerlab.numerics import IntArray

MEASURES = ("njobs", *states.WEIGHTS)
"""What is counted: jobs, cores, disk traffic."""


@dataclass(frozen=True)
class Changes:
    """What happens to the counts of each group.

    Attributes:
        groups: One row per group, its columns; the row's number is the group's.
        rows: ``group``, ``place`` (position of the first instant that sees the change), and one column per measure;
            several rows may be of one group and place.
        clock: The instants.
    """

    groups: pl.DataFrame
    rows: pl.DataFrame
    clock: Clock

    def at_instants(
        self, by: Sequence[str], measures: Sequence[str], where: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Add changes up over time: what there is at every instant.

        Args:
            by: Columns of the groups to count by; null is a value of its own.
            measures: Columns of the rows to add up.
            where: Condition on the groups.

        Returns:
            ``snapshot``, ``by``, the measures; no row where the first measure is 0; sorted by ``snapshot`` and ``by``.
        """
        levels = self._levels(by, measures, where)
        key, place = levels.key, levels.place
        instants = len(self.clock)
        until = np.append(np.where(key[1:] == key[:-1], place[1:], instants), instants)[: len(key)]
        length = np.where(levels.values[0] != 0, until - place, 0)
        ends = np.cumsum(length)
        offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - length, length)
        at = np.repeat(place, length) + offset
        order = np.argsort(
            at, kind="stable"
        )  # the rows come by key: what is equal keeps that order
        row = np.repeat(np.arange(len(key)), length)[order]
        return self._shown(levels, at[order], key[row], row, measures)

    def at_pairs(
        self,
        by: Sequence[str],
        measures: Sequence[str],
        pairs: pl.DataFrame,
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Add changes up over time: what there is at some instants for some groups each.

        Args:
            by: Columns of the groups to count by; null is a value of its own.
            measures: Columns of the rows to add up.
            pairs: ``snapshot`` and columns of ``by``: what is asked for.
            where: Condition on the groups.

        Returns:
            As :meth:`at_instants`, of these pairs only.
        """
        levels = self._levels(by, measures, where)
        shared = [name for name in pairs.columns if name != "snapshot"]
        placed = pl.DataFrame({"snapshot": self.clock.snapshots}).with_row_index("at")
        asked = pairs.unique().join(placed, on="snapshot").select("at", *shared)
        wanted = levels.keys.select("key", *shared).join(asked, on=shared, nulls_equal=True)
        at = wanted["at"].cast(pl.Int64).to_numpy()
        key = wanted["key"].cast(pl.Int64).to_numpy()
        instants = len(self.clock)
        row = (
            np.searchsorted(levels.key * instants + levels.place, key * instants + at, "right") - 1
        )
        row = np.where((row >= 0) & (levels.key[row] == key), row, -1) if len(levels.key) else row
        row, at, key = row[row >= 0], at[row >= 0], key[row >= 0]
        there = levels.values[0][row] != 0
        row, at, key = row[there], at[there], key[there]
        order = np.lexsort((key, at))
        return self._shown(levels, at[order], key[order], row[order], measures)

    def _levels(self, by: Sequence[str], measures: Sequence[str], where: pl.Expr | None) -> _Levels:
        """Add the changes of each combination of some columns up over time."""
        meant = pl.lit(value=True) if where is None else where
        numbered = self.groups.with_columns(meant=meant.fill_null(value=False))
        inside = numbered.with_row_index("group").filter("meant").select("group", *by)
        keys = inside.select(by).unique().sort(by).with_row_index("key")
        found = inside.join(keys, on=list(by), nulls_equal=True)
        number = np.full(len(self.groups), -1, np.int64)
        number[found["group"].to_numpy()] = found["key"].to_numpy()
        instants = max(len(self.clock), 1)
        own = self.rows.select("place", *measures).with_columns(
            key=pl.Series(number[self.rows["group"].to_numpy()])
        )
        slots = own.filter(pl.col("key") >= 0).with_columns(
            key=pl.col("key") * instants + pl.col("place")
        )
        summed = slots.group_by("key").agg(pl.col(name).sum() for name in measures).sort("key")
        key, place = np.divmod(summed["key"].to_numpy(), instants)
        begins = np.searchsorted(key, np.arange(len(keys)))[key] if len(key) else key
        values = []
        for name in measures:
            total = np.concatenate([[0], np.cumsum(summed[name].to_numpy())])
            values.append(total[1:] - total[begins])
        return _Levels(keys, key, place, values)

    def _shown(
        self, levels: _Levels, at: IntArray, key: IntArray, row: IntArray, measures: Sequence[str]
    ) -> pl.DataFrame:
        """Put positions of instants, keys and levels into a table."""
        snapshot = pl.Series("snapshot", self.clock.snapshots[at], dtype=pl.Int64)
        values = [
            pl.Series(name, level[row], dtype=pl.Int64)
            for name, level in zip(measures, levels.values, strict=True)
        ]
        shown = levels.keys.drop("key")[key]
        return pl.DataFrame([snapshot, *shown.get_columns(), *values])


@dataclass(frozen=True)
class _Levels:
    """What there is from each change on: by key and place, in this order."""

    keys: pl.DataFrame
    key: IntArray
    place: IntArray
    values: list[IntArray]


def job_changes(
    jobs: nw.LazyFrame[Any],
    log: nw.LazyFrame[Any] | None,
    clock: Clock,
    by: Sequence[str] = states.GROUP,
) -> Changes:
    """Add up in the engine what every job's changes of status do to the counts.

    Jobs with an entry in the log are read from it, the others from their times.

    Args:
        jobs: Result of :func:`states.prepared`.
        log: Status log of the same engine; None if there is none.
        clock: The instants.
        by: Columns of the jobs to count by, besides the status.

    Returns:
        Changes by ``by`` and ``jobstatus``, of ``njobs, ncores, diskio_sum, diskio_jobs``.
    """
    plain = jobs
    parts = []
    if log is not None:
        plain = jobs.join(log.select("pandaid").unique(), on="pandaid", how="anti")
        parts.append(_from_log(states.spans(log, jobs), clock, by))
    parts.append(_from_times(states.times(plain), clock, by))
    groups: list[pl.DataFrame] = []
    rows: list[pl.DataFrame] = []
    for part in parts:
        first = sum(frame.height for frame in groups)
        groups.append(part.groups)
        rows.append(part.rows.with_columns(pl.col("group") + first))
    return Changes(pl.concat(groups), pl.concat(rows), clock)


def live_changes(jobs: nw.LazyFrame[Any], clock: Clock, by: Sequence[str]) -> Changes:
    """Add up in the engine how many jobs there are that are not over, whatever their status, by their times.

    Args:
        jobs: Result of :func:`states.prepared`.
        clock: The instants.
        by: Columns of the jobs to count by.

    Returns:
        Changes by ``by``.
    """
    ends = states.times(jobs).with_columns(left=nw.col("over_at"))
    passed = _passed(ends, ("created", "left"), by, clock)
    gone = passed.groups["boundary"].eq("left").gather(passed.rows["group"])
    signed = [pl.when(gone).then(-pl.col(name)).otherwise(name).alias(name) for name in MEASURES]
    return Changes(passed.groups, passed.rows.with_columns(signed), clock)


def _from_times(times: nw.LazyFrame[Any], clock: Clock, by: Sequence[str]) -> Changes:
    """Count the jobs that pass each of their five times, then say which status ends and begins there."""
    passed = _passed(times, states.BOUNDARIES, [*by, "after", "now"], clock)
    boundary = pl.col("boundary")
    begins = dict(zip(states.BOUNDARIES, states.ENTERED, strict=True))
    ends = dict(zip(states.BOUNDARIES[1:], states.ENTERED[:-1], strict=True))
    return _stacked(
        passed,
        [(_named(boundary, begins), 1), (_named(boundary, ends), -1)],
        by,
    )


def _named(boundary: pl.Expr, status: dict[str, str]) -> pl.Expr:
    """Return the status at a boundary; null where there is none."""
    state = boundary.replace_strict(status, default=None, return_dtype=pl.String)
    own = pl.when(state == "after").then("after").when(state == "now").then("now")
    return own.otherwise(state)


def _from_log(spans: nw.LazyFrame[Any], clock: Clock, by: Sequence[str]) -> Changes:
    """Count the jobs that enter and leave each status."""
    passed = _passed(spans, ("enter", "leave"), [*by, "jobstatus"], clock)
    status = pl.col("jobstatus")
    sides = [("enter", 1), ("leave", -1)]
    return _stacked(
        passed,
        [(pl.when(pl.col("boundary") == name).then(status), sign) for name, sign in sides],
        by,
    )


def _stacked(passed: Changes, sides: Sequence[tuple[pl.Expr, int]], by: Sequence[str]) -> Changes:
    """Name the status of each group of boundaries, once for what begins and once for what ends."""
    groups: list[pl.DataFrame] = []
    rows: list[pl.DataFrame] = []
    for status, sign in sides:
        first = sum(frame.height for frame in groups)
        named = passed.groups.select(*by, jobstatus=status)
        told = named["jobstatus"].is_not_null().gather(passed.rows["group"])
        signed = [pl.col(name) * sign for name in MEASURES]
        groups.append(named)
        rows.append(passed.rows.filter(told).with_columns(pl.col("group") + first, *signed))
    return Changes(pl.concat(groups), pl.concat(rows), passed.clock)


def _passed(
    jobs: nw.LazyFrame[Any], boundaries: Sequence[str], keys: Sequence[str], clock: Clock
) -> Changes:
    """Add up in the engine what passes each boundary at each moment, and place the moments.

    Args:
        jobs: ``keys``, the weights, and one column of times per boundary.
        boundaries: Those columns.
        keys: Columns to count by.
        clock: The instants.

    Returns:
        Changes by ``keys`` and ``boundary``.
    """
    # narwhals' unpivot leaves the connection of a DuckDB relation; a union does the same
    long = nw.concat(
        [
            jobs.select(*keys, *states.WEIGHTS, boundary=nw.lit(name), time=nw.col(name))
            for name in boundaries
        ]
    )
    found = collect(
        clock.moments(long)
        .group_by(*keys, "boundary", "moment")
        .agg(
            nw.len().cast(nw.Int64).alias("njobs"),
            *(nw.col(name).sum().cast(nw.Int64).alias(name) for name in states.WEIGHTS),
        )
    )
    return _grouped(
        found.with_columns(place=clock.place(found["moment"])), [*keys, "boundary"], clock
    )


def _grouped(found: pl.DataFrame, keys: Sequence[str], clock: Clock) -> Changes:
    """Number the groups of a table of changes: a number for many texts."""
    texts = [name for name in keys if found.schema[name] == pl.String]
    coded = found.with_columns(pl.col(texts).cast(pl.Categorical))
    groups = coded.select(keys).unique().with_row_index("group")
    rows = coded.join(groups, on=list(keys), nulls_equal=True)
    kept = rows.select(pl.col("group").cast(pl.Int64), pl.col("place").cast(pl.Int64), *MEASURES)
    return Changes(groups.drop("group").with_columns(pl.col(texts).cast(pl.String)), kept, clock)
