"""Tell JSON documents apart by what is in them and read them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerlab.archive.readers import (
    lines,
    monitor,
    network,
    queue_records,
    records,
    site_list,
    software,
    transfer_matrix,
)
from brokerlab.archive.readers.detect import Detected, TableOf
from brokerlab.archive.readers.records import Batch
from brokerlab.errors import DataError


@dataclass(frozen=True)
class Kind:
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
KINDS = (
    Kind("links 'SRC:DST'", ("network_matrix",), network.looks, network.read),
    Kind("a transfer matrix", ("transfers",), transfer_matrix.looks, transfer_matrix.read),
    Kind("a site list", _OF_SITES, site_list.looks, site_list.read),
    Kind("software by queue", ("software_tags",), software.looks, software.read, by_name=True),
    Kind("queue records", _OF_QUEUES, queue_records.looks, queue_records.read, by_name=True),
)
"""In the order in which they are asked; the monitor's answers come last."""


def read(path: Path, detected: Detected, table_of: TableOf) -> Iterator[Batch]:
    """Read a JSON file; the table that ``detect`` found is a hint, unless the caller named it.

    Raises:
        DataError: Truncated, not JSON, nothing that can be recognised, or not the named table.
    """
    data = records.load(path)
    if (hits := lines.hits(data)) is not None:
        yield lines.batch_of_hits(path, data, hits, detected, table_of)
        return
    kind = next((kind for kind in KINDS if kind.fits(data, detected.table)), None)
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
