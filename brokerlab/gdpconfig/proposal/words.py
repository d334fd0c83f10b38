"""Proposals in words: many at a glance, and of one what it promises, who gains and who loses, what proves it, what to look at then.

Source: design, idea 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Value
from brokerlab.gdpconfig.proposal.document import Proposal, tasks_in_words
from brokerlab.gdpconfig.proposal.files import Broken, Filed
from brokerlab.gdpconfig.proposal.parts import (
    Affected,
    Change,
    Effect,
    Evidence,
    Source,
    base_problem,
    rail,
)
from brokerlab.words import listed, plural

Word = Literal[
    "applicable", "applicable, other keys changed", "applied already", "kept", "base changed"
]

COLUMNS = (
    *("name", "report", "run", "kind", "keys", "scope", "change", "effect"),
    *("state", "why", "title"),
)


@dataclass(frozen=True)
class State:
    """How a proposal stands to a configuration.

    Attributes:
        word: ``applicable``; ``applicable, other keys changed`` (only with ``touched_only``); ``applied already``;
            ``kept`` (a keep whose values act); ``base changed``.
        why: What differs from the base, one line per entry.
    """

    word: Word
    why: tuple[str, ...] = ()


def state_of(proposal: Proposal, config: Config) -> State:
    """Say whether a proposal can be applied to a configuration, which has no history.

    Example:
        >>> from datetime import datetime
        >>> from brokerlab.gdpconfig.proposal import Evidence
        >>> config = Config.empty()
        >>> made = Proposal.to_change(config, {"SCOUT_RAMCOUNT_RANK": 80}, title="More memory",
        ...     created_at=datetime(2026, 3, 1), evidence=Evidence("80 meets the limit"))
        >>> state_of(made, config).word, state_of(made, made.applied_to(config)).word
        ('applicable', 'applied already')
    """
    keep = proposal.kind == "keep"
    differs = tuple(proposal.differences(config))
    if not differs:
        return State("kept" if keep else "applicable")
    if not proposal.differences(config, touched_only=True):
        return State("kept" if keep else "applicable, other keys changed", differs)
    if not keep and not any(base_problem(config, change.reversed()) for change in proposal.changes):
        return State("applied already", differs)
    return State("base changed", differs)


def overview(filed: Iterable[Filed | Broken], config: Config | None = None) -> pl.DataFrame:
    """Return proposals as a table, one row each, in the order given; null config: nothing is said of the state.

    All String, null = not known: ``name, report, run, kind`` (change, keep, broken), ``keys, scope`` (VO of each entry),
    ``change`` (old -> new with unit), ``effect`` (the first one, with its interval), ``state``, ``why`` (what differs from the
    base), ``title``.
    """
    rows = [_row(one, config) for one in filed]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String))


def _row(filed: Filed | Broken, config: Config | None) -> dict[str, str | None]:
    where = {"name": filed.name, "report": filed.report, "run": filed.run}
    if isinstance(filed, Broken):
        return {**where, "kind": "broken", "state": "unreadable", "why": filed.problem}
    proposal = filed.proposal
    effects = proposal.evidence.effects
    more = f", and {len(effects) - 1} more" if len(effects) > 1 else ""
    state = None if config is None else state_of(proposal, config)
    return {
        **where,
        "kind": proposal.kind,
        "keys": ", ".join(change.key for change in proposal.changes),
        "scope": ", ".join(dict.fromkeys(scope(change) for change in proposal.changes)),
        "change": ", ".join(old_to_new(change) for change in proposal.changes),
        "effect": effect_text(effects[0]) + more if effects else None,
        "state": None if state is None else state.word,
        "why": None if state is None else "; ".join(state.why) or None,
        "title": proposal.title,
    }


def scope(change: Change) -> str:
    """Return the VO that a change is for, in words."""
    return "all VOs" if change.vo is None else f"VO {change.vo}"


def old_to_new(change: Change) -> str:
    """Return a change as ``old -> new unit``, or ``keep value unit``."""
    unit = f" {change.unit}" if change.unit else ""
    if change.action == "none":
        return f"keep {set_value(change.old)}{unit}"
    return f"{set_value(change.old)} -> {set_value(change.new)}{unit}"


def effect_text(effect: Effect) -> str:
    """Return an effect with its interval in one line.

    Example:
        >>> effect_text(Effect("jobs killed", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95))
        'jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %)'
        >>> effect_text(Effect("jobs killed", "%", 7.5, None, None))
        'jobs killed: 7.5 -> not measured %'
        >>> effect_text(Effect("jobs killed", "%", 7.5, 4.5, -3.0, -3.5, -2.5, 0.95, coverage=0.931))
        'jobs killed: 7.5 -> 4.5 %, -3 (-3.5 to -2.5, 95 %, covers 93.1 %)'
    """
    unit = f" {effect.unit}" if effect.unit not in ("", "1") else ""
    text = f"{effect.quantity}: {shown(effect.current)} -> {shown(effect.proposed)}{unit}"
    if effect.difference is None:
        return text
    text += f", {_sign(effect.difference)}"
    if effect.low is None or effect.high is None:
        return f"{text} (no interval)"
    level = "" if effect.level is None else f", {100 * effect.level:g} %"
    if effect.coverage is not None:
        level += f", covers {100 * effect.coverage:.3g} %"
    return f"{text} ({_sign(effect.low)} to {_sign(effect.high)}{level})"


def shown(value: float | None) -> str:
    """Return a measured number for people: whole from 1000 on, else four figures."""
    if value is None:
        return "not measured"
    value += 0.0  # minus zero becomes zero
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _sign(value: float) -> str:
    return f"{'+' if value > 0 else ''}{shown(value)}"


def set_value(value: Value) -> str:
    """Return a value of a key, every figure of it."""
    return "none" if value is None else str(value)


GROUPS = ("gshare", "queue", "user class")
"""Who is spoken of first; every other kind of group follows in the order of the document."""


def in_words(filed: Filed, config: Config | None = None) -> str:
    """Return a proposal as text for a person, in sections with a heading each; null config: nothing is said of the state."""
    proposal = filed.proposal
    evidence = proposal.evidence
    lines = [f"{proposal.kind}: {proposal.title}", evidence.verdict]
    if evidence.synthetic:
        lines.append("Made from a synthetic archive: not to be set anywhere.")
    if proposal.takes_back:
        lines.append(f"Takes back the proposal with digest {proposal.takes_back}.")
    sections = [
        ("State", _state(filed, config)),
        ("Notes", [f"{name}: {text}" for name, text in proposal.notes.items()]),
        ("What is set", [line for change in proposal.changes for line in _change(change)]),
        ("Expected effect", _effects(evidence)),
        ("Who gains", _affected(evidence.helps)),
        ("Who loses", _affected(evidence.hurts)),
        ("Nothing is told of", untold(evidence)),
        ("Gains by one thing and loses by another", both(evidence)),
        ("Measured on", _measured_on(filed)),
        ("Proof", [line for source in filed.sources for line in _proof(filed, source)]),
        ("After it is applied", after_applying(proposal, filed.name)),
    ]
    for heading, content in sections:
        if content:
            lines += ["", heading, *(f"  {line}" for line in content)]
    return "\n".join(lines) + "\n"


def _state(filed: Filed, config: Config | None) -> list[str]:
    if config is None:
        return []
    state = state_of(filed.proposal, config)
    return [state.word, *(f"  {why}" for why in state.why)]


def _change(change: Change) -> list[str]:
    """Return what is set, its guard rails, and what the key does."""
    low, high = rail(change.minimum), rail(change.maximum)
    line = f"{change.place} ({scope(change)}): {old_to_new(change)}; guard rails {low} to {high}"
    return [line, f"  {known.find(change.key, change.app, change.component).effect}"]


def _effects(evidence: Evidence) -> list[str]:
    if not evidence.effects:
        return ["the document tells none"]
    return [
        effect_text(effect) + ("; may be nothing" if effect.interval == "includes 0" else "")
        for effect in evidence.effects
    ]


def _affected(people: Sequence[Affected]) -> list[str]:
    if not people:
        return ["the document names nobody"]
    return [f"{one.who}: {one.how}" for one in ranked(people)]


def ranked(people: Sequence[Affected]) -> list[Affected]:
    """Return groups by kind: shares, queues, classes of users, then all others."""
    order = [next((i for i, kind in enumerate(GROUPS) if _is(one, kind)), 99) for one in people]
    return [one for _, one in sorted(zip(order, people, strict=True), key=lambda pair: pair[0])]


def _is(one: Affected, kind: str) -> bool:
    return one.who.replace("_", " ").startswith((kind, f"panda {kind}"))


def untold(evidence: Evidence) -> list[str]:
    """Return the kinds of group that the document says nothing of: no answer is not "no effect"."""
    people = (*evidence.helps, *evidence.hurts)
    return [
        f"{kind}{'es' if kind.endswith('s') else 's'}"
        for kind in GROUPS
        if not any(_is(one, kind) for one in people)
    ]


def both(evidence: Evidence) -> list[str]:
    """Return who gains by one thing and loses by another."""
    hurt = {one.who for one in evidence.hurts}
    return list(dict.fromkeys(one.who for one in evidence.helps if one.who in hurt))


def silence(evidence: Evidence) -> str:
    """Say of whom a document tells nothing, and who gains by one thing and loses by another; empty: nobody.

    Example:
        >>> silence(Evidence("80 meets the limit"))
        'the document names nobody who gains or loses.'
    """
    if not evidence.helps and not evidence.hurts:
        return "the document names nobody who gains or loses."
    silent, torn = untold(evidence), both(evidence)
    sentences = [f"nothing is said of {listed(silent, 'or')}."] if silent else []
    sentences += [f"{listed(torn)} gain by one thing and lose by another."] if torn else []
    return " ".join(sentences)


def _measured_on(filed: Filed) -> list[str]:
    proposal = filed.proposal
    filters = proposal.evidence.filters
    lines = [] if filters is None else [tasks_in_words(filters)]
    lines += [
        f"{window.name}: {window.start:%Y-%m-%d %H:%M} to {window.end:%Y-%m-%d %H:%M} UTC"
        for window in proposal.evidence.windows
    ]
    numbers = proposal.evidence.numbers or {}
    lines += [f"{name}: {'unknown' if n is None else n}" for name, n in numbers.items()]
    digests = proposal.digests
    document = {"archive": digests.archive, "rules": digests.rules, "base": digests.config}
    return lines + [f"{name} {digest}" for name, digest in document.items() if digest]


def _proof(filed: Filed, source: Source) -> list[str]:
    """Return where the proof of one proposal stands; of a merged one also what it says alone."""
    where = (
        "no report is known"
        if source.report is None
        else f"report {source.report}, run {source.run}, page {source.page or 'not there'}"
    )
    if not filed.proposal.sources:
        return [where]
    return [f"{source.title}: {where}", f"  {source.verdict}", f"  {source.digest}"]


def after_applying(proposal: Proposal, name: str) -> list[str]:
    """Say what to look at after a change was applied: which quantities, until when, and how to take it back; nothing of a keep."""
    if proposal.kind == "keep":
        return []
    effects = proposal.evidence.effects
    lines = [f"to change: {effect_text(one)}" for one in effects if one.interval == "excludes 0"]
    steady = [one.quantity for one in effects if one.interval in ("includes 0", "unchanged")]
    lines += [f"not to change beyond its interval: {listed(steady)}"] if steady else []
    lines = lines or ["to look at: the document states no effect with an interval"]
    lines.append(f"until: {_until(proposal.evidence)}")
    if not proposal.takes_back:
        lines.append(
            f"then: brokerlab proposal drift {name} --archive LATER (exit code 8: it does not hold)"
        )
    return [*lines, f"to take it back: brokerlab proposal revert {name} --config NOW --into BACK"]


def _until(evidence: Evidence) -> str:
    """Say how long it takes until later data can tell as much as those that the change was proven on."""
    if not evidence.windows:
        return "later data have an interval of the same width; the document states no period"
    last = max(evidence.windows, key=lambda window: window.end)
    days = (last.end - last.start).total_seconds() / 86400
    spoken = f"{days:.0f} {plural(round(days), 'day')}" if days >= 1 else "a day"
    return f"{spoken} of data with the new values, as many as it was proven on ({last.name})"
