"""Name Parquet files to the engines so that nothing in a path is read as a pattern."""

import re
from functools import partial
from pathlib import Path

import polars as pl

from brokerlab.archive.contracts import polars_schema

_WILD = re.compile(r"[*?\[]")


def lazy(paths: Path | list[Path], table: str = "") -> pl.LazyFrame:
    """Return Parquet files of equal columns as one lazy frame: ``*`` and ``[`` in a name are letters, ``day=...`` no column.

    Of a table, columns of its contract that a file leaves out are null.
    """
    scan = partial(pl.scan_parquet, paths, glob=False, hive_partitioning=False)
    if not table:
        return scan()
    columns = polars_schema(table) | scan().collect_schema()
    return scan(schema=columns, missing_columns="insert")


def literal(path: Path) -> str:
    """Return a path for DuckDB, which takes every path for a pattern.

    Example:
        >>> literal(Path("run [1]/jobs.parquet"))
        'run [[]1]/jobs.parquet'
    """
    return _WILD.sub(lambda found: f"[{found[0]}]", str(path))
