"""Many proposals at a glance: what each would set, what it promises, and whether it still fits.

Source: design, idea 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal import base
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.filed import Broken, Filed
from brokerlab.gdpconfig.proposal.parts import Change, Effect
from brokerlab.gdpconfig.values import Value

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
    if not keep and not any(
        base.base_problem(config, change.reversed()) for change in proposal.changes
    ):
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
