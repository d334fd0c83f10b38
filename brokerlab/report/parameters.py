"""Parameters of a report notebook: what its tagged cell declares, and text turned into those types.

papermill only logs a warning for an unknown parameter or a missing `parameters` cell; a typing error
would silently give the default's answer. Here both are errors that name the nearest valid name.
"""

import ast
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from brokerlab.errors import ConfigError, ReportError, nearest
from brokerlab.schemas import jsonschema

RESERVED = "out_dir"
"""Set by the runner: the folder that becomes the run."""
TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One line of the parameters cell: ``name: type = default  # meaning [unit]``."""

    name: str
    kind: str
    default: Any
    meaning: str


def papermill() -> ModuleType:
    """Import papermill on first use: quietly, for its optional cloud clients deprecate themselves loudly, and quickly."""
    jsonschema()  # papermill imports it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("papermill")


def declared(notebook: Path) -> dict[str, Parameter]:
    """Read the parameters that a notebook declares.

    Args:
        notebook: An `.ipynb` with one cell tagged `parameters`, one simple assignment per line.

    Returns:
        Parameters by name, in the order of the cell.

    Raises:
        ReportError: There is no such cell, or a default is not a plain value.
    """
    found = papermill().inspect_notebook(str(notebook))
    if not found:
        raise ReportError(
            f"{notebook.name}: no cell tagged 'parameters', or an empty one; "
            "tag the cell that assigns the defaults"
        )
    return {name: _parameter(name, entry, notebook) for name, entry in found.items()}


def _parameter(name: str, entry: Mapping[str, str], notebook: Path) -> Parameter:
    """Turn what papermill inferred into a declared parameter; the annotation wins over the default."""
    try:
        default = ast.literal_eval(entry["default"])
    except (ValueError, SyntaxError):
        raise ReportError(
            f"{notebook.name}: parameter {name} has the default {entry['default']}; "
            "only numbers, text, True/False, None and lists can be replaced from outside"
        ) from None
    kind = entry["inferred_type_name"]
    return Parameter(
        name=name,
        kind=type(default).__name__ if kind == "None" else kind.replace(" ", ""),
        default=default,
        meaning=entry["help"],
    )


def resolve(parameters: Mapping[str, Any], declared: Mapping[str, Parameter]) -> dict[str, Any]:
    """Check given parameters against the declared ones and convert text to the declared types.

    Args:
        parameters: Name to value; values may be text, as a command line gives them.
        declared: From `declared`.

    Returns:
        The given parameters only, converted.

    Raises:
        ConfigError: Unknown names and values of another type, all at once.

    Example:
        >>> known = {"seed": Parameter(name="seed", kind="int", default=1, meaning="")}
        >>> resolve({"seed": "7"}, known)
        {'seed': 7}
        >>> resolve({"sead": "7"}, known)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: unknown parameter 'sead': did you mean 'seed'?
    """
    problems, values = [], {}
    allowed = [name for name in declared if name != RESERVED]
    for name, value in parameters.items():
        if name == RESERVED:
            problems.append(
                f"parameter {name!r} is set by the runner; use --out for another folder"
            )
        elif name not in declared:
            problems.append(f"unknown parameter {name!r}: {nearest(name, allowed)}")
        else:
            try:
                values[name] = convert(value, declared[name].kind)
            except ValueError as reason:
                problems.append(f"parameter {name}={value!r}: {reason}")
    if problems:
        raise ConfigError("; ".join(problems))
    return values


def convert(value: Any, kind: str) -> Any:
    """Convert a value to a declared type.

    Args:
        value: Text (as typed) or a value.
        kind: ``int``, ``float``, ``bool``, ``str``, ``list``, ``list[int]``, ``list[float]``,
            ``list[str]`` or ``dict``. A list is typed as ``50,99`` or as JSON, a dict as JSON.

    Returns:
        The converted value.

    Raises:
        ValueError: It is not of that type; says what was expected.

    Example:
        >>> convert("50,99", "list[int]"), convert("no", "bool"), convert("0.02", "float")
        ([50, 99], False, 0.02)
        >>> convert("2.5", "int")
        Traceback (most recent call last):
        ValueError: must be a whole number such as 3
    """
    outer, _, inner = kind.partition("[")
    if outer == "list":
        return [convert(item, inner.rstrip("]") or "any") for item in _items(value)]
    if outer == "any":
        return _plain(value) if isinstance(value, str) else value
    converter = _CONVERTERS.get(outer)
    if converter is None:
        return value
    return converter(value)


def _int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError("must be a whole number such as 3")
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError("must be a whole number such as 3") from None


def _float(value: Any) -> float:
    try:
        return float("not a number" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise ValueError("must be a number such as 0.02") from None


def _bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError("must be true or false")


def _str(value: Any) -> str:
    if isinstance(value, str | Path):
        return str(value)
    raise ValueError("must be text")


def _dict(value: Any) -> dict[str, Any]:
    try:
        plain = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        plain = None
    if isinstance(plain, dict):
        return plain
    raise ValueError('must be a JSON object such as {"waste": 1.0}')


def _items(value: Any) -> list[Any]:
    """Split what was typed for a list; empty text is the empty list."""
    if isinstance(value, list | tuple | range):
        return list(value)
    if not isinstance(value, str):
        raise ValueError("must be a list such as 50,99")  # noqa: TRY004 - reported with the others
    text = value.strip()
    if text.startswith("["):
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError:
            raise ValueError("must be a list such as 50,99 or [50, 99]") from None
        return list(parsed)
    return [item.strip() for item in text.split(",") if item.strip()]


def _plain(text: str) -> Any:
    """Read an untyped item as a number if it is one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "dict": _dict,
}
