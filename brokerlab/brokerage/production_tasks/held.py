"""Join what holds for a task at an instant: a null key means every task, or every instant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import polars as pl

KEY = ("jeditaskid", "snapshot")
_ROW = "_row"


def held(
    left: pl.DataFrame,
    table: pl.DataFrame,
    on: Sequence[str] = (),
    keys: Sequence[str] = KEY,
) -> pl.DataFrame:
    """Join every row of a table that holds for the rows on the left; rows without partner fall out.

    Args:
        left: Rows whose keys are not null.
        table: Rows in which a null key means that they hold for all.
        on: Columns that must be equal.
        keys: Which of the keys the table has.

    Returns:
        Columns of the left, then those of the table; rows with a key of their own before those for all, each in
        the order of the left, then of the table.
    """
    parts = [
        pl.concat([left.clear(), table.drop(*on, *keys).clear()], how="horizontal")  # its columns
    ]
    for every in product((False, True), repeat=len(keys)):
        own = [key for key, all_ in zip(keys, every, strict=True) if not all_]
        asked = [pl.col(k).is_null() == all_ for k, all_ in zip(keys, every, strict=True)]
        rows = table.filter(asked).drop(set(keys) - set(own))
        if rows.height:
            equal = [*on, *own]
            parts.append(
                left.join(rows, on=equal, maintain_order="left_right")
                if equal
                else left.join(rows, how="cross", maintain_order="left_right")
            )
    return pl.concat(parts)


def held_left(
    left: pl.DataFrame,
    table: pl.DataFrame,
    on: Sequence[str] = (),
    keys: Sequence[str] = KEY,
) -> pl.DataFrame:
    """Join the one row of a table that holds for each row on the left, or nulls.

    Of several rows that hold the first is taken, one for the own key before one for all.
    """
    left = left.with_row_index(_ROW)
    found = held(left, table, on, keys).unique(_ROW, keep="first", maintain_order=True)
    alone = left.join(found, on=_ROW, how="anti")
    return pl.concat([found, alone], how="diagonal").sort(_ROW, maintain_order=True).drop(_ROW)


def positioned(table: pl.DataFrame) -> pl.DataFrame:
    """Fill a null ``position`` with the row's number."""
    return table.with_columns(pl.col("position").fill_null(pl.int_range(pl.len(), dtype=pl.Int64)))


def steady(table: pl.DataFrame, instants: pl.DataFrame) -> pl.DataFrame:
    """Return a table that has the same rows at every instant as one that holds for all: less to look through.

    Args:
        table: With ``snapshot``, null = every instant.
        instants: ``snapshot`` of all that will be asked, each once.
    """
    rest = table.columns
    rest.remove("snapshot")
    known = table["snapshot"].unique()
    if known.null_count() or not instants["snapshot"].is_in(known.implode()).all():
        return table
    times = table.unique().group_by(rest).len()
    if (times["len"] == len(known)).all():
        return times.select(rest).with_columns(snapshot=pl.lit(None, pl.Int64))
    return table
