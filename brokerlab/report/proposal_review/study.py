"""Sort the proposals by what is to be decided, look for conflicts, merge them, ask whether they still hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig.proposal import (
    Change,
    Conflict,
    Effect,
    Filed,
    Proposal,
    State,
    conflicts,
    merge,
    state_of,
)
from brokerlab.report.proposal_review.inputs import Inputs

if TYPE_CHECKING:
    from brokerlab.calibrate.drift import Drift  # takes as long as the whole report without it

APPLICABLE = ("applicable", "applicable, other keys changed")
Ask: TypeAlias = "Callable[[Proposal], Drift]"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One proposal.

    Attributes:
        label: What it is called on the page: a number where it is to be decided, else empty.
        filed: The proposal and where it lies.
        state: How it stands to the configuration that acts.
        drift: Whether it still holds on a later archive; null = not asked.
    """

    label: str
    filed: Filed
    state: State
    drift: Drift | None = None

    @property
    def proposal(self) -> Proposal:
        """The document."""
        return self.filed.proposal

    @property
    def changes(self) -> tuple[Change, ...]:
        """What it really changes; for a keep, everything it keeps."""
        every = self.proposal.changes
        return tuple(one for one in every if one.action != "none") or every

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What it promises."""
        return self.proposal.evidence.effects


@dataclass(frozen=True, kw_only=True)
class Study:
    """Everything the page shows.

    Attributes:
        inputs: What was found.
        decide: Changes that fit the configuration: the agenda.
        kept: Keeps whose values act.
        applied: Changes that act already.
        outdated: Made for another configuration.
        made_up: Changes made from synthetic archives, where others are not: never to be set.
        conflicts: What keeps proposals of the agenda and keeps from being put in together; names are labels.
        merged: All of the agenda as one proposal; null = fewer than two, or they conflict.
        later: Archive that was asked whether they still hold; empty = not asked.
    """

    inputs: Inputs
    decide: tuple[Item, ...]
    kept: tuple[Item, ...]
    applied: tuple[Item, ...]
    outdated: tuple[Item, ...]
    made_up: tuple[Item, ...]
    conflicts: tuple[Conflict, ...]
    merged: Proposal | None
    later: str = ""

    @property
    def asked(self) -> tuple[Item, ...]:
        """Every proposal that was asked whether it still holds."""
        every = (*self.decide, *self.kept, *self.applied)
        return tuple(item for item in every if item.drift is not None)

    @property
    def synthetic(self) -> bool:
        """Whether everything on the agenda, or all there is, comes from synthetic archives."""
        shown = self.decide or (*self.kept, *self.applied, *self.outdated, *self.made_up)
        return bool(shown) and all(item.proposal.evidence.synthetic for item in shown)


def study(
    inputs: Inputs, *, created_at: datetime, later: str = "", ask: Ask | None = None
) -> Study:
    """Sort, compare and merge.

    Args:
        inputs: What was found.
        created_at: Time of the review, UTC without zone; that of the merged proposal.
        later: Archive that is asked whether the proposals still hold; empty: none.
        ask: Who answers that; null: :func:`brokerlab.calibrate.drift.later_archive`.
    """
    if later and ask is None:
        from brokerlab.calibrate.drift import later_archive

        ask = later_archive(later, reports=inputs.folder).ask
    items = [_item(one, inputs, ask) for one in inputs.filed]
    fits = [i for i in items if i.proposal.kind == "change" and i.state.word in APPLICABLE]
    real = [item for item in fits if not item.proposal.evidence.synthetic]
    agenda = real or fits
    decide = tuple(
        Item(label=str(n), filed=item.filed, state=item.state, drift=item.drift)
        for n, item in enumerate(agenda, start=1)
    )
    kept = tuple(item for item in items if item.state.word == "kept")
    found = _conflicts(inputs, decide, kept)
    return Study(
        inputs=inputs,
        decide=decide,
        kept=kept,
        applied=tuple(item for item in items if item.state.word == "applied already"),
        outdated=tuple(item for item in items if item.state.word == "base changed"),
        made_up=tuple(item for item in fits if item not in agenda),
        conflicts=found,
        merged=_merged(inputs, decide, created_at),
        later=later,
    )


def _item(one: Filed, inputs: Inputs, ask: Ask | None) -> Item:
    state = state_of(one.proposal, inputs.config)
    asked = ask is not None and state.word != "base changed"
    return Item(
        label="", filed=one, state=state, drift=ask(one.proposal) if asked and ask else None
    )


def named(item: Item) -> str:
    """Return what a proposal is called in a sentence."""
    origin = item.filed.report or item.filed.name
    return f"{item.label} ({origin})" if item.label else f"the keep of {origin}"


def _conflicts(
    inputs: Inputs, decide: Sequence[Item], kept: Sequence[Item]
) -> tuple[Conflict, ...]:
    """Return the conflicts that touch the agenda, each proposal by its label."""
    names = {item.filed.name: named(item) for item in (*decide, *kept)}
    agenda = {item.filed.name for item in decide}
    found = conflicts(
        [item.filed for item in (*decide, *kept)], config=inputs.config, touched_only=True
    )
    return tuple(
        Conflict(
            one.place,
            one.kind,
            names.get(one.first, one.first),
            names.get(one.second, one.second),
            _renamed(one.why, names),
        )
        for one in found
        if agenda & {one.first, one.second}
    )


def _renamed(text: str, names: dict[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _merged(inputs: Inputs, decide: Sequence[Item], created_at: datetime) -> Proposal | None:
    """Return the agenda as one proposal, if there are two or more that do not conflict."""
    if len(decide) < 2:
        return None
    try:
        return merge(
            [item.filed for item in decide],
            created_at=created_at,
            config=inputs.config,
            touched_only=True,
        )
    except ProposalError:
        return None  # the conflicts say why
