"""Read dumps of PanDA into batches of rows of canonical tables (archive.md 5-8, 13).

A reader renames, converts units and cuts the source into batches; it judges no value, ``schema``
does that. ``read`` recognises the format by content and file name.
"""

from collections.abc import Iterator
from pathlib import Path

from brokerlab.archive.readers import (
    columnar,
    delimited,
    documents,
    invex,
    link_table,
    queue_export,
)
from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.detect import Detected, detect
from brokerlab.errors import DataError

__all__ = ["Batch", "Detected", "detect", "read"]


def read(path: Path, found: Detected) -> Iterator[Batch]:
    """Read one file.

    Args:
        path: The file.
        found: What ``detect`` said about it.

    Yields:
        Batches of rows, each of one table; a file may hold several tables.

    Raises:
        DataError: The file is truncated, damaged or of a wrong encoding.
        SchemaError: A column occurs twice in its header.
    """
    if found.format == "parquet":
        for batch in columnar.read(path, found.table):
            yield from queue_export.expanded(batch)
    elif found.format == "csv":
        for batch in delimited.read(path, found):
            yield from queue_export.expanded(batch)
    elif found.format == "invex":
        yield from invex.read(path, found)
    elif found.format == "links":
        yield from link_table.read(path, found)
    elif found.format == "json":
        yield from documents.read(path, found)
    else:  # detect() and this function name the same formats
        raise DataError(f"{path}: unknown format '{found.format}'")
