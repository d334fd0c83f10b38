"""The parts of a proposal: changes, effects, periods, who is affected, digests.

Source: design, idea 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from brokerlab.gdpconfig.entry import Entry
from brokerlab.gdpconfig.values import Value


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
