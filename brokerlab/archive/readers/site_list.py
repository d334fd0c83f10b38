"""Read site lists: queue -> sizes of its storages (``RSE``) and a capacity (``GFLOPS``).

Such a list says what exists, not how it is used. What it does not say and the tables need is written as
``unknown``, a word that no rule takes for a candidate: type and status of a queue, direction and scope of a
storage. A queue record with a time (``last_modified``) in the same archive replaces such a queue.
"""

import json
from collections.abc import Iterator
from typing import Any

from brokerlab.archive.readers.records import Batch, Rows, entries, no_record, words

UNKNOWN = "unknown"
GB_PER_TB = 1000
"""The sizes are taken as decimal TB: 30,000 for the largest site and round quotas (170.00, 350.00) fit TB
and no other unit; TB or TiB (10 %) cannot be told."""

TYPES = {
    "DATADISK": False,
    "SCRATCHDISK": False,
    "LOCALGROUPDISK": False,
    "CALIBDISK": False,
    "DATATAPE": True,
    "MCTAPE": True,
}
"""Types that the last part of an endpoint's name tells, and whether they are tape."""

_RSE, _CAPACITY = "RSE", "GFLOPS"
_SIZES_NOTE = (
    "ddm_endpoints: sizes taken as TB, stored as space_total in GB (unit by plausibility); type and is_tape "
    "from the end of the name where that tells; site_name is not in the list"
)
_QUEUES_NOTE = (
    "queues: type and status are not in a site list, 'unknown' stands there and no rule takes such a queue; "
    "GFLOPS is not understood, kept in params"
)
_LINKS_NOTE = "queue_endpoints: direction and scope are not in a site list, 'unknown' stands there"


def looks(data: Any) -> bool:
    """Whether a document is an object of queues with ``RSE``."""
    return any(isinstance(v, dict) and isinstance(v.get(_RSE), dict) for _, v in entries(data))


def read(data: Any) -> Iterator[Batch]:
    """Read an object by queue of ``RSE`` (endpoint -> size [TB], 0 where none is known) and others.

    Yields ``queues``, ``ddm_endpoints`` (one row per queue and endpoint: repeated ones count as duplicates, sizes that
    differ as contradictions), ``queue_endpoints``; rows are numbered by queue.
    """
    queues = Rows("queues", "panda_queue", "type", "status", "params")
    storages = Rows("ddm_endpoints", "ddm_endpoint_name", "type", "is_tape", "space_total")
    links = Rows("queue_endpoints", "panda_queue", "ddm_endpoint_name", "direction", "scope")
    unsized: set[str] = set()
    for number, (queue, record) in enumerate(entries(data), start=1):
        if reason := _unreadable(record):
            queues.refuse(number, f"panda_queue={queue}", reason)
            continue
        rest = {name: value for name, value in record.items() if name != _RSE}
        params = json.dumps(rest, sort_keys=True) if rest else None
        queues.add(number, queue, UNKNOWN, UNKNOWN, params)
        for name, size in record.get(_RSE, {}).items():
            if isinstance(size, list | dict | bool):
                reason = f"size of {name} is {words(size)}, allowed: TB, as number or text"
                storages.refuse(number, f"ddm_endpoint_name={name}", reason)
                continue
            if size == 0:  # the whole number stands for "no size", the text "0.00" for none left
                unsized.add(name)
            kind = next((kind for kind in TYPES if name.endswith(f"_{kind}")), None)
            storages.add(number, name, kind, TYPES[kind] if kind else None, _in_gb(size))
            links.add(number, queue, name, UNKNOWN, UNKNOWN)
    yield queues.batch(_QUEUES_NOTE)
    none = f"{len(unsized)} endpoint(s) have the number 0 for a size, read as not recorded"
    yield storages.batch(_SIZES_NOTE, *([none] if unsized else []))
    yield links.batch(_LINKS_NOTE)


def _unreadable(record: Any) -> str | None:
    """Say why the record of a queue cannot be read."""
    if not isinstance(record, dict):
        return no_record(record)
    if not isinstance(sizes := record.get(_RSE, {}), dict):
        return f"{_RSE} is {words(sizes)}, allowed: endpoint -> size"
    try:
        json.dumps({k: v for k, v in record.items() if k != _RSE}, allow_nan=False)
    except ValueError:
        return "NaN or Infinity beside RSE, allowed: numbers"
    return None


def _in_gb(size: Any) -> Any:
    """Convert a size; what is no number stays for the contract to refuse."""
    if size is None or size == 0:
        return None
    try:
        return round(float(size) * GB_PER_TB, 6)
    except (ValueError, OverflowError):
        return size
