"""What was set: catalogue of the configuration keys, typed look-up with scope, difference, proposals."""

from brokerlab.gdpconfig.config import Config, Found
from brokerlab.gdpconfig.difference import diff
from brokerlab.gdpconfig.keys import calibratable, catalogue
from brokerlab.gdpconfig.validation import Finding, validate

__all__ = ["Config", "Finding", "Found", "calibratable", "catalogue", "diff", "validate"]
