"""Recognise a file: its format from the first bytes, its table from the name or the columns."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from brokerlab.archive.contracts import TABLES, columns_of, contract, required_columns
from brokerlab.archive.names import looks_like
from brokerlab.archive.parsing import is_pattern, low
from brokerlab.errors import DataError, SchemaError
from brokerlab.frames import doubled

DB_NAMES = {
    "jobs": ("jobsarchived4", "jobsarchived", "jobsdefined4", "jobswaiting4", "jobsactive4"),
    "tasks": ("jedi_tasks",),
    "datasets": ("jedi_datasets",),
    "files": ("jedi_dataset_contents",),
    "jobs_files": ("filestable4",),
    "queues": ("schedconfig_json",),
    "software_tags": ("sw_tags",),
    "ddm_endpoints": ("ddm_endpoint",),
    "network_matrix": ("network_matrix_kv",),
    "job_stats": ("jobs_share_stats", "jobsdefined_share_stats"),
    "job_counts": ("mv_jobsactive4_stats",),
    "site_data": ("sitedata",),
    "workers": ("harvester_workers",),
    "worker_stats": ("harvester_worker_stats",),
    "slots": ("harvester_slots",),
    "job_status_log": ("jobs_statuslog",),
    "task_status_log": ("tasks_statuslog",),
    "worker_nodes": ("worker_node",),
    "worker_node_gpu": ("mv_worker_node_gpu_summary",),
    "worker_node_cpu_level": ("mv_worker_node_summary",),
    "gshares": ("global_shares",),
    "gdpconfig": ("config",),
}
"""Tables of the PanDA database by the canonical table they export to."""

INVEX_COLUMNS = {"pandaid", "wall_time", "queue_time", "actualcorecount"}
"""Columns that mark a job table of the InVEx kind."""

LINK_KEYS = {
    "closeness": "AGIS_closeness",
    "mbps_1h": "dashb_mbps_1h",
    "mbps_1d": "dashb_mbps_1d",
    "mbps_1w": "dashb_mbps_1w",
    "files_done_1h": "total_done_1h",
    "files_done_6h": "total_done_6h",
    "files_queued": "total_queued",
    "bytes_queued": "total_queued_bytes",
}
"""Columns of a flat table of links and the keys of their values; the counts are over all activities."""

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")
_UTF8_BOM = b"\xef\xbb\xbf"
_SQLITE = b"SQLite format 3\x00"
_DUCKDB = b"DUCK"
_HEAD = 1 << 20
MAX_COLUMNS = 4096
"""Most columns of a source; the widest table of PanDA has some 130."""


@dataclass(frozen=True)
class Detected:
    """What a file is."""

    # parquet, csv, invex, links (flat table of links), json, lines (one JSON record a line), duckdb or sqlite
    format: str
    # canonical table; None where the content tells (JSON) or there are several (InVEx)
    table: str | None = None
    encoding: str = "utf-8"
    delimiter: str = ","
    # the caller gave the table; else it is read from the file's name or columns
    named: bool = False
    # names of the columns, where they are known before the file is read
    names: tuple[str, ...] = ()
    tables: dict[str, str] = field(default_factory=dict)  # canonical table by table of a database
    left_out: tuple[str, ...] = ()  # what of the file is not read, and why
    # columns that stand in the path (``name=value`` folders)
    partition: dict[str, str | None] = field(default_factory=dict)


TableOf = Callable[[Iterable[str]], str | None]
"""Tells the table by the names of columns."""


def by_first_bytes(
    path: Path, table: str | None, table_of: TableOf, partition: dict[str, str | None]
) -> Detected:
    """Recognise a file as `readers.detect` does, without looking into databases and lines."""
    if table is not None:
        contract(table)
    head = _head(path)
    if head.startswith(_PARQUET):
        return _detect_parquet(path, table, table_of, partition)
    if head.startswith(_SQLITE) or head[8:12] == _DUCKDB:
        return Detected("sqlite" if head.startswith(_SQLITE) else "duckdb", table)
    text, encoding = _decode(path, head)
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")
    if (has_lines := _has_lines(path, text)) or is_json:
        kind = "lines" if has_lines else "json"
        return Detected(kind, table or table_of_name(path.name), encoding)
    header = text.lstrip("\ufeff").splitlines()[0] if text.strip() else ""
    delimiter = next((d for d in ",;\t|" if d in header), ",")
    columns = _fields(path, header, delimiter)
    names = [low(n) for n in columns]
    if not names or not any(names):
        raise DataError(f"{path}: is empty: no header line; remove it or export it again")
    check_columns(path, names)
    if patterns := [n for n in names if is_pattern(n)]:
        raise SchemaError(f"{path}: columns mean other ones: {', '.join(patterns)}; rename them")
    if table is None and set(names) >= INVEX_COLUMNS:
        return Detected("invex", None, encoding, delimiter)
    if table in (None, "network_matrix") and is_link_table(names):
        return Detected("links", "network_matrix", encoding, delimiter)
    result = table or table_of_records(path, columns, table_of)
    return Detected("csv", result, encoding, delimiter, names=tuple(columns))


def _fields(path: Path, header: str, delimiter: str) -> list[str]:
    """Cut a header line."""
    try:
        return next(csv.reader([header], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(
            f"{path}: the header cannot be read ({error}); mend its first line"
        ) from error


def check_columns(path: Path, names: list[str]) -> None:
    """Refuse columns that occur twice, and more of them than any table has."""
    check_number(path, len(names))
    if repeated := doubled(names):
        shown = ", ".join(name[:60] for name in repeated[:20])
        raise SchemaError(f"{path}: columns occur twice: {shown}; keep one of each")


def check_number(path: Path, count: int) -> None:
    """Refuse more columns than any table has."""
    if count > MAX_COLUMNS:
        raise SchemaError(
            f"{path}: {count} columns, allowed: {MAX_COLUMNS}; leave out what is not needed"
        )


def _has_lines(path: Path, text: str) -> bool:
    """Whether a file holds a JSON record on every line."""
    lines = (line for line in text.lstrip("\ufeff").split("\n") if line.strip())
    first, second = next(lines, "").strip(), next(lines, "").strip()
    if not first.startswith("{"):
        return False
    by_name = any(f".{end}" in path.name.lower() for end in ("ndjson", "jsonl"))
    return by_name or (first.endswith("}") and second.startswith("{"))


def _detect_parquet(
    path: Path, table: str | None, table_of: TableOf, partition: dict[str, str | None]
) -> Detected:
    """Recognise a Parquet file by its columns or its name."""
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError) as error:
        raise truncated(path, "Parquet", error) from error
    if table in (None, "network_matrix") and is_link_table(names):
        return Detected("links", "network_matrix", delimiter="")
    check_columns(path, names)
    names += [name for name in partition if name not in names]
    result = table or table_of_records(path, names, table_of)
    return Detected("parquet", result, names=tuple(names), partition=partition)


def is_link_table(names: Iterable[str]) -> bool:
    """Whether columns are those of a flat table of links: a row per link, a column per metric, no ``key``."""
    has = {low(name) for name in names}
    return {"src", "dst"} <= has and bool(has & set(LINK_KEYS)) and "key" not in has


def table_of_name(name: str) -> str | None:
    """Find the longest table name, canonical or of the database, that the file name contains."""
    text = name.lower()
    known = {table: table for table in TABLES}
    known |= {name: table for table, names in DB_NAMES.items() for name in names}
    hits = [k for k in known if re.search(rf"(?<![a-z0-9]){k}(?![a-z0-9])", text)]
    return known[max(hits, key=len)] if hits else None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip if its first bytes say so; damage and another encoding are a DataError."""
    with path.open("rb") as handle:
        packed = handle.read(2) == _GZIP
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as opened_file:
            yield opened_file  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise truncated(path, "gzip", error) from error
    except UnicodeError as error:
        raise wrong_encoding(path) from error


def _head(path: Path) -> bytes:
    """Return the first bytes, unpacked."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: is empty (0 bytes); remove it or export it again")
    try:
        with opened(path) as handle:
            head = handle.read(_HEAD)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its rights") from error
    if not head:
        raise DataError(f"{path}: is empty after unpacking; remove it or export it again")
    return head


def truncated(path: Path, kind: str, error: Exception) -> DataError:
    """Return the error for a file that ends too early or is damaged."""
    words = str(error).split("\n", maxsplit=1)[0][:200]
    return DataError(f"{path}: truncated or damaged {kind} ({words}); copy or export it again")


def wrong_encoding(path: Path) -> DataError:
    """Return the error for text that is not UTF-8."""
    return DataError(
        f"{path}: wrong encoding: not UTF-8; convert it, e.g. 'iconv -f latin1 -t utf-8'"
    )


def _decode(path: Path, head: bytes) -> tuple[str, str]:
    """Decode the first bytes; the last character may be cut."""
    if head.startswith(_UTF32):
        raise wrong_encoding(path)
    if head.startswith(_UTF16):
        return head.decode("utf-16", errors="ignore"), "utf-16"
    if b"\x00" in head[:1024]:
        raise DataError(f"{path}: not text, not Parquet, not gzip; allowed: .parquet, .csv, .json")
    encoding = "utf-8-sig" if head.startswith(_UTF8_BOM) else "utf-8"
    reader = io.TextIOWrapper(io.BytesIO(head), encoding=encoding)
    try:
        return reader.read(), encoding
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            raise wrong_encoding(path) from error
        return head[: error.start].decode(encoding), encoding


def table_of_records(path: Path, names: Iterable[str], table_of: TableOf) -> str:
    """Return the table of records by the file's name, their names, or the file's folder."""
    names = list(names)
    result = table_of_name(path.name) or _only_table(names) or table_of(names)
    result = result or table_of_name(path.parent.name)
    if result is None:
        near = looks_like(names)
        raise DataError(
            f"{path}: cannot tell its table from name or columns; name it like 'jobs.csv' or "
            f"'JOBSARCHIVED4.csv', or say --table{f' {near}, which it looks like' if near else ''}"
            f"; tables: {', '.join(TABLES)}"
        )
    return result


def _only_table(names: Iterable[str]) -> str | None:
    """Find the one table that has all the columns and whose required columns are all there."""
    has = {low(name) for name in names}
    fits = [t for t in TABLES if {*required_columns(t)} <= has <= {*columns_of(t)}]
    return fits[0] if len(fits) == 1 else None
