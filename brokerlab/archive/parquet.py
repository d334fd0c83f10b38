"""Name Parquet files to the engines so that nothing in a path is read as a pattern."""

import re
from pathlib import Path

import polars as pl

_WILD = re.compile(r"[*?\[]")


def lazy(paths: Path | list[Path]) -> pl.LazyFrame:
    """Return Parquet files of equal columns as one lazy frame: ``*`` and ``[`` in a name are letters, ``day=...`` no column."""
    return pl.scan_parquet(paths, glob=False, hive_partitioning=False)


def literal(path: Path) -> str:
    """Return a path for DuckDB, which takes every path for a pattern.

    Example:
        >>> literal(Path("run [1]/jobs.parquet"))
        'run [[]1]/jobs.parquet'
    """
    return _WILD.sub(lambda found: f"[{found[0]}]", str(path))
