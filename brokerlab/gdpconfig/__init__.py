"""What was set: catalogue of the configuration keys, typed look-up with scope, difference, proposals.

``Config`` looks keys up, ``catalogue`` lists what can be set, ``validate`` warns, ``diff`` compares;
``brokerlab.gdpconfig.proposal`` has the documents. The parts load on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brokerlab.gdpconfig.config import Config, Found
    from brokerlab.gdpconfig.difference import diff
    from brokerlab.gdpconfig.keys import calibratable, catalogue
    from brokerlab.gdpconfig.validation import Finding, validate

__all__ = ["Config", "Finding", "Found", "calibratable", "catalogue", "diff", "validate"]

_HOME = {
    "Config": "config",
    "Found": "config",
    "diff": "difference",
    "calibratable": "keys",
    "catalogue": "keys",
    "Finding": "validation",
    "validate": "validation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'brokerlab.gdpconfig' has no attribute '{name}'")
    return getattr(importlib.import_module(f"brokerlab.gdpconfig.{_HOME[name]}"), name)
