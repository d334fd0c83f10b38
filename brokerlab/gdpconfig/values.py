"""Text to value: the conversion that the real look-up makes, and the reasons why it can fail."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Value: TypeAlias = Json
"""A typed value of a configuration key; null means undefined."""

TYPES = MappingProxyType(
    {
        "str": "str",
        "string": "str",
        "int": "int",
        "integer": "int",
        "float": "float",
        "bool": "bool",
        "boolean": "bool",
        "json": "json",
    }
)
"""Spelling of a type (in lower case) -> the type."""


def _to_float(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError("not a number")
    return number


_CONVERTERS: dict[str, Callable[[str], Value]] = {
    "str": str,
    "int": int,
    "float": _to_float,
    "bool": lambda text: text.lower() == "true",
    "json": json.loads,
}


def convert(value: str | None, value_json: str | None, type_name: str | None) -> Value:
    """Convert a stored entry by its type, in any case; ``bool`` is true only for "true" in any case.

    Raises:
        ValueError: Unknown type, no value, text that is not of the type, or a float that is not a number.
            The look-up turns this into "undefined" with a warning.

    Source: docs/rules/gdpconfig.md, Look-up rules, 3.

    Example:
        >>> convert(" 7 ", None, "INT"), convert("TRUE", None, "bool"), convert("1", None, "Boolean")
        (7, True, False)
        >>> convert("3.5", None, "int")
        Traceback (most recent call last):
        ...
        ValueError: '3.5' is not of type int
    """
    kind = TYPES.get((type_name or "").lower())
    if kind is None:
        raise ValueError(f"type {type_name!r} is unknown; allowed: {', '.join(TYPES)}")
    text = value_json if kind == "json" else value
    if text is None:
        raise ValueError(f"{'value_json' if kind == 'json' else 'value'} is null, type is {kind}")
    try:
        return _CONVERTERS[kind](text)
    except (ValueError, RecursionError) as error:
        shown = text if len(text) <= 40 else text[:40] + "..."
        raise ValueError(f"{shown!r} is not of type {kind}") from error


def to_text(value: Value) -> tuple[str | None, str | None, str]:
    """Return ``(value, value_json, type)`` of a Python value: the inverse of :func:`convert`.

    Example:
        >>> to_text(80), to_text(True), to_text([1, 2])
        (('80', None, 'int'), ('true', None, 'bool'), (None, '[1, 2]', 'json'))
    """
    if isinstance(value, bool):
        return str(value).lower(), None, "bool"
    if isinstance(value, int | float):
        return repr(value), None, type(value).__name__
    if isinstance(value, str):
        return value, None, "str"
    return None, json.dumps(value, sort_keys=True), "json"


def digest_of(content: object) -> str:
    """Return ``sha256:...`` of the canonical JSON of a document (sorted keys, no blanks, UTF-8)."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
