"""How decisions are put in words: numbers with thousands separators, clauses filled in, names listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = re.compile(r"\{(\w+)(?::(\w+))?\}")
_ONE = re.compile(r"(?<![\d.,])1 (core|event|file|job)s\b")
UNKNOWN = "unknown"


def number(value: float) -> str:
    """Write a number: thousands separators, whole numbers without decimals, else four digits that count.

    Example:
        >>> number(14400.0), number(1234.5678), number(1234.01), number(0.012345), number(2), number(1e15)
        ('14,400', '1,234.6', '1,234', '0.01235', '2', '1,000,000,000,000,000')
    """
    if value == int(value):
        return f"{int(value):,d}"
    if abs(value) >= 1000:
        return f"{value:,.1f}".removesuffix(".0")
    return f"{value:.4g}"


def worded(value: Any) -> str:
    """Write a value of any type; null is ``unknown``, an empty text ``none``.

    Example:
        >>> worded(None), worded(""), worded(8), worded("ON"), worded(float("inf"))
        ('unknown', 'none', '8', 'ON', 'unlimited')
    """
    if value is None or value != value:  # NaN
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return "unlimited" if value in (float("inf"), float("-inf")) else number(value)
    return str(value) or "none"


def names_in(template: str) -> list[str]:
    """Return the names in braces."""
    return [result[1] for result in _NAME.finditer(template)]


def shown(template: str) -> str:
    """Return a template as it is shown unfilled: names in braces, without what stands for null.

    Example:
        >>> shown("container {name:none}")
        'container {name}'
    """
    return _NAME.sub(r"{\1}", template)


def filled(template: str, values: Mapping[str, Any]) -> str:
    """Put values in the place of the names in braces: ``{name}``, or ``{name:word}`` where a word stands for null.

    Example:
        >>> filled("{need} MB, the slot has {q_maxrss} MB", {"need": 14400.0, "q_maxrss": None})
        '14,400 MB, the slot has unknown MB'
        >>> filled("{n} cores of {m} cores", {"n": 1, "m": 21})
        '1 core of 21 cores'
        >>> filled("container {name:none}", {"name": None})
        'container none'
    """
    text = _NAME.sub(
        lambda found: (
            found[2] if found[2] and values[found[1]] is None else worded(values[found[1]])
        ),
        template,
    )
    return _ONE.sub(r"1 \1", text)


def counted(n: float, one: str, several: str | None = None) -> str:
    """Write a number with its noun.

    Example:
        >>> counted(1, "queue"), counted(1200, "queue"), counted(2, "nucleus", "nuclei")
        ('1 queue', '1,200 queues', '2 nuclei')
    """
    return f"{number(n)} {one if n == 1 else several or one + 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """List names, the first few of them.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"]), listed("abcdefg", most=3)
        ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    given = list(names)
    if len(given) > most:
        return f"{', '.join(given[:most])} and {len(given) - most} more"
    return " and ".join(filter(None, [", ".join(given[:-1]), *given[-1:]]))
