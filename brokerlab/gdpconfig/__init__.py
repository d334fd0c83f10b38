"""What was set: catalogue of the configuration keys, typed look-up with scope, difference, proposals."""

from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.keys import calibratable, catalogue

__all__ = ["Config", "calibratable", "catalogue"]
