"""How numbers are written in the sentences of verdicts and caveats."""

from __future__ import annotations


def percent(share: float) -> str:
    """Write a share as a percentage with the digits that a decision needs.

    Example:
        >>> percent(0.02), percent(0.01234), percent(0.1234)
        ('2 %', '1.23 %', '12.3 %')
    """
    value = 100 * share
    return f"{value:.{1 if abs(value) >= 10 else 2}f}".rstrip("0").rstrip(".") + " %"


def plural(n: int, word: str) -> str:
    """Return the word with an s unless there is exactly one.

    Example:
        >>> plural(1, "task"), plural(0, "job")
        ('task', 'jobs')
    """
    return word if n == 1 else word + "s"
