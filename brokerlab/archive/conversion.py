"""Units that a source may have instead of those of the contracts; conversions are exact.

Memory and sizes count by 1024, as PanDA counts them: 1 MB = 1024 kB.
"""

import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import polars as pl

from brokerlab.archive.contracts import columns_of
from brokerlab.archive.contracts._columns import FIRST_TIME
from brokerlab.archive.parsing import LONGEST_SCALAR
from brokerlab.errors import nearest

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
    unit: str = (columns_of(table)[column].metadata or {})["unit"]
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
