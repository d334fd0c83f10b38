"""What is done to a sound file: bytes, words and lines, the encoding, types and names of columns, values of documents, packing."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet

from benchmarks.attack_sources import Sound, plain

ODD = (
    b"", b"-1", b"1e400", b"9" * 400, b"NaN", b"inf", b"null", b"true", b'"', b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\r",
    b"\n", b"\xef\xbb\xbf", b"'; drop table jobs; --", b"=cmd()", b"../../x", b"%s%n", b"\xe2\x80\xae", b"-0", b"0x10",
    b"1e-400", b"99999-01-01", b"0000-00-00 00:00:00", b"2026-02-30", b"24:60:61", b"[", b"{", b"]", b"}", b",,,,", b"\t",
    b"-99999999999999999999", b"31/12/26 5:00 PM", b"1767225600", b"1767225600000", b"x" * 200_000, b"\\ud800",
)  # fmt: skip
"""Texts that are put in the place of others."""
NAMES = (
    "a\nb", "a\r\nb", 'a"b', "", " ", "^a$", "*", "__row", "x" * 5000, "x" * 200_000, "\u202ejobs", "\x00", "PANDAID", "a,b",
    "modificationTime", "row", "reason", "select",
)  # fmt: skip
"""Names that columns are given."""
MOST_COLUMNS = 100_000
DEEP = (30, 700, 20_000)
"""How deep values are nested."""
BOMB_BYTES = 50_000_000


def mutated(sound: Sound, rng: random.Random) -> tuple[str, bytes]:
    """Change a file; return its name and bytes."""
    kind = rng.random()
    name, data = sound.name, sound.data
    if kind < 0.35 and sound.rows is not None and name.endswith(".parquet"):
        data = _typed(sound.rows, rng)
    elif kind < 0.35 and sound.rows is not None and name.endswith(".csv"):
        data = _named(sound.rows, rng)
    elif kind < 0.35 and name.endswith(".json") and sound.reader != "model":
        data = json.dumps(_document(json.loads(data), rng)).encode()
        for depth in DEEP:
            data = data.replace(f'"nested {depth}"'.encode(), _nested(b"1", rng, depth))
    else:
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            data = rng.choice(BYTES)(data, rng)
    packing = rng.random()
    if sound.reader == "ingest" and name.endswith((".csv", ".json", ".ndjson")):
        if packing < 0.004:
            part = data or b" "
            data = gzip.compress(data + part * (BOMB_BYTES // len(part)), 1)
            return f"{name}.gz", data
        if packing < 0.05:
            data = gzip.compress(data, mtime=0)
            return f"{name}.gz", rng.choice((flipped, truncated, _same))(data, rng)
    return name, data


# --- bytes ------------------------------------------------------------------------------------------------------------


def _same(data: bytes, _: random.Random) -> bytes:
    return data


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _without(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:low] + data[high:]


def _again(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:high] + data[low:high] * rng.randint(1, 3) + data[high:]


def _odd_word(data: bytes, rng: random.Random) -> bytes:
    mark = rng.choice((b",", b'"', b" ", b":", b"\n"))
    words = data.split(mark)
    words[rng.randrange(len(words))] = rng.choice(ODD)
    return mark.join(words)


def _odd_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(ODD) + data[at:]


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one] = rng.choice((lines[other], b"", lines[one] + b"," + lines[other], lines[one] * 50))
    return b"\n".join(lines)


def _encoded(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(
        rng.choice(("utf-16", "utf-32", "utf-16-le", "utf-8-sig", "latin-1")), "replace"
    )


def _nested(data: bytes, rng: random.Random, depth: int = 0) -> bytes:
    depth = depth or rng.choice(DEEP)
    left, right = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"http://x":', b"}")))
    return left * depth + data + right * depth


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flipped, flipped, truncated, _without, _again, _odd_word, _odd_word, _odd_bytes, _lines, _encoded, _nested,
)  # fmt: skip


# --- tables -----------------------------------------------------------------------------------------------------------

ARRAYS: tuple[Callable[[int], pa.Array], ...] = (
    lambda n: pa.array([Decimal(1)] * n, pa.decimal256(60, 2)),
    lambda n: pa.array([Decimal("1e30")] * n, pa.decimal128(38, 2)),
    lambda n: pa.array([timedelta(days=10**5)] * n),
    lambda n: pa.array([2**62] * n, pa.duration("s")),
    lambda n: pa.array([0] * n, pa.timestamp("us", "Mars/Olympus")),
    lambda n: pa.array([0] * n, pa.timestamp("ns", "Europe/Zurich")),
    lambda n: pa.array([2**62] * n, pa.timestamp("us")),
    lambda n: pa.array([-(2**62)] * n, pa.timestamp("ms")),
    lambda n: pa.array([date.max] * n),
    lambda n: pa.array([2**31 - 1] * n, pa.date32()),
    lambda n: pa.array([10**12] * n, pa.time64("ns")),
    lambda n: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
    lambda n: pa.array([[[1]]] * n),
    lambda n: pa.array([{"a": {"b": None}}] * n),
    lambda n: pa.array([[]] * n, pa.list_(pa.null())),
    lambda n: pa.array([b"\xff\xfe"] * n),
    lambda n: pa.array([b"\xff"] * n, pa.binary(1)),
    lambda n: pa.array(["x" * 1000] * n).dictionary_encode(),
    pa.nulls,
    lambda n: pa.array([2**64 - 1] * n, pa.uint64()),
    lambda n: pa.array([float("nan"), float("inf"), -0.0] * n)[:n],
    lambda n: pa.array([True, None] * n)[:n],
    lambda n: pa.array([2**63 - 1, -(2**63)] * n)[:n],
    lambda n: pa.array([1.5] * n, pa.float16()),
    lambda n: pa.array(["9" * 400, "NaN", "1e400", "\x00", "31/12/2026"] * n)[:n],
)  # fmt: skip
"""Columns of types and values that are not expected."""


def _typed(frame: pl.DataFrame, rng: random.Random) -> bytes:
    """Write a table as Parquet with columns of other types, other names, or two of one name."""
    table = frame.to_arrow()
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(table.num_columns)
        kind = rng.choice(("type", "type", "type", "name", "twice", "without"))
        if kind == "type":
            made = rng.choice(ARRAYS)(table.num_rows)
            table = table.set_column(at, table.column_names[at], made)
        elif kind == "name":
            names = list(table.column_names)
            names[at] = rng.choice(NAMES)
            table = table.rename_columns(names)
        elif kind == "twice":
            table = table.append_column(table.column_names[at], rng.choice(ARRAYS)(table.num_rows))
        elif table.num_columns > 1:
            table = table.remove_column(at)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _named(frame: pl.DataFrame, rng: random.Random) -> bytes:
    """Write a table as CSV with odd names, values out of range, a column twice, or far too many."""
    text = plain(frame)
    columns = [[name, *text[name].cast(pl.String).fill_null("")] for name in text.columns]
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(columns))
        kind = rng.choice(("name", "name", "twice", "value", "value", "value", "many"))
        if kind == "name":
            columns[at] = [rng.choice(NAMES), *columns[at][1:]]
        elif kind == "twice":
            columns.append([columns[at][0], *rng.choice(columns)[1:]])
        elif kind == "value":
            odd = rng.choice(ODD).decode("latin-1")
            columns[at] = [columns[at][0], *(odd if rng.random() < 0.5 else v for v in columns[at][1:])]  # fmt: skip
        elif rng.random() < 0.1:
            columns += [[f"c{n}", *["1"] * frame.height] for n in range(MOST_COLUMNS)]
    delimiter = rng.choice((",", ",", ";", "\t", "|"))
    quoted = rng.random() < 0.8
    lines = zip(*columns, strict=True)
    text_of = _quoted if quoted else str
    return "\n".join(delimiter.join(map(text_of, line)) for line in lines).encode(
        "utf-8", "replace"
    )


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


# --- documents --------------------------------------------------------------------------------------------------------

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, 10**40, 2**63, float("nan"), float("inf"), "", "  ", "NULL", "1e400", "x" * 70_000, "\ud800",
    "\x00", "1970-01-01 00:00:00", "2026-01-01T00:00:00+25:00", [], {}, [None], [1, [2]], {"a": {"b": 1}}, "99999-01-01",
)  # fmt: skip
"""Values that are put in the place of others."""


_NESTED = tuple(f"nested {depth}" for depth in DEEP)
"""Stand for values that are nested so deep that this library cannot write them."""


def _document(node: Any, rng: random.Random) -> Any:
    """Put odd values, names and depths into a document."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        way = _way(node, rng)
        if not way:
            return rng.choice(VALUES)
        inside = node
        for step in way[:-1]:
            inside = inside[step]
        value: Any = copy.deepcopy(rng.choice((*VALUES, *_NESTED)))
        kind = rng.random()
        if kind < 0.8 or isinstance(inside, list):
            inside[way[-1]] = value
        else:
            inside[rng.choice(NAMES)] = inside.pop(way[-1])
    return node


def _way(node: Any, rng: random.Random) -> list[Any]:
    """Return the way to a value of a document, at random."""
    way: list[Any] = []
    while isinstance(node, dict | list) and node and (not way or rng.random() < 0.8):
        step = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        way.append(step)
        node = node[step]
    return way
