"""Read dumps of PanDA into batches of rows of canonical tables (archive.md 5-8, 13).

A reader renames, converts units and cuts the source into batches; it judges no value, ``schema``
does that. ``read`` recognises the format by content and file name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brokerlab.archive.conversion import settle_units
from brokerlab.archive.names import table_of_columns
from brokerlab.archive.readers import (
    columnar,
    databases,
    delimited,
    invex,
    lines,
    links,
    monitor,
    queue_records,
    records,
    site_lists,
    transfer_matrix,
)
from brokerlab.archive.readers.detect import Detected, TableOf, by_first_bytes, table_of_name
from brokerlab.archive.readers.records import Batch
from brokerlab.errors import DataError

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
    "links": links.read_table,
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
    result = replace(result, named=table is not None)
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
            return _read_document(path, detected, table_of)
        return _READERS[detected.format](path, detected)

    for given in batches() if shape is None else shape(batches):
        for batch in queue_records.expanded(given):
            frame, notes = settle_units(batch.table, batch.frame)
            yield replace(batch, frame=frame, notes=(*batch.notes, *notes))


# --- documents of JSON ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """A kind of document that is told by its content, or, of a file of one of its tables, as an object of records ``by_name``."""

    what: str
    tables: tuple[str, ...]
    looks: Callable[[Any], bool]
    read: Callable[[Any], Iterator[Batch]]
    by_name: bool = False

    def fits(self, data: Any, table: str | None) -> bool:
        """Whether a document of a file of the given table or None is of this kind."""
        if self.by_name and table in self.tables:
            return self.looks(data) or any(
                isinstance(value, dict) for _, value in records.entries(data)
            )
        return self.looks(data)


_OF_SITES = ("queues", "ddm_endpoints", "queue_endpoints")
_OF_QUEUES = ("queues", "queue_endpoints")
_DOCUMENTS = (
    _Kind("links 'SRC:DST'", ("network_matrix",), links.looks, links.read),
    _Kind("a transfer matrix", ("transfers",), transfer_matrix.looks, transfer_matrix.read),
    _Kind("a site list", _OF_SITES, site_lists.looks_like_sites, site_lists.read_sites),
    _Kind(
        "software by queue",
        ("software_tags",),
        site_lists.looks_like_software,
        site_lists.read_software,
        by_name=True,
    ),
    _Kind("queue records", _OF_QUEUES, queue_records.looks, queue_records.read, by_name=True),
)
"""In the order in which they are asked; the monitor's answers come last."""


def _read_document(path: Path, detected: Detected, table_of: TableOf) -> Iterator[Batch]:
    """Read a JSON file; the table that ``detect`` found is a hint, unless the caller named it."""
    data = records.load(path)
    if (hits := lines.hits(data)) is not None:
        yield lines.batch_of_hits(path, data, hits, detected, table_of)
        return
    kind = next((kind for kind in _DOCUMENTS if kind.fits(data, detected.table)), None)
    if kind is None and isinstance(data, records.Ambiguous):
        raise DataError(f"{path}: {data}; keep one of each")
    if kind is None:
        yield from monitor.read(path, data, detected.table, table_of)
    elif detected.named and detected.table not in kind.tables:
        raise DataError(
            f"{path}: holds {kind.what}, which fills {', '.join(kind.tables)}, not '{detected.table}'; "
            "leave --table out"
        )
    else:
        yield from kind.read(data)
