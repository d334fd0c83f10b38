"""The parameters of a report: those of its file, or of a user's own notebook those that its tagged cell declares."""

from __future__ import annotations

import ast
import warnings
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from brokerlab.errors import ReportError
from brokerlab.schemas import jsonschema

if TYPE_CHECKING:
    from brokerlab.report.kit import Bare

KINDS: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "dict": dict[str, Any],
}
LISTS: dict[str, Any] = {"int": list[int], "float": list[float], "str": list[str]}


def papermill() -> ModuleType:
    """Import papermill on first use: quietly, for its optional cloud clients deprecate themselves loudly, and quickly."""
    jsonschema()  # papermill imports it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module("papermill")


def model(notebook: Path, *, ours: bool) -> type[Bare]:
    """Return the parameters of a notebook."""
    name = f"brokerlab.report.{notebook.stem}"
    if ours and util.find_spec(name):
        result = getattr(import_module(name), "Params", None)
        if result is not None:
            return result  # type: ignore[no-any-return]
    return _declare(notebook)


def _declare(notebook: Path) -> type[Bare]:
    """Read the parameters that a notebook declares, one simple assignment per line."""
    from pydantic import Field, create_model

    from brokerlab.report.kit import Bare

    result = papermill().inspect_notebook(str(notebook))
    if not result:
        raise ReportError(
            f"{notebook.name}: no cell tagged 'parameters', or an empty one; "
            "tag the cell that assigns the defaults"
        )
    fields: dict[str, Any] = {
        name: (_kind(entry), Field(_default(name, entry, notebook), description=entry["help"]))
        for name, entry in result.items()
    }
    made: type[Bare] = create_model(notebook.stem, __base__=Bare, **fields)
    made.report = notebook.stem.replace("_", "-")
    made.question = made.report.replace("-", " ").capitalize()
    return made


def _kind(entry: dict[str, str]) -> Any:
    """Return the type that a line declares; a list of unknown things, and anything unknown, is taken as it is."""
    kind = entry["inferred_type_name"].replace(" ", "")
    outer, _, inner = kind.partition("[")
    if outer in ("list", "List"):
        return LISTS.get(inner.rstrip("]"), list[Any])
    return KINDS.get(outer, Any)


def _default(name: str, entry: dict[str, str], notebook: Path) -> Any:
    try:
        return ast.literal_eval(entry["default"])
    except (ValueError, SyntaxError):
        raise ReportError(
            f"{notebook.name}: parameter {name} has the default {entry['default']}; "
            "only numbers, text, True/False, None and lists can be replaced from outside"
        ) from None
