"""A proposal as JSON Patch, for a CONFIG table that is kept as a JSON file.

The patch fits :func:`document` of the base. Its first operation tests the digest of the base, so whoever applies
it to anything else is refused by any program that knows the standard.

Source: RFC 6902 (JSON Patch), sections 4.1 to 4.6; design, idea 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry
from brokerlab.gdpconfig.proposal.parts import Change

Row: TypeAlias = dict[str, Any]
ALWAYS = ("app", "component", "key", "value", "value_json", "type", "vo")
PLACE = ("app", "component", "key", "vo")


def document(config: Config) -> Row:
    """Return a configuration as the JSON document that a patch fits, and that :meth:`Config.from_file` reads.

    ``digest``, and ``entries``: one object per entry, sorted by app, component, key; among equals in the order of the table.

    Example:
        >>> document(Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 80}))["entries"][0]["value"]
        '80'
    """
    entries = sorted(config.entries, key=lambda entry: entry.place)
    return {"digest": config.digest, "entries": [_row(entry) for entry in entries]}


def _row(entry: Entry) -> Row:
    times = {
        name: None if time is None else time.isoformat()
        for name, time in (("valid_from", entry.valid_from), ("valid_to", entry.valid_to))
    }
    row = {**asdict(entry), **times}
    return {name: value for name, value in row.items() if name in ALWAYS or value is not None}


def operations(changes: tuple[Change, ...], before: Config, after: Config) -> list[Row]:
    """Return the operations (``op, path, value``) that turn the document of the base into that of the base with changes in it.

    A test of the digest; for every change a test of what is there and what is put there; the new digest.
    """
    base = document(before)
    steps = [_step("test", "/digest", base["digest"])]
    rows: list[Row] = base["entries"]
    for change in changes:
        if change.action != "none":
            steps += _steps(change, rows)
    return [*steps, _step("replace", "/digest", after.digest)]


def _steps(change: Change, rows: list[Row]) -> list[Row]:
    """Return the operations of one change, and make it in the rows."""
    place = {name: getattr(change, name) for name in PLACE}
    if change.before is None and change.after is not None:
        new = {**dict.fromkeys(ALWAYS), **place, **asdict(change.after)}
        index = sum(_sort_by(row) <= _sort_by(new) for row in rows)
        rows.insert(index, new)
        return [_step("add", f"/entries/{index}", new)]
    index = next(i for i, row in enumerate(rows) if all(row[k] == v for k, v in place.items()))
    path = f"/entries/{index}"
    stored = {} if change.before is None else asdict(change.before)
    steps = [_step("test", f"{path}/{name}", value) for name, value in (place | stored).items()]
    if change.after is None:
        del rows[index]
        return [*steps, {"op": "remove", "path": path}]
    content = {k: v for k, v in asdict(change.after).items() if v != stored.get(k)}
    rows[index].update(content)
    return steps + [_step("replace", f"{path}/{name}", v) for name, v in content.items()]


def _sort_by(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["app"], row["component"], row["key"]


def _step(op: str, path: str, value: object) -> Row:
    return {"op": op, "path": path, "value": value}
