"""Rows that are valid for a task at an instant: a null key means every task, or every instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from brokerlab.matching.notes import warn

if TYPE_CHECKING:
    from polars._typing import MaintainOrderJoin

KEY = ("jeditaskid", "snapshot")
_ROW = "_row"
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def valid_for(
    left: Frame, table: Frame, on: Sequence[str] = (), keys: Sequence[str] = KEY, *, in_order: bool = True,
) -> Frame:  # fmt: skip
    """Join every row of a table that is valid for the rows on the left; rows without partner fall out.

    A null among the ``keys`` of the table means that its row is valid for all; columns of ``on`` must be equal. Rows with a key
    of their own come before those for all, each in the order of the left, then of the table; ``in_order=False`` is quicker.
    """
    order: MaintainOrderJoin = "left_right" if in_order else "none"
    parts, nulls = [], {key: _nulls(table, key) for key in keys}
    mixed = [key for key, some in nulls.items() if len(some) > 1]
    for every in product(*nulls.values()):
        common: list[str] = [key for key, all_ in zip(keys, every, strict=True) if all_]
        asked = [pl.col(key).is_null() == (key in common) for key in mixed]
        rows = (table.filter(asked) if asked else table).drop(common)
        equal = [*on, *(key for key in keys if key not in common)]
        if equal:
            parts.append(left.join(rows, on=equal, maintain_order=order))
        else:
            parts.append(left.join(rows, how="cross", maintain_order=order))
    return pl.concat(parts)


def _nulls(table: pl.DataFrame | pl.LazyFrame, key: str) -> tuple[bool, ...]:
    """Return whether a key may be no null, and a null, in this order."""
    if isinstance(table, pl.LazyFrame):
        return False, True
    n = table.get_column(key).null_count()
    return (False,) if not n else (True,) if n == table.height else (False, True)


def first_valid_for(
    left: pl.DataFrame, table: pl.DataFrame, on: Sequence[str] = (), keys: Sequence[str] = KEY
) -> pl.DataFrame:
    """Join the one row of a table that is valid for each row on the left, or nulls.

    Of several rows that are valid the first is taken, one for the own key before one for all.
    """
    left = left.with_row_index(_ROW)
    found = valid_for(left, table, on, keys).unique(_ROW, keep="first", maintain_order=True)
    alone = left.join(found, on=_ROW, how="anti")
    return pl.concat([found, alone], how="diagonal").sort(_ROW, maintain_order=True).drop(_ROW)


def for_tasks(frame: Frame, tasks: Frame) -> Frame:
    """Return the rows of a table for each task, ``jeditaskid``; rows that are valid for every task come last."""
    found = valid_for(tasks.select("jeditaskid"), frame, keys=["jeditaskid"])
    return found.select(frame.collect_schema().names())


ROW_KEYS = {
    "tasks": ("jeditaskid", "snapshot"),
    "queues": ("snapshot", "panda_queue"),
    "storage_endpoints": ("snapshot", "ddm_endpoint_name"),
    "queue_storage_site": ("panda_queue",),
    "nuclei": ("snapshot", "nucleus"),
    **dict.fromkeys(("diskio_usage", "to_run_rate", "site_class"), ("snapshot", "computingsite")),
    "core_stats": ("snapshot", "computingsite", "jobstatus"),
}
"""Tables of one row per key."""


def one_row_per_key(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the tables with the last row of each key (:data:`ROW_KEYS`), and warn of the others."""
    found, told = dict(tables), []
    for name in ROW_KEYS.keys() & tables.keys():
        keys = [key for key in ROW_KEYS[name] if key in tables[name].columns]
        found[name] = tables[name].unique(keys, keep="last", maintain_order=True)
        lost = tables[name].height - found[name].height
        if lost:
            told.append(f"{name}: {lost} rows repeat {', '.join(keys)}, the last one holds")
    warn("input tables", sorted(told))
    return found


def at_every(frame: pl.DataFrame, snapshots: pl.DataFrame, table: str = "") -> pl.DataFrame:
    """Return the rows of a state table for every snapshot for which they are valid; all of them where no row is for all.

    In a ``table`` of one row per key (:data:`ROW_KEYS`) a row for all gives way to one of the snapshot itself.
    """
    some = frame["snapshot"].null_count()
    if not some:
        return frame
    found = valid_for(snapshots.select("snapshot"), frame, keys=["snapshot"])
    if table in ROW_KEYS and some < frame.height:
        found = found.unique(ROW_KEYS[table], keep="first", maintain_order=True)
    return found.select(
        frame.columns
    ).rechunk()  # Polars 2.1 panics at texts made from empty chunks


def at_snapshots(
    frame: pl.DataFrame, snapshots: pl.DataFrame | None
) -> tuple[pl.DataFrame, list[str]]:
    """Return a state table ready to be joined on the snapshots (null = its own), and the key columns that this needs.

    Where every ``snapshot`` is null: the table without the column, and no key. Else the rows of the
    instants, rows for every instant repeated for each, and ``["snapshot"]``.
    """
    if frame["snapshot"].null_count() == frame.height:
        return frame.drop("snapshot"), []
    known = frame if snapshots is None else snapshots
    wanted = known.select(pl.col("snapshot").drop_nulls().unique().sort())
    if not frame["snapshot"].null_count():
        return frame.filter(pl.col("snapshot").is_in(wanted["snapshot"].implode())), ["snapshot"]
    return valid_for(wanted, frame, keys=["snapshot"]).select(frame.columns), ["snapshot"]


def with_positions(table: pl.DataFrame) -> pl.DataFrame:
    """Fill a null ``position`` with the row's number."""
    return table.with_columns(pl.col("position").fill_null(pl.int_range(pl.len(), dtype=pl.Int64)))


def without_instants(table: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    """Return a table that has the same rows at every instant as one that is valid for all: less to look through."""
    rest = table.columns
    rest.remove("snapshot")
    known = table["snapshot"].unique()
    if known.null_count() or not instants["snapshot"].is_in(known.implode()).all():
        return table
    times = table.unique().group_by(rest).len()
    if (times["len"] == len(known)).all():
        return times.select(rest).with_columns(snapshot=pl.lit(None, pl.Int64))
    return table
