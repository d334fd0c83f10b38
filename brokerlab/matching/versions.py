"""Comparison strings such as ``>=12.0``: how a version or a number of MB has to compare (docs/rules/matching.md 2.3)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from packaging.version import InvalidVersion, Version

MAX_LENGTH = 100  # longest version read [characters]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
OPERATORS = tuple(_OPERATORS)
COMPARISON = re.compile(r"(==|>=|<=|!=|>|<|=)(.*)", re.DOTALL)


@lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    """Return a version in the order of PEP 440; None for what is none."""
    try:
        return Version(text) if len(text) <= MAX_LENGTH else None
    except InvalidVersion:
        return None


@lru_cache(maxsize=4096)
def compare_version(version: str, comparison: str) -> bool | None:
    """Compare a version with a comparison string (docs/rules/matching.md 2.3)."""
    result = COMPARISON.match(comparison)
    left = _version(version)
    right = None if result is None else _version(result[2].strip())
    if result is None or left is None or right is None:
        return None
    return _OPERATORS[result[1]](left, right)
