"""Numbers and lists in the sentences of reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brokerlab.report.format import THIN, decimals_for, measured


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Show a share as per cent with its interval.

    Example:
        >>> percent(0.012, 0.009, 0.016), percent(0.0894)
        ('1.20 % (0.90 to 1.60)', '8.9 %')
    """
    if value is None:
        return "unknown"
    centre, lower, upper = (None if part is None else 100 * part for part in (value, low, high))
    bare = lower is None or upper is None
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
