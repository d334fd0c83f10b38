"""Values of a key to try: from the least to the largest that the catalogue calls sensible, and configurations with them, one key at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.keys import CatalogueKey, expand, rows_of, scope_names

LINEAR_UNITS = frozenset(
    {
        *("%", "fraction", "percentile", "ratio", "factor", "h", "tenths of jobs"),
        # not named by the rule: ranges of one or two decades, 0 is an ordinary value
        *("min", "days", "weight", "priority", "attempts"),
    }
)
"""Units searched on a linear scale; all others (sizes, counts, rates) on a logarithmic one."""
APART = 1.5
"""Factor by which other values keep away from the half and the double of the current one."""
DECADES = 10**4
"""Range of a key that may be 0, on a logarithmic scale."""


def grid(row: CatalogueKey, current: Any, points: int) -> list[Any]:
    """Return values from the least to the largest sensible one, the current one, its half and its double among them.

    Values from a little below the half to a little above the double are left out, so that no two are nearly the same;
    so is a 0 that only means the default. ``points`` does not count the current one (null = none), its half and its double.
    A key that is no number, or has no bounds, is a ConfigError.

    Example:
        >>> from brokerlab.gdpconfig.keys import rows_of
        >>> grid(rows_of("NQUEUED_SAT_CAP")[0], 150, 4)
        [10, 75, 150, 300, 1000, 10000]
        >>> grid(rows_of("NW_QUEUE_IMPORTANCE")[0], 0.5, 5)
        [0.0, 0.25, 0.5, 1.0]
    """
    if row.type == "bool":
        return [False, True]
    if row.type not in ("int", "float") or row.minimum is None or row.maximum is None:
        raise ConfigError(f"{row.key}: the catalogue gives it no range to try")
    near = near_values(row, current)
    coarse = spread(row, points)
    inner = [
        value
        for value in coarse[1:-1]
        if not near or not near[0] / APART <= value <= near[-1] * APART
    ]
    values = [coarse[0], *inner, row.maximum, *near]
    return sorted({_cast(row, value) for value in values})


def near_values(row: CatalogueKey, current: Any) -> list[Any]:
    """Return half the current value, itself and its double, within the range; nothing where there is none.

    Example:
        >>> from brokerlab.gdpconfig.keys import rows_of
        >>> near_values(rows_of("INPUT_SIZE_FRACTION")[0], 60)
        [30, 60, 100]
    """
    if current is None or isinstance(current, bool):
        return []
    low, high = row.minimum or 0.0, row.maximum or 0.0
    values = [max(low, min(current / 2, high)), current, min(high, max(2 * current, low))]
    return sorted({_cast(row, value) for value in values})


def scale_of(row: CatalogueKey) -> Literal["linear", "log"]:
    """Return how a key is searched (docs/rules/gdpconfig.md, Calibration): ``linear`` or ``log`` (sizes, counts, rates)."""
    return "linear" if row.unit in LINEAR_UNITS or row.type == "bool" else "log"


def spread(row: CatalogueKey, points: int) -> list[float]:
    """Return values spread evenly over the range, on the scale of the key; a 0 that may be set is the first."""
    low, high = row.minimum or 0.0, row.maximum or 0.0
    if scale_of(row) == "linear":
        return [float(value) for value in np.linspace(low, high, points)]
    with_zero = low <= 0 and not row.zero_is_undefined
    first = low if low > 0 else max(1.0, high / DECADES)
    spread = [float(value) for value in np.geomspace(first, high, points - with_zero)]
    return [low, *spread] if with_zero else spread


def _cast(row: CatalogueKey, value: Any) -> int | float:
    """Return a value in the type of the key."""
    return round(value) if row.type == "int" else float(value)


# --- one key at a time --------------------------------------------------------------------------------------------------


POINTS = 4
"""Values of a key, besides the current one, its half and its double."""


@dataclass(frozen=True)
class Trial:
    """One key with the values that are tried.

    Attributes:
        current: Value in force; of a pattern the one of most of what it stands for; null: none.
        base: The configuration that the values are compared with: the one in force, with what `beside` says.
        entries: ``app/component/KEY`` of every entry that is set.
        configs: Value to the configuration with it; the current value is not among them.
        beside: Keys that switch off what reads this one, to the value at which they are switched on in all of these
            configurations.
    """

    row: CatalogueKey
    current: Any
    base: Config
    entries: tuple[str, ...]
    configs: Mapping[Any, Config]
    beside: Mapping[str, Any]


def trial_of(
    config: Config,
    row: CatalogueKey,
    scopes: Mapping[str, Sequence[str]],
    *,
    switches: Iterable[CatalogueKey] = (),
) -> Trial:
    """Return the values of a key to try; a pattern is set for everything it stands for, all alike.

    ``scopes``: placeholder (``prodsourcelabel``, ``workflow``) to the names that occur; one that is missing is a ConfigError.
    ``switches``: keys without which nothing reads this one; those that are off are set to the middle of their range.
    """
    off = [one for one in switches if one.key != row.key and not _current(config, one, scopes)]
    beside = {one.key: grid(one, None, 3)[1] for one in off}
    base = config.with_values(
        {place: beside[one.key] for one in off for place in entries_of(one, scopes)}
    )
    current = _current(base, row, scopes)
    places = entries_of(row, scopes)
    values = [value for value in grid(row, current, POINTS) if value != current]
    configs = {value: base.with_values(dict.fromkeys(places, value)) for value in values}
    return Trial(row, current, base, tuple(places), configs, beside)


def entries_of(row: CatalogueKey, scopes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return ``app/component/KEY`` of every entry that a key stands for; names that no key can hold are left out."""
    keys = [expand(row.key, names)[-1] for names in _names(row, scopes)]
    return [f"{row.app}/{row.components[0]}/{key}" for key in dict.fromkeys(keys) if rows_of(key)]


def _names(row: CatalogueKey, scopes: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    required = sorted(scope_names(row.key)[0])
    missing = [name for name in required if not scopes.get(name)]
    if missing:
        known = ", ".join(sorted(scopes)) or "none"
        raise ConfigError(
            f"{row.key}: no {missing[0]} is known; names are given for {known}: give one in scopes"
        )
    every = itertools.product(*(scopes[name] for name in required))
    return [dict(zip(required, some, strict=True)) for some in every]


def _current(config: Config, row: CatalogueKey, scopes: Mapping[str, Sequence[str]]) -> Any:
    """Return the value in force, of a pattern the one of most of what it stands for."""
    place = {"app": row.app, "component": row.components[0], "vo": "atlas"}
    values = [config.get(row.key, **place, **names) for names in _names(row, scopes)]
    return max(values, key=values.count)


def known_rows(keys: Sequence[str] | None, rows: Sequence[CatalogueKey]) -> list[CatalogueKey]:
    """Return the rows of keys that are asked for, of those that can be tried; null: all."""
    if keys is None:
        return list(rows)
    by_name = {row.key: row for row in rows}
    problems = [f"{key!r}: {nearest(key, by_name)}" for key in keys if key not in by_name]
    if problems:
        raise ConfigError("keys that this screen does not try: " + "; ".join(problems))
    return [by_name[key] for key in dict.fromkeys(keys)]
