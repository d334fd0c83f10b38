"""Units that a source may have instead of those of the contracts, and values that sources write in more than one way.

Conversions are exact. Memory and sizes count by 1024, as PanDA counts them: 1 MB = 1024 kB.
"""

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import polars as pl

from brokerlab.archive import parsing
from brokerlab.archive.contracts import columns_of
from brokerlab.archive.contracts._columns import FIRST_TIME, MAX_TEXT, about
from brokerlab.archive.contracts.jobs import APPROXIMATE
from brokerlab.archive.contracts.tasks import SPLIT_RULE_TAGS, split_rule_digits
from brokerlab.archive.parsing import LONGEST_SCALAR
from brokerlab.errors import SchemaError, nearest

_SIZES = {name: Fraction(1024**n) for n, name in enumerate(("B", "kB", "MB", "GB", "TB"))}
_TIMES = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "days": Fraction(86400),
}
_SHARES = {"%": Fraction(1), "fraction": Fraction(100), "per mille": Fraction(1, 10)}
_FAMILIES = (_SIZES, _TIMES, _SHARES)
_EPOCH_UNITS = ("s", "ms", "us", "ns")
_OTHER_SPELLINGS = {
    "B": ("byte", "bytes"),
    "kB": ("KB", "kb", "KiB"),
    "MB": ("mb", "MiB"),
    "GB": ("gb", "GiB"),
    "TB": ("tb", "TiB"),
    "s": ("sec", "secs", "seconds"),
    "min": ("minutes", "mins"),
    "h": ("hours",),
    "days": ("d",),
}
_PER = re.compile(r"^(?P<top>[^/]+)/(?P<bottom>\S+)(?P<rest> per core)?$")
_DIGITS = 30
"""Numbers of more digits before or after the point are no measurements."""


def unit_of(table: str, column: str) -> str:
    """Return the unit that a column has in the archive."""
    unit: str = about(columns_of(table)[column])["unit"]
    return unit


def spelled(unit: str) -> str | None:
    """Return a simple unit as it is written here; None if it is none.

    Example:
        >>> spelled("mb"), spelled("MiB"), spelled("Mb")
        ('MB', 'MB', None)
    """
    usual = next((usual for usual, others in _OTHER_SPELLINGS.items() if unit in others), unit)
    return usual if any(usual in family for family in _FAMILIES) else None


def problem(table: str, column: str, unit: str) -> str | None:
    """Say why values of a column cannot be given in a unit; None where they can.

    Example:
        >>> problem("jobs", "maxpss", "s")
        'maxpss is in kB; allowed: B, GB, MB, TB, kB'
        >>> problem("jobs", "jobstatus", "MB")
        'jobstatus has no unit'
    """
    own = unit_of(table, column)
    if isinstance(columns_of(table)[column].dtype, pl.Datetime):
        if unit in _EPOCH_UNITS:
            return None
        return f"{column} is a time; allowed: {', '.join(_EPOCH_UNITS)} since 1970-01-01 UTC"
    if not columns_of(table)[column].dtype.is_numeric() or own == "-":
        return f"{column} has no unit"
    allowed = _allowed(own)
    if unit in allowed or _factor(own, unit) is not None:
        return None
    if not allowed:
        return f"{column} is in {own}; no other unit is known for it"
    hint = nearest(unit, allowed)
    return f"{column} is in {own}; {hint}"


def converted(table: str, column: str, unit: str, values: pl.Series) -> pl.Series:
    """Convert numbers or texts to the unit of the archive, exactly; whole numbers are rounded, half to even.

    Returns texts; what is no number gets its unit as a mark, lists and times come back as they are.
    """
    kind = values.dtype
    if isinstance(kind, pl.Duration):
        values = values.dt.total_nanoseconds()
    elif kind.is_nested() or kind.is_temporal() or kind in (pl.Binary, pl.Object, pl.Boolean):
        return values
    target = columns_of(table)[column].dtype
    is_time = isinstance(target, pl.Datetime)
    factor = _TIMES[unit] if is_time else _factor(unit_of(table, column), unit) or Fraction(1)
    texts = values.cast(pl.String).str.strip_chars()
    distinct = texts.drop_nulls().unique()
    made = [_convert(text, unit, factor, target) for text in distinct]
    new = pl.Series(made, dtype=pl.String)
    return texts.replace_strict(distinct, new, default=None, return_dtype=pl.String).alias(
        values.name
    )


def _convert(text: str, unit: str, factor: Fraction, target: pl.DataType) -> str:
    """Convert one value; a text that is no plain number, or no time of the calendar, can then not be read as one."""
    if text in ("", "NULL", "null"):
        return text
    number = _number(text)
    marked = f"{text[:LONGEST_SCALAR]} {unit}"
    if number is None:
        return marked
    value = number * factor
    if target.is_integer():
        return str(round(value))
    if not isinstance(target, pl.Datetime):
        return repr(float(value))
    try:
        return str(FIRST_TIME + timedelta(microseconds=round(value * 10**6)))
    except OverflowError:
        return marked


def _number(text: str) -> Fraction | None:
    """Read a finite number of a plausible size exactly."""
    if len(text) > LONGEST_SCALAR:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or (number and abs(number.adjusted()) > _DIGITS):
        return None
    return Fraction(number) if number else Fraction(0)


def _factor(own: str, other: str) -> Fraction | None:
    """Return how many of our unit are in one of another; None if they measure different things."""
    if own == other:
        return Fraction(1)
    ours, theirs = _PER.match(own), _PER.match(other)
    if ours and theirs and ours["rest"] == theirs["rest"]:
        top = _factor(ours["top"], theirs["top"])
        bottom = _factor(ours["bottom"], theirs["bottom"])
        return None if top is None or bottom is None else top / bottom
    if ours or theirs:
        return None
    mine, yours = spelled(own), spelled(other)
    family = next((f for f in _FAMILIES if mine in f and yours in f), None)
    return None if family is None else family[yours or ""] / family[mine or ""]


def _allowed(own: str) -> list[str]:
    """List the units that measure what ours does."""
    simple = [unit for family in _FAMILIES for unit in family]
    rates = [f"{size}/s{rest}" for size in _SIZES for rest in ("", " per core")]
    inverse = [f"{time}/{size}" for time in _TIMES for size in _SIZES]
    return [unit for unit in (*simple, *rates, *inverse) if _factor(own, unit) is not None]


# --- what sources write in more than one way --------------------------------------------------------------------------


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
    names = parsing.by_low(frame.columns)
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
    names = parsing.by_low(frame.columns)
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
    names = parsing.by_low(frame.columns)
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
    mark = parsing.by_low(frame.columns).get(APPROXIMATE)
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
        short = column.str.len_bytes() <= LONGEST_SCALAR
        column = pl.when(short).then(column.str.strip_chars())
    return column.cast(pl.Float64, strict=False)
