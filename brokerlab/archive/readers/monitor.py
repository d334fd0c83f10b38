"""Read JSON answers of the BigPanDA monitor: jobs, tasks with datasets (section 13)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.detect import TableOf
from brokerlab.archive.readers.records import Record, Told, series, told_apart
from brokerlab.archive.readers.units import KB_PER_MB, MAX_DURATION_S, settled_tasks
from brokerlab.errors import DataError

JOB_COLUMNS_DROPPED = [
    "duration",
    "durationsec",
    "durationmin",
    "waittime",
    "errorinfo",
    "jobinfo",
    "homecloud",
    "priorityrange",
    "jobsetrange",
    "consumer",
    "pilotversion",
    "maxpssgbpercore",
    "maxvmemmb",
    "avgvmemmb",
    "age",
]
"""Columns the monitor computes itself."""
TASK_COLUMNS_DROPPED = ["totev", "totevrem", "deftreqid", "age", "dsinfo", "datasets"]

EVENT_SERVICE = {
    "ordinary": None,
    "eventservice": 1,
    "esmerge": 2,
    "clone": 3,
    "jumbo": 4,
    "cojumbo": 5,
}
"""The monitor's words for ``eventservice``."""

_ENDED = {"finished", "failed", "cancelled", "closed"}


def read(path: Path, data: Any, table: str | None, table_of: TableOf) -> Iterator[Batch]:
    """Read one document: an answer of the monitor, several of them by address, or records.

    Args:
        path: The file, for messages.
        data: Its content.
        table: Table of plain records; None to tell from the content.
        table_of: Tells the table of records by their names.

    Yields:
        Batches of ``jobs``, ``tasks`` and ``datasets``.

    Raises:
        DataError: Nothing in it that can be recognised.
    """
    found = False
    for kind, items, notes in _answers(data, table, table_of):
        found = True
        if kind == "jobs":
            yield _jobs(items, notes)
        elif kind == "tasks":
            yield from _tasks(items, notes)
        else:
            yield _batch(kind, items, notes)
    if not found:
        raise DataError(
            f"{path}: neither jobs ('jobs': [...]) nor tasks (a list with jeditaskid) in it, nor "
            "queue records, links 'SRC:DST', software by queue, a site list or a transfer matrix; "
            "allowed: these, or a list of records with --table"
        )


def _answers(
    data: Any, table: str | None, table_of: TableOf
) -> Iterator[tuple[str, list[Any], Told]]:
    """Yield (table, items, notes) for everything that can be recognised."""
    if isinstance(data, dict) and isinstance(data.get("jobs"), list):
        yield "jobs", data["jobs"], ()
    elif _has_addresses(data):
        answers = {
            key: [] if _has_addresses(value) else list(_answers(value, None, table_of))
            for key, value in data.items()
        }
        skipped = [key for key, inside in answers.items() if not inside]
        notes = tuple(f"skipped, neither jobs nor tasks: {key[:100]}" for key in skipped)
        for kind, records, own in (one for inside in answers.values() for one in inside):
            yield kind, records, own + notes
            notes = ()
    elif isinstance(data, list):
        written = {name for item in data if isinstance(item, dict) for name in item}
        told = table or _kind({name.lower() for name in written}) or table_of(written)
        if told is not None:
            yield told, data, ()


def _has_addresses(data: Any) -> bool:
    """Whether a document holds answers by their address."""
    return (
        isinstance(data, dict) and bool(data) and all(str(key).startswith("http") for key in data)
    )


def _kind(names: set[str]) -> str | None:
    """Tell jobs from tasks by their names."""
    if {"pandaid", "jobstatus"} <= names:
        return "jobs"
    return "tasks" if {"jeditaskid", "taskname", "status"} <= names else None


def _jobs(items: list[Any], notes: Told) -> Batch:
    """Convert job records: units, words for numbers, columns of the monitor's own dropped."""
    records, rows, refused = told_apart(items)
    if not records:
        return _without_rows("jobs", refused, notes)
    frame = _frame(records, drop=JOB_COLUMNS_DROPPED, convert={"maxpss": _kb_of_peak})
    notes += _left_out(records, JOB_COLUMNS_DROPPED)
    in_mb = sum(isinstance(r.get("maxpss"), str) and "." in r["maxpss"] for r in records)
    if in_mb:
        notes = (*notes, f"maxpss: {in_mb} text value(s) with a decimal point read as MB")
    if "specialhandling" in frame.columns:
        frame = frame.with_columns(pl.col("specialhandling").str.strip_prefix("NULL,"))
    frame, ended = _with_end(frame, records)
    if ended:
        notes = (*notes, f"endtime: {ended} value(s) made from starttime + durationsec")
    frame = _numbered_event_service(frame)
    if "corecount" in frame.columns:
        notes = (*notes, "corecount: the monitor shows 1 for null")
    return Batch("jobs", frame, rows, refused, notes)


def _tasks(items: list[Any], notes: Told) -> Iterator[Batch]:
    """Convert task records and take their datasets out."""
    records, rows, refused = told_apart(items)
    if not records:
        yield _without_rows("tasks", refused, notes)
        return
    frame = _frame(records, drop=TASK_COLUMNS_DROPPED)
    notes += _left_out(records, [name for name in TASK_COLUMNS_DROPPED if name != "datasets"])
    if "resquetime" in frame.columns:
        frame = frame.rename({"resquetime": "rescuetime"})
    frame = settled_tasks(_numbered_event_service(frame))
    yield Batch("tasks", frame, rows, refused, notes)
    inside = [task.get("datasets") or [] for task in records]
    datasets = [d for some in inside for d in (some if isinstance(some, list) else [some])]
    if datasets:
        yield _batch("datasets", datasets, ())


def _left_out(records: list[Record], names: list[str]) -> Told:
    """Say which columns are not kept."""
    there = [name for name in names if any(name in record for record in records)]
    return (f"left out, the monitor computes them: {', '.join(there)}",) if there else ()


def _batch(table: str, items: list[Any], notes: Told) -> Batch:
    """Make a batch of plain records."""
    records, rows, refused = told_apart(items)
    if not records:
        return _without_rows(table, refused, notes)
    return Batch(table, _frame(records), rows, refused, notes)


def _without_rows(table: str, refused: pl.DataFrame, notes: Told) -> Batch:
    """Make a batch of an answer that has no record, or none that can be read."""
    frame = pl.DataFrame(schema=polars_schema(table))
    return Batch(table, frame, pl.Series("row", [], dtype=pl.Int64), refused, notes)


def _frame(
    records: list[Record],
    *,
    drop: list[str] | None = None,
    convert: dict[str, Callable[[Any], Any]] | None = None,
) -> pl.DataFrame:
    """Make a frame of records whose values may change type from one to the next."""
    dropped = set(drop or [])
    names = dict.fromkeys(name for record in records for name in record if name not in dropped)
    columns = []
    for name in names:
        values = [record.get(name) for record in records]
        if convert and name in convert:
            values = [convert[name](value) for value in values]
        columns.append(series(name, values))
    return pl.DataFrame(columns)


def _kb_of_peak(value: Any) -> Any:
    """Convert ``maxpss``: a text with a decimal point is MB, anything else stays."""
    if not isinstance(value, str) or "." not in value:
        return value
    try:
        return round(float(value) * KB_PER_MB)
    except (ValueError, OverflowError):
        return value


def _with_end(frame: pl.DataFrame, records: list[Record]) -> tuple[pl.DataFrame, int]:
    """Fill a missing ``endtime`` of ended jobs from the monitor's duration."""
    need = {"endtime", "starttime", "jobstatus"}
    if not need <= set(frame.columns) or not any("durationsec" in r for r in records):
        return frame, 0
    seconds = series("__s", [r.get("durationsec") for r in records]).cast(pl.Int64, strict=False)
    ended = frame["jobstatus"].is_in(list(_ENDED))
    missing = frame["endtime"].cast(pl.String).str.strip_chars().replace("", None).is_null()
    start = frame["starttime"].cast(pl.String).str.replace("T", " ")
    start = start.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    seconds = seconds.set(~seconds.is_between(0, MAX_DURATION_S), None)
    end = (start + pl.Series(seconds * 1_000_000).cast(pl.Duration("us"))).dt.to_string(
        "%Y-%m-%d %H:%M:%S"
    )
    use = ended & missing & end.is_not_null()
    filled = end.zip_with(use, frame["endtime"].cast(pl.String)).alias("endtime")
    return frame.with_columns(filled), int(use.sum())


def _numbered_event_service(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn the monitor's words for ``eventservice`` into numbers."""
    if frame.schema.get("eventservice") != pl.String:
        return frame
    words = {word: None if n is None else str(n) for word, n in EVENT_SERVICE.items()}
    return frame.with_columns(pl.col("eventservice").str.strip_chars().replace(words))
