"""What differs between two configurations."""

from __future__ import annotations

import polars as pl

from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry

_SCHEMA = dict.fromkeys(
    ["app", "component", "key", "vo", "change", "old", "new", "default", "unit"], pl.String
)


def diff(old: Config, new: Config) -> pl.DataFrame:
    """Return the entries that two configurations do not share.

    One row per place and VO whose used entry differs, sorted by app, component, key, VO; all String:
    ``app, component, key, vo`` (null = all), ``change`` (added, removed, changed), ``old, new`` (text of the
    value, null = no entry), ``default`` (what the catalogue says acts without an entry, null = unknown key),
    ``unit``. Remarks, and entries that are never used because an equal one comes first, are not looked at.

    Raises:
        ConfigError: A configuration has a history; compare ``config.at(time)``.

    Example:
        >>> a = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 80})
        >>> diff(Config.empty(), a).select("key", "change", "old", "new", "default").row(0)
        ('SCOUT_RAMCOUNT_RANK', 'added', None, '80', '75')
    """
    before, after = _used(old), _used(new)
    places = sorted(before.keys() | after.keys(), key=lambda place: (*place[:3], place[3] or ""))
    table = []
    for place in places:
        first, second = before.get(place), after.get(place)
        if _content(first) == _content(second):
            continue
        app, component, key, vo = place
        row = _catalogue_row(app, component, key)
        table.append(
            {
                "app": app,
                "component": component,
                "key": key,
                "vo": vo,
                "change": "added" if first is None else "removed" if second is None else "changed",
                "old": shown(first),
                "new": shown(second),
                "default": None if row is None else row.default_text,
                "unit": None if row is None else row.unit,
            }
        )
    return pl.DataFrame(table, schema=_SCHEMA)


def shown(entry: Entry | None) -> str | None:
    """Return the text of an entry's value, whichever column holds it."""
    if entry is None:
        return None
    return entry.value if entry.value is not None else entry.value_json


def _used(config: Config) -> dict[tuple[str, str, str, str | None], Entry]:
    if config.has_history:
        raise ConfigError("a gdpconfig with a history cannot be compared: choose config.at(time)")
    used: dict[tuple[str, str, str, str | None], Entry] = {}
    for entry in config.entries:
        used.setdefault((*entry.place, entry.vo), entry)
    return used


def _content(entry: Entry | None) -> tuple[str | None, ...] | None:
    if entry is None:
        return None
    return entry.value, entry.value_json, (entry.type or "").lower()


def _catalogue_row(app: str, component: str, key: str) -> known.CatalogueKey | None:
    try:
        return known.find(key, app, component)
    except ConfigError:
        return None
