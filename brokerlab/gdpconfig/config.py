"""The configuration as it was: exact look-up rules, typed values, defaults of the catalogue.

Source: docs/rules/gdpconfig.md, Look-up rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from brokerlab.errors import ConfigError, nearest, warn_once
from brokerlab.gdpconfig import entry as stored
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.entry import Entry, Value, convert, to_text
from brokerlab.gdpconfig.keys import chain, expand, scope_names
from brokerlab.results import Result, Shows
from brokerlab.schemas import digest_of
from brokerlab.times import time_of

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from brokerlab.archive.given import Source

Place: TypeAlias = tuple[str, str, str]
Candidates: TypeAlias = tuple[Entry, ...]

_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(stored.COLUMNS[:-2], pl.String),
    **dict.fromkeys(stored.COLUMNS[-2:], pl.Datetime("us")),
}


@dataclass(frozen=True)
class Found:
    """Where a value comes from.

    Attributes:
        value: What the system acts on; null = none.
        entry: The stored entry; null = the default of the catalogue.
    """

    value: Any
    entry: Entry | None
    row: known.CatalogueKey


@dataclass(frozen=True, repr=False)
class Config(Result):
    """A configuration; made by :meth:`from_frame`, :meth:`from_file` or :meth:`empty`; entries in the order of the table.

    Example:
        >>> config = Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 80})
        >>> config.get("SCOUT_RAMCOUNT_RANK"), config.get("SCOUT_CPUTIME_RANK")
        (80, 95)
        >>> config.get("SCOUT_SHORT_EXECTIME_<prodsourcelabel>", prodsourcelabel="user")
        0
    """

    shows = Shows(
        about="settings, one row per entry; keys without an entry have their default",
        columns="app, component, key, value, type, vo",
        keys=("app", "component", "key", "vo"),
        next=(".get(key)", ".with_values({key: value})", "gdpconfig.catalogue()"),
    )

    entries: tuple[Entry, ...] = ()

    @classmethod
    def empty(cls) -> Config:
        """Return the configuration without entries: every look-up gives the default."""
        return cls()

    @classmethod
    def from_frame(cls, frame: IntoFrame) -> Config:
        """Read a table ``gdpconfig``; see :func:`brokerlab.gdpconfig.entry.entries_of_frame`."""
        return cls(stored.entries_of_frame(frame))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, object]]) -> Config:
        """Read mappings, one per entry; an absent key is null."""
        return cls(stored.entries_of_rows(rows, "gdpconfig"))

    @classmethod
    def from_file(cls, path: str | Path) -> Config:
        """Read a CSV or JSON export (see :func:`brokerlab.gdpconfig.entry.entries_of_file`), or the folder of an archive."""
        if Path(path).is_dir():
            from brokerlab import archive

            return cls.from_frame(archive.open(path).scan("gdpconfig"))
        return cls(stored.entries_of_file(path))

    @classmethod
    def recorded(cls, source: Source, at: datetime | None = None) -> Config:
        """Read what an archive, or its tables by name, recorded: as it acts at a time, null: with its history; empty if it recorded nothing."""
        from brokerlab.archive.given import scans_of

        tables = scans_of(source, (), ["gdpconfig"])
        config = cls.from_frame(tables["gdpconfig"].collect()) if tables else cls.empty()
        return config if at is None else config.at(at)

    def frame(self) -> pl.DataFrame:
        """Return the entries as a table ``gdpconfig``, one row per entry, in their order."""
        rows = [{name: getattr(entry, name) for name in _SCHEMA} for entry in self.entries]
        return pl.DataFrame(rows, schema=_SCHEMA)

    @cached_property
    def _index(self) -> dict[Place, Candidates]:
        index: dict[Place, list[Entry]] = {}
        for entry in self.entries:
            index.setdefault(entry.place, []).append(entry)
        return {place: tuple(entries) for place, entries in index.items()}

    @cached_property
    def _memo(self) -> dict[tuple[Place, str | None], tuple[Value, Entry | None]]:
        """Look-ups already made: each is converted, and warned about, once per configuration."""
        return {}

    @cached_property
    def has_history(self) -> bool:
        """Some entry holds for a part of the time only: choose a time with :meth:`at` first."""
        return any(entry.has_history for entry in self.entries)

    def at(self, time: datetime, *, latency_s: float = 0.0) -> Config:
        """Return the configuration that acts at a time, with entries that hold, without their times; itself without a history.

        Args:
            time: UTC without zone.
            latency_s: A change acts this much later [s]; production caches values for up to an hour.

        Raises:
            ConfigError: The time has a zone.

        Source: docs/rules/gdpconfig.md, Look-up rules, 6.
        """
        acting = time_of(time, "gdpconfig: time")
        if not self.has_history:
            return self
        moment = acting - timedelta(seconds=latency_s)
        return Config(
            tuple(
                replace(entry, valid_from=None, valid_to=None)
                for entry in self.entries
                if entry.holds_at(moment)
            )
        )

    def candidates(self, app: str, component: str, key: str, vo: str | None = None) -> Candidates:
        """Return the entries that a look-up finds, the one that is used first; among equals in the order of the table.

        With a VO its entries, then those without VO; null: all entries, VO not looked at.

        Raises:
            ConfigError: An entry holds for a part of the time and no time was chosen with :meth:`at`.

        Source: docs/rules/gdpconfig.md, Look-up rules, 1 and 2.
        """
        result = self._index.get((app, component, key), ())
        if any(entry.has_history for entry in result):
            raise ConfigError(
                f"gdpconfig {app}/{component}/{key} has a history: say when, config.at(time)"
            )
        if vo is None:
            return result
        own = tuple(entry for entry in result if entry.vo == vo)
        return own + tuple(entry for entry in result if entry.vo is None)

    def look_up(
        self, app: str, component: str, key: str, vo: str | None = None
    ) -> tuple[Value, Entry | None]:
        """Look one exact key up as the real system does, without catalogue and defaults: the value, and its entry.

        Null if there is no entry, or if it cannot be converted by its type (with a :class:`BrokerlabWarning`).

        Raises:
            ConfigError: An entry holds for a part of the time and no time was chosen with :meth:`at`.

        Source: docs/rules/gdpconfig.md, Look-up rules, 1 to 3; vectors ``config_value``.
        """
        place = (app, component, key)
        memo = self._memo.get((place, vo))
        if memo is not None:
            return memo
        results = self.candidates(*place, vo=vo)
        result: tuple[Value, Entry | None] = (None, None)
        if results:
            name = "/".join(place)
            if sum(entry.vo == results[0].vo for entry in results) > 1:
                _warn(
                    f"gdpconfig {name}: several entries for VO {results[0].vo}; the first is used"
                )
            try:
                value = convert(results[0].value, results[0].value_json, results[0].type)
                result = (value, results[0])
            except ValueError as error:
                _warn(f"gdpconfig {name} counts as undefined: {error}")
        self._memo[place, vo] = result
        return result

    def get(
        self,
        key: str,
        *,
        app: str | None = None,
        component: str | None = None,
        vo: str | None = None,
        **scope: str | None,
    ) -> Any:
        """Return the value that the system acts on, else the default of the catalogue, else null.

        Args:
            key: Exact key, asked alone; or a pattern of the catalogue, asked with its fallback chain.
            app: Name of the app; null = where the catalogue says.
            component: Name of the component; null = where the catalogue says.
            vo: VO of the task. Used where the catalogue says that the query has the task's VO; a key asked
                with a fixed VO or without one takes no notice of it.
            **scope: Values of the placeholders, e.g. ``prodsourcelabel="user", gshare="Express"``. Names
                that the pattern does not have are left aside; a null value means that no entry can exist.

        Raises:
            ConfigError: Unknown key or placeholder, a place where the key is never read, a missing value for a
                required placeholder, or a history without a chosen time.

        Source: docs/rules/gdpconfig.md, Look-up rules, 4 and 5.
        """
        return self.found(key, app=app, component=component, vo=vo, **scope).value

    def found(
        self,
        key: str,
        *,
        app: str | None = None,
        component: str | None = None,
        vo: str | None = None,
        **scope: str | None,
    ) -> Found:
        """Return the value of :meth:`get` with the entry and the catalogue row it comes from."""
        row = known.find(key, app, component)
        asked_vo = vo if row.asked_vo == "" else row.asked_vo
        place = (row.app, component or known.only_component(row))
        if row.never_read:
            return Found(None, None, row)
        exact = key != row.key
        texts = {name: text for name, text in scope.items() if text is not None}
        names = [key] if exact else _keys(row, scope, texts)
        for name in names:
            value, entry = self.look_up(*place, name, asked_vo)
            if entry is not None and _counts(value, row):
                return Found(value, entry, row)
        return Found(self._default(row, texts), None, row)

    def _default(self, row: known.CatalogueKey, scope: Mapping[str, str]) -> Value:
        """Return the default; the few that are expressions in words are computed here."""
        if row.key == "HEARTBEAT_TIMEOUT_<workflow>":
            return 2 if scope.get("workflow") in ("production", "analysis") else None
        if row.key == "JUMBO_MIN_EVENTS_ENABLE":
            return 10 * int(self.get("JUMBO_MIN_EVENTS_DISABLE"))
        if row.key == "JUMBO_MAX_EVENTS":
            return int(self.get("JUMBO_MAX_TASKS")) * int(self.get("JUMBO_MIN_EVENTS_ENABLE")) // 2
        return row.default

    def with_values(self, values: Mapping[str, Value]) -> Config:
        """Return the configuration with other values: "what if".

        The entry that the look-up finds has the new value; a key without entry gets one without VO.

        Args:
            values: Exact key -> value of the catalogue's type; null removes the entry. ``app/component/KEY``
                names the place of a key that is read in several.

        Raises:
            ConfigError: Unknown keys, patterns, wrong types; all in one message.

        Example:
            >>> Config.empty().with_values({"jedi/jobbroker/MIN_INPUT_COMPLETENESS": 80}).entries[0].value
            '80'
        """
        entries = list(self.entries)
        problems = []
        places: set[Place] = set()
        for name, value in values.items():
            try:
                place = known.resolve(name)
                self._set(entries, place, value)
            except ConfigError as error:
                problems.append(str(error))
                continue
            if place in places:
                problems.append(f"gdpconfig key {name!r} is given twice")
            places.add(place)
        if problems:
            raise ConfigError("; ".join(problems))
        return Config(tuple(entries))

    def _set(self, entries: list[Entry], place: Place, value: Value) -> None:
        app, component, key = place
        row = known.find(key, app, component)
        known.check_value(row, key, value)
        result = self.candidates(app, component, key, row.asked_vo or None)
        if value is None:
            entries[:] = [entry for entry in entries if not result or entry is not result[0]]
            return
        text, text_json, kind = to_text(
            float(value) if row.type == "float" and isinstance(value, int) else value
        )
        if not result:
            entries.append(Entry(app, component, key, text, text_json, kind))
            return
        new = replace(result[0], value=text, value_json=text_json, type=kind)
        entries[:] = [new if entry is result[0] else entry for entry in entries]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content in canonical JSON, ``sha256:...``.

        The order of entries with different places and the remarks do not matter; the order of entries of one
        place does, because the first one found is used.
        """
        rows = []
        for entry in sorted(self.entries, key=lambda entry: entry.place):
            row = {name: getattr(entry, name) for name in stored.COLUMNS if name != "descr"}
            rows.append({name: str(value) for name, value in row.items() if value is not None})
        return digest_of(rows)


def _keys(
    row: known.CatalogueKey, scope: Mapping[str, str | None], texts: Mapping[str, str]
) -> list[str]:
    """Return the exact keys to ask; none if a required placeholder is null."""
    required, optional = scope_names(row.key)
    unknown = [name for name in scope if name not in required | optional | _all_placeholders()]
    missing = sorted(required - scope.keys())
    problems = [f"{name!r} is unknown: {nearest(name, _all_placeholders())}" for name in unknown]
    problems += [f"a value is needed for {name!r}" for name in missing]
    if problems:
        raise ConfigError(f"gdpconfig key {row.key!r}, placeholders: {'; '.join(problems)}")
    return expand(row.key, texts)


@cache
def _all_placeholders() -> frozenset[str]:
    names = {name for row in known.rows() for group in scope_names(row.key) for name in group}
    return frozenset(name for name in names if name.isidentifier())


def _counts(value: Value, row: known.CatalogueKey) -> bool:
    """Whether a stored value counts as defined for the code that reads the key."""
    numeric = row.type in ("int", "float")
    if numeric and (isinstance(value, bool) or not isinstance(value, int | float)):
        _warn(f"gdpconfig {row.key} counts as undefined: {value!r} is not of type {row.type}")
        return False
    if not numeric or not isinstance(value, int | float):
        return True
    if value == 0 and (row.zero_is_undefined or chain(row.key).non_zero):
        return False
    return not (value < 0 and row.negative_is_undefined)


def _warn(message: str) -> None:
    warn_once(message, stacklevel=4)
