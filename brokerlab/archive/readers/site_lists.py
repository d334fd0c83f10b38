"""Read lists of sites and of software: objects by queue.

A site list holds the sizes of a queue's storages (``RSE``) and a capacity (``GFLOPS``): what exists, not how it is used.
What it does not say and the tables need is written as ``unknown``, a word that no rule takes for a candidate: type and
status of a queue, direction and scope of a storage. A queue record with a time (``last_modified``) in the same archive
replaces such a queue.
"""

from collections.abc import Iterator
from typing import Any

from brokerlab.archive.readers.records import (
    Batch,
    Rows,
    as_json,
    entries,
    no_record,
    unfit,
    words,
)

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

_RSE = "RSE"
_SIZES_NOTE = (
    "ddm_endpoints: sizes taken as TB, stored as space_total in GB (unit by plausibility); type and is_tape "
    "from the end of the name where that tells; site_name is not in the list"
)
_QUEUES_NOTE = (
    "queues: type and status are not in a site list, 'unknown' stands there and no rule takes such a queue; "
    "GFLOPS is not understood, kept in params"
)
_LINKS_NOTE = "queue_endpoints: direction and scope are not in a site list, 'unknown' stands there"


def looks_like_sites(data: Any) -> bool:
    """Whether a document is an object of queues with ``RSE``."""
    return any(isinstance(v, dict) and isinstance(v.get(_RSE), dict) for _, v in entries(data))


def read_sites(data: Any) -> Iterator[Batch]:
    """Read an object by queue of ``RSE`` (endpoint -> size [TB], 0 where none is known) and others.

    Yields ``queues``, ``ddm_endpoints`` (one row per queue and endpoint: repeated ones count as duplicates, sizes that
    differ as contradictions), ``queue_endpoints``; rows are numbered by queue.
    """
    queues = Rows("queues", "panda_queue", "type", "status", "params")
    storages = Rows("ddm_endpoints", "ddm_endpoint_name", "type", "is_tape", "space_total")
    links = Rows("queue_endpoints", "panda_queue", "ddm_endpoint_name", "direction", "scope")
    unsized: set[str] = set()
    for number, (queue, record) in enumerate(entries(data), start=1):
        reason = None
        if not isinstance(record, dict):
            reason = no_record(record)
        elif not isinstance(sizes := record.get(_RSE, {}), dict):
            reason = f"{_RSE} is {words(sizes)}, allowed: endpoint -> size"
        elif (params := as_json({k: v for k, v in record.items() if k != _RSE})) is None:
            reason = "NaN or Infinity beside RSE, allowed: numbers"
        if reason:
            queues.refuse(number, f"panda_queue={queue}", reason)
            continue
        queues.add(number, queue, UNKNOWN, UNKNOWN, None if params == "{}" else params)
        for name, size in sizes.items():
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


def _in_gb(size: Any) -> Any:
    """Convert a size; what is no number stays for the contract to refuse."""
    if size is None or size == 0:
        return None
    try:
        return round(float(size) * GB_PER_TB, 6)
    except (ValueError, OverflowError):
        return size


# --- software ---------------------------------------------------------------------------------------------------------


_TELLING = {"cmtconfigs", "containers", "cvmfs", "architectures", "tags"}
_NEEDED = 2


def looks_like_software(data: Any) -> bool:
    """Whether a document is an object of software records by queue, ``ALL`` for what the whole grid has."""
    inside = (set(value) for _, value in entries(data) if isinstance(value, dict))
    return any(len(names & _TELLING) >= _NEEDED for names in inside)


def read_software(data: Any) -> Iterator[Batch]:
    """Read an object by queue of ``cmtconfigs, containers, cvmfs, architectures, tags``, which the matching judges.

    Source:
        matching.md section 1.
    """
    rows = Rows("software_tags", "panda_queue", "data")
    for number, (queue, record) in enumerate(entries(data), start=1):
        reason = unfit(record)
        text = None if reason else as_json(record)
        if text is None:
            reason = reason or "NaN or Infinity in it, allowed: numbers"
            rows.refuse(number, f"panda_queue={queue}", reason)
        else:
            rows.add(number, queue, text)
    yield rows.batch()
