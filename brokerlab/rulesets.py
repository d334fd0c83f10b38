"""Rule sets: a name, ``document`` or ``production``, and one switch per known difference of the two.

A package declares its rule set as a frozen dataclass on :class:`RuleSet`, one field per switch; what each switch may be
and says is a row of ``switches.csv``. Reading, refusing and describing them is done here once.
"""

from __future__ import annotations

import csv
import inspect
import math
import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal, Self, TypeVar

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.schemas import digest_of

RuleSetName = Literal["document", "production"]
NAMES = ("document", "production")
CHAPTERS = {
    "scouts": "brokerlab.scouts.rules:ScoutRules",
    "matching": "brokerlab.matching.rules:MatchingRules",
    "production brokerage": "brokerlab.brokerage.rules:ProductionRules",
    "analysis brokerage": "brokerlab.brokerage.analysis_jobs.settings:AnalysisRules",
    "classes": "brokerlab.lifecycle.classification.rules:ClassRules",
    "waiting": "brokerlab.lifecycle.timeouts.rule:TimeoutRules",
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
    """One difference between rule sets."""

    # its value in each rule set, in the order of their names: in ``document`` and ``production``, say
    values: tuple[Any, ...]
    note: str  # what it says: what a value means
    # page and section of the sentence, such as ``003, cpuTime``, or the chapter of docs/rules and its section
    # that fill what the pages leave open
    source: str
    # what the page says, word for word, or the part that decides; empty where the pages are silent
    sentence: str = ""
    # values it may have; none for True and False, or any number where the values are numbers
    allowed: tuple[Any, ...] = ()
    least: float = 0  # smallest number
    most: float = math.inf  # largest number
    whole: bool = False  # only whole numbers

    @property
    def document(self) -> Any:
        """Value in the rule set ``document``."""
        return self.values[0]

    @property
    def production(self) -> Any:
        """Value in the rule set ``production``."""
        return self.values[1]

    def problem(self, name: str, value: object) -> list[str]:
        """Return what is wrong with a value, as a list of none or one."""
        if self.allowed:
            good, say = value in self.allowed, " or ".join(map(str, self.allowed))
        elif isinstance(self.values[0], bool):
            good, say = isinstance(value, bool), "True or False"
        else:
            number = isinstance(value, int if self.whole else int | float)
            good = number and not isinstance(value, bool) and self.least <= value <= self.most  # type: ignore[operator]
            say = f"a {'whole ' if self.whole else ''}number of at least {self.least:g}"
            say += f" and at most {self.most:g}" if math.isfinite(self.most) else ""
        return [] if good else [f"{name}={value!r}: allowed is {say}"]


def _switch(row: Mapping[str, str], names: Sequence[str]) -> Switch:
    """Read a row of a table of switches."""
    limits = row["allowed"]
    least, range_, most = limits.removeprefix("whole ").partition("..")
    words = tuple(limits.split("|")) if limits and not range_ else ()
    return Switch(
        values=tuple(row[name] if words else _plain(row[name]) for name in names),
        note=row["note"],
        source=row["source"],
        sentence=row["sentence"],
        allowed=words,
        least=float(least) if range_ else 0,
        most=float(most) if most else math.inf,
        whole=limits.startswith("whole "),
    )


def _plain(text: str) -> bool | float:
    """Read True, False or a number."""
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.isdigit() else float(text)


@cache
def _table(file: str) -> tuple[dict[str, str], ...]:
    text = resources.files("brokerlab").joinpath(file).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@dataclass(frozen=True, init=False)
class RuleSet:
    """Base of the rule sets: takes a name, then single switches; part of every result's provenance.

    A rule set names its switches as fields; what each may be and what it says is a row of ``brokerlab/switches.csv``.

    Attributes:
        rules: Name of the set: ``document`` (what the published pages say) or ``production`` (what the deployed code does).
    """

    SWITCHES: ClassVar[Mapping[str, Switch]] = {}
    NAMES: ClassVar[tuple[str, ...]] = NAMES
    SUBJECT: ClassVar[str] = "rules"

    rules: RuleSetName

    def __init_subclass__(cls, chapter: str = "", table: str = "switches.csv") -> None:
        """Read the switches of a chapter, after those of the base; without one it has those of the base."""
        if not chapter:
            return
        rows = [row for row in _table(table) if row["chapter"] == chapter]
        own = {row["switch"]: _switch(row, cls.NAMES) for row in rows}
        fields_ = [name for name in cls.__annotations__ if name in own]
        if fields_ != list(own):
            raise TypeError(
                f"{cls.__name__}: its fields are not the switches of {chapter} in {table}"
            )
        cls.SWITCHES = {**cls.SWITCHES, **own}
        cls.SUBJECT = f"rules of {chapter}"
        notes = "\n".join(f"    {name}: {one.note}" for name, one in cls.SWITCHES.items())
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nAttributes:\n{notes}\n"

    def __init__(self, rules: str | None = None, **switches: Any) -> None:
        """Take a rule set, by default the first, then single switches."""
        rules = self.NAMES[0] if rules is None else rules
        problems = []
        if rules not in self.NAMES:
            problems.append(f"rules={rules!r}: {nearest(rules, self.NAMES)}")
        for name, value in switches.items():
            if name in self.SWITCHES:
                problems += self.SWITCHES[name].problem(name, value)
            else:
                problems.append(f"{name}: no such switch, {nearest(name, self.SWITCHES)}")
        if problems:
            raise ConfigError(f"{self.SUBJECT}: " + "; ".join(problems))
        object.__setattr__(self, "rules", rules)
        for name, one in self.SWITCHES.items():
            default = one.values[self.NAMES.index(rules)]
            object.__setattr__(self, name, switches.get(name, default))

    @classmethod
    def of(cls, rules: Self | str | None) -> Self:
        """Return a rule set as it is, the one of a name, or without any the first."""
        if isinstance(rules, cls):
            return rules
        if rules is None or isinstance(rules, str):
            return cls(rules)
        raise ConfigError(
            f"{cls.SUBJECT}: given is a {type(rules).__name__}; allowed are {cls.__name__}, or {' or '.join(cls.NAMES)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the name and every switch by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def changed(self) -> dict[str, Any]:
        """Switches that differ from the set of this name."""
        usual = type(self)(self.rules)
        return {k: v for k, v in self.to_dict().items() if v != getattr(usual, k)}

    @property
    def digest(self) -> str:
        """Return the rule set's name and a digest of every switch: single switches may differ from the set."""
        return f"{self.rules} {digest_of(self.to_dict())}"


R = TypeVar("R", bound=RuleSet)


def watched(rules: R, read: set[str]) -> R:
    """Return a copy of a rule set that adds the names of what is read of it to ``read``, now and later."""
    kind, names = _watched(type(rules))  # type: ignore[arg-type] # classes are hashable
    copy: R = object.__new__(kind)
    vars(copy).update({name: getattr(rules, name) for name in names}, **{_READ: read})
    return copy


_READ = "read of it"


@cache
def _watched(rules: type[RuleSet]) -> tuple[type[Any], frozenset[str]]:
    """Return the kind of copies that :func:`watched` makes of a kind of rule sets, and the names of what is read of it."""
    names = frozenset(field.name for field in fields(rules))

    class Watched(rules):  # type: ignore[valid-type, misc]
        def __getattribute__(self, name: str) -> Any:
            # a copy made by `replace` has none: to make it, all that is left as it is was read here
            if (
                name in names
                and (read := super().__getattribute__("__dict__").get(_READ)) is not None
            ):
                read.add(name)
            return super().__getattribute__(name)

    return Watched, names


def differences(chapter: str | None = None) -> pl.DataFrame:
    """List every switch of every chapter.

    One row per switch, in the order of their declarations: ``chapter``, ``switch``, ``document`` and ``production``
    (its values, as text; equal where the page has a slip, or another reading of it can be chosen), ``source`` (page
    and section), ``sentence`` (null where the pages are silent), ``note`` (what the switch means).
    """
    if chapter is not None and chapter not in CHAPTERS:
        raise ConfigError(f"chapter={chapter!r}: {nearest(chapter, CHAPTERS)}")
    rows = []
    for name in CHAPTERS if chapter is None else [chapter]:
        kind = pkgutil.resolve_name(CHAPTERS[name])
        for switch_name, one in kind.SWITCHES.items():
            values = str(one.document), str(one.production)
            rows.append((name, switch_name, *values, one.source, one.sentence or None, one.note))
    names = ("chapter", "switch", "document", "production", "source", "sentence", "note")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def single_switches(rules: R, other: R) -> dict[str, R]:
    """Return, for every switch on which two sets differ, the first set with that switch alone set as in the second."""
    kind, values = type(rules), rules.to_dict()
    name = values.pop("rules")
    return {
        one: kind(name, **{**values, one: getattr(other, one)})
        for one in kind.SWITCHES
        if getattr(rules, one) != getattr(other, one)
    }


def changed_outcomes(here: pl.DataFrame, there: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the rows whose outcome differs between two sets, with the second one's outcome.

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

    One row per switch on which the sets differ, the one that explains most first: ``switch``, ``note``, ``source`` (as
    of :func:`differences`), ``here``, ``there`` (its values, as text), ``n_changed`` (rows that it alone changes),
    ``explained`` (part [1] of the rows in which the sides differ that it alone brings to the other's outcome; 0 where
    none does).
    """
    here = outcomes(rules)
    together = changed_outcomes(here, outcomes(other) if there is None else there, keys)
    rows = []
    for name, alone in single_switches(rules, other).items():
        if only is not None and name not in only:
            continue
        moved = changed_outcomes(here, outcomes(alone), keys)
        same = moved.join(together, on=together.columns, how="semi", nulls_equal=True).height
        explained = same / together.height if together.height else 0.0
        values = str(getattr(rules, name)), str(getattr(other, name))
        one = rules.SWITCHES[name]
        rows.append((name, one.note, one.source, *values, moved.height, explained))
    table = pl.DataFrame(rows, schema=BY_SWITCH, orient="row")
    return table.sort("explained", "n_changed", "switch", descending=[True, True, False])
