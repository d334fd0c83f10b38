"""Documents of JSON: their digest, and JSON Schema, imported without what nobody here asks of it."""

from __future__ import annotations

import hashlib
import json
import sys
from importlib import import_module
from types import ModuleType

_GRAMMAR = "rfc3987_syntax"


def digest_of(content: object) -> str:
    """Return ``sha256:...`` of the canonical JSON of a document (sorted keys, no blanks, UTF-8)."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def jsonschema() -> ModuleType:
    """Import the package jsonschema without its check of the formats "iri" and "iri-reference".

    For that check it imports a package that builds a grammar for two seconds, whenever it is installed, and no schema
    here has the formats, nor has one of notebooks or of charts. Whoever imported jsonschema before keeps the check;
    the package itself can be imported afterwards as ever.
    """
    unasked = _GRAMMAR not in sys.modules
    if unasked:
        sys.modules[_GRAMMAR] = None  # type: ignore[assignment]  # refuses its import
    try:
        return import_module("jsonschema")
    finally:
        if unasked:
            del sys.modules[_GRAMMAR]
