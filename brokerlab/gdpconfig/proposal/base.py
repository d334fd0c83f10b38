"""A proposal and its base: what is touched, whether it still fits, how it is put in.

Source: design, idea 6.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from brokerlab.errors import BrokerlabWarning, ConfigError
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry
from brokerlab.gdpconfig.proposal.parts import Change, Stored
from brokerlab.gdpconfig.values import Value, digest_of
from brokerlab.words import plural


def keys_digest(config: Config, changes: Sequence[Change]) -> str:
    """Return the digest of the touched keys in a configuration: entry and acting value of each."""
    return _states_digest((change.place, change.vo, *_state(config, change)) for change in changes)


def told_digest(changes: Sequence[Change]) -> str:
    """Return what :func:`keys_digest` gives for the base that the changes were made for."""
    return _states_digest(
        (change.place, change.vo, change.before, change.old) for change in changes
    )


def _states_digest(states: Iterable[tuple[str, str | None, Stored | None, Value]]) -> str:
    return digest_of(
        [
            [place, vo, None if entry is None else asdict(entry), acting]
            for place, vo, entry, acting in sorted(states, key=lambda state: str(state[:2]))
        ]
    )


def changes_of(before: Config, names: Iterable[str], values: Mapping[str, Value]) -> list[Change]:
    """Return the changes from a configuration to new values; names without one keep what they have."""
    after = before.with_values(values)
    changes = []
    for name in names:
        app, component, key = known.resolve(name)
        row = known.find(key, app, component)
        first, second = (_first(config, row, app, component, key) for config in (before, after))
        removed = name in values and values[name] is None
        entry = first or second
        changes.append(
            Change(
                app=app,
                component=component,
                key=key,
                vo=entry.vo if entry else None,
                unit=row.unit,
                old=before.found(key, app=app, component=component).value,
                new=after.found(key, app=app, component=component).value,
                before=None if first is None else Stored.of(first),
                after=None if second is None or removed else Stored.of(second),
                minimum=row.minimum,
                maximum=row.maximum,
            )
        )
    return changes


def _first(
    config: Config, row: known.CatalogueKey, app: str, component: str, key: str
) -> Entry | None:
    candidates = config.candidates(app, component, key, row.asked_vo or None)
    return candidates[0] if candidates else None


def _state(config: Config, change: Change) -> tuple[Stored | None, Value]:
    """Return the entry that a change writes, and the value that acts, as they are."""
    entries = config.candidates(change.app, change.component, change.key)
    own = [entry for entry in entries if entry.vo == change.vo]
    acting = config.found(change.key, app=change.app, component=change.component).value
    return (Stored.of(own[0]) if own else None), acting


def base_problem(config: Config, change: Change) -> str | None:
    """Say what keeps a change from fitting a configuration; null if it fits."""
    entry, acting = _state(config, change)
    if entry == change.before and acting == change.old:
        return None
    stored = "no entry" if entry is None else f"an entry {entry.value or entry.value_json!r}"
    return (
        f"{change.place}: made for {change.old!r} ({change.action}), found {acting!r} from {stored}; "
        "judge it again on the present configuration"
    )


def default_problem(change: Change) -> str | None:
    """Say that a key was not at its default, where what acts now is not known; null if it was."""
    empty = Config.empty()
    default = empty.found(change.key, app=change.app, component=change.component).value
    if default == change.old:
        return None
    return (
        f"{change.place}: made for {change.old!r}, the default is {default!r}: give the configuration that acts now "
        "(--config)"
    )


def key_problems(change: Change, *, new_value: bool) -> list[str]:
    """Say that a key is unknown, or that a value never stored before is not of the key's type."""
    try:
        row = known.find(change.key, change.app, change.component)
        if new_value and change.new != change.old:
            known.check_value(row, change.key, change.new)
    except ConfigError as error:
        return [f"{change.place}: {error}"]
    return []


def entry_problems(change: Change, *, new_value: bool) -> list[str]:
    """Say that the entry to be written is not the value that the document shows, and that guard rails were held to.

    An entry that counts as undefined may be put back, not proposed.
    """
    if change.after is None:
        return []
    entry = Entry(change.app, change.component, change.key, **asdict(change.after))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BrokerlabWarning)  # that it counts as undefined
        result = Config((entry,)).found(change.key, app=change.app, component=change.component)
    if result.value == change.new or (result.entry is None and not new_value):
        return []
    return [
        f"{change.place}: the entry to be written is {result.value!r}, the new value is said to be {change.new!r}"
    ]


def guard_problems(change: Change) -> list[str]:
    """Say that a new value is outside the guard rails, those of the document or of the catalogue.

    Keeping a value outside is no problem.
    """
    new = change.new
    if isinstance(new, bool) or not isinstance(new, int | float) or new == change.old:
        return []
    for low, high in _rails(change):
        if not within(new, low, high):
            return [
                f"{change.place}: {new} is outside its guard rails {_rail(low)} to {_rail(high)} [{change.unit}]"
            ]
    return []


def within(value: float, low: float | None, high: float | None) -> bool:
    """Whether a value is inside guard rails; null = none."""
    return (low is None or value >= low) and (high is None or value <= high)


def _rail(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _rails(change: Change) -> list[tuple[float | None, float | None]]:
    """Return the guard rails that the document tells, and those of the catalogue."""
    rails = [(change.minimum, change.maximum)]
    try:
        row = known.find(change.key, change.app, change.component)
    except ConfigError:
        return rails  # told by key_problems
    return [*rails, (row.minimum, row.maximum)]


def places_of(config: Config) -> dict[str, str]:
    """Return place -> short digest of the entries there, to say later what has changed."""
    contents: dict[str, list[object]] = {}
    for entry in config.entries:
        contents.setdefault("/".join(entry.place), []).append([entry.vo, asdict(Stored.of(entry))])
    return {place: digest_of(rows)[7:23] for place, rows in sorted(contents.items())}


def moved(
    base: Mapping[str, str], present: Mapping[str, str], known: Collection[str] = ()
) -> list[str]:
    """Say which places are new, gone or changed since a base was written down, but for those already told."""
    if base and not present:
        n = f"{len(base)} {plural(len(base), 'key')}"
        return [f"the configuration has no entries, the base had {n}: give the present one"]
    problems = []
    for place in sorted(base.keys() | present.keys()):
        if base.get(place) != present.get(place) and place not in known:
            how = "new" if place not in base else "gone" if place not in present else "changed"
            problems.append(f"{place}: {how} since the proposal was made")
    return problems or ([] if known else ["the digest of the configuration differs"])


def apply_change(entries: list[Entry], change: Change) -> None:
    """Write a change into a list of entries."""
    index = next(
        (
            number
            for number, entry in enumerate(entries)
            if "/".join(entry.place) == change.place and entry.vo == change.vo
        ),
        None,
    )
    if change.after is None:
        if index is not None:
            del entries[index]
        return
    content = asdict(change.after)
    if index is None:
        entries.append(Entry(change.app, change.component, change.key, vo=change.vo, **content))
    else:
        entries[index] = replace(entries[index], **content)
