"""Read matrices of transfers between sites: answers of the ATLAS DDM dashboard."""

from collections.abc import Iterator
from typing import Any

from brokerlab.archive.readers.records import Batch, Record, Rows, words
from brokerlab.errors import SchemaError

_COLUMNS = ("src_site", "dst_site", "bytes_xs", "files_xs", "errors_xs")
_UNREAD = ("deletions", "stagings")
_HOUR, _DAY, _WEEK = 60, 1440, 10_080
"""Minutes."""


def looks(data: Any) -> bool:
    """Whether a document is an answer of the dashboard: ``transfers`` with ``key`` and ``rows``."""
    matrix = data.get("transfers") if isinstance(data, dict) else None
    return isinstance(matrix, dict) and {"key", "rows"} <= set(matrix)


def read(data: Any) -> Iterator[Batch]:
    """Read one answer into ``transfers``; the window is named after its length.

    It has ``transfers`` (``key``: name to position, ``rows``) and ``params`` (``from_date``, ``to_date``, ``interval`` [min]).

    Raises:
        SchemaError: ``key`` does not say where a column stands.
    """
    places = _places(data["transfers"])
    params = data["params"] if isinstance(data.get("params"), dict) else {}
    minutes = params.get("interval")
    window = {
        "window": window_name(minutes),
        "from_date": params.get("from_date"),
        "to_date": params.get("to_date"),
        "interval_min": minutes,
    }
    own = {name: place for name, place in places.items() if name not in window}
    rows = Rows("transfers", *own, *window)
    for number, row in enumerate(data["transfers"]["rows"], start=1):
        if reason := _unreadable(row, len(places)):
            rows.refuse(number, None, reason)
        else:
            rows.add(number, *(row[place] for place in own.values()), *window.values())
    yield rows.batch(*_notes(data))


def window_name(minutes: Any) -> str | None:
    """Name a window by its length [min]; None for what is no length.

    Example:
        >>> [window_name(n) for n in (720, 1440, 2880, 10080, 40320, None)]
        ['12hours', '1day', '2days', 'week', '28days', None]
    """
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes <= 0:
        return None
    if minutes == _WEEK:
        return "week"
    sizes = {"day": _DAY, "hour": _HOUR, "minute": 1}
    unit, size = next((unit, size) for unit, size in sizes.items() if minutes % size == 0)
    return f"{minutes // size}{unit}" + ("s" if minutes > size else "")


def _places(matrix: Record) -> dict[str, int]:
    """Return the place of every column in a row."""
    key = matrix["key"]
    problems = []
    if not isinstance(key, dict) or not isinstance(matrix["rows"], list):
        problems = ["transfers: 'key' is no object or 'rows' no list; export it again"]
    else:
        free = set(range(len(key)))
        wrong = []
        for name, place in key.items():
            if type(place) is int and place in free:
                free.remove(place)
            else:
                wrong.append(name)
        problems += [
            f"transfers.{name}: not in 'key', found: {words(sorted(key))}; export it again"
            for name in _COLUMNS
            if name not in key
        ]
        problems += [
            f"transfers.{name}: stands at {words(key[name])}, allowed: 0 to {len(key) - 1}, each once"
            for name in wrong
        ]
    if problems:
        raise SchemaError("\n".join(problems))
    return dict(key)


def _unreadable(row: Any, width: int) -> str | None:
    """Say why a row cannot be cut into columns."""
    if not isinstance(row, list):
        return f"is no list of values: {words(row)}"
    if len(row) != width:
        return f"{len(row)} values, 'key' has {width} ({words(row)})"
    nested = [value for value in row if isinstance(value, list | dict)]
    return f"holds {words(nested[0])}, allowed: one value per column" if nested else None


def _notes(data: Record) -> tuple[str, ...]:
    """Say what else the answer holds."""
    result = []
    for name in _UNREAD:
        part = data.get(name)
        rows = part.get("rows") if isinstance(part, dict) else None
        if isinstance(rows, list) and rows:
            result.append(f"{name}: {len(rows)} row(s) not read, no table holds them")
    return tuple(result)
