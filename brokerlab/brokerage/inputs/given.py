"""Where tables enter a brokerage: held to their contracts, and what is missing is noted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl

from brokerlab.errors import SchemaError
from brokerlab.frames import polars_frame, prepared


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
    others: Mapping[str, type[dy.Schema]] | None = None,
) -> Given:
    """Hold input tables to their contracts; those named in ``later`` do not count as missing.

    ``others``: contracts of another brokerage: its tables, and its columns of the same tables, are let pass.

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
    return Given(prepared(own | strange, contracts, exact=True), frozenset(missing))


def _without(table: Any, contract: type[dy.Schema], columns: Collection[str]) -> Any:
    """Return a table without some columns; as it is where it cannot be read."""
    try:
        return polars_frame(table, contract).drop(columns, strict=False)
    except SchemaError:
        return table
