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
    queue_records,
)
from brokerlab.archive.readers.detect import Detected, TableOf, by_first_bytes, table_of_name
from brokerlab.archive.readers.records import Batch
from brokerlab.archive.readers.units import settle_units

__all__ = ["Batch", "Detected", "detect", "read", "table_of_columns", "table_of_name"]

Shape = Callable[[Callable[[], Iterator[Batch]]], Iterator[Batch]]
"""Gives rows of a source canonical names and units; it may read the source more than once."""
_READERS = {
    "parquet": columnar.read,
    "csv": delimited.read,
    "lines": lines.read,
    "duckdb": databases.read,
    "sqlite": databases.read,
    "invex": invex.read,
    "links": link_table.read,
}


def detect(
    path: Path,
    *,
    table: str | None = None,
    table_of: TableOf = table_of_columns,
    partition: dict[str, str | None] | None = None,
) -> Detected:
    """Recognise a file; the table, where the caller does not know it, by its name or by ``table_of`` its columns.

    Raises:
        DataError: No such file, empty, truncated, or its table cannot be told.
        SchemaError: There is no such table, or a column name that occurs twice or is a pattern.
    """
    result = by_first_bytes(path, table, table_of, partition or {})
    if result.format in ("duckdb", "sqlite"):
        return databases.detected(path, result, table_of)
    if result.format == "lines":
        return lines.detected(path, result, table_of)
    return result


def read(
    path: Path, detected: Detected, shape: Shape | None = None, table_of: TableOf = table_of_columns
) -> Iterator[Batch]:
    """Yield the rows of a file in batches, each of one table; ``shape`` gives them canonical names and units.

    Raises:
        DataError: The file is truncated, damaged or of a wrong encoding.
        SchemaError: A column occurs twice in its header.
    """
    if detected.format in ("invex", "links"):
        yield from _READERS[detected.format](path, detected)
        return

    def batches() -> Iterator[Batch]:
        if detected.format == "json":
            return documents.read(path, detected, table_of)
        return _READERS[detected.format](path, detected)

    for given in batches() if shape is None else shape(batches):
        for batch in queue_records.expanded(given):
            frame, notes = settle_units(batch.table, batch.frame)
            yield replace(batch, frame=frame, notes=(*batch.notes, *notes))
