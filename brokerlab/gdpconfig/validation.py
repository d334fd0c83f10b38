"""What is suspicious in a configuration, production says nothing about any of it, and what differs between two.

Source: docs/rules/gdpconfig.md, Validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

from brokerlab.errors import ConfigError, warn_once
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry, convert

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

SHOWN = 5
"""Findings of one kind that a message names."""


@dataclass(frozen=True, order=True)
class Finding:
    """One suspicious entry.

    Attributes:
        kind: ``unknown key, pattern, never read there, undefined, type, bounds`` or ``repeated``.
        place: ``app/component/key``.
        vo: Empty = all.
        message: What was found, what is allowed, what to do.
    """

    kind: str
    place: str
    vo: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}{f' (VO {self.vo})' if self.vo else ''}: {self.message}"


def validate(config: Config | IntoFrame, *, strict: bool = False) -> tuple[Finding, ...]:
    """Compare a configuration, or its table, with the catalogue; the findings, sorted by kind and place.

    Raises:
        ConfigError: There are findings and ``strict`` is set.

    Warns:
        BrokerlabWarning: There are findings; one warning for all.

    Source: docs/rules/gdpconfig.md, Validation.

    Example:
        >>> rows = [{"app": "jedi", "component": "dbproxy", "key": "SCOUT_RAMCOUNT_RNAK", "value": "80",
        ...          "type": "int"}]
        >>> validate(Config.from_rows(rows), strict=True)
        Traceback (most recent call last):
        ...
        brokerlab.errors.ConfigError: gdpconfig: 1 finding(s)
        unknown key (1):
          jedi/dbproxy/SCOUT_RAMCOUNT_RNAK: nothing reads it; did you mean 'SCOUT_RAMCOUNT_RANK'?
    """
    checked = config if isinstance(config, Config) else Config.from_frame(config)
    result = [finding for entry in checked.entries for finding in _entry_findings(entry)]
    findings = tuple(sorted([*result, *_repeated(checked)]))
    if findings:
        message = _message(findings)
        if strict:
            raise ConfigError(message)
        warn_once(message, stacklevel=2)
    return findings


def _message(findings: tuple[Finding, ...]) -> str:
    lines = [f"gdpconfig: {len(findings)} finding(s)"]
    for kind, group in groupby(findings, key=lambda finding: finding.kind):
        members = list(group)
        lines.append(f"{kind} ({len(members)}):")
        lines += [f"  {finding}" for finding in members[:SHOWN]]
        if len(members) > SHOWN:
            lines.append(f"  and {len(members) - SHOWN} more")
    return "\n".join(lines)


def _entry_findings(entry: Entry) -> Iterator[Finding]:
    if entry.app == known.PILOT_APP:
        return  # whatever stands there is handed to the pilots
    place, vo = "/".join(entry.place), entry.vo or ""
    rows = known.rows_of(entry.key)
    if not rows:
        message = f"nothing reads it; {known.nearest_key(entry.key)}"
        yield Finding("unknown key", place, vo, message)
    elif any(row.key == entry.key and row.pattern is not None for row in rows):
        message = "is a pattern; nothing reads it until <...> is replaced by a value"
        yield Finding("pattern", place, vo, message)
    else:
        read = [row for row in rows if not row.never_read]
        here = [row for row in read if row.app == entry.app and entry.component in row.components]
        if not here:
            places = ", ".join(f"{row.app}/{'|'.join(row.components)}" for row in read)
            message = f"it is read at {places}" if read else rows[0].effect
            yield Finding("never read there", place, vo, message)
        yield from _value_findings(entry, (here or rows)[0])


def _value_findings(entry: Entry, row: known.CatalogueKey) -> Iterator[Finding]:
    place, vo = "/".join(entry.place), entry.vo or ""
    try:
        value = convert(entry.value, entry.value_json, entry.type)
    except ValueError as error:
        yield Finding("undefined", place, vo, f"counts as undefined: {error}")
        return
    try:
        known.check_value(row, entry.key, value)
    except ConfigError:
        message = f"is stored as {entry.type} ({value!r}), the code needs {row.type}"
        yield Finding("type", place, vo, message)
        return
    low, high = row.minimum, row.maximum
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if (low is not None and value < low) or (high is not None and value > high):
        between = (
            f"{'-inf' if low is None else f'{low:g}'} to {'inf' if high is None else f'{high:g}'}"
        )
        message = f"{value} is outside the sensible range {between} [{row.unit}]"
        yield Finding("bounds", place, vo, message)


def _repeated(config: Config) -> Iterator[Finding]:
    """Yield entries of one place and VO that hold at the same time: only the first one is used."""
    seen: dict[tuple[object, ...], list[Entry]] = {}
    for entry in config.entries:
        others = seen.setdefault((*entry.place, entry.vo), [])
        if any(_overlap(entry, other) for other in others):
            message = "occurs more than once; the first is used, production may use any"
            yield Finding("repeated", "/".join(entry.place), entry.vo or "", message)
        others.append(entry)


def _overlap(one: Entry, other: Entry) -> bool:
    def ends_before(first: Entry, second: Entry) -> bool:
        if first.valid_to is None or second.valid_from is None:
            return False
        return first.valid_to <= second.valid_from

    return not ends_before(one, other) and not ends_before(other, one)


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
