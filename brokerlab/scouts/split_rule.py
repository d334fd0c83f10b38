"""The split rule of a task: ``US=2,NF=3,NG=14``, read, edited, and turned into columns.

A rule is a comma-separated list of ``XX=value``. The value is the digits after the equals sign and the
first occurrence of a tag wins. Items that are not of that form (the further numbers of the list-valued
``AN=1,2,3``) are passed over.

Source: docs/rules/scouts.md 1 and 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import polars as pl

from brokerlab.archive.contracts.tasks import INT64_DIGITS, split_rule_digits, split_rule_pattern

SCOUT_TAGS = ("US", "SS", "NF", "NE", "NG", "MF", "TN", "LI", "IL", "MC")
"""Tags that the parameters and the exhausted checks read."""


@cache
def _compile(tag: str) -> re.Pattern[str]:
    return re.compile(split_rule_pattern(tag))


def tag_value(splitrule: str | None, tag: str) -> int | None:
    """Return the number behind one tag."""
    result = _compile(tag).search(splitrule or "")
    if result is None or len(result[1].lstrip("-")) > INT64_DIGITS:
        return None
    return int(result[1])


def tag_column(tag: str, splitrule: str = "splitrule") -> pl.Expr:
    """Return the expression of one tag's number: :func:`tag_value` of a whole column."""
    digits = split_rule_digits(pl.col(splitrule), tag)
    return digits.cast(pl.Int64, strict=False).alias(tag)


def tag_columns(tags: Iterable[str] = SCOUT_TAGS, splitrule: str = "splitrule") -> list[pl.Expr]:
    """Return :func:`tag_column` of several tags, to be given to ``select`` or ``with_columns``."""
    return [tag_column(tag, splitrule) for tag in tags]


def _items(splitrule: str | None) -> list[str]:
    return splitrule.split(",") if splitrule else []


def _has_tag(item: str, tag: str) -> bool:
    return item.lstrip(" \t").startswith(f"{tag}=")


def remove_tag(splitrule: str | None, tag: str) -> str:
    """Delete every item of one tag; the others keep their order (docs/rules/scouts.md 15)."""
    return ",".join(item for item in _items(splitrule) if not _has_tag(item, tag))


def set_tag(splitrule: str | None, tag: str, value: int) -> str:
    """Replace one tag's number in place, every time it occurs, or append it.

    Source: docs/rules/scouts.md 15.
    """
    new = f"{tag}={value}"
    items = _items(splitrule)
    if not any(_has_tag(item, tag) for item in items):
        return ",".join([*items, new])
    return ",".join(new if _has_tag(item, tag) else item for item in items)
