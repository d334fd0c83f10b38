"""The catalogue: every configuration key, where it is read, its type, default and sensible bounds, and the keys asked in its place.

The rows are package data (``catalogue.csv``, one per app, component and key or key pattern).

Source: docs/rules/gdpconfig.md, Columns, Calibration, and Look-up rules, 5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from types import MappingProxyType
from typing import cast

import polars as pl

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.entry import Value

PLACEHOLDER = re.compile(r"<([^<>]+)>")
"""``<prodsourcelabel>`` in a key pattern."""


@dataclass(frozen=True)
class Chain:
    """The keys to ask one after the other; a template with a placeholder that has no value is passed over.

    If ``non_zero``, the first value that is not 0 wins, instead of the first that is defined.
    """

    keys: tuple[str, ...]
    non_zero: bool = False


def _throttler(name: str) -> Chain:
    forms = ("_<gshare>_<resource_type>", "_<gshare>_<cores>*", "_<gshare>")
    return Chain(tuple(name + form for form in forms), non_zero=True)


_RESOURCE_FORMS = "_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"

CHAINS: Mapping[str, Chain] = MappingProxyType(
    {
        "DISK_THRESHOLD[_<gshare>]": Chain(("DISK_THRESHOLD_<gshare>", "DISK_THRESHOLD")),
        "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]": Chain(
            ("MIN_WEIGHT_<prodsourcelabel>_<gshare>", "MIN_WEIGHT_<prodsourcelabel>")
        ),
        "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>[_<gshare>]": Chain(
            (
                "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>_<gshare>",
                "MAX_JOB_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>",
            )
        ),
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>[_<gshare>]": Chain(
            (
                "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>_<gshare>",
                "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE_<prodsourcelabel>",
            )
        ),
        "ANALY_TIMEOUT[_<workinggroup>]": Chain(("ANALY_TIMEOUT_<workinggroup>", "ANALY_TIMEOUT")),
        "NQUEUELIMIT" + _RESOURCE_FORMS: _throttler("NQUEUELIMIT"),
        "NQUEUECAP" + _RESOURCE_FORMS: _throttler("NQUEUECAP"),
        "NRUNNINGCAP" + _RESOURCE_FORMS: _throttler("NRUNNINGCAP"),
        "TYPNFILES_<prodsourcelabel>_[<gshare>]_<processingtype>": Chain(
            (
                "TYPNFILES_<prodsourcelabel>_<gshare>_<processingtype>",
                "TYPNFILES_<prodsourcelabel>__<processingtype>",
            )
        ),
    }
)
"""Key pattern with an optional part -> its chain; every other pattern is its own chain."""


def chain(pattern: str) -> Chain:
    """Return the chain of a catalogue key or pattern."""
    return CHAINS.get(pattern) or Chain((pattern,))


def scope_names(pattern: str) -> tuple[set[str], set[str]]:
    """Return the required and the optional placeholders of a key pattern.

    Example:
        >>> required, optional = scope_names("MIN_WEIGHT_<prodsourcelabel>[_<gshare>]")
        >>> sorted(required), sorted(optional)
        (['prodsourcelabel'], ['gshare'])
    """
    required = set(PLACEHOLDER.findall(re.sub(r"\[.*?\]", "", pattern)))
    return required, set(PLACEHOLDER.findall(pattern)) - required


def has_scope(pattern: str, key: str, scope: Mapping[str, str]) -> bool:
    """Whether an exact key of a pattern acts for a scope only: all of it stands in the name of the key.

    The name may hold further placeholders; of these only a resource type may hold underscores, so that "A_B" is not read as a
    share "B" of a label that ends in "A".

    Example:
        >>> pattern = "MIN_WEIGHT_<prodsourcelabel>[_<gshare>]"
        >>> [has_scope(pattern, "MIN_WEIGHT_managed_A", {"gshare": name}) for name in ("A", "B")]
        [True, False]
        >>> has_scope("SCOUT_RAMCOUNT_RANK", "SCOUT_RAMCOUNT_RANK", {"gshare": "A"})
        False
    """
    for template in chain(pattern).keys:
        parts = PLACEHOLDER.split(template)
        if scope.keys() <= set(parts[1::2]):
            others = {name: ".+" if name == "resource_type" else "[^_]+" for name in parts[1::2]}
            texts = {**others, **{name: re.escape(value) for name, value in scope.items()}}
            parts = [texts[part] if i % 2 else re.escape(part) for i, part in enumerate(parts)]
            if re.fullmatch("".join(parts), key):
                return True
    return False


def expand(pattern: str, scope: Mapping[str, str]) -> list[str]:
    """Return the exact keys to ask, in order; a missing value leaves out the forms that need it.

    ``<cores>`` follows from the first five letters of the resource type.

    Example:
        >>> expand("DISK_THRESHOLD[_<gshare>]", {"gshare": "MC 16 simul"})
        ['DISK_THRESHOLD_MC 16 simul', 'DISK_THRESHOLD']
        >>> pattern = "NQUEUECAP_<gshare>[_<resource_type>|_MCORE*|_SCORE*]"
        >>> expand(pattern, {"gshare": "Express", "resource_type": "MCORE_HIMEM"})
        ['NQUEUECAP_Express_MCORE_HIMEM', 'NQUEUECAP_Express_MCORE*', 'NQUEUECAP_Express']
    """
    values = dict(scope)
    cores = scope.get("resource_type", "")[:5]
    if cores in ("MCORE", "SCORE"):
        values["cores"] = cores
    return [
        PLACEHOLDER.sub(lambda found: values[found[1]], template)
        for template in chain(pattern).keys
        if set(PLACEHOLDER.findall(template)) <= values.keys()
    ]


PILOT_APP = "pilot"
"""Every key of this app is published to pilots, whatever its name."""

MAX_KEY_LENGTH = 250
"""No key of the catalogue, with any scope, comes near this many characters."""


@dataclass(frozen=True)
class CatalogueKey:
    """One row of the catalogue.

    Attributes:
        key: Exact key or pattern: ``<x>`` required, ``[_<x>]`` optional.
        components: The components that read it; several where it depends on the activity.
        type: ``int, float, bool, str, json, any``.
        unit: Of the value; "tenths of jobs" is divided by 10 to get a fraction.
        default_text: What the code uses if the key is absent, in words.
        vo: VO of the look-up: a fixed name, the task's, or ``any`` for none.
        used_by: Chapter and rule, or component.
        minimum: Lower sensible bound [unit], null = none; as ``maximum``.
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
    """Read the catalogue's ``default`` as a value; of a bool the remark of ``none (true)`` says what an absent key acts like.

    It is a number, ``true|false``, a word, ``none ...`` or ``not read`` for no value, a number followed by a remark, or an
    expression in words (no value; ``Config.get`` computes it).

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


@cache
def rows() -> tuple[CatalogueKey, ...]:
    """Return the rows of the catalogue, in its order."""
    table = catalogue().rename(_NAMED)
    return tuple(
        CatalogueKey(**row | {"components": tuple(row["components"].split("|"))})
        for row in table.iter_rows(named=True)
    )


_NAMED = {
    "component": "components",
    "default": "default_text",
    "sensible_min": "minimum",
    "sensible_max": "maximum",
}
"""Columns of the catalogue to attributes of a row, where they differ."""


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
    """Return the catalogue row of a key, exact or a pattern, at a place; null = wherever the catalogue says.

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
    """Return the place of ``KEY`` or ``app/component/KEY``; refuse a pattern, and a place that is not unique.

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
    """Refuse a value that is not of the catalogue's type; null and type ``any`` are always good."""
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
    """Return the component of a row that has only one; refuse one where it depends on the activity."""
    if len(row.components) > 1:
        raise ConfigError(
            f"gdpconfig key {row.key!r} is read in {' and '.join(row.components)}: "
            "say which component is meant"
        )
    return row.components[0]


def nearest_key(key: str) -> str:
    """Return a hint naming the catalogue key closest to an unknown one."""
    return nearest(key[:200], _by_name(), "see brokerlab.gdpconfig.catalogue()")


def catalogue() -> pl.DataFrame:
    """Return the catalogue as a table, one row per app, component(s) and key, in the order of the file.

    ``key, app, component, type, unit, default`` (text), ``vo, used_by, effect`` (String), ``sensible_min, sensible_max``
    (Float64 [unit], null = no bound), ``documented, scope`` (String).

    Example:
        >>> catalogue().shape
        (148, 13)
    """
    text = resources.files("brokerlab.gdpconfig").joinpath("catalogue.csv").read_bytes()
    bounds = ("sensible_min", "sensible_max")
    table = pl.read_csv(text, infer_schema=False)
    return table.with_columns(pl.exclude(bounds).fill_null(""), pl.col(bounds).cast(pl.Float64))
