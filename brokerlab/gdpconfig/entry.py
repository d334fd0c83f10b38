"""One stored entry of the configuration, how tables and files become entries, and the conversion of text to value that the look-up makes.

Source: ``brokerlab tables gdpconfig``; docs/rules/gdpconfig.md, Look-up rules, 1, 3 and 6.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from brokerlab.errors import DataError, SchemaError
from brokerlab.frames import doubled

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

REQUIRED = ("app", "component", "key", "value", "type")
_KEY = ("app", "component", "key")


@dataclass(frozen=True)
class Entry:
    """One row of the table ``gdpconfig``; names are case-sensitive.

    Attributes:
        value: Text of the value; null for JSON entries.
        value_json: JSON text; null for all others.
        type: ``str|string, int|integer, float, bool|boolean, json`` in any case.
        vo: The virtual organisation it is for; null = all.
        descr: Remark; not part of the digest.
        valid_from: Holds from this time on (UTC); null = always.
        valid_to: Holds until just before this time (UTC); null = for ever.
    """

    app: str
    component: str
    key: str
    value: str | None = None
    value_json: str | None = None
    type: str | None = None
    vo: str | None = None
    descr: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """``(app, component, key)``."""
        return self.app, self.component, self.key

    @property
    def has_history(self) -> bool:
        """The entry holds for a part of the time only."""
        return self.valid_from is not None or self.valid_to is not None

    def holds_at(self, time: datetime) -> bool:
        """Whether the entry holds at a time (UTC without zone); the end is exclusive."""
        begun = self.valid_from is None or self.valid_from <= time
        return begun and (self.valid_to is None or time < self.valid_to)


COLUMNS = tuple(field.name for field in fields(Entry))


def _text(value: object) -> str | None:
    """Return a cell as the text that the database holds."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # a column of whole numbers with gaps was read as floats
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return str(value)


def _time(value: object) -> datetime | None:
    """Return a cell as UTC time without zone; ``ValueError`` if it is none."""
    if value is None or value == "":
        return None
    time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def _entry(row: Mapping[str, object]) -> Entry:
    texts = {name: _text(row.get(name)) for name in COLUMNS[:-2]}
    missing = [name for name in _KEY if not texts[name]]
    if missing:
        raise ValueError(f"{', '.join(missing)} null or empty")
    begin, end = _time(row.get("valid_from")), _time(row.get("valid_to"))
    if begin is not None and end is not None and begin >= end:
        raise ValueError(f"valid_from {begin} is not before valid_to {end}")
    return Entry(
        app=str(texts["app"]),
        component=str(texts["component"]),
        key=str(texts["key"]),
        value=texts["value"],
        value_json=texts["value_json"],
        type=texts["type"],
        vo=texts["vo"] or None,
        descr=texts["descr"] or None,
        valid_from=begin,
        valid_to=end,
    )


def entries_of_rows(rows: Iterable[Mapping[str, object]], source: str) -> tuple[Entry, ...]:
    """Turn rows into entries, in their order; names in any case, unknown columns are left aside.

    Raises:
        DataError: Rows without app, component or key, or with times that make no sense; all in one message.
    """
    entries, wrong = [], []
    for number, row in enumerate(rows, start=1):
        try:
            entries.append(_entry({_name(name): value for name, value in row.items()}))
        except ValueError as error:
            wrong.append(f"row {number}: {error}")
    if wrong:
        shown = "; ".join(wrong[:5])
        raise DataError(f"{source}: {len(wrong)} unusable gdpconfig row(s), first: {shown}")
    return tuple(entries)


def _name(column: str) -> str:
    return column.lstrip("\ufeff").strip().lower()


def _check_columns(columns: Iterable[str], source: str) -> None:
    names = [_name(column) for column in columns]
    missing = [name for name in REQUIRED if name not in names]
    double = doubled(names)
    problems = []
    if missing:
        problems.append(f"missing column(s) {', '.join(missing)}")
    if double:
        problems.append(
            f"column(s) {', '.join(double)} occur more than once (case is not looked at)"
        )
    if problems:
        raise SchemaError(
            f"{source}: {'; '.join(problems)}; found: {', '.join(names) or 'none'}; "
            f"needed: {', '.join(REQUIRED)}; optional: value_json, vo, descr, valid_from, valid_to"
        )


def entries_of_frame(frame: IntoFrame) -> tuple[Entry, ...]:
    """Turn a table of any engine into entries, in its order; columns of :class:`Entry` in any case.

    Raises:
        SchemaError: A required column is missing, or two differ only in case.
        DataError: Unusable rows.
    """
    from brokerlab.engines import collect, lazy_of

    table = collect(lazy_of(frame, "gdpconfig"))
    _check_columns(table.columns, "gdpconfig")
    return entries_of_rows(table.iter_rows(named=True), "gdpconfig")


def entries_of_file(path: str | Path) -> tuple[Entry, ...]:
    """Read a CSV or JSON export, in the order of the file.

    ``.csv`` with a header line, or ``.json`` with a list of objects (alone or as the only list of an object). UTF-8, with or
    without byte order mark. The word ``NULL`` is null.

    Raises:
        SchemaError: A required column is missing.
        DataError: The file is absent, not UTF-8, empty, cut off, or of another kind.
    """
    file = Path(path)
    readers = {".csv": _rows_of_csv, ".json": _rows_of_json}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise DataError(f"{file}: unknown kind of file {file.suffix!r}; allowed: .csv, .json")
    try:
        content = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    rows = reader(content, file)
    words = ("NULL", "null")  # exports write them for a missing value
    written = [
        {k: None if isinstance(v, str) and v.strip() in words else v for k, v in row.items()}
        for row in rows
    ]
    return entries_of_rows(written, str(file))


def _rows_of_csv(content: str, file: Path) -> list[dict[str, Any]]:
    try:
        table = pl.read_csv(content.encode(), infer_schema=False)
    except pl.exceptions.NoDataError as error:
        raise DataError(f"{file}: is empty; a header line is needed") from error
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{file}: is no proper CSV: {str(error).splitlines()[0]}") from error
    _check_columns(table.columns, str(file))
    return table.to_dicts()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its names and values; ``ValueError`` if a name occurs twice."""
    names = [name for name, _ in pairs]
    if double := doubled(names):
        raise ValueError(f"names occur twice in one object: {', '.join(double)}")
    return dict(pairs)


def _rows_of_json(content: str, file: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(content, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: is no proper JSON: {error}") from error
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else None
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise DataError(f"{file}: a list of objects is needed, one per entry")
    if document:
        # an absent key of an object is null, so a column is missing only if no object has it
        names = dict.fromkeys(_name(name) for row in document for name in row)
        _check_columns(names, str(file))
    return document


# --- values ---------------------------------------------------------------------------------------------------------


Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Value: TypeAlias = Json
"""A typed value of a configuration key; null means undefined."""

TYPES = MappingProxyType(
    {
        "str": "str",
        "string": "str",
        "int": "int",
        "integer": "int",
        "float": "float",
        "bool": "bool",
        "boolean": "bool",
        "json": "json",
    }
)
"""Spelling of a type (in lower case) -> the type."""


def _to_float(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError("not a number")
    return number


_CONVERTERS: dict[str, Callable[[str], Value]] = {
    "str": str,
    "int": int,
    "float": _to_float,
    "bool": lambda text: text.lower() == "true",
    "json": json.loads,
}


def convert(value: str | None, value_json: str | None, type_name: str | None) -> Value:
    """Convert a stored entry by its type, in any case; ``bool`` is true only for "true" in any case.

    Raises:
        ValueError: Unknown type, no value, text that is not of the type, or a float that is not a number.
            The look-up turns this into "undefined" with a warning.

    Source: docs/rules/gdpconfig.md, Look-up rules, 3.

    Example:
        >>> convert(" 7 ", None, "INT"), convert("TRUE", None, "bool"), convert("1", None, "Boolean")
        (7, True, False)
        >>> convert("3.5", None, "int")
        Traceback (most recent call last):
        ...
        ValueError: '3.5' is not of type int
    """
    kind = TYPES.get((type_name or "").lower())
    if kind is None:
        raise ValueError(f"type {type_name!r} is unknown; allowed: {', '.join(TYPES)}")
    text = value_json if kind == "json" else value
    if text is None:
        raise ValueError(f"{'value_json' if kind == 'json' else 'value'} is null, type is {kind}")
    try:
        return _CONVERTERS[kind](text)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 40 else text[:40] + "..."
        raise ValueError(f"{shown!r} is not of type {kind}") from error


def to_text(value: Value) -> tuple[str | None, str | None, str]:
    """Return ``(value, value_json, type)`` of a Python value: the inverse of :func:`convert`.

    Example:
        >>> to_text(80), to_text(True), to_text([1, 2])
        (('80', None, 'int'), ('true', None, 'bool'), (None, '[1, 2]', 'json'))
    """
    if isinstance(value, bool):
        return str(value).lower(), None, "bool"
    if isinstance(value, int | float):
        return repr(value), None, type(value).__name__
    if isinstance(value, str):
        return value, None, "str"
    return None, json.dumps(value, sort_keys=True), "json"
