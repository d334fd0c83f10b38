"""Values that sources write in more than one way: peak memory, split rules, queue settings."""

import polars as pl

from brokerlab.archive import parsing
from brokerlab.archive.contracts._columns import MAX_TEXT
from brokerlab.archive.contracts.files import APPROXIMATE
from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS, split_rule_digits
from brokerlab.errors import SchemaError

KB_PER_MB = 1024
MAX_DURATION_S = 1_000_000_000
"""Longest duration [s] that can be true: thirty years."""
_WORK_SPACE_MB = 2000
_HOPELESS = 100
"""A peak below a hundredth of the average is in MB; no real peak is below the average at all."""


def settle_units(table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Bring rows of jobs, tasks, queues, files and datasets to one way of writing; notes say what was converted."""
    if table == "jobs":
        return _settle_jobs(frame)
    if table == "tasks":
        return _settle_tasks(frame), ()
    if table == "queues":
        return _settle_queues(frame), ()
    if table in ("files", "datasets"):
        return _settle_marks(frame)
    return frame, ()


def _settle_jobs(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Bring ``maxpss`` of jobs to kB where the type that told the unit was lost.

    A value below ``avgpss / 100`` (``avgpss`` is always kB) is MB: times 1024, rounded.

    Source:
        archive.md section 13.3.
    """
    names = {name.strip().lower(): name for name in frame.columns}
    if not {"maxpss", "avgpss"} <= set(names):
        return frame, ()
    peak = names["maxpss"]
    number = as_float(frame, peak)
    average = as_float(frame, names["avgpss"])
    known = average.is_finite()  # NaN is larger than every number to Polars
    in_mb = ((number > 0) & known & (number < average / _HOPELESS)).fill_null(value=False)
    count = frame.select(in_mb.sum()).item()
    if not count:
        return frame, ()
    in_kb = (number * KB_PER_MB).round().cast(pl.Int64, strict=False)
    settled = pl.when(in_mb).then(in_kb.cast(frame.schema[peak])).otherwise(pl.col(peak))
    note = f"maxpss: {count} value(s) below avgpss/100 read as MB, converted to kB"
    return frame.with_columns(settled.alias(peak)), (note,)


def _settle_tasks(frame: pl.DataFrame) -> pl.DataFrame:
    """Resolve ``splitrule`` into its parameters as text: the digits after ``XX=``, first one wins; columns of the source stay.

    Source:
        archive.md section 2.

    Example:
        >>> rows = pl.DataFrame({"splitrule": ["NF=2,US=3,NF=9", None]})
        >>> _settle_tasks(rows).select("nfilesperjob", "usescout").rows()
        [('2', '3'), (None, None)]
    """
    names = {name.strip().lower(): name for name in frame.columns}
    rule = names.get("splitrule")
    if rule is None or frame.schema[rule] != pl.String:
        return frame
    short = pl.when(pl.col(rule).str.len_bytes() <= MAX_TEXT).then(pl.col(rule))
    result = [
        split_rule_digits(short, tag).alias(name)
        for name, tag in SPLIT_RULE_TAGS.items()
        if name not in names
    ]
    resolved = frame.select(result)
    filled = [column for column in resolved if column.null_count() < len(column)]
    return frame.with_columns(filled)


def _settle_queues(frame: pl.DataFrame) -> pl.DataFrame:
    """Take the first cloud of a list; read a work space that is no number (section 5).

    ``maxwdir`` that is not a number means ``maxinputsize + 2000``, 0 without ``maxinputsize``.
    """
    names = {name.strip().lower(): name for name in frame.columns}
    cloud, space = names.get("cloud"), names.get("maxwdir")
    changed = []
    if cloud is not None and frame.schema[cloud] == pl.String:
        changed.append(pl.col(cloud).str.split(",").list.first())
    if space is not None and frame.schema[space] == pl.String:
        has_text = pl.col(space).str.strip_chars().replace(["", "NULL"], None).is_not_null()
        inputs = as_float(frame, names["maxinputsize"]) if "maxinputsize" in names else pl.lit(None)
        instead = (inputs + _WORK_SPACE_MB).fill_null(0).cast(pl.Int64, strict=False)
        is_number = as_float(frame, space).is_not_null()
        changed.append(
            pl.when(has_text & ~is_number).then(instead).otherwise(pl.col(space)).alias(space)
        )
    return frame.with_columns(changed)


def _settle_marks(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read the mark of stand-ins as a boolean, whatever an export of an archive made of it."""
    mark = {name.strip().lower(): name for name in frame.columns}.get(APPROXIMATE)
    kind = pl.Boolean() if mark is None else frame.schema[mark]
    if mark is None or kind == pl.Boolean:
        return frame, ()
    clean = parsing.cleaned(pl.col(mark), kind)
    flag = parsing.parsed(clean, kind, pl.Boolean())
    if flag is None:
        raise SchemaError(f"{APPROXIMATE}: found type {kind}, allowed: Y/N, 1/0, T/F; leave it out")
    unread = frame.select((clean.is_not_null() & flag.is_null()).sum()).item()
    note = f"{mark}: {unread} value(s) that are not Y/N, 1/0, T/F read as null: real rows"
    return frame.with_columns(flag.alias(mark)), (note,) if unread else ()


def as_float(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Return a column as float, null where it is none or far too long to be one."""
    column = pl.col(name)
    if frame.schema[name] == pl.String:
        short = column.str.len_bytes() <= parsing.LONGEST_SCALAR
        column = pl.when(short).then(column.str.strip_chars())
    return column.cast(pl.Float64, strict=False)
