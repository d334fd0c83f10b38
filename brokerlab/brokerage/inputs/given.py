"""Where tables enter a brokerage: held to their contracts, and what is missing is noted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.frames import prepared


@dataclass(frozen=True)
class Given:
    """The input tables of a brokerage.

    Attributes:
        tables: Every table of the contracts; one that was not given has no rows.
        missing: Names of the tables that were not given: nothing is known of what they would say. A table
            without rows is given, and says that there is nothing.
    """

    tables: dict[str, pl.DataFrame]
    missing: frozenset[str]


def read_given(
    tables: Mapping[str, Any],
    contracts: Mapping[str, type[dy.Schema]],
    *,
    later: Collection[str] = (),
) -> Given:
    """Hold input tables to their contracts.

    Args:
        tables: Table name to frame of any engine, list of dicts or mapping of columns.
        contracts: Table name to dataframely class.
        later: Names of tables that are given later; they do not count as missing.

    Raises:
        SchemaError: Unknown tables and columns, values of another type, nulls where none is allowed: all at
            once, with the nearest names.
    """
    missing = contracts.keys() - tables.keys() - set(later)
    return Given(prepared(tables, contracts, exact=True), frozenset(missing))
