"""What `results.json` can hold, and the words for the kinds of answers; loads no chart library."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, get_args

RESERVED = "out_dir"  # parameter that the runner sets: the folder that becomes the run
Kind = Literal["change", "improve", "keep", "no_answer", "finding", "failed"]
"""The answers of a calibration, that of a report that proposes nothing, and the run that broke before it had one."""
KIND_WORDS: Mapping[str, str] = types.MappingProxyType(
    {kind: kind.replace("_", " ").capitalize() for kind in get_args(Kind)}
)
"""How pages, index and command line name the kinds."""


PLAIN = frozenset({str, int, bool, type(None)})
"""What JSON holds as it is."""


def jsonable(value: Any) -> Any:
    """Return the value as JSON can hold it: NaN and infinity become null, times ISO 8601 text.

    Example:
        >>> jsonable({"rank": 75, "loss": float("nan"), "days": (1, 2)})
        {'rank': 75, 'loss': None, 'days': [1, 2]}
    """
    if type(value) in PLAIN:  # most values by far
        return value
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return jsonable(dataclasses.asdict(value))
    if hasattr(value, "to_dicts"):  # a frame
        return jsonable(value.to_dicts())
    if hasattr(value, "item") and not isinstance(value, str):  # numpy scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def write_json(path: Path, plain: Mapping[str, Any]) -> None:
    """Write what is `jsonable` already as a file."""
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def verdict_line(verdict: Mapping[str, Any]) -> str:
    """Return a verdict in one line, its kind first.

    Example:
        >>> verdict_line({"kind": "no_answer", "sentence": "9 tasks, about 60 are needed."})
        'No answer: 9 tasks, about 60 are needed.'
    """
    return f"{KIND_WORDS[verdict['kind']]}: {verdict['sentence']}"
