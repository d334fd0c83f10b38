"""Where tables enter: held to their contracts or read column by column, rows valid for a task at an instant, rows as whole numbers.

What takes several steps is one plan, which :func:`run` runs as it is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.errors import SchemaError
from brokerlab.frames import polars_frame, prepared
from brokerlab.matching.notes import warn
from brokerlab.numerics import IntArray

if TYPE_CHECKING:
    from polars._typing import MaintainOrderJoin


Schema: TypeAlias = Mapping[str, type[pl.DataType] | pl.DataType]

AS_WRITTEN = pl.QueryOptFlags.none()
"""Plans of many small steps on few rows: what the optimiser saves is less than what it takes."""


def run(plan: pl.LazyFrame) -> pl.DataFrame:
    """Run a plan of many small steps, as it is written: half the time of as many steps on frames where rows are few."""
    return plan.collect(engine="in-memory", optimizations=AS_WRITTEN)


def run_all(plans: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    """Run several plans as they are written; what they share (``cache``) once."""
    return pl.collect_all(plans, engine="in-memory", optimizations=AS_WRITTEN)


SNAPSHOT: Schema = {"snapshot": pl.Int64}
TASK: Schema = {"jeditaskid": pl.Int64}


def read(
    table: str, frame: pl.DataFrame | None, required: Schema, optional: Schema | None = None
) -> pl.DataFrame:
    """Return the named columns of a table (null = empty), with the types asked for; optional ones may be absent, and are null.

    Raises:
        SchemaError: Missing columns and columns of another kind, all at once.
    """
    wanted = {**required, **(optional or {})}
    if frame is None or frame.width == 0:
        return pl.DataFrame(schema=wanted)
    problems = [
        f"{table}.{name} is missing; found {', '.join(frame.columns)}"
        for name in required
        if name not in frame.columns
    ]
    columns: list[pl.Series] = []
    for name, dtype in wanted.items():
        if name not in frame.columns:
            columns.append(pl.Series(name, [None], dtype=dtype).new_from_index(0, frame.height))
            continue
        try:
            columns.append(frame[name].cast(dtype))
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            problems.append(f"{table}.{name} is {frame.schema[name]}, allowed is {dtype}: {reason}")
    if problems:
        raise SchemaError("; ".join(problems))
    return pl.DataFrame(columns)


def yes(name: str) -> pl.Expr:
    """Return a flag with null as no."""
    return pl.col(name).fill_null(value=False)


def read_given(
    tables: Mapping[str, Any],
    contracts: Mapping[str, type[dy.Schema]],
    *,
    later: Collection[str] = (),
    others: Mapping[str, type[dy.Schema]] | None = None,
) -> tuple[dict[str, pl.DataFrame], frozenset[str]]:
    """Hold input tables to their contracts; one that is not given has no rows.

    ``others``: contracts of another brokerage: its tables, and its columns of the same tables, are let pass.

    Returns:
        Every table, null for NaN; and the names of those that were not given, nor are named in ``later``: nothing is known of what they
        would say, while a table without rows says that there is nothing.

    Raises:
        SchemaError: Unknown tables and columns, values of another type, nulls where none is allowed: all at
            once, with the nearest names.
    """
    missing = contracts.keys() - tables.keys() - set(later)
    own = {name: table for name, table in tables.items() if name in contracts}
    strange = {name: table for name, table in tables.items() if name not in {*own, *(others or {})}}
    for name in own.keys() & (others or {}).keys():
        extra = (others or {})[name].columns().keys() - contracts[name].columns().keys()
        own[name] = _without(own[name], contracts[name], extra)
    made = prepared(own | strange, contracts, exact=True)
    # Polars takes NaN for larger than any number
    numbers = {
        name: frame.with_columns(pl.col(pl.Float64).fill_nan(None))
        if frame.height and pl.Float64 in frame.dtypes
        else frame
        for name, frame in made.items()
    }
    return numbers, frozenset(missing)


def _without(table: Any, contract: type[dy.Schema], columns: Collection[str]) -> Any:
    """Return a table without some columns; as it is where it cannot be read."""
    try:
        return polars_frame(table, contract).drop(columns, strict=False)
    except SchemaError:
        return table


MOST = 2**62
"""Numbers stay under it."""
NARROW = 2**31
"""Whole numbers in a range under it stand for themselves."""
FEW = 10_000
"""Up to so many names are sorted; of more the distinct ones are."""


def packed(frame: pl.DataFrame) -> IntArray:
    """Return one number per row (i64, from 0 on), equal where all columns are equal, null to null.

    They ascend with the columns, the first before the second, null before any value; numbers may be left out.

    Example:
        >>> packed(pl.DataFrame({"a": [2, 1, 2], "b": ["y", None, "x"]})).tolist()
        [8, 3, 7]
    """
    result, size = np.zeros(frame.height, dtype=np.int64), 1
    for column in frame.iter_columns():
        places, number = _places(column)
        if size * number >= MOST:
            result, size = _places(pl.Series(result))
        result, size = result * number + places, size * number
    return result


def starts(numbers: IntArray) -> IntArray:
    """Return where runs of equal numbers, from 0 on, start."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def in_order(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the rows sorted by some columns, null first, equals as they stood; names cost no more than numbers."""
    return frame[pl.Series(np.argsort(packed(frame.select(columns)), kind="stable"))]


def _places(column: pl.Series) -> tuple[IntArray, int]:
    """Return the place of each value among all that may be, null being the first, and how many there are."""
    if column.dtype == pl.String and len(column) > FEW:
        numbers = column.cast(pl.Enum(column.unique().drop_nulls().sort())).to_physical()
    elif column.dtype == pl.Boolean or column.dtype.is_integer():
        numbers = column.cast(pl.Int64)
    else:
        numbers = column.rank("dense")
    least, most = (int(end or 0) for end in (numbers.min(), numbers.max()))  # type: ignore[arg-type]
    if most - least >= NARROW:
        numbers = numbers.rank("dense")
        least, most = 1, int(numbers.max() or 0)  # type: ignore[arg-type]
    numbers = numbers.cast(pl.Int64)
    if not numbers.null_count():
        return numbers.to_numpy() - (least - 1), most - least + 2
    return (numbers - (least - 1)).fill_null(0).to_numpy(), most - least + 2


KEY = ("jeditaskid", "snapshot")
_ROW = "_row"
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def valid_for(
    left: Frame, table: pl.DataFrame | pl.LazyFrame, on: Sequence[str] = (), keys: Sequence[str] = KEY, *,
    in_order: bool = True,
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
        rows = (table.lazy().filter(asked) if asked else table.lazy()).drop(common)
        equal = [*on, *(key for key in keys if key not in common)]
        if equal:
            parts.append(left.lazy().join(rows, on=equal, maintain_order=order))
        else:
            parts.append(left.lazy().join(rows, how="cross", maintain_order=order))
    result = pl.concat(parts)
    return result if isinstance(left, pl.LazyFrame) else run(result)


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
    rows = left.lazy().with_row_index(_ROW)
    result = valid_for(rows, table, on, keys).unique(_ROW, keep="first", maintain_order=True)
    joined = rows.join(result.drop(left.columns), on=_ROW, how="left", maintain_order="left")
    return run(joined.drop(_ROW))


def for_tasks(frame: pl.DataFrame | pl.LazyFrame, tasks: Frame) -> Frame:
    """Return the rows of a table for each task, ``jeditaskid``; rows that are valid for every task come last."""
    result = valid_for(tasks.lazy().select("jeditaskid"), frame, keys=["jeditaskid"])
    result = result.select(frame.collect_schema().names())
    return result if isinstance(tasks, pl.LazyFrame) else run(result)


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
    result, notes = dict(tables), []
    for name in ROW_KEYS.keys() & tables.keys():
        keys = [key for key in ROW_KEYS[name] if key in tables[name].columns]
        result[name] = tables[name].unique(keys, keep="last", maintain_order=True)
        lost = tables[name].height - result[name].height
        if lost:
            notes.append(f"{name}: {lost} rows repeat {', '.join(keys)}, the last one holds")
    warn("input tables", sorted(notes))
    return result


def at_every(frame: pl.DataFrame, snapshots: pl.DataFrame, table: str = "") -> pl.DataFrame:
    """Return the rows of a state table for every snapshot for which they are valid; all of them where no row is for all.

    In a ``table`` of one row per key (:data:`ROW_KEYS`) a row for all gives way to one of the snapshot itself.
    """
    some = frame["snapshot"].null_count()
    if not some:
        return frame
    result = valid_for(snapshots.lazy().select("snapshot"), frame, keys=["snapshot"])
    if table in ROW_KEYS and some < frame.height:
        result = result.unique(ROW_KEYS[table], keep="first", maintain_order=True)
    # Polars 2.1 panics at texts made from empty chunks
    return run(result.select(frame.columns)).rechunk()


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
    every = valid_for(wanted.lazy(), frame, keys=["snapshot"])
    return run(every.select(frame.columns)), ["snapshot"]


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
