"""Several proposals as one, with a link to the proof of each.

Source: design, idea 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias, TypeVar

from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal import base
from brokerlab.gdpconfig.proposal.conflict import Where, by_entry, conflicts, tighter
from brokerlab.gdpconfig.proposal.document import MAX_TITLE, Proposal, reject
from brokerlab.gdpconfig.proposal.filed import Filed
from brokerlab.gdpconfig.proposal.parts import Change, Digests, Evidence, Source

T = TypeVar("T")
Number: TypeAlias = float | int | str | None
KEYS_NAMED = 3
"""Keys named in front of an effect; a longer list says how many more."""


def merge(
    filed: Iterable[Filed],
    *,
    created_at: datetime,
    config: Config | None = None,
    touched_only: bool = False,
) -> Proposal:
    """Make one proposal of several: verified, applied and taken back as any other; "keep" if all are.

    What each promises was measured with its own keys alone, and the document says so. The order given does not
    matter; where no two have the same keys, merging in steps gives the same as merging at once.

    Args:
        filed: At least two different proposals, of kind "change" or "keep".
        created_at: UTC without zone.
        config: The configuration that acts now; it becomes the base. Null: all were made for the same base, which
            stays.
        touched_only: Other keys than those of the proposals may have changed; asks for ``config``.

    Raises:
        ProposalError: Fewer than two, one that takes another back, or conflicts: all of them, each with both names.
        ConfigError: The configuration has a history: choose ``config.at(time)``.
    """
    parts = _different(filed)
    result = [
        str(conflict) for conflict in conflicts(parts, config=config, touched_only=touched_only)
    ]
    reject(result, f"the {len(parts)} proposals cannot be merged, {len(result)} conflict(s)")
    merged = _merge(parts, created_at, config)
    reject(merged.problems(), "the merged proposal is not sound")
    return merged


def _different(filed: Iterable[Filed]) -> list[Filed]:
    """Return the proposals in an order of their own, each once."""
    parts = {part.proposal.digest: part for part in sorted(filed, key=lambda one: one.name)}
    problems = [
        f"{part.name} takes another proposal back: apply it alone"
        for part in parts.values()
        if part.proposal.takes_back
    ]
    if len(parts) < 2:
        problems.append(f"two different proposals are needed, found {len(parts)}")
    reject(problems, "nothing to merge")
    return [part for _, part in sorted(parts.items())]


def _merge(parts: Sequence[Filed], created_at: datetime, config: Config | None) -> Proposal:
    changes = _changes(parts)
    every = {source.digest: source for part in parts for source in part.sources}
    sources = tuple(sorted(every.values(), key=lambda source: (source.title, source.digest)))
    shared = parts[0].proposal
    return Proposal(
        kind="change" if any(change.action != "none" for change in changes) else "keep",
        title=_title(sources),
        created_at=created_at,
        changes=changes,
        evidence=_evidence(parts, sources),
        digests=Digests(
            config=shared.digests.config if config is None else config.digest,
            keys=base.told_digest(changes),
            archive=_only({source.archive for source in sources}),
            rules=_only({source.rules for source in sources}),
        ),
        places=shared.places if config is None else base.places_of(config),
        sources=sources,
    )


def _changes(parts: Sequence[Filed]) -> tuple[Change, ...]:
    """Return every change once, under the guard rails of all, sorted by place and VO."""
    result: dict[Where, Change] = {}
    for part in parts:
        for where, change in by_entry(part).items():
            other = result.get(where, change)
            low, high = tighter(change, other)
            unit = min(change.unit, other.unit)
            result[where] = replace(change, minimum=low, maximum=high, unit=unit)
    ordered = sorted(result, key=lambda where: (where[0], where[1] or ""))
    return tuple(result[where] for where in ordered)


def _title(sources: Sequence[Source]) -> str:
    title = "Together: " + "; ".join(source.title for source in sources)
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 3] + "..."


def _only(values: set[str | None]) -> str | None:
    """Return what all have; null where they differ: each proof has its own."""
    return next(iter(values)) if len(values) == 1 else None


def _evidence(parts: Sequence[Filed], sources: Sequence[Source]) -> Evidence:
    """Return the evidence of all, each piece with the keys it belongs to."""
    labelled = [_labelled(part) for part in parts]
    verdicts = " ".join(f"({n}) {source.verdict}" for n, source in enumerate(sources, start=1))
    filters = _by_name(parts, (one.filters for one in labelled))
    stated = bool(filters) or all(one.filters is not None for one in labelled)
    return Evidence(
        verdict=f"{len(sources)} proposals, each measured with its own keys alone; what they do together was not "
        f"measured. {verdicts}",
        effects=_once((one.effects for one in labelled), lambda effect: effect.quantity),
        windows=_once((one.windows for one in labelled), lambda window: window.name),
        helps=_once((one.helps for one in labelled), lambda who: who.how),
        hurts=_once((one.hurts for one in labelled), lambda who: who.how),
        numbers=_by_name(parts, (one.numbers for one in labelled)),
        synthetic=any(one.synthetic for one in labelled),
        filters=filters if stated else None,
    )


def _by_name(parts: Sequence[Filed], pieces: Iterable[Mapping[str, T] | None]) -> dict[str, T]:
    """Return what all state by name, sorted; the same name with another value gets the digest of its proposal."""
    result: dict[str, T] = {}
    for part, values in zip(parts, pieces, strict=True):
        for name, value in (values or {}).items():
            taken = name in result and result[name] != value
            result[f"{name} [{part.proposal.digest[7:15]}]" if taken else name] = value
    return dict(sorted(result.items()))


def _once(groups: Iterable[Iterable[T]], labelled: Callable[[T], str]) -> tuple[T, ...]:
    """Return everything once, sorted by label; what has the same label stays in the order of its proposal."""
    items = dict.fromkeys(item for group in groups for item in group)
    return tuple(sorted(items, key=lambda item: labelled(item).partition(": ")[0]))


def _labelled(part: Filed) -> Evidence:
    """Return the evidence of a proposal with its keys in front; a merged one has them already."""
    evidence = part.proposal.evidence
    if part.proposal.sources:
        return evidence
    label = _label(part)
    numbers: Mapping[str, Number] = evidence.numbers or {}
    return replace(
        evidence,
        effects=tuple(
            replace(effect, quantity=f"{label}: {effect.quantity}") for effect in evidence.effects
        ),
        windows=tuple(
            replace(window, name=f"{label}: {window.name}") for window in evidence.windows
        ),
        helps=tuple(replace(who, how=f"{label}: {who.how}") for who in evidence.helps),
        hurts=tuple(replace(who, how=f"{label}: {who.how}") for who in evidence.hurts),
        numbers={f"{label}: {name}": value for name, value in numbers.items()},
        filters=evidence.filters and {f"{label}: {n}": v for n, v in evidence.filters.items()},
    )


def _label(part: Filed) -> str:
    """Return the keys of a proposal, few enough to stand in front of a line."""
    keys = sorted({change.key for change in part.proposal.changes})
    more = f" and {len(keys) - KEYS_NAMED} more" if len(keys) > KEYS_NAMED else ""
    return ", ".join(keys[:KEYS_NAMED]) + more
