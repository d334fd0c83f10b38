"""The proposal document: what should be set, why, and how to take it back; or a reasoned "keep".

A proposal belongs to one base configuration. It carries digests of it, of the archive and of the rules,
and is refused by any other base. It is written to files only, never to a database.

Source: design, idea 6.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Literal

import polars as pl

from brokerlab.errors import MOST_MESSAGE, UNSEEN, ProposalError, shown
from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Value
from brokerlab.gdpconfig.keys import has_scope
from brokerlab.gdpconfig.proposal.parts import (
    Change,
    Digests,
    Evidence,
    Source,
    base_problem,
    changes_of,
    default_problem,
    entry_problems,
    guard_problems,
    key_problems,
    keys_digest,
    moved,
    places_of,
    with_changes,
)
from brokerlab.results import Result, Shows

JSON_TEXT = re.compile(r"changes\.\d+\.(before|after)\.value_json")
"""Fields whose text may have the white space of JSON: tab and ends of lines."""


def character_problems(document: Mapping[str, Any]) -> list[str]:
    r"""Say which texts of a document have control characters or bidirectional controls; empty if none has.

    Example:
        >>> character_problems({"title": "a\u202eb"})[0].partition(";")[0]
        'title: character 2 is U+202E (RIGHT-TO-LEFT OVERRIDE)'
    """
    return [
        f"{shown(field, MOST_MESSAGE, allowed='')}: character {position + 1} is U+{ord(text[position]):04X} "
        f"({unicodedata.name(text[position], 'control character')}); texts must have no control and no invisible "
        "characters: take it out at its source, and make the proposal again"
        for field, text in _texts(document, "")
        if (position := _first(text, "\t\n\r" if JSON_TEXT.fullmatch(field) else "")) is not None
    ]


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """Yield every text of a document with its field, names of fields included."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            inner = f"{field}.{name}" if field else str(name)
            yield f"name of {inner}", str(name)
            yield from _texts(item, inner)
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _texts(item, f"{field}.{i}")


def _first(text: str, allowed: str) -> int | None:
    """Return the position of the first character that is refused; null: there is none."""
    if text.isascii() and text.isprintable():
        return None
    refused = (
        i
        for i, one in enumerate(text)
        if one not in allowed and unicodedata.category(one) in UNSEEN
    )
    return next(refused, None)


def filter_problems(keys: Iterable[str], filters: Mapping[str, str] | None) -> list[str]:
    """Say which exact keys must not be proposed from tasks that passed some filters (:attr:`.parts.Evidence.filters`).

    A key may be if it holds every filter in its name.

    Example:
        >>> filter_problems(["NQUEUELIMITSITE_Express"], {"gshare": "Express"})
        []
        >>> filter_problems(["SCOUT_RAMCOUNT_RANK"], {"gshare": "Express"})[0].partition(",")[0]
        'SCOUT_RAMCOUNT_RANK: measured on tasks with gshare Express only'
    """
    if not filters:
        return []
    return [
        f"{key}: measured on {tasks_in_words(filters)}, and the key would act beyond them: "
        "measure without the filter; a keep may be made"
        for key in dict.fromkeys(keys)
        if not any(has_scope(row.key, key, filters) for row in known.rows_of(key))
    ]


def tasks_in_words(filters: Mapping[str, str]) -> str:
    """Return which tasks passed some filters.

    Example:
        >>> tasks_in_words({"gshare": "Express", "processingtype": "simul"}), tasks_in_words({})
        ('tasks with gshare Express, processingtype simul only', 'all tasks')
    """
    if not filters:
        return "all tasks"
    return f"tasks with {', '.join(f'{name} {value}' for name, value in filters.items())} only"


Kind = Literal["change", "keep"]
MAX_TITLE = 500
NOTES = ("ticket", "author", "approver", "comment")
"""What people write down about a proposal; its digest does not depend on it."""
MAX_NOTE = 2000


@dataclass(frozen=True, repr=False)
class Proposal(Result):
    """A proposal or a "keep"; made by :meth:`to_change`, :meth:`to_keep` or :func:`.files.loads`.

    Attributes:
        kind: ``change`` or ``keep``.
        title: One line.
        created_at: When it was made (UTC without zone), told by the caller.
        changes: One per key; at least one.
        evidence: Why.
        digests: What it was made from.
        places: Place -> short digest of every entry of the base, to say what has changed since.
        sources: The proposals that this one was merged from; empty: it stands for itself.
        takes_back: Digest of the document that this one takes back; null = none. What was there before is put
            back even outside the guard rails.
        ticket: Where it is discussed; null = none. As the following three, a note of people: the digest is that of the
            proposal without them, so that a proposal with notes is still the one of its report.
        author: Who proposes it; null = not stated.
        approver: Who agreed; null = not stated.
        comment: Anything else; null = none.

    Example:
        >>> config = Config.empty()
        >>> proposal = Proposal.to_change(config, {"SCOUT_RAMCOUNT_RANK": 80}, title="More memory",
        ...     created_at=datetime(2026, 3, 1), evidence=Evidence("80 meets the limit"))
        >>> proposal.changes[0].old, proposal.changes[0].new, proposal.changes[0].action
        (75, 80, 'insert')
        >>> proposal.applied_to(config).get("SCOUT_RAMCOUNT_RANK")
        80
    """

    shows = Shows(
        about="a proposal, one row per key",
        columns="component, key, old, new, unit",
        keys=("app", "component", "key"),
        next=(".applied_to(config)", ".to_json()"),
    )

    kind: Kind
    title: str
    created_at: datetime
    changes: tuple[Change, ...]
    evidence: Evidence
    digests: Digests
    places: Mapping[str, str]
    sources: tuple[Source, ...] = ()
    takes_back: str | None = None
    ticket: str | None = None
    author: str | None = None
    approver: str | None = None
    comment: str | None = None

    @classmethod
    def to_change(
        cls,
        config: Config,
        values: Mapping[str, Value],
        *,
        title: str,
        created_at: datetime,
        evidence: Evidence,
        archive_digest: str | None = None,
        rules_digest: str | None = None,
    ) -> Proposal:
        """Propose new values.

        Args:
            config: The base: the configuration that acts now.
            values: Exact key, or ``app/component/KEY``, -> new value; null = remove the entry.
            title: One line.
            created_at: UTC without zone.
            evidence: Why.
            archive_digest: Digest of the archive; null = none.
            rules_digest: Digest or name of the rules; null = none.

        Raises:
            ConfigError: Unknown keys, wrong types, or a history without a chosen time.
            ProposalError: Texts with control characters or bidirectional controls; values outside the guard rails, or none that
                changes an entry (the value that acts as a default may be set); or evidence from some tasks only (``evidence.filters``) for a key that would act
                beyond them.
        """
        digests = (archive_digest, rules_digest)
        return cls._made("change", config, values, title, created_at, evidence, digests)

    @classmethod
    def to_keep(
        cls,
        config: Config,
        keys: Iterable[str],
        *,
        title: str,
        created_at: datetime,
        evidence: Evidence,
        archive_digest: str | None = None,
        rules_digest: str | None = None,
    ) -> Proposal:
        """Propose to leave keys as they are; arguments as for :meth:`to_change`."""
        digests = (archive_digest, rules_digest)
        names = dict.fromkeys(keys)
        return cls._made("keep", config, names, title, created_at, evidence, digests)

    @classmethod
    def _made(
        cls,
        kind: Kind,
        config: Config,
        values: Mapping[str, Value],
        title: str,
        created_at: datetime,
        evidence: Evidence,
        digests: tuple[str | None, str | None],
    ) -> Proposal:
        changes = tuple(changes_of(config, values, values if kind == "change" else {}))
        made_from = Digests(config.digest, keys_digest(config, changes), *digests)
        places = places_of(config)
        proposal = cls(kind, title, created_at, changes, evidence, made_from, places)
        reject(proposal.problems(), "the proposal is not sound")
        return proposal

    def problems(self) -> list[str]:
        """Return everything that is wrong inside the document; empty if nothing is."""
        result = character_problems(asdict(self))
        if not self.title or len(self.title) > MAX_TITLE or not self.title.isprintable():
            result.append(f"title: one printable line of 1 to {MAX_TITLE} characters is needed")
        result += [
            f"{name}: {'a text is needed' if not text else f'{len(text)} characters, at most {MAX_NOTE}'}"
            for name, text in ((name, getattr(self, name)) for name in NOTES)
            if text is not None and not 0 < len(text) <= MAX_NOTE
        ]
        if self.created_at.tzinfo is not None:
            result.append(f"created_at: UTC without zone is needed, found {self.created_at}")
        if not self.changes:
            result.append("changes: at least one key is needed")
        differ = [change for change in self.changes if change.action != "none"]
        if self.kind == "change" and self.changes and not differ:
            result.append('changes: nothing would change; a verdict "keep" is of kind keep')
        if self.kind == "keep":
            result += [f"{change.place}: a keep must not change it" for change in differ]
        places = [(change.place, change.vo) for change in self.changes]
        result += [
            f"{place}: occurs twice" for place, vo in set(places) if places.count((place, vo)) > 1
        ]
        for change in self.changes:
            unknown = key_problems(change, new_value=not self.takes_back)
            result += unknown or entry_problems(change, new_value=not self.takes_back)
        for change in self.changes if self.kind == "change" and not self.takes_back else ():
            result += guard_problems(change)
        filters = self.evidence.filters or {}
        result += [
            f"evidence.filters: name {name!r}, value {value!r}: both need a text; leave out what does not restrict"
            for name, value in filters.items()
            if not name or not value
        ]
        if not self.sources and not self.takes_back:  # each part of a merged one was checked alone
            result += filter_problems((change.key for change in differ), filters)
        result += [
            f"evidence.windows.{window.name}: start {window.start} is not before end {window.end}"
            for window in self.evidence.windows
            if window.start >= window.end
        ]
        result += [
            f"evidence.effects.{effect.quantity}: interval {effect.low} to {effect.high} is reversed"
            for effect in self.evidence.effects
            if effect.low is not None and effect.high is not None and effect.low > effect.high
        ]
        result += [
            f"evidence.effects.{effect.quantity}: coverage {effect.coverage} is no share from 0 to 1"
            for effect in self.evidence.effects
            if effect.coverage is not None and not 0 <= effect.coverage <= 1
        ]
        return result

    def annotated(
        self,
        *,
        ticket: str | None = None,
        author: str | None = None,
        approver: str | None = None,
        comment: str | None = None,
    ) -> Proposal:
        """Return the proposal with notes of people; null = as it is, empty = none; its digest stays.

        Raises:
            ProposalError: A text is too long, or has control characters.
        """
        given = {"ticket": ticket, "author": author, "approver": approver, "comment": comment}
        notes = {name: text or None for name, text in given.items() if text is not None}
        proposal = replace(self, **notes)  # type: ignore[arg-type]
        reject(proposal.problems(), "the notes are not sound")
        return proposal

    @property
    def notes(self) -> dict[str, str]:
        """Ticket, author, approver and comment, as far as they are there."""
        every = {name: getattr(self, name) for name in NOTES}
        return {name: text for name, text in every.items() if text}

    def verify(self, config: Config, *, touched_only: bool = False) -> None:
        """Refuse any configuration but the base; every key that differs is named.

        With ``touched_only`` other keys than the proposal's own may have changed since.
        """
        problems = self.differences(config, touched_only=touched_only)
        reject(problems, f"the configuration is not the base of {self.title!r}")

    def differences(self, config: Config | None, *, touched_only: bool = False) -> list[str]:
        """Return everything in which a configuration differs from the base, keys that nobody knows left out; as :meth:`verify`.

        Without a configuration the old values are compared with the defaults of the catalogue, and nothing else is.
        """
        known = [one for one in self.changes if not key_problems(one, new_value=False)]
        if config is None:
            return [problem for change in known if (problem := default_problem(change))]
        result = [base_problem(config, change) for change in known]
        problems = [problem for problem in result if problem]
        if len(known) < len(self.changes):
            return problems
        if not problems and keys_digest(config, self.changes) != self.digests.keys:
            problems.append("the digest of the touched keys does not fit their entries")
        if not touched_only and config.digest != self.digests.config:
            touched = {change.place for change in self.changes}
            problems += moved(self.places, places_of(config), touched if problems else ())
        return problems

    def applied_to(self, config: Config, *, touched_only: bool = False) -> Config:
        """Return the configuration with the proposal in it; :meth:`verify` comes first."""
        self.verify(config, touched_only=touched_only)
        return with_changes(config, self.changes)

    def revert(self, config: Config, *, created_at: datetime) -> Proposal:
        """Return the proposal that takes this one back, from the configuration with this one in it, which is its base.

        Raises:
            ProposalError: The proposal is a "keep", or its values are not what acts now.
        """
        if self.kind == "keep":
            raise ProposalError(f"{self.title!r} is a keep: there is nothing to take back")
        changes = tuple(change.reversed() for change in self.changes)
        problems = [base_problem(config, change) for change in changes]
        reject(
            [problem for problem in problems if problem],
            f"{self.title!r} is not what acts now, so it cannot be taken back",
        )
        evidence = replace(
            self.evidence,
            verdict=f"Take back: {self.evidence.verdict}",
            effects=tuple(effect.reversed() for effect in self.evidence.effects),
            helps=self.evidence.hurts,
            hurts=self.evidence.helps,
        )
        digests = replace(self.digests, config=config.digest, keys=keys_digest(config, changes))
        return Proposal(
            "change",
            f"Take back: {self.title}"[:MAX_TITLE],
            created_at,
            changes,
            evidence,
            digests,
            places_of(config),
            sources=self.sources,
            takes_back=self.digest,
        )

    @property
    def digest(self) -> str:
        """``sha256:...`` of the document's content, as it stands in the file."""
        from brokerlab.gdpconfig.proposal import files

        return files.digest(self)

    def to_json(self) -> str:
        """Return the document; see :func:`brokerlab.gdpconfig.proposal.files.dumps`."""
        from brokerlab.gdpconfig.proposal import files

        return files.dumps(self)

    def frame(self) -> pl.DataFrame:
        """Return one row per key, in the order of the document.

        ``app, component, key, vo, action, unit, old, new`` (String, null = none), ``minimum, maximum`` (Float64 [unit]).
        """
        names = ("app", "component", "key", "vo", "action", "unit")
        rows = [
            {name: getattr(one, name) for name in (*names, "minimum", "maximum")}
            | {side: None if (value := getattr(one, side)) is None else str(value) for side in ("old", "new")}
            for one in self.changes
        ]  # fmt: skip
        rails = dict.fromkeys(("minimum", "maximum"), pl.Float64)
        schema = {**dict.fromkeys((*names, "old", "new"), pl.String), **rails}
        return pl.DataFrame(rows, schema=schema)

    def headline(self) -> str:
        """Return what it says, in a line."""
        return f"{self.kind}: {self.title}"


def reject(problems: list[str], what: str) -> None:
    """Raise one error with all problems, or none."""
    if problems:
        raise ProposalError(f"{what}:\n" + "\n".join(f"  {problem}" for problem in problems))
