"""Edit an ordered list of checks: take one out, put another in its place, put one behind it."""

from __future__ import annotations

from collections.abc import Sequence

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.errors import ConfigError, nearest


def _place(checks: Sequence[Rule], name: str) -> int:
    """Return where a check stands."""
    names = [check.name for check in checks]
    if name not in names:
        raise ConfigError(f"checks: there is no {name!r}, {nearest(name, names)}")
    return names.index(name)


def without(checks: Sequence[Rule], *names: str) -> tuple[Rule, ...]:
    """Return the checks but for those named.

    Raises:
        ConfigError: There is no such check.

    Example:
        >>> from brokerlab.brokerage.production_tasks.checks import checks
        >>> from brokerlab.brokerage.rules import ProductionRules
        >>> [check.name for check in without(checks(ProductionRules()), "full_chain")][-1]
        'input_files'
    """
    places = {_place(checks, name) for name in names}
    return tuple(check for place, check in enumerate(checks) if place not in places)


def replaced(checks: Sequence[Rule], name: str, new: Rule) -> tuple[Rule, ...]:
    """Return the checks with another one in the place of the one named.

    Raises:
        ConfigError: There is no such check.
    """
    place = _place(checks, name)
    return (*checks[:place], new, *checks[place + 1 :])


def inserted(checks: Sequence[Rule], new: Rule, *, after: str) -> tuple[Rule, ...]:
    """Return the checks with one more, which runs after the one named.

    Raises:
        ConfigError: There is no such check.
    """
    place = _place(checks, after) + 1
    return (*checks[:place], new, *checks[place:])
