"""What is odd in the input, said once on the page instead of many times beside it."""

from brokerlab.errors import collect_warnings as noted

__all__ = ["noted"]
