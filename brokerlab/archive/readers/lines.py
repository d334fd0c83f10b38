"""Read records of JSON, one a line, and the hits of Elasticsearch and OpenSearch, in lines or in one document."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.readers import records
from brokerlab.archive.readers.detect import (
    Detected,
    TableOf,
    check_columns,
    check_number,
    opened,
    table_of_records,
)
from brokerlab.archive.readers.records import Batch, Record
from brokerlab.errors import DataError

BATCH_ROWS = 50_000
"""Records held at a time."""
BATCH_TEXT = 32 << 20
"""Length of the lines held at a time, about."""
MAX_LINE = 16 << 20
"""Longest line [characters]."""
_BESIDE = {"fields", "sort", "highlight", "matched_queries", "found", "inner_hits"}
"""What may stand beside the record of a hit, besides names that begin with ``_``."""


def detected(path: Path, recognised: Detected, table_of: TableOf) -> Detected:
    """Find the names of all records of a file and, by them, its table."""
    names: dict[str, None] = {}
    for _, item, _ in _items(path, recognised.encoding):
        if isinstance(item, dict):
            before = len(names)
            names.update(dict.fromkeys(item))
            if len(names) > before:
                check_number(path, len(names))
    table = recognised.table or table_of_records(path, names, table_of)
    return replace(recognised, table=table, names=tuple(names))


def read(path: Path, recognised: Detected) -> Iterator[Batch]:
    """Read a file of records batch by batch; a line that holds none is a refused row."""
    items: list[tuple[int, Any]] = []
    size = 0
    table = recognised.table or ""
    for number, item, length in _items(path, recognised.encoding):
        items.append((number, item))
        size += length
        if len(items) == BATCH_ROWS or size > BATCH_TEXT:
            yield batch(table, recognised.names, items)
            items, size = [], 0
    yield batch(table, recognised.names, items)


def batch(table: str, names: tuple[str, ...], items: list[tuple[int, Any]]) -> Batch:
    """Make a batch of numbered records; what is no record is refused."""
    good, numbers, refused = records.told_apart(items)
    columns = [
        records.source_column(table, name, [record.get(name) for record in good]) for name in names
    ]
    return Batch(table, pl.DataFrame(columns), numbers, refused)


def hits(data: Any) -> list[Any] | None:
    """Return the hits of an answer of Elasticsearch or OpenSearch, or of several; None if it is none.

    Example:
        >>> hits({"hits": {"hits": [{"_id": "a", "_source": {"pandaid": 1}}]}})
        [{'pandaid': 1}]
    """
    if isinstance(data, list):
        pages = [hits(page) for page in data if isinstance(page, dict) and "hits" in page]
        if not data or len(pages) < len(data) or None in pages:
            return None
        return [hit for page in pages for hit in page or ()]
    inside = data.get("hits") if isinstance(data, dict) else None
    result = inside.get("hits") if isinstance(inside, dict) else None
    return [_source(hit) for hit in result] if isinstance(result, list) else None


def batch_of_hits(
    path: Path, data: Any, found_hits: list[Any], recognised: Detected, table_of: TableOf
) -> Batch:
    """Make a batch of the hits of a document."""
    names = dict.fromkeys(name for hit in found_hits if isinstance(hit, dict) for name in hit)
    check_columns(path, list(names))
    table = recognised.table or table_of_records(path, names, table_of)
    made = batch(table, tuple(names), list(enumerate(found_hits, start=1)))
    return replace(made, notes=_incomplete(data, len(found_hits)))


def _incomplete(data: Any, count: int) -> tuple[str, ...]:
    """Say whether an answer says itself that it holds only a part."""
    pages = data if isinstance(data, list) else [data]
    notes = []
    totals = [page["hits"].get("total") for page in pages]
    values = [total.get("value") if isinstance(total, dict) else total for total in totals]
    known = [value for value in values if isinstance(value, int)]
    if known and max(known) > count:
        notes.append(f"the answer tells of {max(known)} hits, {count} are in it: export the rest")
    if any(page.get("timed_out") is True for page in pages):
        notes.append("the search timed out: hits may be missing")
    return tuple(notes)


def _source(hit: Any) -> Any:
    """Return the record of a hit; anything else as it is."""
    if not isinstance(hit, dict) or not all(n.startswith("_") or n in _BESIDE for n in hit):
        return hit
    source, fields = hit.get("_source", {}), hit.get("fields", {})
    if not (isinstance(source, dict) and isinstance(fields, dict)):
        return hit
    if not fields and "_source" not in hit:
        return hit
    return source | {name: _single(fields[name]) for name in fields if name not in source}


def _single(value: Any) -> Any:
    """Return the only value of a list."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _items(path: Path, encoding: str) -> Iterator[tuple[int, Record | Any, int]]:
    """Yield the records of a file, and what stands in place of one, with number and length of the line."""
    number = 0
    with opened(path) as handle:
        lines = io.TextIOWrapper(handle, encoding=encoding, newline="\n")
        line = 0
        while text := lines.readline(MAX_LINE + 1):
            line += 1
            if len(text) > MAX_LINE:
                raise DataError(f"{path}: line {line} has more than {MAX_LINE >> 20} MB; cut it")
            for item in _parse(line, text) if text.strip() else ():
                number += 1
                yield number, item, len(text)


def _parse(line: int, text: str) -> list[Any]:
    """Return the records of a line: one, or the hits of an answer."""
    try:
        item = records.parse(text)
        if records.holds_half_character(text.encode(), item):
            return [records.NoRecord(f"line {line} holds half a character (such as \\ud800)")]
    except (ValueError, RecursionError) as error:
        words = str(error)[:80]
        shown = text.strip()[: records.SHOWN]
        return [records.NoRecord(f"line {line} is no JSON ({words}): {shown}")]
    inside = hits(item) if isinstance(item, dict) else None
    return [_source(item)] if inside is None else inside
