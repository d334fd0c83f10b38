"""The parts of a proposal, changes, effects, periods, who is affected, digests, and how a change fits its base.

Source: design, idea 6.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Literal

from brokerlab.errors import BrokerlabWarning, ConfigError
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry, Value
from brokerlab.schemas import digest_of
from brokerlab.words import plural


@dataclass(frozen=True)
class Stored:
    """The content of an entry: text of the value, or JSON text, and the type as stored."""

    value: str | None
    value_json: str | None
    type: str | None

    @classmethod
    def of(cls, entry: Entry) -> Stored:
        """Return the content of an entry."""
        return cls(entry.value, entry.value_json, entry.type)


@dataclass(frozen=True)
class Change:
    """One key: what acts now and what is to act.

    Attributes:
        key: Exact key, scope suffix included.
        vo: VO of the entry that is written; null = all.
        unit: Unit of the values.
        old: Value that acts now, the default included; null = none.
        new: Value that is to act; the same for "keep".
        before: The entry as stored now; null = there is none and the default acts.
        after: The entry as it is to be; null = no entry.
        minimum: Guard rail [unit], null = none; as ``maximum``.
    """

    app: str
    component: str
    key: str
    vo: str | None
    unit: str
    old: Value
    new: Value
    before: Stored | None
    after: Stored | None
    minimum: float | None
    maximum: float | None

    @property
    def place(self) -> str:
        """``app/component/KEY``."""
        return f"{self.app}/{self.component}/{self.key}"

    @property
    def action(self) -> str:
        """``none, insert, update`` or ``delete``: what happens to the entry."""
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"

    def reversed(self) -> Change:
        """Return the change that takes this one back."""
        return replace(self, old=self.new, new=self.old, before=self.after, after=self.before)


@dataclass(frozen=True)
class Effect:
    """One expected effect, measured on the proof period.

    Attributes:
        quantity: What is measured, in words.
        unit: Its unit.
        current: With the old values; null = not measured.
        proposed: With the new values; null = not measured.
        difference: Proposed minus current.
        low: Lower end of the interval of the difference; null = no interval.
        high: Upper end of the interval; null = no interval.
        level: Coverage that the interval promises, e.g. 0.95; null = no interval.
        coverage: Measured share of cases in which such an interval holds the truth, 0 to 1; null = not known.
    """

    quantity: str
    unit: str
    current: float | None
    proposed: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    coverage: float | None = None

    @property
    def interval(self) -> Literal["excludes 0", "includes 0", "unchanged", "none"]:
        """What the interval of the difference says.

        Example:
            >>> Effect("kills", "%", 7.5, 4.5, -3.0, -3.5, -2.5).interval
            'excludes 0'
        """
        if self.low is None or self.high is None:
            return "none"
        if self.low == self.high == 0:
            return "unchanged"
        return "includes 0" if self.low <= 0 <= self.high else "excludes 0"

    def reversed(self) -> Effect:
        """Return the effect of taking the change back."""

        def minus(number: float | None) -> float | None:
            return None if number is None else 0.0 - number  # of nothing, nothing: no minus zero

        return replace(
            self,
            current=self.proposed,
            proposed=self.current,
            difference=minus(self.difference),
            low=minus(self.high),
            high=minus(self.low),
        )


@dataclass(frozen=True)
class Window:
    """A period of the data (UTC without zone, the end excluded), named by what it was used for, e.g. ``choice`` or ``proof``."""

    name: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Affected:
    """Who gains or loses: a group of tasks, users or queues, and what changes for them, with the number."""

    who: str
    how: str


@dataclass(frozen=True)
class Digests:
    """What the proposal was made from.

    Attributes:
        config: Digest of the whole base configuration.
        keys: Digest of the touched keys: entry and acting value of each.
        archive: Digest of the archive; null = no archive.
        rules: Digest or name of the rule set; null = none.
    """

    config: str
    keys: str
    archive: str | None = None
    rules: str | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything that a reader needs to judge the values.

    Attributes:
        verdict: One sentence: what to set or keep, and why.
        effects: Expected effects on the proof period.
        windows: Periods of the data.
        helps: Who gains.
        hurts: Who loses.
        numbers: Further figures by name.
        synthetic: The archive is made up: nothing of this may be set anywhere.
        filters: What the tasks were restricted to: name of a placeholder of the catalogue's keys (``gshare``,
            ``processingtype``, ``resource_type``) or ``window`` -> value; empty = all tasks, null = not stated.
    """

    verdict: str
    effects: tuple[Effect, ...] = ()
    windows: tuple[Window, ...] = ()
    helps: tuple[Affected, ...] = ()
    hurts: tuple[Affected, ...] = ()
    numbers: Mapping[str, float | int | str | None] | None = None
    synthetic: bool = False
    filters: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Source:
    """One of the proposals that a merged one was made from, and where its proof stands.

    Attributes:
        keys: Places of its keys; its effects were measured with these alone.
        report: Report that made it; null = not known.
        run: Run of the report; null = not known.
        page: Page of that run, relative to the folder of reports; null = not known.
        archive: Digest of its archive; null = none.
        rules: Digest or name of its rules; null = none.
    """

    title: str
    verdict: str
    digest: str
    keys: tuple[str, ...]
    report: str | None = None
    run: str | None = None
    page: str | None = None
    archive: str | None = None
    rules: str | None = None


def keys_digest(config: Config, changes: Sequence[Change]) -> str:
    """Return the digest of the touched keys in a configuration: entry and acting value of each."""
    return _states_digest((change.place, change.vo, *_state(config, change)) for change in changes)


def changes_digest(changes: Sequence[Change]) -> str:
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
                f"{change.place}: {new} is outside its guard rails {rail(low)} to {rail(high)} [{change.unit}]"
            ]
    return []


def within(value: float, low: float | None, high: float | None) -> bool:
    """Whether a value is inside guard rails; null = none."""
    return (low is None or value >= low) and (high is None or value <= high)


def rail(value: float | None) -> str:
    """Return a guard rail for people."""
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


def with_changes(config: Config, changes: Iterable[Change]) -> Config:
    """Return a configuration with changes written into it."""
    entries = list(config.entries)
    for change in changes:
        place = (change.app, change.component, change.key)
        at = [i for i, one in enumerate(entries) if (one.place, one.vo) == (place, change.vo)][:1]
        if change.after is None:
            entries = [one for i, one in enumerate(entries) if i not in at]
        elif at:
            entries[at[0]] = replace(entries[at[0]], **asdict(change.after))
        else:
            entries.append(Entry(*place, vo=change.vo, **asdict(change.after)))
    return Config(tuple(entries))
