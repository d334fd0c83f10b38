"""The tables of the review."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from brokerlab.gdpconfig import keys as catalogue
from brokerlab.gdpconfig.proposal import Affected
from brokerlab.gdpconfig.proposal.listing import set_value
from brokerlab.gdpconfig.proposal.words import ranked
from brokerlab.report.content import Column, Link, Num, Row, Table
from brokerlab.report.proposal_review import sentences as say
from brokerlab.report.proposal_review.study import Item, Study
from brokerlab.words import listed, thin

PEOPLE = 6
"""Groups named per proposal and side; the document has all."""
EFFECTS = {
    **dict.fromkeys(["proposal", "report", "quantity", "unit"], pl.String),
    **dict.fromkeys(["current", "proposed", "difference", "low", "high", "level"], pl.Float64),
    "certainty": pl.String,
}


def columns(**labels: str) -> tuple[Column, ...]:
    """Return columns by key and label."""
    return tuple(Column(key=key, label=label) for key, label in labels.items())


def agenda(study: Study, folder: Path) -> Table:
    """Lay out what is to be decided: a line per key."""
    rows = []
    for item in study.decide:
        for n, change in enumerate(item.changes):
            low, high = (
                "none" if rail is None else f"{rail:g}" for rail in (change.minimum, change.maximum)
            )
            cells: dict[str, Num | Link | str | None] = {
                "key": f"{item.label}. {change.key}",
                "old": set_value(change.old),
                "new": set_value(change.new),
                "unit": change.unit or "1",
                "vo": change.vo or "all",
                "rails": f"{low} to {high}",
                "proof": "" if n else proof(item, folder),
                **({"drift": "" if n else say.drift_words(item)} if study.asked else {}),
            }
            rows.append(Row(cells=cells))
    asked = {"drift": "Still holds"} if study.asked else {}
    return Table(
        name="agenda",
        caption="What is proposed, and which report proves it",
        columns=columns(
            key="Key", old="Now", new="Proposed", unit="Unit", vo="VO", rails="Guard rails", proof="Proof", **asked
        ),
        rows=tuple(rows),
    )  # fmt: skip


def proof(item: Item, folder: Path) -> Link | str:
    """Return a link to the page that proves a proposal, as seen from the folder of the review's run."""
    filed = item.filed
    if filed.folder is None or filed.page is None:
        return "no report beside the file"
    page = filed.folder / "index.html"
    return Link(
        label=f"{filed.report}, {filed.run}",
        href=Path(os.path.relpath(page, folder.resolve())).as_posix(),
    )


def keys(item: Item) -> Table:
    """Say what the keys of a proposal do."""
    rows = [
        Row(
            cells={
                "key": change.key,
                "place": f"{change.app}/{change.component}",
                "effect": catalogue.find(change.key, change.app, change.component).effect,
            }
        )
        for change in item.changes
    ]
    return Table(
        name=f"keys_{item.label}",
        caption="What the keys do",
        columns=columns(key="Key", place="App and component", effect="Effect"),
        rows=tuple(rows),
    )


def effects(item: Item) -> Table | None:
    """Lay out everything that a proposal promises."""
    if not item.effects:
        return None
    levels = {effect.level for effect in item.effects if effect.level is not None}
    level = f", {100 * next(iter(levels)):g} %" if len(levels) == 1 else ""
    rows = [
        Row(
            cells={
                "quantity": effect.quantity,
                "unit": effect.unit,
                "current": Num(value=effect.current),
                "proposed": Num(value=effect.proposed),
                "difference": Num(value=effect.difference, lo=effect.low, hi=effect.high),
                "certainty": say.certainty(effect),
            }
        )
        for effect in item.effects
    ]
    return Table(
        name=f"effects_{item.label}",
        caption="Before and after, as measured on the proof period",
        columns=columns(
            quantity="Quantity",
            unit="Unit",
            current="Now",
            proposed="Proposed",
            difference=f"Difference (interval{level})",
            certainty="Certainty",
        ),
        rows=tuple(rows),
    )


def people(items: Sequence[Item]) -> Table | None:
    """Lay out who gains and who loses by each proposal."""
    rows = []
    for item in items:
        evidence = item.proposal.evidence
        for word, side in (("gains", evidence.helps), ("loses", evidence.hurts)):
            rows += _people(item.label, word, ranked(side))
    if not rows:
        return None
    return Table(
        name="people",
        caption="Who gains and who loses, as the documents say",
        columns=columns(who="Who", side="Gains or loses", proposal="By", how="By how much"),
        rows=tuple(rows),
    )


def _people(label: str, word: str, side: Sequence[Affected]) -> list[Row]:
    rows = [
        Row(cells={"who": one.who, "side": word, "proposal": f"{label}.", "how": thin(one.how)})
        for one in side[:PEOPLE]
    ]
    if len(side) > PEOPLE:
        rest = f"and {len(side) - PEOPLE} more, in the document"
        rows.append(Row(cells={"who": rest, "side": word, "proposal": f"{label}.", "how": ""}))
    return rows


def conflicts(study: Study) -> Table | None:
    """Lay out what keeps proposals from being put in together."""
    if not study.conflicts:
        return None
    rows = [
        Row(
            cells={
                "place": one.place,
                "kind": one.kind,
                "between": f"{one.first} and {one.second}",
                "why": one.why,
            }
        )
        for one in study.conflicts
    ]
    return Table(
        name="conflicts",
        caption="Conflicts: settle each of them before anything is applied",
        columns=columns(place="Where", kind="Kind", between="Between", why="Why"),
        rows=tuple(rows),
    )


def drift(study: Study) -> Table | None:
    """Lay out whether the proposals still hold on a later archive."""
    if not study.asked:
        return None
    rows = [
        Row(
            cells={
                "keys": (f"{item.label}. " if item.label else "")
                + ", ".join(change.key for change in item.changes),
                "answer": say.drift_words(item),
                "sentence": thin(item.drift.sentence),
            },
            note="look again" if item.drift.status == "does_not_hold" else "",
        )
        for item in study.asked
        if item.drift is not None
    ]
    return Table(
        name="drift",
        caption=f"Do they still hold on {study.later}?",
        columns=columns(keys="Keys", answer="Answer", sentence="What was found"),
        rows=tuple(rows),
    )


def rest(study: Study, folder: Path) -> Table | None:
    """Lay out what is not on the agenda, with the reason."""
    groups: Iterable[tuple[str, Sequence[Item]]] = (
        ("kept as it is", study.kept),
        ("applied already", study.applied),
        ("made for another configuration", study.outdated),
        ("from a synthetic archive", study.made_up),
    )
    rows = [
        Row(
            cells={
                "why": why,
                "keys": listed([f"{one.key} {say.arrow(one)}" for one in item.changes]),
                "detail": _detail(item),
                "proof": proof(item, folder),
            }
        )
        for why, items in groups
        for item in items
    ]
    rows += [
        Row(cells={"why": "no sound proposal", "keys": one.name, "detail": one.problem, "proof": one.report or ""})
        for one in study.inputs.broken
    ]  # fmt: skip
    if not rows:
        return None
    return Table(
        name="rest",
        caption="Everything else that was found",
        columns=columns(why="Not to be decided", keys="Keys", detail="What is said", proof="Proof"),
        rows=tuple(rows),
    )


def _detail(item: Item) -> str:
    if item.state.word == "base changed":
        return thin("; ".join(item.state.why))
    return thin(item.proposal.evidence.verdict)


def effects_frame(study: Study) -> pl.DataFrame:
    """Return every effect of the agenda: ``proposal, report, quantity, unit``, the numbers, ``certainty``."""
    rows = [
        (item.label, say.origin(item), effect.quantity, effect.unit, effect.current, effect.proposed,
         effect.difference, effect.low, effect.high, effect.level, say.certainty(effect))
        for item in study.decide
        for effect in item.effects
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=EFFECTS, orient="row")


def people_frame(study: Study) -> pl.DataFrame:
    """Return everybody named by the agenda: ``proposal, side, who, how``."""
    rows = [
        (item.label, word, one.who, one.how)
        for item in study.decide
        for word, side in (("gains", item.proposal.evidence.helps), ("loses", item.proposal.evidence.hurts))
        for one in ranked(side)
    ]  # fmt: skip
    schema = dict.fromkeys(["proposal", "side", "who", "how"], pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")
