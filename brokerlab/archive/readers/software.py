"""Read the software of queues from JSON: an object by queue, ``ALL`` for what the whole grid has."""

import json
from collections.abc import Iterator
from typing import Any

from brokerlab.archive.readers.records import Batch, Rows, ambiguous, entries, no_record

_TELLING = {"cmtconfigs", "containers", "cvmfs", "architectures", "tags"}
_NEEDED = 2


def looks(data: Any) -> bool:
    """Whether a document is an object of software records by queue."""
    inside = (set(value) for _, value in entries(data) if isinstance(value, dict))
    return any(len(names & _TELLING) >= _NEEDED for names in inside)


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
