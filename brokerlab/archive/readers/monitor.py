"""Read JSON answers of the BigPanDA monitor: jobs, tasks with datasets (section 13)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.contracts import empty
from brokerlab.archive.contracts.jobs import OVER
from brokerlab.archive.conversion import KB_PER_MB, MAX_DURATION_S
from brokerlab.archive.readers.detect import TableOf
from brokerlab.archive.readers.records import Batch, Record, Told, series, told_apart
from brokerlab.errors import DataError

JOB_COLUMNS_DROPPED = (
    *("duration", "durationsec", "durationmin", "waittime", "errorinfo", "jobinfo", "homecloud"),
    *("priorityrange", "jobsetrange", "consumer", "pilotversion", "maxpssgbpercore", "maxvmemmb"),
    *("avgvmemmb", "age"),
)
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


def read(path: Path, data: Any, table: str | None, table_of: TableOf) -> Iterator[Batch]:
    """Read one document: an answer of the monitor, several of them by address, or plain records of the given table."""
    result = False
    for kind, items, notes in _answers(data, table, table_of):
        result = True
        if kind == "jobs":
            yield _jobs(items, notes)
        elif kind == "tasks":
            yield from _tasks(items, notes)
        else:
            yield _batch(kind, items, notes)
    if not result:
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
        target = table or _kind({name.lower() for name in written}) or table_of(written)
        if target is not None:
            yield target, data, ()


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
    records, rows, refused = told_apart([*enumerate(items, 1)])
    in_kb = [r | {"maxpss": _kb_of_peak(r["maxpss"])} if "maxpss" in r else r for r in records]
    frame = _frame("jobs", in_kb, JOB_COLUMNS_DROPPED)
    notes += _left_out(records, JOB_COLUMNS_DROPPED)
    in_mb = sum(isinstance(r.get("maxpss"), str) and "." in r["maxpss"] for r in records)
    if in_mb:
        notes = (*notes, f"maxpss: {in_mb} text value(s) with a decimal point read as MB")
    if "specialhandling" in frame.columns:
        frame = frame.with_columns(pl.col("specialhandling").str.strip_prefix("NULL,"))
    frame, ended = _with_end(frame, records)
    if ended:
        notes = (*notes, f"endtime: {ended} value(s) made from starttime + durationsec")
    frame = _number_event_service(frame)
    if records and "corecount" in frame.columns:
        notes = (*notes, "corecount: the monitor shows 1 for null")
    return Batch("jobs", frame, rows, refused, notes)


def _tasks(items: list[Any], notes: Told) -> Iterator[Batch]:
    """Convert task records and take their datasets out."""
    records, rows, refused = told_apart([*enumerate(items, 1)])
    frame = _frame("tasks", records, TASK_COLUMNS_DROPPED)
    notes += _left_out(records, [name for name in TASK_COLUMNS_DROPPED if name != "datasets"])
    if "resquetime" in frame.columns:
        frame = frame.rename({"resquetime": "rescuetime"})
    yield Batch("tasks", _number_event_service(frame), rows, refused, notes)
    inside = [task.get("datasets") or [] for task in records]
    datasets = [d for some in inside for d in (some if isinstance(some, list) else [some])]
    if datasets:
        yield _batch("datasets", datasets, ())


def _left_out(records: list[Record], names: Sequence[str]) -> Told:
    """Say which columns are not kept."""
    there = [name for name in names if any(name in record for record in records)]
    return (f"left out, the monitor computes them: {', '.join(there)}",) if there else ()


def _batch(table: str, items: list[Any], notes: Told) -> Batch:
    """Make a batch of plain records."""
    records, rows, refused = told_apart([*enumerate(items, 1)])
    return Batch(table, _frame(table, records), rows, refused, notes)


def _frame(table: str, records: list[Record], drop: Sequence[str] = ()) -> pl.DataFrame:
    """Make a frame of records whose values may change type from one to the next."""
    if not records:
        return empty(table)
    names = dict.fromkeys(name for record in records for name in record if name not in drop)
    return pl.DataFrame([series(name, [r.get(name) for r in records]) for name in names])


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
    ended = frame["jobstatus"].is_in(OVER)
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


def _number_event_service(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn the monitor's words for ``eventservice`` into numbers."""
    if frame.schema.get("eventservice") != pl.String:
        return frame
    words = {word: None if n is None else str(n) for word, n in EVENT_SERVICE.items()}
    return frame.with_columns(pl.col("eventservice").str.strip_chars().replace(words))
