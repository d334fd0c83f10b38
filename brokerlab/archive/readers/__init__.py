"""Read dumps of PanDA into batches of rows of canonical tables (archive.md 5-8, 13).

A reader renames, converts units and cuts the source into batches; it judges no value, ``schema``
does that. ``read`` recognises the format by content and file name.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from brokerlab.archive.names import table_of_columns
from brokerlab.archive.readers import (
    columnar,
    databases,
    delimited,
    documents,
    invex,
    lines,
    link_table,
    queue_export,
)
from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.detect import Detected, TableOf, by_first_bytes, table_of_name
from brokerlab.archive.readers.units import settle_units
from brokerlab.errors import DataError

__all__ = ["Batch", "Detected", "detect", "read", "table_of_columns", "table_of_name"]

Shape = Callable[[Callable[[], Iterator[Batch]]], Iterator[Batch]]
"""Gives rows of a source canonical names and units; it may read the source more than once."""


def detect(
    path: Path,
    *,
    table: str | None = None,
    table_of: TableOf = table_of_columns,
    partition: dict[str, str | None] | None = None,
) -> Detected:
    """Recognise a file.

    Args:
        path: The file.
        table: Its table where the caller knows.
        table_of: Tells the table by the columns, where the file's name does not.
        partition: Columns that stand in the path of a Parquet file.

    Returns:
        Format and table.

    Raises:
        DataError: No such file, empty, truncated, or its table cannot be told.
        SchemaError: There is no such table, or a column name that occurs twice or is a pattern.
    """
    found = by_first_bytes(path, table, table_of, partition or {})
    if found.format in ("duckdb", "sqlite"):
        return databases.detected(path, found, table_of)
    if found.format == "lines":
        return lines.detected(path, found, table_of)
    return found


def read(
    path: Path, found: Detected, shape: Shape | None = None, table_of: TableOf = table_of_columns
) -> Iterator[Batch]:
    """Read one file.

    Args:
        path: The file.
        found: What ``detect`` said about it.
        shape: Gives rows canonical names; null = rows as the source holds them.
        table_of: Tells the table of JSON records by their names.

    Yields:
        Batches of rows, each of one table; a file may hold several tables.

    Raises:
        DataError: The file is truncated, damaged or of a wrong encoding.
        SchemaError: A column occurs twice in its header.
    """
    if found.format == "invex":
        yield from invex.read(path, found)
        return
    if found.format == "links":
        yield from link_table.read(path, found)
        return

    def batches() -> Iterator[Batch]:
        if found.format == "parquet":
            return columnar.read(path, found)
        if found.format == "csv":
            return delimited.read(path, found)
        if found.format == "lines":
            return lines.read(path, found)
        if found.format in ("duckdb", "sqlite"):
            return databases.read(path, found)
        if found.format == "json":
            return documents.read(path, found, table_of)
        raise DataError(f"{path}: unknown format '{found.format}'")

    for batch in batches() if shape is None else shape(batches):
        frame, notes = settle_units(batch.table, batch.frame)
        settled = replace(batch, frame=frame, notes=(*batch.notes, *notes))
        yield from queue_export.expanded(settled)
