"""Proposals for a meeting: which are to be decided, which are settled, what excludes what, all of it as frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, get_args

import polars as pl

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal.document import NOTES, Proposal, tasks_in_words
from brokerlab.gdpconfig.proposal.files import (
    PAGE,
    Broken,
    Filed,
    find,
    newest,
    run_of,
)
from brokerlab.gdpconfig.proposal.merging import Conflict, conflicts, merge
from brokerlab.gdpconfig.proposal.parts import Change
from brokerlab.gdpconfig.proposal.words import State, after_applying, ranked, set_value, state_of
from brokerlab.numerics import percent_of
from brokerlab.words import thin

Group = Literal["decide", "kept", "applied", "outdated", "synthetic"]
GROUPS: tuple[Group, ...] = get_args(Group)
Case = Literal["decide", "outdated", "broken", "settled", "none"]
"""What is to be done.

decide: there is something to decide; outdated: what there is was made for another configuration; broken: no file is a sound
proposal; settled: proposals are kept or applied already; none: there is no proposal.
"""
REASONS = {
    "kept": "kept as it is",
    "applied": "applied already",
    "outdated": "made for another configuration",
    "synthetic": "from a synthetic archive",
    "broken": "no sound proposal",
}
"""Why something is not to be decided, by group."""
LISTED = 3
"""Entries named of those that have changed since."""


class Answer(Protocol):
    """What a later archive says of a proposal, see :class:`.drift.Drift`."""

    @property
    def status(self) -> str:
        """Holds, does_not_hold, cannot_tell, cannot_be_checked."""

    @property
    def sentence(self) -> str:
        """With numbers and their certainty."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One proposal.

    Attributes:
        group: ``decide``: a change that fits the configuration; ``kept``: a keep whose values act; ``applied``: a change
            that acts already; ``outdated``: made for another configuration; ``synthetic``: a change made from a synthetic
            archive beside others that are not, never to be set.
        label: Its number where it is to be decided, else empty.
        state: How it stands to the configuration that acts.
        not_again: A later run of its report with the same parameters that did not write it again; null: none.
    """

    group: Group
    label: str
    filed: Filed
    state: State
    not_again: str | None = None

    @property
    def proposal(self) -> Proposal:
        """The document."""
        return self.filed.proposal

    @property
    def origin(self) -> str:
        """The report that made it, else its file and the folder that this lies in."""
        return self.filed.report or "/".join(Path(self.filed.name).parts[-2:])

    @property
    def name(self) -> str:
        """What it is called beside others."""
        return f"{self.label} ({self.origin})" if self.label else f"the keep of {self.origin}"

    @property
    def tasks(self) -> str | None:
        """Which tasks it was measured on, in words; null: the document does not state it."""
        filters = self.proposal.evidence.filters
        return None if filters is None else tasks_in_words(filters)

    @property
    def verdict(self) -> str:
        """The kind of verdict that it rests on: ``change``, ``improve`` or ``keep``."""
        return str((self.proposal.evidence.numbers or {}).get("verdict", self.proposal.kind))

    @property
    def is_certain(self) -> bool:
        """Whether the interval of any of its effects excludes 0."""
        return any(one.interval == "excludes 0" for one in self.proposal.evidence.effects)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What it really changes; for a keep, everything that it keeps."""
        every = self.proposal.changes
        return tuple(change for change in every if change.action != "none") or every


@dataclass(frozen=True, kw_only=True)
class Review:
    """Everything that was found.

    Attributes:
        folder: Where the proposals were looked for.
        config: The configuration that acts.
        items: The proposals that count, those to be decided first, in the order of their labels.
        replaced: Those that a later run of the same report has put another in place of.
        n_copies: Files left out, for the same document lies in another one.
        broken: Files that are no sound proposals.
        conflicts: What keeps those to be decided, and keeps, from being put in together.
        merged: All that are to be decided as one; null: fewer than two, or they conflict.
    """

    folder: Path
    config: Config
    items: tuple[Item, ...]
    replaced: tuple[Filed, ...]
    n_copies: int
    broken: tuple[Broken, ...]
    conflicts: tuple[Conflict, ...]
    merged: Proposal | None

    def of(self, *groups: Group) -> tuple[Item, ...]:
        """Return the proposals of some groups."""
        return tuple(item for item in self.items if item.group in groups)

    def counts(self) -> dict[str, int]:
        """Return how many proposals there are of each group, what was left out, and conflicts."""
        groups: dict[str, int] = {group: len(self.of(group)) for group in GROUPS}
        left = {"broken": len(self.broken), "replaced": len(self.replaced), "copies": self.n_copies}
        return {**groups, **left, "conflicts": len(self.conflicts)}

    @property
    def case(self) -> Case:
        """What is to be done, see `Case`."""
        if self.of("decide"):
            return "decide"
        if self.of("outdated"):
            return "outdated"
        if self.broken:
            return "broken"
        return "settled" if self.of("kept", "applied") else "none"

    @property
    def synthetic(self) -> bool:
        """Whether all that is to be decided, or all there is, comes from synthetic archives."""
        items = self.of("decide") or self.items
        return bool(items) and all(item.proposal.evidence.synthetic for item in items)


def review(
    folder: str | Path, *, config: Config, created_at: datetime, only_newest: bool = True
) -> Review:
    """Find proposals, sort them by what is to be done, look for conflicts, and merge what can be decided.

    Of copies with the same digest, the one that lies in a run counts, with the notes of the first that has some.

    Args:
        folder: Of reports, of runs or of proposals, or one proposal.
        config: The configuration that acts, without history.
        created_at: Time of the merged proposal, UTC without zone.
        only_newest: Leave out what a later run of the same report has put another in place of.

    Raises:
        ProposalError: There is no such folder.
    """
    every = find(folder)
    counts, replaced = newest(one for one in every if isinstance(one, Filed))
    if not only_newest:
        counts, replaced = [*counts, *replaced], []
    once: dict[str, Filed] = {}
    for one in sorted(counts, key=lambda one: (one.report or "", one.name)):
        first = once.setdefault(one.proposal.digest, one)
        noted = first if first.proposal.notes else one
        proof = one if first.report is None and one.report is not None else first
        once[one.proposal.digest] = replace(proof, proposal=noted.proposal)
    items = _sort_by_group([_item(one, config) for one in once.values()])
    decide = [item for item in items if item.group == "decide"]
    return Review(
        folder=Path(folder),
        config=config,
        items=items,
        replaced=tuple(replaced),
        n_copies=len(counts) - len(once),
        broken=tuple(one for one in every if isinstance(one, Broken)),
        conflicts=_conflicts(items, config),
        merged=_merge(decide, config, created_at),
    )


def _item(filed: Filed, config: Config) -> Item:
    state = state_of(filed.proposal, config)
    groups: dict[str, Group] = {
        "kept": "kept",
        "applied already": "applied",
        "base changed": "outdated",
    }
    group = groups.get(state.word, "decide")
    return Item(group=group, label="", filed=filed, state=state, not_again=_not_again(filed))


def _sort_by_group(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the items, those to be decided numbered; synthetic ones are decided on only where all are."""
    decide = [item for item in items if item.group == "decide"]
    real = [item for item in decide if not item.proposal.evidence.synthetic]
    agenda = real or decide
    numbered = [replace(item, label=str(n)) for n, item in enumerate(agenda, start=1)]
    made_up = [replace(item, group="synthetic") for item in decide if item not in agenda]
    order: tuple[Group, ...] = ("kept", "applied", "outdated")
    others = [item for group in order for item in items if item.group == group]
    return (*numbered, *others, *made_up)


def _not_again(filed: Filed) -> str | None:
    """Return the last run after that of a proposal, of the same report and with the same parameters, without it."""
    mine = None if filed.folder is None else run_of(filed.folder)
    if mine is None:
        return None
    last = None
    for folder in sorted(mine.folder.parent.iterdir()):
        other = run_of(folder)
        if other is None or other.state != "finished":
            continue
        alike = (other.report, other.parameters) == (mine.report, mine.parameters)
        if alike and (other.started or "") > (mine.started or ""):
            last = None if (folder / Path(filed.name).name).exists() else folder.name
    return last


def _conflicts(items: Sequence[Item], config: Config) -> tuple[Conflict, ...]:
    """Return the conflicts that touch what is to be decided, each proposal by its name."""
    asked = [item for item in items if item.group in ("decide", "kept")]
    names = {item.filed.name: item.name for item in asked}
    agenda = {item.filed.name for item in asked if item.group == "decide"}
    every = conflicts([item.filed for item in asked], config=config, touched_only=True)
    return tuple(
        replace(
            one,
            first=names.get(one.first, one.first),
            second=names.get(one.second, one.second),
            why=_rename(one.why, names),
        )
        for one in every
        if agenda & {one.first, one.second}
    )


def _rename(text: str, names: dict[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _merge(decide: Sequence[Item], config: Config, created_at: datetime) -> Proposal | None:
    """Return several proposals as one, if they do not conflict."""
    if len(decide) < 2:
        return None
    try:
        return merge(
            [item.filed for item in decide],
            created_at=created_at,
            config=config,
            touched_only=True,
        )
    except ProposalError:
        return None  # the conflicts say why


def proposals_frame(made: Review, *, seen_from: str | Path = ".") -> pl.DataFrame:
    """Return one row per proposal, and per file that is no sound one; links are relative to the folder ``seen_from``.

    ``group`` (of :class:`Item`, or broken), ``label, report, run, href`` (of the page that proves it; null: none),
    ``file, digest, keys, state, why`` (what differs from the base, or is broken; null: nothing), ``title, verdict,
    not_again, filters`` (tasks of the evidence in words; null: not stated), ``ticket,
    author, approver, comment`` (null: none) and ``synthetic``.
    """
    rows = [
        {
            "group": item.group,
            "label": item.label,
            "report": item.filed.report,
            "run": item.filed.run,
            "href": _href(item.filed, Path(seen_from)),
            "file": item.filed.name,
            "digest": item.proposal.digest,
            "keys": ", ".join(change.key for change in item.changes),
            "state": item.state.word,
            "why": "; ".join(item.state.why) or None,
            "title": item.proposal.title,
            "verdict": item.proposal.evidence.verdict,
            "not_again": item.not_again,
            "filters": item.tasks,
            **{name: item.proposal.notes.get(name) for name in NOTES},
            "synthetic": item.proposal.evidence.synthetic,
        }
        for item in made.items
    ]
    rows += [
        {"group": "broken", "report": one.report, "run": one.run, "file": one.name, "why": one.problem}
        for one in made.broken
    ]  # fmt: skip
    names = (
        *("group", "label", "report", "run", "href", "file", "digest", "keys"),
        *("state", "why", "title", "verdict", "not_again", "filters", *NOTES),
    )
    return pl.DataFrame(rows, schema={**dict.fromkeys(names, pl.String), "synthetic": pl.Boolean})


def _href(filed: Filed, seen_from: Path) -> str | None:
    """Return where the page of a run lies, as seen from a folder."""
    if filed.folder is None or filed.page is None:
        return None
    return Path(os.path.relpath(filed.folder / PAGE, seen_from.resolve())).as_posix()


def changes_frame(items: Sequence[Item]) -> pl.DataFrame:
    """Return one row per key that a proposal changes, or keeps.

    ``label``; ``place`` (app/component), ``key, vo`` (null: all), ``unit, old, new`` (text, every figure),
    ``minimum, maximum`` (guard rails [unit]; null: none), ``effect`` (what the key does).
    """
    rows = [
        {
            "label": item.label,
            "place": f"{change.app}/{change.component}",
            "key": change.key,
            "vo": change.vo,
            "unit": change.unit or "1",
            "old": set_value(change.old),
            "new": set_value(change.new),
            "minimum": change.minimum,
            "maximum": change.maximum,
            "effect": catalogue.find(change.key, change.app, change.component).effect,
        }
        for item in items
        for change in item.changes
    ]
    text = ("label", "place", "key", "vo", "unit", "old", "new")
    rails = dict.fromkeys(("minimum", "maximum"), pl.Float64)
    schema = {**dict.fromkeys(text, pl.String), **rails, "effect": pl.String}
    return pl.DataFrame(rows, schema=schema)


def count_keys(items: Sequence[Item]) -> int:
    """Return how many entries proposals change, or keep."""
    return len({(change.place, change.vo) for item in items for change in item.changes})


def effects_frame(items: Sequence[Item]) -> pl.DataFrame:
    """Return everything that proposals promise, one row per effect.

    ``label, origin, quantity, unit, current, proposed``; ``difference, difference_lo, difference_hi`` with its ``level`` and
    measured ``coverage`` [share; null: not known]; ``change_pct, change_pct_lo, change_pct_hi`` [% of current; null where there is
    almost nothing now]; ``interval`` (see :attr:`.parts.Effect.interval`).
    """
    rows = [
        {
            "label": item.label,
            "origin": item.origin,
            "quantity": effect.quantity,
            "unit": effect.unit,
            "current": effect.current,
            "proposed": effect.proposed,
            "difference": effect.difference,
            "difference_lo": effect.low,
            "difference_hi": effect.high,
            "level": effect.level,
            "coverage": effect.coverage,
            **_relative(effect.current, effect.difference, effect.low, effect.high),
            "interval": effect.interval,
        }
        for item in items
        for effect in item.proposal.evidence.effects
    ]
    numbers = ("current", "proposed", "difference", "difference_lo", "difference_hi", "level", "coverage", "change_pct", "change_pct_lo", "change_pct_hi")  # fmt: skip
    schema = {
        **dict.fromkeys(("label", "origin", "quantity", "unit"), pl.String),
        **dict.fromkeys(numbers, pl.Float64),
        "interval": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _relative(
    current: float | None, difference: float | None, low: float | None, high: float | None
) -> dict[str, float | None]:
    """Return a difference and its ends in per cent of the current value, all or none."""
    parts = [percent_of(part, current) for part in (difference, low, high)]
    if parts[0] is None:
        parts = [None] * 3
    return dict(zip(("change_pct", "change_pct_lo", "change_pct_hi"), parts, strict=True))


def people_frame(items: Sequence[Item]) -> pl.DataFrame:
    """Return everybody whom proposals name: ``label``, ``side`` (gains, loses), ``who``, ``how``."""
    rows = [
        {"label": item.label, "side": side, "who": one.who, "how": thin(one.how)}
        for item in items
        for side, people in (
            ("gains", item.proposal.evidence.helps),
            ("loses", item.proposal.evidence.hurts),
        )
        for one in ranked(people)
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(("label", "side", "who", "how"), pl.String))


def conflicts_frame(conflicts: Sequence[Conflict]) -> pl.DataFrame:
    """Return one row per conflict: ``place, kind, first, second, why``."""
    names = ("place", "kind", "first", "second", "why")
    return pl.DataFrame([vars(one) for one in conflicts], schema=dict.fromkeys(names, pl.String))


def answers_frame(answers: Mapping[str, Answer]) -> pl.DataFrame:
    """Return what a later archive says of proposals, by their digests.

    ``digest, status`` (in words), ``sentence, role`` (look again: it does not hold; null: not so).
    """
    names = ("digest", "status", "sentence", "role")
    rows = [
        {
            "digest": digest,
            "status": one.status.replace("_", " "),
            "sentence": one.sentence,
            "role": "look again" if one.status == "does_not_hold" else None,
        }
        for digest, one in answers.items()
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def agenda_frame(made: Review, proposals: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return what is to be decided, with what proves it and whether it still holds.

    `changes_frame` of that, with ``verdict``, the main effect (``quantity, change_pct, change_pct_lo, change_pct_hi, coverage``;
    null: none), ``href, digest, proof`` (report), ``status, sentence, role``.
    """
    items = made.of("decide")
    effects = effects_frame(items).unique("label", keep="first", maintain_order=True)
    main = effects.select("label", "quantity", "^change_pct.*$", "coverage")
    verdicts = pl.DataFrame(
        {"label": [item.label for item in items], "verdict": [item.verdict for item in items]},
        schema={"label": pl.String, "verdict": pl.String},
    )
    proofs = proposals.filter(group="decide").select(
        "label",
        "href",
        "digest",
        proof=pl.col("report").fill_null("no report beside the file"),
    )
    changes = changes_frame(items)
    for more in (verdicts, main, proofs):
        changes = changes.join(more, on="label", how="left", maintain_order="left")
    return changes.join(answers, on="digest", how="left", maintain_order="left")


def rest_frame(proposals: pl.DataFrame) -> pl.DataFrame:
    """Return what is not to be decided: rows of `proposals_frame` with ``reason, detail``; of broken ones ``keys`` is the file."""
    refused = pl.col("group").is_in(["outdated", "broken"])
    return proposals.filter(pl.col("group") != "decide").with_columns(
        reason=pl.col("group").replace_strict(REASONS, default=None),
        keys=pl.col("keys").fill_null(pl.col("file")),
        detail=pl.when(refused).then("why").otherwise("verdict"),
    )


def promises_frame(effects: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return the first effects of each proposal that have a percentage and change something, with ``proposal`` (number, origin).

    Of each as many, about ``most`` of all together, and at least two.
    """
    known = effects.drop_nulls("change_pct").filter(pl.col("interval") != "unchanged")
    each = max(2, most // max(1, known["label"].n_unique()))
    drawn = known.group_by("label", maintain_order=True).head(each)
    return drawn.with_columns(proposal=pl.format("{}. {}", "label", "origin"))


def remarks(item: Item) -> list[str]:
    """Return the notes of people, what has changed since, and the tasks that it was measured on if not all."""
    notes = "; ".join(f"{name}: {text}" for name, text in item.proposal.notes.items())
    tasks = f"Measured on {item.tasks}." if item.proposal.evidence.filters else ""
    return [text for text in (notes, since(item), tasks) if text]


def afterwards(item: Item) -> str:
    """Return what to look at after it was applied, one line each."""
    return "\n".join(after_applying(item.proposal, item.filed.name))


def since(item: Item) -> str:
    """Say what has changed since a proposal was made; empty: nothing."""
    changed = [line.partition(": ")[0] for line in item.state.why]
    more = f" and {len(changed) - LISTED} more" if len(changed) > LISTED else ""
    sentences = []
    if changed:
        sentences.append(
            f"Other keys have changed since ({', '.join(changed[:LISTED])}{more}): what it was measured with does not act "
            "any more."
        )
    if item.not_again:
        sentences.append(
            f"Run {item.not_again} of the report, later and with the same parameters, did not propose it again: read that "
            "first."
        )
    return " ".join(sentences)
