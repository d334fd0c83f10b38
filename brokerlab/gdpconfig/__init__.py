"""What was set: catalogue of the configuration keys, typed look-up with scope, difference, proposals.

``Config`` looks keys up, ``catalogue`` lists what can be set, ``validate`` warns, ``diff`` compares;
``brokerlab.gdpconfig.proposal`` has the documents. The parts load on first use.
"""

from typing import TYPE_CHECKING

from brokerlab.lazy import lazy

if TYPE_CHECKING:
    from brokerlab.gdpconfig.config import Config, Found
    from brokerlab.gdpconfig.keys import catalogue
    from brokerlab.gdpconfig.validation import Finding, diff, validate

__all__ = ["Config", "Finding", "Found", "catalogue", "diff", "validate"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        **dict.fromkeys(("Config", "Found"), "config"),
        **dict.fromkeys(("Finding", "validate"), "validation"),
        "catalogue": "keys",
        "diff": "validation",
    },
)
