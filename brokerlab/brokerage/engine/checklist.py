"""Edit an ordered list of rules: take one out, put another in its place, put one behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Mark, Order, Step
from brokerlab.errors import ConfigError, nearest

Item = TypeVar("Item", bound=Step)


def name_of(step: Step) -> str | None:
    """Return the name of a rule, a mark or an order; null: it has none."""
    if isinstance(step, Mark):
        return step.rule.name
    return step.name if isinstance(step, Rule | Order) else None


def _place(steps: Sequence[Step], name: str) -> int:
    """Return where a rule stands."""
    names = [name_of(step) for step in steps]
    if name not in names:
        known = [each for each in names if each]
        raise ConfigError(f"checks: there is no {name!r}, {nearest(name, known)}")
    return names.index(name)


def without(steps: Sequence[Item], *names: str) -> tuple[Item, ...]:
    """Return the rules, or steps, but for those named.

    Raises:
        ConfigError: There is none of that name.

    Example:
        >>> from brokerlab.brokerage.production_tasks.checks import checks
        >>> from brokerlab.brokerage.rules import ProductionRules
        >>> [check.name for check in without(checks(ProductionRules()), "no_queue")][-1]
        'disk_space'
    """
    places = {_place(steps, name) for name in names}
    return tuple(step for place, step in enumerate(steps) if place not in places)


def replaced(steps: Sequence[Item], name: str, new: Item) -> tuple[Item, ...]:
    """Return the rules, or steps, with another one in the place of the one named.

    Raises:
        ConfigError: There is none of that name.
    """
    place = _place(steps, name)
    return (*steps[:place], new, *steps[place + 1 :])


def inserted(steps: Sequence[Item], new: Item, *, after: str) -> tuple[Item, ...]:
    """Return the rules, or steps, with one more, which follows the one named.

    Raises:
        ConfigError: There is none of that name.
    """
    place = _place(steps, after) + 1
    return (*steps[:place], new, *steps[place:])
