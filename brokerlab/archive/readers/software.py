"""Read the software of queues from JSON: an object by queue, ``ALL`` for what the whole grid has."""

import json
from collections.abc import Iterator
from typing import Any

from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.records import Rows, ambiguous, entries, no_record

TABLES = ("software_tags",)

_TELLING = {"cmtconfigs", "containers", "cvmfs", "architectures", "tags"}
_NEEDED = 2


def looks(data: Any, table: str | None) -> bool:
    """Whether a document is an object of software records by queue."""
    inside = [value for _, value in entries(data) if isinstance(value, dict)]
    if table in TABLES and inside:
        return True
    return any(len(set(value) & _TELLING) >= _NEEDED for value in inside)


def read(data: Any) -> Iterator[Batch]:
    """Read an object by queue of ``cmtconfigs, containers, cvmfs, architectures, tags``, which the matching judges.

    Source:
        matching.md section 1.
    """
    rows = Rows("software_tags", "panda_queue", "data")
    for number, (queue, record) in enumerate(entries(data), start=1):
        if reason := _unreadable(record):
            rows.refuse(number, f"panda_queue={queue}", reason)
        else:
            rows.add(number, queue, json.dumps(record, sort_keys=True))
    yield rows.batch()


def _unreadable(record: Any) -> str | None:
    """Say why the record of a queue cannot be kept."""
    if (doubled := ambiguous(record)) is not None:
        return str(doubled)
    if not isinstance(record, dict):
        return no_record(record)
    try:
        json.dumps(record, allow_nan=False)
    except ValueError:
        return "NaN or Infinity in it, allowed: numbers"
    return None
