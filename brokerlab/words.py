"""Turn numbers, times, intervals and lists into text: in reports, proposals, charts and messages alike.

One place decides digits, separators and signs, so that the same number looks the same in a sentence,
a table and the index. Groups of three digits are set apart by a narrow no-break space (U+202F).
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

THIN = "\u202f"  # narrow no-break space: between groups of digits and between a number and its unit
MOST_DECIMALS = 6  # smaller parts than a millionth are zero on a page
SHARP = 1e-6  # an interval narrower than this part of its value is rounding, not uncertainty
SMALL_SHARE = 1e-4  # A smaller part of a whole is only said to be smaller
MISSING = "–"  # what a page shows where there is no number


def number(value: float | None, decimals: int = 0) -> str:
    """Format a number with thin spaces between groups of three digits and a true minus sign."""
    if value is None or not math.isfinite(value):
        return MISSING
    rounded = round(float(value), decimals)
    text = f"{abs(rounded):,.{max(decimals, 0)}f}".replace(",", THIN)
    return f"−{text}" if rounded < 0 else text


def decimals_for(
    value: float | None, lo: float | None = None, hi: float | None = None, *, fewest: int = 0
) -> int:
    """Return how many decimals the data support.

    With an interval: one or two significant digits of its half width, as the Particle Data Group
    rounds (two when they are 10 to 35, else one). Without: three significant digits of the value.

    Source: Particle Data Group, Review of Particle Physics, section 5.3 "Rounding".
    """
    half = (hi - lo) / 2 if lo is not None and hi is not None else 0.0
    if math.isfinite(half) and half > SHARP * abs(value or 0.0):
        exponent = math.floor(math.log10(half))
        lead = round(half / 10**exponent, 2)
        return min(MOST_DECIMALS, max(fewest, -exponent + (1 if lead < 3.55 else 0)))
    if value is None or not math.isfinite(value) or value == 0:
        return 0
    return min(MOST_DECIMALS, max(fewest, 2 - math.floor(math.log10(abs(value)))))


def measured(
    value: float | None,
    lo: float | None = None,
    hi: float | None = None,
    decimals: int | None = None,
) -> str:
    """Format a number with its interval, all three with the same decimals."""
    places = decimals_for(value, lo, hi) if decimals is None else decimals
    text = number(value, places)
    if text == MISSING or lo is None or hi is None or lo == hi == value:
        return text
    return f"{text} ({number(lo, places)} to {number(hi, places)})"


def duration(seconds: float | None) -> str:
    """Format a run time for people."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{number(seconds, 1 if seconds < 10 else 0)}{THIN}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{THIN}min {rest}{THIN}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{THIN}h {minutes:02d}{THIN}min"


def instant(at: datetime | None) -> str:
    """Format an instant with its zone; a time without zone is UTC, as everywhere in an archive."""
    if at is None:
        return MISSING
    utc = at.astimezone(UTC) if at.tzinfo else at
    return f"{utc:%Y-%m-%d %H:%M} UTC"


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Show a share as per cent with its interval.

    Example:
        >>> percent(0.012, 0.009, 0.016), percent(0.0894)
        ('1.20 % (0.90 to 1.60)', '8.9 %')
        >>> percent(0.00002), percent(0.0)
        ('< 0.01 %', '0 %')
    """
    if value is None or not math.isfinite(value):
        return "unknown"
    centre, lower, upper = (None if part is None else 100 * part for part in (value, low, high))
    bare = lower is None or upper is None
    if bare and 0 < value < SMALL_SHARE:
        return f"< {with_unit(number(100 * SMALL_SHARE, 2), '%')}"
    if bare and value == 0:
        return with_unit("0", "%")
    places = (1 if abs(centre or 0) >= 1 else 2) if bare else decimals_for(centre, lower, upper)
    places = max(1, places)
    return with_unit(measured(centre, lower, upper, places), "%")


def with_unit(text: str, unit: str) -> str:
    """Put a unit behind the value, before its interval.

    Example:
        >>> with_unit("4.1 (3.2 to 5.0)", "%")
        '4.1 % (3.2 to 5.0)'
    """
    head, bracket, tail = text.partition(" (")
    return f"{head} {unit}{bracket}{tail}"


def thin(text: str) -> str:
    r"""Set a sentence as pages do: thin spaces between groups of digits, true minus signs.

    Example:
        >>> thin("1,904 tasks, by -0.3 to 2024-01-01").replace("\u202f", "_")
        '1_904 tasks, by −0.3 to 2024-01-01'
    """
    return re.sub(r"(?<![\w-])-(?=\d)", "−", re.sub(r"(?<=\d),(?=\d{3})", THIN, text))


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Join parts as a sentence does.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return f" {word} ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def short_percent(value: float) -> str:
    """Write a share as a percentage with the digits that a decision needs."""
    percents = 100 * value
    return f"{percents:.{1 if abs(percents) >= 10 else 2}f}".rstrip("0").rstrip(".") + " %"


def counted(n: float, word: str) -> str:
    """Write a count with its noun.

    Example:
        >>> counted(1, "queue"), counted(1200, "queue").replace(THIN, " ")
        ('1 queue', '1 200 queues')
    """
    return f"{number(n)} {plural(n, word)}"


def plural(n: float | None, word: str) -> str:
    """Return the word with an s unless there is exactly one.

    Example:
        >>> plural(1, "task"), plural(0, "job")
        ('task', 'jobs')
    """
    return word if n == 1 else word + "s"


def days_of(first: datetime, last: datetime) -> str:
    """Write a span of days."""
    end = f"{last.day} {last:%B} {last.year}"
    if first.date() == last.date():
        return end
    start = f"{first.day}"
    if (first.year, first.month) != (last.year, last.month):
        start += f" {first:%B}"
    if first.year != last.year:
        start += f" {first.year}"
    return f"{start} to {end}"
