"""Rule sets: a name, ``document`` or ``production``, and one switch per known difference of the two.

A package declares its switches as data and its rule set as a frozen dataclass on :class:`RuleSet`; reading,
refusing and describing them is done here once, and :func:`differences` lists those of all packages.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.values import digest_of

RuleSetName = Literal["document", "production"]
NAMES = ("document", "production")
CHAPTERS = {
    "scouts": "brokerlab.scouts.rules:ScoutRules",
    "matching": "brokerlab.matching.rules:MatchingRules",
    "production brokerage": "brokerlab.brokerage.rules:ProductionRules",
    "analysis brokerage": "brokerlab.brokerage.analysis_jobs.rules:AnalysisRules",
    "classes": "brokerlab.lifecycle.classification.rules:ClassRules",
    "waiting": "brokerlab.lifecycle.timeouts.rules:TimeoutRules",
}
"""Chapter -> where its rule set is declared; by name, because the chapters stand above this module."""
BY_SWITCH = {
    **dict.fromkeys(("switch", "note", "source", "here", "there"), pl.String()),
    "n_changed": pl.Int64(),
    "explained": pl.Float64(),
}
"""Columns of :func:`switch_by_switch`."""


@dataclass(frozen=True)
class Switch:
    """One difference between the two rule sets.

    Attributes:
        document: Value in the rule set ``document``.
        production: Value in the rule set ``production``.
        source: Page and section of the sentence, such as ``003, cpuTime``, or the chapter of docs/rules and its
            section that fill what the pages leave open.
        allowed: Values it may have; none for True and False, or any number from 0 on where the values are numbers.
        most: Largest number.
        sentence: What the page says, word for word, or the part that decides; empty where the pages are silent.
    """

    document: Any
    production: Any
    source: str
    allowed: tuple[Any, ...] = ()
    most: float = math.inf
    sentence: str = ""

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


R = TypeVar("R", bound=RuleSet)


def differences(chapter: str | None = None) -> pl.DataFrame:
    """List every switch of every chapter.

    Args:
        chapter: One of :data:`CHAPTERS`; null for all.

    Returns:
        One row per switch, in the order of their declarations: ``chapter``, ``switch``, ``document`` and ``production``
        (its values, as text; equal where the page has a slip, or another reading of it can be chosen), ``source`` (page
        and section), ``sentence`` (null where the pages are silent), ``note`` (what the switch means).

    Raises:
        ConfigError: Unknown chapter.

    Example:
        >>> differences("matching").filter(pl.col("switch") == "tests_exempt")["production"].item()
        'True'
    """
    if chapter is not None and chapter not in CHAPTERS:
        raise ConfigError(f"chapter={chapter!r}: {nearest(chapter, CHAPTERS)}")
    rows = []
    for name in CHAPTERS if chapter is None else [chapter]:
        kind = pkgutil.resolve_name(CHAPTERS[name])
        notes = _notes(kind)
        for switch, one in kind.SWITCHES.items():
            values = str(one.document), str(one.production)
            sentence = one.sentence or None
            rows.append((name, switch, *values, one.source, sentence, notes.get(switch)))
    names = ("chapter", "switch", "document", "production", "source", "sentence", "note")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _notes(kind: type[RuleSet]) -> dict[str, str]:
    """Read what each switch means from the attributes of a rule set's docstring, where it is written once."""
    text = inspect.getdoc(kind) or ""
    listed = re.search(r"^Attributes:\n((?: .*\n|\n)*)", text, re.MULTILINE)
    if listed is None:
        return {}
    items = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", listed[1], re.MULTILINE)
    return {name: " ".join(note.split()) for name, note in items}


def single_switches(rules: R, other: R) -> dict[str, R]:
    """Return, for every switch on which two sets differ, the first set with that switch alone set as in the second."""
    kind, values = type(rules), rules.to_dict()
    name = values.pop("rules")
    return {
        switch: kind(name, **{**values, switch: getattr(other, switch)})
        for switch in kind.SWITCHES
        if getattr(rules, switch) != getattr(other, switch)
    }


def changed_outcomes(here: pl.DataFrame, there: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the rows whose outcome differs between two sets, with the second one's outcome.

    Args:
        here: ``keys`` and outcome columns, one row per key.
        there: The same columns; a key that one side lacks differs.
        keys: Columns that name a row.

    Returns:
        ``keys`` and the outcome columns of ``there``.
    """
    names = [name for name in here.columns if name not in keys]
    both = here.join(
        there, on=list(keys), how="full", coalesce=True, suffix="_there", nulls_equal=True
    )
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_there")) for name in names)
    return both.filter(differs).select(*keys, *(pl.col(f"{n}_there").alias(n) for n in names))


def switch_by_switch(
    outcomes: Callable[[R], pl.DataFrame],
    rules: R,
    other: R,
    *,
    keys: Sequence[str],
    only: Collection[str] | None = None,
    there: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Compare two rule sets, and say how much of the difference each switch makes alone.

    Args:
        outcomes: What a set decides: ``keys`` and outcome columns, one row per key.
        rules: The set that is looked at.
        other: The one it is compared with.
        keys: Columns that name a row.
        only: Switches to try; null: all on which the sets differ.
        there: Outcomes of the other side where it differs in more than this set; null: those of ``other``.

    Returns:
        One row per switch on which the sets differ, the one that explains most first: ``switch``, ``note``, ``source`` (as
        of :func:`differences`), ``here``, ``there`` (its values, as text), ``n_changed`` (rows that it alone changes),
        ``explained`` (part [1] of the rows in which the sides differ that it alone brings to the other's outcome; 0 where
        none does).
    """
    here = outcomes(rules)
    together = changed_outcomes(here, outcomes(other) if there is None else there, keys)
    notes, rows = _notes(type(rules)), []
    for name, alone in single_switches(rules, other).items():
        if only is not None and name not in only:
            continue
        moved = changed_outcomes(here, outcomes(alone), keys)
        same = moved.join(together, on=together.columns, how="semi", nulls_equal=True).height
        explained = same / together.height if together.height else 0.0
        values = str(getattr(rules, name)), str(getattr(other, name))
        about = notes.get(name), type(rules).SWITCHES[name].source
        rows.append((name, *about, *values, moved.height, explained))
    table = pl.DataFrame(rows, schema=BY_SWITCH, orient="row")
    return table.sort("explained", "n_changed", "switch", descending=[True, True, False])
