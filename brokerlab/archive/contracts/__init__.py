"""The canonical tables as dataframely classes: columns, types, units, keys (archive.md).

``TABLES`` maps the table's name to its class; ``describe`` lists the columns of one table.
"""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import dataframely as dy
import narwhals.stable.v2 as nw
import polars as pl

from brokerlab.archive.contracts import activity, jobs, queues, settings, tasks
from brokerlab.archive.contracts._columns import about
from brokerlab.engines import FLAG, FLOAT, INT, TEXT, TIME, Types
from brokerlab.errors import SchemaError, nearest

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

TABLES: dict[str, type[dy.Schema]] = {
    "jobs": jobs.Jobs,
    "tasks": tasks.Tasks,
    "datasets": jobs.Datasets,
    "files": jobs.Files,
    "jobs_files": jobs.JobsFiles,
    "queues": queues.Queues,
    "resource_types": queues.ResourceTypes,
    "software_tags": queues.SoftwareTags,
    "ddm_endpoints": queues.DdmEndpoints,
    "queue_endpoints": queues.QueueEndpoints,
    "queue_storage_site": queues.QueueStorageSite,
    "replicas": queues.Replicas,
    "file_locations": queues.FileLocations,
    "network_matrix": queues.NetworkMatrix,
    "transfers": queues.Transfers,
    "job_stats": activity.JobStats,
    "job_counts": activity.JobCounts,
    "site_data": activity.SiteData,
    "workers": activity.Workers,
    "worker_stats": activity.WorkerStats,
    "slots": activity.Slots,
    "metrics": activity.Metrics,
    "task_evaluation": activity.TaskEvaluation,
    "job_status_log": activity.JobStatusLog,
    "task_status_log": activity.TaskStatusLog,
    "task_attempts": activity.TaskAttempts,
    "worker_nodes": activity.WorkerNodes,
    "worker_node_gpu": activity.WorkerNodeGpu,
    "worker_node_cpu_level": activity.WorkerNodeCpuLevel,
    "cpu_benchmarks": activity.CpuBenchmarks,
    "gshares": settings.Gshares,
    "gdpconfig": settings.Gdpconfig,
    "expected_scouts": tasks.ExpectedScouts,
}
"""Every canonical table of archive.md in its order; beside them what other chapters read."""

QUARANTINE = settings.Quarantine
"""The archive's own table of refused rows; listed in the manifest as ``quarantine``."""

STORED: dict[str, type[dy.Schema]] = {**TABLES, "quarantine": QUARANTINE}
"""Every table that an archive folder may hold."""


def contract(table: str) -> type[dy.Schema]:
    """Return the class of one table, also of ``quarantine``; a SchemaError names the nearest one."""
    if table not in STORED:
        raise SchemaError(f"unknown table '{table}': {nearest(table, STORED)}")
    return STORED[table]


@cache
def columns_of(table: str) -> Mapping[str, dy.Column]:
    """Return the columns of a table by name, in the chapter's order."""
    return MappingProxyType(contract(table).columns())


def key_columns(table: str) -> list[str]:
    """Return the columns that identify a row of the table; null equals null in keys."""
    return [n for n, c in columns_of(table).items() if about(c).get("key")]


def required_columns(table: str) -> list[str]:
    """Return the columns without which there is no row."""
    return [name for name, column in columns_of(table).items() if not column.nullable]


def version_column(table: str) -> str | None:
    """Return the time column that orders rows of the same key (``modificationtime``), or None."""
    return next((n for n, c in columns_of(table).items() if about(c).get("version")), None)


def polars_schema(table: str) -> dict[str, pl.DataType]:
    """Return the column names and Polars types of a table, in the chapter's order."""
    return dict(_types(table))


_IN_ENGINES: dict[pl.DataType, nw.dtypes.DType] = {
    pl.Int32(): INT,
    pl.Int64(): INT,
    pl.Float64(): FLOAT,
    pl.String(): TEXT,
    pl.Boolean(): FLAG,
    pl.Datetime("us"): TIME,
}


def read_as(table: str, *names: str) -> Types:
    """Return the types as which engines read columns of a table, all of them by default; whole numbers are of 64 bits."""
    kinds = _types(table)
    return {name: _IN_ENGINES[kinds[name]] for name in names or kinds}


@cache
def _types(table: str) -> Mapping[str, pl.DataType]:
    return {name: column.dtype for name, column in columns_of(table).items()}


def empty(table: str) -> pl.DataFrame:
    """Return a table without rows."""
    return pl.DataFrame(schema=polars_schema(table))


def fitted(table: str, rows: Frame) -> Frame:
    """Put the columns of the contract first and cast them, absent ones as null; values are trusted."""
    own, present = polars_schema(table), rows.lazy().collect_schema().names()
    columns = [
        (pl.col(name) if name in present else pl.lit(None)).cast(kind).alias(name)
        for name, kind in own.items()
    ]
    return rows.select(*columns, *(name for name in present if name not in own))


def scan(paths: Path | list[Path], table: str = "") -> pl.LazyFrame:
    """Return Parquet files of equal columns as one lazy frame: ``*`` and ``[`` in a name are letters, ``day=...`` no column.

    Of a table, columns of its contract that a file leaves out are null.
    """
    rows = partial(pl.scan_parquet, paths, glob=False, hive_partitioning=False)
    if not table:
        return rows()
    columns = polars_schema(table) | rows().collect_schema()
    return rows(schema=columns, missing_columns="insert")


def describe(table: str) -> pl.DataFrame:
    """List the columns of a table (also ``quarantine``), one row each.

    ``column, type, key, null, unit, meaning``: text except for the boolean ``key``; ``null`` says what a missing value
    means, or ``not allowed``.

    Example:
        >>> describe("jobs").filter(pl.col("column") == "maxpss").row(0)
        ('maxpss', 'i64', False, 'not measured; 0 likewise', 'kB', 'largest PSS, whole job')
    """
    return describe_columns(contract(table))


def describe_columns(kind: type[dy.Schema]) -> pl.DataFrame:
    """List the columns of a contract as :func:`describe` does."""
    rows = []
    for name, column in kind.columns().items():
        meta = about(column)
        short = _SHORT_TYPES[str(column.dtype).split("(")[0]]
        short = "json" if meta.get("unit") == "json" else short
        unit = "-" if short == "json" else meta.get("unit", "-")
        key, null = meta.get("key", False), meta.get("null", "unknown")
        rows.append((name, short, key, null, unit, meta.get("meaning", "")))
    types = dict.fromkeys(("column", "type", "key", "null", "unit", "meaning"), pl.String)
    return pl.DataFrame(rows, schema=types | {"key": pl.Boolean}, orient="row")


_SHORT_TYPES = {
    "Int64": "i64",
    "Int32": "i32",
    "Float64": "f64",
    "String": "str",
    "Boolean": "bool",
    "Datetime": "ts",
    "List": "list",
}
