"""Rule sets: a name, ``document`` or ``production``, and one switch per known difference of the two.

A package declares its switches as data and its rule set as a frozen dataclass on :class:`RuleSet`; reading,
refusing and describing them is done here once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.values import digest_of

RuleSetName = Literal["document", "production"]
NAMES = ("document", "production")


@dataclass(frozen=True)
class Switch:
    """One difference between the two rule sets.

    Attributes:
        document: Value in the rule set ``document``.
        production: Value in the rule set ``production``.
        row: Row of the chapter's last table, such as ``J24``.
        allowed: Values it may have; none for True and False, or any number from 0 on where the values are numbers.
        most: Largest number.
    """

    document: Any
    production: Any
    row: str
    allowed: tuple[Any, ...] = ()
    most: float = math.inf

    def problem(self, name: str, value: object) -> list[str]:
        """Return what is wrong with a value, as a list of none or one."""
        if self.allowed:
            good, say = value in self.allowed, " or ".join(map(str, self.allowed))
        elif isinstance(self.document, bool):
            good, say = isinstance(value, bool), "True or False"
        else:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and 0 <= value <= self.most  # type: ignore[operator]
            say = "a number of at least 0"
            say += f" and at most {self.most:g}" if math.isfinite(self.most) else ""
        return [] if good else [f"{name}={value!r}: allowed is {say}"]


@dataclass(frozen=True, init=False)
class RuleSet:
    """Base of the rule sets: takes a name, then single switches; part of every result's provenance."""

    SWITCHES: ClassVar[Mapping[str, Switch]] = {}
    SUBJECT: ClassVar[str] = "rules"

    rules: RuleSetName

    def __init__(self, rules: str = "document", **switches: Any) -> None:
        """Take a rule set, then single switches.

        Raises:
            ConfigError: Unknown rule set or switch, or a value that a switch cannot have.
        """
        known = type(self).SWITCHES
        problems = [] if rules in NAMES else [f"rules={rules!r}: {nearest(rules, NAMES)}"]
        for name, value in switches.items():
            if name in known:
                problems += known[name].problem(name, value)
            else:
                problems.append(f"{name}: no such switch, {nearest(name, known)}")
        if problems:
            raise ConfigError(f"{type(self).SUBJECT}: " + "; ".join(problems))
        object.__setattr__(self, "rules", rules)
        for name, switch in known.items():
            default = switch.document if rules == "document" else switch.production
            object.__setattr__(self, name, switches.get(name, default))

    def to_dict(self) -> dict[str, Any]:
        """Return the name and every switch by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def digest(self) -> str:
        """Return the rule set's name and a digest of every switch: single switches may differ from the set."""
        return f"{self.rules} {digest_of(self.to_dict())}"
