"""Read job logs in the Standard Workload Format.

Source: workflows.md 1.4; Chapin et al., Benchmarks and Standards for the Evaluation of Parallel Job
Schedulers, LNCS 1659 (1999) 67, doi:10.1007/3-540-47954-6_4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from brokerlab.errors import DataError, reading

UNKNOWN = -1  # what a field holds where nothing is known

FIELDS: dict[str, pl.DataType] = {
    "job": pl.Int64(),
    "submit_s": pl.Float64(),
    "wait_s": pl.Float64(),
    "run_s": pl.Float64(),
    "hosts_used": pl.Int64(),
    "cpu_s": pl.Float64(),
    "memory_kb": pl.Float64(),
    "hosts_requested": pl.Int64(),
    "requested_s": pl.Float64(),
    "requested_memory_kb": pl.Float64(),
    "status": pl.Int64(),
    "user": pl.Int64(),
    "group": pl.Int64(),
    "program": pl.Int64(),
    "queue": pl.Int64(),
    "partition": pl.Int64(),
    "preceding_job": pl.Int64(),
    "think_s": pl.Float64(),
}
"""The 18 fields in their order; null where the log does not know. Times since the log's zero, memory per processor."""

STATUS = {
    0: "failed",
    1: "completed",
    2: "partial, continued",
    3: "partial, last, completed",
    4: "partial, last, failed",
    5: "cancelled",
}
"""What the values of the field ``status`` mean."""

_LABEL = re.compile(r"^([A-Za-z]\w*):(?!//)\s*(.*)$")
_SHOWN = 60
_LAST_S = 253_402_300_799  # the last second of the year 9999
_LARGE = 2.0**53  # whole numbers above are not exact as read
_COMMENT = ";"
_NO_SEPARATOR = (
    "\x01"  # blanks in any number stand between fields: a line is read as one text, then cut
)


@dataclass(frozen=True)
class SwfLog:
    """A log as it was read."""

    # one row per job that could be read, in the order of the file: ``line`` (from 1) and `FIELDS`
    jobs: pl.DataFrame
    # what the comments say by label; several entries where a label comes several times or goes on
    header: dict[str, tuple[str, ...]]
    # ``line, reason, text`` of every other line that is neither empty nor a comment
    quarantine: pl.DataFrame
    # lines that are neither empty nor a comment: those of ``jobs`` and of ``quarantine`` together
    rows: int
    notes: tuple[str, ...]  # what a reader of the numbers should know

    @property
    def hosts(self) -> int | None:
        """Processors of the machine by the header (``MaxProcs``, else ``MaxNodes``); None where it does not say."""
        return self._number("MaxProcs") or self._number("MaxNodes")

    @property
    def zero(self) -> datetime | None:
        """The instant of the log's zero, UTC without zone; None where the header does not say, or says one after the year 9999."""
        seconds = self._number("UnixStartTime")
        if seconds is None or seconds > _LAST_S:
            return None
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)

    def _number(self, label: str) -> int | None:
        """Return a whole number of the header."""
        words = self.header.get(label, ("",))[0].split()
        return int(words[0]) if words and words[0].isdecimal() else None


def read(path: str | Path) -> SwfLog:
    """Read a log, packed or not (workflows.md 1.4)."""
    with reading(path):
        lines = _lines(Path(path))
        comment = pl.col("text").str.starts_with(_COMMENT)
        comments = lines.filter(comment)["text"]
        rows = lines.filter(~comment & (pl.col("text") != ""))
        if rows.is_empty():
            raise DataError(f"{path}: no job in it; a log has a line of 18 numbers for each")
        jobs, quarantine = _sift(rows)
        return SwfLog(jobs, _header(comments), quarantine, len(rows), _notes(rows, jobs))


def _lines(path: Path) -> pl.DataFrame:
    """Return the lines with their numbers, blanks between words made one."""
    try:
        lines = pl.read_csv(
            path,
            has_header=False,
            separator=_NO_SEPARATOR,
            quote_char=None,
            schema={"text": pl.String},
            empty_string_is_null=False,
            encoding="utf8-lossy",
            row_index_name="line",
            row_index_offset=1,
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise DataError(f"{path}: cannot be read as a log ({reason}); is it damaged?") from error
    words = pl.col("text").str.strip_chars().str.replace_all(r"\s+", " ")
    return lines.with_columns(pl.col("line").cast(pl.Int64), text=words)


def _sift(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Separate jobs from lines that are none, with everything that is wrong with them."""
    words = rows.select("line", "text", pl.col("text").str.split(" ").alias("words"))
    words = words.with_columns(
        pl.col("words").list.get(place, null_on_oob=True).alias(f"{name} text")
        for place, name in enumerate(FIELDS)
    )
    cut = words.with_columns(
        pl.col(f"{name} text").cast(pl.Float64, strict=False).alias(name) for name in FIELDS
    )
    reason = pl.concat_str(
        [_too_few(), *(_wrong(place, name) for place, name in enumerate(FIELDS, start=1))],
        separator="; ",
        ignore_nulls=True,
    )
    cut = cut.with_columns(reason=reason)
    known = [
        pl.when(pl.col(name) != UNKNOWN).then(pl.col(name)).cast(kind).alias(name)
        for name, kind in FIELDS.items()
    ]
    good = cut.filter(pl.col("reason") == "").select("line", *known)
    text = pl.col("text").str.slice(0, _SHOWN)
    return good, cut.filter(pl.col("reason") != "").select("line", "reason", text=text)


def _too_few() -> pl.Expr:
    """Say that a line has too few fields."""
    n = pl.col("words").list.len()
    return pl.when(n < len(FIELDS)).then(pl.format("{} fields, a job has 18", n))


def _wrong(place: int, name: str) -> pl.Expr:
    """Say what is wrong with a field."""
    value, text = pl.col(name), pl.col(f"{name} text")
    where = f"field {place} ({name}) is {{}}"
    whole = pl.lit(value=True)
    if FIELDS[name] == pl.Int64():
        whole = (value == value.floor()) & (value < _LARGE)
    return (
        pl.when(text.is_not_null() & ~value.is_finite().fill_null(value=False))
        .then(pl.format(f"{where}, no number", text))
        .when((value < 0) & (value != UNKNOWN))
        .then(pl.format(f"{where}, allowed: 0 or more, or -1 for unknown", text))
        .when(~whole)
        .then(pl.format(f"{where}, allowed: a whole number", text))
    )


def _header(comments: pl.Series) -> dict[str, tuple[str, ...]]:
    """Return what the comments say by label; a line without label goes on with the one before."""
    header: dict[str, list[str]] = {}
    label = ""
    for comment in comments:
        line = comment.lstrip(_COMMENT).strip()
        result = _LABEL.match(line)
        if result:
            label = result[1]
            header.setdefault(label, []).append(result[2])
        elif line:
            header.setdefault(label, []).append(line)
    return {name: tuple(entries) for name, entries in header.items()}


def _notes(rows: pl.DataFrame, jobs: pl.DataFrame) -> tuple[str, ...]:
    """Say what does not refuse a line but should be known."""
    notes = []
    longer = rows.select((pl.col("text").str.count_matches(" ") >= len(FIELDS)).sum()).item()
    if longer:
        notes.append(f"{longer} lines have more than 18 fields; those behind are left out")
    late = jobs.select((pl.col("submit_s").diff() < 0).sum()).item()
    if late:
        notes.append(f"{late} lines were submitted before the line above; a log is in that order")
    unknown = [name for name in FIELDS if jobs[name].null_count() == len(jobs)]
    if unknown:
        notes.append(f"unknown throughout: {', '.join(unknown)}")
    return tuple(notes)
