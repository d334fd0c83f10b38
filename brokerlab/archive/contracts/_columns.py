"""Short constructors for the columns of the contracts: type, unit, null meaning and sense in one line.

The metadata of every column holds ``unit``, ``null`` (what a missing value means, or ``not allowed``),
``meaning``, and where they apply ``key`` (part of the table's key), ``after`` (the time column this
one cannot precede), ``version`` (orders rows of the same key), ``aliases`` (other source names) and ``values`` (known ones).
"""

import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

import dataframely as dy
import polars as pl

NOT_ALLOWED = "not allowed"
"""Null meaning of a required column."""

MAX_TEXT = 65_536
"""Longest plain text [characters] a column may hold; PanDA's own limit is 4,000."""
MAX_JSON = 1_048_576
"""Longest JSON text [characters]; also the limit of columns carried through."""
MAX_TAGS = 16 * MAX_JSON
"""Longest JSON text [characters] of the software of a queue; ``ALL`` holds every tag of the grid."""
MOST = {"B": 10**18, "kB": 10**15, "MB": 10**12, "kB/s": 10**10, "events": 10**12}
"""Largest whole number by unit, an exabyte, 10 TB/s: no job, queue or dataset has more, and times cores, or in millionths, it stays below 2**63."""
FIRST_TIME = datetime(1970, 1, 1)  # noqa: DTZ001  (canonical times are UTC without zone)
LAST_TIME = datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
"""Times outside of these are misread or invented; Python knows none after the last."""


def _options(
    meaning: str,
    unit: str,
    *,
    null: str = "not recorded",
    required: bool = False,
    key: bool = False,
    loose_key: bool = False,
    after: str | None = None,
    version: bool = False,
    aliases: Sequence[str] = (),
    values: Sequence[str] = (),
) -> dict[str, Any]:
    """Translate to dataframely: ``key`` columns are never null; ``loose_key`` ones may be, and null equals null.

    Other ``values`` than the known ones are allowed, these in another letter case are not: no rule would find them.
    """
    metadata: dict[str, Any] = {
        "unit": unit,
        "null": NOT_ALLOWED if required or key else null,
        "meaning": meaning,
        "key": key or loose_key,
        "version": version,
        "aliases": tuple(aliases),
        "values": tuple(values),
    }
    if after is not None:
        metadata["after"] = after
    return {
        "nullable": not (required or key),
        "primary_key": key,
        "metadata": metadata,
        "description": meaning,
    }


def i64(meaning: str, unit: str = "-", *, low: int | None = None, **options: Any) -> dy.Int64:
    """Declare a 64-bit integer; ``low`` is the smallest value that can be true, `MOST` of its unit the largest."""
    return dy.Int64(min=low, max=MOST.get(unit), **_options(meaning, unit, **options))


def i32(meaning: str, unit: str = "-", *, low: int | None = None, **options: Any) -> dy.Int32:
    """Declare a 32-bit integer; ``low`` is the smallest value that can be true."""
    return dy.Int32(min=low, **_options(meaning, unit, **options))


def f64(meaning: str, unit: str = "-", *, low: float | None = None, **options: Any) -> dy.Float64:
    """Declare a finite float; ``low`` is the smallest value that can be true."""
    return dy.Float64(min=low, **_options(meaning, unit, **options))


def text(meaning: str, unit: str = "-", **options: Any) -> dy.String:
    """Declare a text column."""
    return dy.String(max_length=MAX_TEXT, **_options(meaning, unit, **options))


def resource_type(**options: Any) -> dy.String:
    """Declare a column of resource types, whose name has an underscore or none."""
    known = [
        f"{cores}{memory}"
        for cores in ("SCORE", "MCORE")
        for memory in ("", "_LOMEM", "_HIMEM", "_VHIMEM")
    ]
    usual = {"aliases": ("resourcetype", "resource_type"), "values": known}
    return text("SCORE, MCORE, SCORE_HIMEM...", **(usual | options))


def json_text(meaning: str, *, longest: int = MAX_JSON, **options: Any) -> dy.String:
    """Declare a text column that holds JSON."""
    return dy.String(max_length=longest, **_options(meaning, "json", **options))


def flag(meaning: str, **options: Any) -> dy.Bool:
    """Declare a boolean column."""
    return dy.Bool(**_options(meaning, "-", **options))


def ts(meaning: str, **options: Any) -> dy.Datetime:
    """Declare a time stamp: UTC, without zone, microseconds."""
    return dy.Datetime(
        min=FIRST_TIME, max=LAST_TIME, time_unit="us", **_options(meaning, "UTC", **options)
    )


def names(meaning: str, *, null: str = "none") -> dy.List:
    """Declare a list of names."""
    metadata = {"unit": "-", "null": null, "meaning": meaning}
    return dy.List(dy.String(nullable=True), nullable=True, metadata=metadata)


def about(column: dy.Column) -> Mapping[str, Any]:
    """Return what is written beside a column, see above."""
    return column.metadata or {}


def kept(table: type[dy.Schema], **null: str | None) -> dict[str, dy.Column]:
    """Declare columns that are what they are in another table: type, unit and sense are written there alone.

    Each name goes with what a missing value means here: null = the same as there, `NOT_ALLOWED`: none may be missing.
    """
    kinds = {pl.Int32: dy.Int64, pl.Int64: dy.Int64, pl.Float64: dy.Float64, pl.String: dy.String}
    result: dict[str, dy.Column] = {}
    for name, means in null.items():
        known = table.columns()[name]
        there = about(known)
        required = means == NOT_ALLOWED
        options = _options(
            there["meaning"], there["unit"], null=means or there["null"], required=required
        )
        if isinstance(known, dy.Datetime):
            result[name] = dy.Datetime(time_unit="us", **options)
        elif isinstance(known, dy.Bool):
            result[name] = dy.Bool(**options)
        else:
            result[name] = kinds[type(known.dtype)](**options)
    return result


def declared(
    module: str, tables: Mapping[str, tuple[str, Mapping[str, dy.Column]]]
) -> dict[str, type[dy.Schema]]:
    """Make contracts, by table, of what each is (a sentence) and its columns in order, for the module that declares them."""
    made: dict[str, type[dy.Schema]] = {}
    make: Any = type(dy.Schema)
    for table, (sentence, columns) in tables.items():
        name = table.title().replace("_", "")
        own = {"__doc__": sentence, "__module__": module, **deepcopy(dict(columns))}
        made[table] = make(name, (dy.Schema,), own)
        setattr(sys.modules[module], name, made[table])  # by which other processes find it
    return made
