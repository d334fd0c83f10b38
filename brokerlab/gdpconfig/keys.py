"""The catalogue: every configuration key, where it is read, its type, default and sensible bounds.

The rows are package data (``catalogue.csv``, one per app, component and key or key pattern).

Source: docs/rules/gdpconfig.md, Columns and Calibration.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Literal, cast

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.fallbacks import scope_names
from brokerlab.gdpconfig.values import Value

PILOT_APP = "pilot"
"""Every key of this app is published to pilots, whatever its name."""

MAX_KEY_LENGTH = 250
"""No key of the catalogue, with any scope, comes near this many characters."""

CALIBRATED_SCOPES = ("scout", "exhausted", "brokerage", "throttle", "rebrokerage")
LINEAR_UNITS = frozenset(
    {
        *("%", "fraction", "percentile", "ratio", "factor", "h", "tenths of jobs"),
        # not named by the rule: ranges of one or two decades, 0 is an ordinary value
        *("min", "days", "weight", "priority", "attempts"),
    }
)
"""Units searched on a linear scale; all others (sizes, counts, rates) on a logarithmic one."""


@dataclass(frozen=True)
class CatalogueKey:
    """One row of the catalogue.

    Attributes:
        key: Exact key or pattern: ``<x>`` required, ``[_<x>]`` optional.
        app: Where the entry is stored.
        components: The components that read it; several where it depends on the activity.
        type: ``int, float, bool, str, json, any``.
        unit: Unit of the value; "tenths of jobs" is divided by 10 to get a fraction.
        default_text: What the code uses if the key is absent, in words.
        vo: VO of the look-up: a fixed name, the task's, or ``any`` for none.
        used_by: Chapter and rule, or component.
        effect: What it does.
        minimum: Lower sensible bound [unit], null = none.
        maximum: Upper sensible bound [unit], null = none.
        documented: ``yes`` or where it stands instead.
        scope: Part of the system it belongs to.
    """

    key: str
    app: str
    components: tuple[str, ...]
    type: str
    unit: str
    default_text: str
    vo: str
    used_by: str
    effect: str
    minimum: float | None
    maximum: float | None
    documented: str
    scope: str

    @cached_property
    def default(self) -> Value:
        """The default as a value of the key's type; null = no value."""
        return parse_default(self.default_text, self.type)

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The expression that exact keys of this pattern match; null for an exact key.

        At most three placeholders, so at most cubic in the length of a key, which :func:`rows_of` limits.
        """
        required, optional = scope_names(self.key)
        if not required | optional or self.app == PILOT_APP:
            return None
        text = re.escape(self.key).replace(r"\[<gshare>\]", "[^_]*")
        text = re.sub(r"\\\[(_.+?)\\\]", lambda part: f"(?:{part[1]})?".replace(r"\|", "|"), text)
        return re.compile(re.sub(r"<\w+>", ".+?", text) + r"\Z")

    @property
    def never_read(self) -> bool:
        """The key is documented, but no code asks for it."""
        return self.default_text == "not read"

    @property
    def zero_is_undefined(self) -> bool:
        """The code tests the truth of the value: 0 means the default."""
        return "0 means the default" in self.effect

    @property
    def negative_is_undefined(self) -> bool:
        """A negative value means the default."""
        return "negative means the default" in self.effect

    @property
    def asked_vo(self) -> str | None:
        """The VO of every look-up if it is a fixed name, ``""`` if it is the task's, null if there is none."""
        if self.vo.startswith("any") or self.vo == "-":
            return None
        return self.vo if " " not in self.vo else ""


def parse_default(text: str, type_name: str) -> Value:
    """Read the catalogue's ``default`` as a value.

    Args:
        text: A number, ``true|false``, a word, ``none ...`` or ``not read`` for no value, a number
            followed by a remark, or an expression in words (no value; ``Config.get`` computes it).
        type_name: Type of the key.

    Returns:
        The value or null. For a bool the remark of ``none (true)`` says what an absent key acts like.

    Source: docs/rules/gdpconfig.md, Columns.

    Example:
        >>> parse_default("95", "int"), parse_default("0.5", "float"), parse_default("none (true)", "bool")
        (95, 0.5, True)
        >>> parse_default("999999 (off)", "int"), parse_default("none (no limit)", "int")
        (999999, None)
    """
    if type_name == "bool":
        return "true" in text
    if text.startswith(("none", "not read")):
        return 168 if "static setting, 168" in text else None
    if type_name == "str":
        return text
    number = re.match(r"(-?\d+(?:\.\d+)?)(?=$| \(| and )", text)
    if number is None:
        return None
    return float(number[1]) if type_name == "float" else int(number[1])


def _bound(text: str) -> float | None:
    return float(text) if text else None


@cache
def rows() -> tuple[CatalogueKey, ...]:
    """Return the rows of the catalogue, in its order."""
    text = resources.files("brokerlab.gdpconfig").joinpath("catalogue.csv").read_text("utf-8")
    return tuple(
        CatalogueKey(
            key=row["key"],
            app=row["app"],
            components=tuple(row["component"].split("|")),
            type=row["type"],
            unit=row["unit"],
            default_text=row["default"],
            vo=row["vo"],
            used_by=row["used_by"],
            effect=row["effect"],
            minimum=_bound(row["sensible_min"]),
            maximum=_bound(row["sensible_max"]),
            documented=row["documented"],
            scope=row["scope"],
        )
        for row in csv.DictReader(text.splitlines())
    )


@cache
def _by_name() -> dict[str, tuple[CatalogueKey, ...]]:
    names: dict[str, tuple[CatalogueKey, ...]] = {}
    for row in rows():
        names[row.key] = (*names.get(row.key, ()), row)
    return names


@cache
def _patterns() -> tuple[CatalogueKey, ...]:
    """Patterns, those with the most literal text first, so that the most special one matches."""
    patterns = [row for row in rows() if row.pattern is not None]
    return tuple(sorted(patterns, key=lambda row: -len(re.sub(r"<.*?>|\[.*?\]", "", row.key))))


@cache
def rows_of(key: str) -> tuple[CatalogueKey, ...]:
    """Return the catalogue rows of an exact key or a pattern, in any app and component; empty if unknown.

    Example:
        >>> [row.components for row in rows_of("MAX_MISSING_INPUT_FILES")]
        [('jobbroker',), ('anal_jobbroker',)]
        >>> [row.key for row in rows_of("SCOUT_SHORT_EXECTIME_user")]
        ['SCOUT_SHORT_EXECTIME_<prodsourcelabel>']
    """
    exact = _by_name().get(key)
    if exact:
        return exact
    if len(key) > MAX_KEY_LENGTH:
        return ()
    for row in _patterns():
        if cast("re.Pattern[str]", row.pattern).match(key):
            return _by_name()[row.key]
    return ()


def find(key: str, app: str | None = None, component: str | None = None) -> CatalogueKey:
    """Return the catalogue row of a key at a place.

    Args:
        key: Exact key or pattern.
        app: Name of the app; null = wherever the catalogue says.
        component: Name of the component; null = wherever the catalogue says.

    Returns:
        The row.

    Raises:
        ConfigError: The key is unknown, is never read at that place, or the place is needed to tell.

    Example:
        >>> find("SCOUT_RAMCOUNT_RANK").default
        75
        >>> find("SCOUT_RAMCOUNT_RNAK")
        Traceback (most recent call last):
        ...
        brokerlab.errors.ConfigError: gdpconfig key 'SCOUT_RAMCOUNT_RNAK' is unknown: did you mean 'SCOUT_RAMCOUNT_RANK'?
    """
    known = rows_of(key)
    if not known:
        raise ConfigError(f"gdpconfig key {key!r} is unknown: {nearest_key(key)}")
    places = [f"{row.app}/{component_}" for row in known for component_ in row.components]
    fitting = [
        row
        for row in known
        if app in (None, row.app) and (component is None or component in row.components)
    ]
    if not fitting:
        raise ConfigError(
            f"gdpconfig key {key!r} is never read at {app or '*'}/{component or '*'}; "
            f"it is read at {', '.join(places)}"
        )
    if len(fitting) > 1:
        raise ConfigError(
            f"gdpconfig key {key!r} is read at {', '.join(places)}: say which component is meant"
        )
    return fitting[0]


def resolve(name: str) -> tuple[str, str, str]:
    """Return the place of ``KEY`` or ``app/component/KEY``.

    Raises:
        ConfigError: The key is unknown, is a pattern, or its place is not unique.

    Example:
        >>> resolve("SCOUT_RAMCOUNT_RANK")
        ('jedi', 'dbproxy', 'SCOUT_RAMCOUNT_RANK')
    """
    parts = name.split("/", 2)
    app, component, key = parts if len(parts) == 3 else (None, None, name)
    row = find(key, app, component)
    if row.key == key and row.pattern is not None:
        raise ConfigError(f"gdpconfig key {key!r} is a pattern: put values in place of <...>")
    return row.app, component or only_component(row), key


def check_value(row: CatalogueKey, key: str, value: Value) -> None:
    """Refuse a value that is not of the catalogue's type; null and type ``any`` are always good.

    Raises:
        ConfigError: What was found and what is needed.
    """
    allowed: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "str": (str,),
        "json": (dict, list),
    }
    types = allowed.get(row.type)
    if value is None or types is None:
        return
    if not isinstance(value, types) or (isinstance(value, bool) and row.type != "bool"):
        raise ConfigError(f"gdpconfig key {key!r} is of type {row.type}, found {value!r}")
    if value != value:
        raise ConfigError(f"gdpconfig key {key!r}: NaN is no value")


def only_component(row: CatalogueKey) -> str:
    """Return the component of a row that has only one.

    Raises:
        ConfigError: It depends on the activity.
    """
    if len(row.components) > 1:
        raise ConfigError(
            f"gdpconfig key {row.key!r} is read in {' and '.join(row.components)}: "
            "say which component is meant"
        )
    return row.components[0]


def nearest_key(key: str) -> str:
    """Return a hint naming the catalogue key closest to an unknown one."""
    hint = nearest(key[:200], _by_name())
    return hint if hint.startswith("did you mean") else "see brokerlab.gdpconfig.catalogue()"


def catalogue() -> pl.DataFrame:
    """Return the catalogue as a table.

    Returns:
        One row per app, component(s) and key, in the order of the file: ``key, app, component, type, unit,
        default`` (text), ``vo, used_by, effect`` (String), ``sensible_min, sensible_max`` (Float64 [unit],
        null = no bound), ``documented, scope`` (String).

    Example:
        >>> catalogue().shape
        (148, 13)
    """
    return pl.DataFrame(
        {
            "key": [row.key for row in rows()],
            "app": [row.app for row in rows()],
            "component": ["|".join(row.components) for row in rows()],
            "type": [row.type for row in rows()],
            "unit": [row.unit for row in rows()],
            "default": [row.default_text for row in rows()],
            "vo": [row.vo for row in rows()],
            "used_by": [row.used_by for row in rows()],
            "effect": [row.effect for row in rows()],
            "sensible_min": pl.Series([row.minimum for row in rows()], dtype=pl.Float64),
            "sensible_max": pl.Series([row.maximum for row in rows()], dtype=pl.Float64),
            "documented": [row.documented for row in rows()],
            "scope": [row.scope for row in rows()],
        }
    )


@dataclass(frozen=True)
class SearchRange:
    """How one key may be searched.

    Attributes:
        key: The catalogue row.
        minimum: Smallest value to try [unit of the key]; 1 instead of 0 on a logarithmic scale.
        maximum: Largest value to try [unit of the key].
        scale: ``linear`` or ``log``.
        integer: Only whole numbers.
    """

    key: CatalogueKey
    minimum: float
    maximum: float
    scale: Literal["linear", "log"]
    integer: bool


def calibratable() -> tuple[SearchRange, ...]:
    """Return the keys offered to calibration, in catalogue order.

    Returns:
        Rows of the scopes scout, exhausted, brokerage, throttle and rebrokerage with a numeric type and both
        bounds.

    Source: docs/rules/gdpconfig.md, Calibration.

    Example:
        >>> {r.key.key: (r.minimum, r.maximum, r.scale) for r in calibratable()}["SCOUT_DISK_IO_CAP"]
        (100.0, 100000.0, 'log')
    """
    ranges = []
    for row in rows():
        numeric = row.type in ("int", "float")
        if row.scope not in CALIBRATED_SCOPES or not numeric:
            continue
        if row.minimum is None or row.maximum is None:
            continue
        scale: Literal["linear", "log"] = "linear" if row.unit in LINEAR_UNITS else "log"
        minimum = 1.0 if scale == "log" and row.minimum <= 0 else row.minimum
        ranges.append(SearchRange(row, minimum, row.maximum, scale, row.type == "int"))
    return tuple(ranges)
