"""Load JSON files and make columns of their records; what nobody can read for sure is refused."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.names import meant, plain
from brokerlab.archive.readers.detect import opened, truncated
from brokerlab.errors import DataError
from brokerlab.frames import doubled

Record = dict[str, Any]
Told = tuple[str, ...]
"""What was converted or left out, in sentences."""
Refusal = tuple[int, str | None, str]
"""Number of a row in its source, its key, the reason."""

MAX_FILE_BYTES, MAX_VALUES = 512 << 20, 10_000_000
"""Largest JSON document that is read [B, unpacked], and most values in it: it is in memory as a whole, some 150 B a value."""
SHOWN = 40

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
_WHOLE_LIMIT = 2**63


REFUSED = {"row": pl.Int64, "key": pl.String, "reason": pl.String}
"""Columns of rows that a reader could not even cut into columns."""


@dataclass(frozen=True)
class Batch:
    """Rows of one table as the source holds them; columns may still be text and have the source's names."""

    table: str
    frame: pl.DataFrame
    # row number in the source of each row, first data row = 1; rows made of one record share its
    rows: pl.Series
    # ``row, key, reason`` of rows that have no place in ``frame``
    refused: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REFUSED))
    notes: tuple[str, ...] = ()  # what the reader converted or inferred, in sentences


def numbered(frame: pl.DataFrame, first: int = 1) -> pl.Series:
    """Return consecutive row numbers for a frame."""
    return pl.int_range(first, first + len(frame), eager=True).alias("row")


class Ambiguous(str):
    """Stands for an object that gives a name twice, with its names and values: nobody can tell which value is meant."""

    __slots__ = ("pairs",)
    pairs: list[tuple[str, Any]]


def load(path: Path) -> Any:
    """Parse a JSON file, packed or not; objects that give a name twice are ``Ambiguous``."""
    with opened(path) as handle:
        raw = handle.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise DataError(
                f"{path}: more than {MAX_FILE_BYTES >> 20} MB of JSON; split it, or export CSV or Parquet"
            )
        if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MAX_VALUES:
            raise DataError(
                f"{path}: more than {MAX_VALUES:,} values in one JSON document; write one record a line, which is "
                "read in parts, or export CSV or Parquet"
            )
        encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        text = raw.decode(encoding)
    try:
        data = parse(text)
    except (ValueError, RecursionError) as error:
        raise truncated(path, "JSON", error) from error
    if holds_half_character(raw, data):
        raise DataError(
            f"{path}: holds half a character (such as \\ud800 without its pair); export it again"
        )
    return data


def parse(text: str) -> Any:
    """Parse JSON, objects that give a name twice as ``Ambiguous``; raises ValueError, or RecursionError where it is nested too deeply."""
    return json.loads(text, object_pairs_hook=_record)


def _record(pairs: list[tuple[str, Any]]) -> Record | Ambiguous:
    """Make a record of its names and values, unless a name occurs twice."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    twice = doubled([name for name, _ in pairs])
    result = Ambiguous(f"names occur twice: {', '.join(twice)}")
    result.pairs = pairs
    return result


def entries(data: Any) -> list[tuple[str, Any]]:
    """Return the names and values of an object, names that occur twice included; else nothing."""
    if isinstance(data, Ambiguous):
        return data.pairs
    return list(data.items()) if isinstance(data, dict) else []


def ambiguous(value: Any) -> Ambiguous | None:
    """Find an object inside a value that gives a name twice."""
    if isinstance(value, Ambiguous):
        return value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((result for item in inside if (result := ambiguous(item)) is not None), None)


class NoRecord(str):
    """Stands for a record and says why there is none."""

    __slots__ = ()


def told_apart(items: list[tuple[int, Any]]) -> tuple[list[Record], pl.Series, pl.DataFrame]:
    """Return (records, their row numbers, refused rows for what is no record) of numbered items."""
    good = [(number, item) for number, item in items if isinstance(item, dict)]
    others = [(number, item) for number, item in items if not isinstance(item, dict)]
    numbers = pl.Series("row", [number for number, _ in good], dtype=pl.Int64)
    refused = refusals([(number, None, no_record(item)) for number, item in others])
    return [item for _, item in good], numbers, refused


def no_record(item: Any) -> str:
    """Say that something else stands in place of a record."""
    if isinstance(item, NoRecord):
        return str(item)
    return f"is no record of names and values: {words(item)}"


def unfit(item: Any) -> str | None:
    """Say why something is no record of which all can be kept: a name stands in it twice, or it has no names."""
    if (twice := ambiguous(item)) is not None:
        return str(twice)
    return None if isinstance(item, dict) else no_record(item)


def as_json(value: Any) -> str | None:
    """Write a value in the order of its names; None where NaN or infinity is in it."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False)
    except ValueError:
        return None


def words(item: Any) -> str:
    """Write a value for a message, cut to forty characters."""
    return str(item) if isinstance(item, Ambiguous) else json.dumps(item)[:SHOWN]


def refusals(rows: list[Refusal]) -> pl.DataFrame:
    """Make the table of refused rows of a batch."""
    return pl.DataFrame(rows, schema=REFUSED, orient="row")


def series(name: str, values: list[Any]) -> pl.Series:
    """Make a column: of one type if all values agree, else text."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pl.Series(name, values, dtype=pl.String)
    if kinds <= {bool} or kinds <= {float} or kinds <= {str}:
        return pl.Series(name, values)
    if kinds <= {int} and all(abs(v) < _WHOLE_LIMIT for v in values if v is not None):
        return pl.Series(name, values, dtype=pl.Int64)
    return pl.Series(name, _texts(values), dtype=pl.String)


def _texts(values: list[Any]) -> list[str | None]:
    """Write values as text, what is none as JSON."""
    return [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]


def column(table: str, name: str, values: list[Any]) -> pl.Series:
    """Make a column of a table of the values of a document.

    As ``series``; and for texts and times every value is text, and truth values are no numbers: the
    contract can then refuse the one value, not the column.
    """
    target = polars_schema(table).get(name)
    if isinstance(target, pl.String | pl.Datetime):
        values = _texts(values)
    elif target is not None and target.is_numeric():
        values = [json.dumps(v) if isinstance(v, bool) else v for v in values]
    return series(name, values)


def source_column(table: str, name: str, values: list[Any]) -> pl.Series:
    """Make a column of records as a source names it; what is no column of the table is text."""
    canonical = meant(table).get(plain(name))
    if canonical is None:
        return pl.Series(name, _texts(values), dtype=pl.String)
    return column(table, canonical, values).alias(name)


def holds_half_character(raw: bytes, data: Any) -> bool:
    """Whether a document escapes half a character, which no text can hold."""
    if not _HALF_CHARACTER.search(raw):
        return False
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


class Rows:
    """Rows of one table, collected one by one with their numbers in the source, and what is refused."""

    def __init__(self, table: str, *names: str) -> None:
        self.table = table
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.numbers: list[int] = []
        self.refused: list[Refusal] = []

    def add(self, number: int, *values: Any) -> None:
        """Add a row, its values in the order of the columns."""
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)
        self.numbers.append(number)

    def refuse(self, number: int, key: str | None, reason: str) -> None:
        """Say why a row has no place."""
        self.refused.append((number, key, reason))

    def batch(self, *notes: str) -> Batch:
        """Return all rows."""
        frame = pl.DataFrame([column(self.table, n, values) for n, values in self.columns.items()])
        numbers = pl.Series("row", self.numbers, dtype=pl.Int64)
        return Batch(self.table, frame, numbers, refusals(self.refused), notes)
