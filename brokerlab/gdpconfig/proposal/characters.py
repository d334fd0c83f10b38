"""Characters that show nothing, or that show the others in another order than they act in: no text has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from brokerlab.errors import MOST_MESSAGE, UNSEEN, shown

JSON_TEXT = re.compile(r"changes\.\d+\.(before|after)\.value_json")
"""Fields whose text may have the white space of JSON: tab and ends of lines."""


def character_problems(document: Mapping[str, Any]) -> list[str]:
    r"""Say which texts of a document have control characters or bidirectional controls; empty if none has.

    Example:
        >>> character_problems({"title": "a\u202eb"})[0].partition(";")[0]
        'title: character 2 is U+202E (RIGHT-TO-LEFT OVERRIDE)'
    """
    return [
        f"{shown(field, MOST_MESSAGE, allowed='')}: character {position + 1} is U+{ord(text[position]):04X} "
        f"({unicodedata.name(text[position], 'control character')}); texts must have no control and no invisible "
        "characters: take it out at its source, and make the proposal again"
        for field, text in _texts(document, "")
        if (position := _first(text, "\t\n\r" if JSON_TEXT.fullmatch(field) else "")) is not None
    ]


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Yield every text of a document with its field, names of fields included."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            inner = f"{field}.{name}" if field else str(name)
            yield f"name of {inner}", str(name)
            yield from _texts(item, inner)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _texts(item, f"{field}.{i}")


def _first(text: str, allowed: str) -> int | None:
    """Return the position of the first character that is refused; null: there is none."""
    if text.isascii() and text.isprintable():
        return None
    refused = (
        i
        for i, one in enumerate(text)
        if one not in allowed and unicodedata.category(one) in UNSEEN
    )
    return next(refused, None)
