"""Read CSV files, packed or not, in bounded memory; every column as text."""

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv

from brokerlab.archive.contracts import columns_of
from brokerlab.archive.contracts._columns import about
from brokerlab.archive.parsing import low
from brokerlab.archive.readers.detect import Detected, opened, truncated, wrong_encoding
from brokerlab.archive.readers.records import Batch, Refusal, numbered, refusals
from brokerlab.errors import DataError

BLOCK_BYTES = 24 << 20
"""Bytes held at a time; one row must fit. Blocks of 32 MB and more are given back to the system and cleared anew each time."""

_DECODED = 1 << 20
"""Bytes looked at together for their encoding."""
_SHOWN = 40
_FEW_COLUMNS = 3
"""With so few columns a text with line breaks can look like rows."""


@dataclass
class _Malformed:
    """Rows with too few or too many fields, collected while the file is read."""

    rows: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def __call__(self, row: pa_csv.InvalidRow) -> str:
        """Note a row and skip it; Arrow counts the header as row 1."""
        text = (row.text or "").strip()
        self.rows.append(row.number - 1)
        self.reasons.append(
            f"{row.actual_columns} fields, the header has {row.expected_columns} ('{text[:_SHOWN]}')"
            + (_left_open(text.count("\n")) if "\n" in text else "")
        )
        return "skip"


def _left_open(lines: int) -> str:
    """Say how many lines of the file a quote took in."""
    return (
        f"; it takes in {lines} more line(s): is a quote left open? mend the file and read it again"
    )


def read(path: Path, detected: Detected) -> Iterator[Batch]:
    """Read a CSV file, packed or not, block by block as text; rows with a wrong number of fields are refused."""
    table = detected.table or ""
    malformed = _Malformed()
    seen = reported = 0
    try:
        with opened(path) as handle, _reader(handle, detected, malformed) as reader:
            for piece in reader:
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([piece])))
                rows = _row_numbers(len(frame), seen, malformed.rows)
                broken = [
                    name for name, texts in zip(frame.columns, piece, strict=True) if _broken(texts)
                ]
                whole, swallowing = _without_swallowed(frame, rows, detected, broken)
                refused = pl.concat([_refused(malformed, reported), swallowing])
                yield Batch(table, frame.filter(whole), rows.filter(whole), refused)
                seen, reported = seen + len(frame), len(malformed.rows)
            if reported < len(malformed.rows) or not seen:
                empty = pl.DataFrame(schema=dict.fromkeys(reader.schema.names, pl.String))
                yield Batch(table, empty, numbered(empty), _refused(malformed, reported))
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error) or "UTF-8" in str(error):
            raise wrong_encoding(path) from error
        if "straddling" in str(error):
            raise DataError(
                f"{path}: a row is longer than {BLOCK_BYTES >> 20} MB; is a quote left open?"
            ) from error
        raise truncated(path, "CSV", error) from error


class _Utf8:
    """A file whose reading raises UnicodeDecodeError where it is not UTF-8: of a row that Arrow cannot cut it would not say so."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.closed = False

    def read(self, size: int) -> bytes:
        data: bytes = self._handle.read(size)
        if not data.isascii() or self._decoder.getstate()[0]:  # or half a letter came before
            for start in range(0, len(data), _DECODED):
                self._decoder.decode(data[start : start + _DECODED])
        if size and not data:
            self._decoder.decode(b"", final=True)
        return data

    def close(self) -> None:
        self.closed = True


def _reader(handle: Any, detected: Detected, malformed: _Malformed) -> pa_csv.CSVStreamingReader:
    """Open the streaming reader with all columns as text."""
    names = _header(handle, detected)
    encoding = "utf-8" if detected.encoding == "utf-8-sig" else detected.encoding
    return pa_csv.open_csv(
        pa.PythonFile(_Utf8(handle) if encoding == "utf-8" else handle, mode="r"),
        # one thread: only then does Arrow number the malformed rows
        read_options=pa_csv.ReadOptions(
            use_threads=False, block_size=BLOCK_BYTES, encoding=encoding
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=detected.delimiter, newlines_in_values=True, invalid_row_handler=malformed
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
            check_utf8=False,  # `_Utf8` has looked at them, and what was UTF-16 is UTF-8
        ),
    )


def _header(handle: Any, detected: Detected) -> list[str]:
    """Read the names of the columns and go back to the start."""
    line = handle.readline() if detected.encoding != "utf-16" else handle.read(1 << 20)
    handle.seek(0)
    text = line.decode(detected.encoding, errors="ignore").splitlines()[0]
    return next(csv.reader([text], delimiter=detected.delimiter))


def _broken(texts: pa.Array) -> bool:
    """Tell whether a column has a line break; its bytes are looked at together, as hardly any has one."""
    data = texts.buffers()[2]
    return data is not None and re.search(b"\n", memoryview(data)) is not None


def _without_swallowed(
    frame: pl.DataFrame, rows: pl.Series, detected: Detected, broken: list[str]
) -> tuple[pl.Series, pl.DataFrame]:
    """Return (whether a row is whole, the others as refused rows), where a quote left open took the following ones into a field.

    Such a field, of a column with line breaks (`broken`), has on every further line as many delimiters as a row.
    """
    whole = pl.repeat(value=True, n=len(frame), dtype=pl.Boolean, eager=True)
    refused: list[Refusal] = []
    # JSON may have line breaks and delimiters enough to look like rows
    columns = columns_of(detected.table) if detected.table else {}
    json = {n for n, column in columns.items() if about(column)["unit"] == "json"}
    if len(frame.columns) <= _FEW_COLUMNS:
        return whole, refusals([])
    for name in (n for n in broken if low(n) not in json):
        value = frame[name].fill_null("")
        ends = value.str.count_matches("\n", literal=True).cast(pl.Int64)
        marks = value.str.count_matches(detected.delimiter, literal=True).cast(pl.Int64)
        taken = whole & (ends > 0) & (marks >= (frame.width - 1) * (ends - 1).clip(1))
        lost = zip(rows.filter(taken), ends.filter(taken), strict=True)
        refused += [(row, None, f"{name} has line breaks{_left_open(n)}") for row, n in lost]
        whole &= ~taken
    return whole, refusals(refused)


def _row_numbers(count: int, seen: int, malformed: list[int]) -> pl.Series:
    """Number good rows as they stand in the file, malformed rows between them counted."""
    nth = np.arange(seen + 1, seen + count + 1, dtype=np.int64)
    bad = np.asarray(malformed, dtype=np.int64)
    before = np.searchsorted(bad - np.arange(len(bad)), nth, side="right")
    return pl.Series("row", nth + before)


def _refused(malformed: _Malformed, start: int) -> pl.DataFrame:
    """Return the malformed rows noted since ``start``."""
    noted = zip(malformed.rows[start:], malformed.reasons[start:], strict=True)
    return refusals([(row, None, reason) for row, reason in noted])
