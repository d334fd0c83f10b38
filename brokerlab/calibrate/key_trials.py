"""Other values of gdpconfig keys, one key at a time, between the guard rails of the catalogue."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerlab.errors import ConfigError, nearest
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.fallbacks import expand, scope_names
from brokerlab.gdpconfig.keys import CatalogueKey, rows_of
from brokerlab.gdpconfig.ranges import grid

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
