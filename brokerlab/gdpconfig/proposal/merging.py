"""Several proposals together: what keeps them from being put in at once, and one made of all, with a link to the proof of each.

Source: design, idea 6; docs/rules/gdpconfig.md, Look-up rules, 2 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, product
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

from brokerlab.gdpconfig import keys as known
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Value
from brokerlab.gdpconfig.keys import PLACEHOLDER, chain, expand
from brokerlab.gdpconfig.proposal.document import MAX_TITLE, Proposal, reject
from brokerlab.gdpconfig.proposal.files import Filed
from brokerlab.gdpconfig.proposal.parts import (
    Change,
    Digests,
    Evidence,
    Source,
    base_problem,
    changes_digest,
    places_of,
    with_changes,
    within,
)
from brokerlab.gdpconfig.proposal.words import scope, set_value, state_of

Kind = Literal["value", "base", "guard rails"]
Where: TypeAlias = "tuple[str, str | None]"
Pair: TypeAlias = tuple[Filed, Filed]

THE_CONFIGURATION = "the configuration"
SHOWN = 5
"""Places named where two bases differ in many."""

ORDERED: Mapping[str, str] = MappingProxyType(
    {
        "USER_USAGE_THRESHOLD_A": "USER_USAGE_THRESHOLD_B",
        "BASE_EXPECTED_WAIT_HOUR_ON_PQ": "MAX_EXPECTED_WAIT_HOUR",
        "BASE_QUEUE_RATIO_ON_PQ": "STATIC_MAX_QUEUE_RUNNING_RATIO",
        "NQUEUED_SAT_CAP": "NQUEUED_NUC_CAP_FOR_JOBS",
        "NQUEUELIMIT_*": "NQUEUECAP_*",
        "AES_MINTASKPRIORITY": "AES_MAXTASKPRIORITY",
        "JUMBO_MIN_EVENTS_DISABLE": "JUMBO_MIN_EVENTS_ENABLE",
    }
)
"""Key -> key of the same app and component whose value must not be below its own, else one of the two never acts;
``*`` is the same in both. Our judgement, as the sensible bounds of the catalogue."""


@dataclass(frozen=True, order=True)
class Conflict:
    """Two proposals that cannot be put in together.

    Attributes:
        place: ``app/component/KEY``, or what else they differ in.
        kind: ``value``: the same entry is to have two values; ``base``: one is not made for what the other leaves, or
            changes what the other was measured with; ``guard rails``: sound alone, not together.
        first: Name of one proposal.
        second: Name of the other, or "the configuration".
        why: What is between them.
    """

    place: str
    kind: Kind
    first: str
    second: str
    why: str

    def __str__(self) -> str:
        """Return the conflict in one line."""
        return f"{self.place} ({self.kind}): {self.first} and {self.second}: {self.why}"


def conflicts(
    filed: Iterable[Filed], *, config: Config | None = None, touched_only: bool = False
) -> tuple[Conflict, ...]:
    """Return everything that keeps proposals from being put in together, sorted; the order given does not matter.

    Each must fit the configuration that acts now, if one is given; else all must be made for the same base. With
    ``touched_only`` other keys of that configuration may have changed.
    """
    parts = sorted(filed, key=lambda one: (one.name, one.proposal.digest))
    result = set[Conflict]()
    for pair in combinations(parts, 2):
        result.update(_of_values(pair))
        result.update(_of_scopes(pair))
        result.update(_of_guard_rails(pair))
        result.update(_of_bases(pair) if config is None else _of_defaults(pair, config))
    if config is not None:
        for part in parts:
            result.update(_with_config(part, config, touched_only=touched_only))
    return tuple(sorted(result))


def by_entry(part: Filed) -> dict[Where, Change]:
    """Return the changes of a proposal by place and VO."""
    return {(change.place, change.vo): change for change in part.proposal.changes}


def same(first: Change, second: Change) -> bool:
    """Whether two proposals say the same of an entry, apart from guard rails."""
    return (first.before, first.after, first.old, first.new) == (
        *(second.before, second.after),
        *(second.old, second.new),
    )


def _of_values(pair: Pair) -> Iterator[Conflict]:
    """Yield entries of both that are to have different values, or were different before."""
    names = (pair[0].name, pair[1].name)
    mine, other = (by_entry(part) for part in pair)
    for where in mine.keys() & other.keys():
        one, two = mine[where], other[where]
        if (one.before, one.old) != (two.before, two.old):
            why = f"made for {set_value(one.old)} and for {set_value(two.old)}"
            yield Conflict(one.place, "base", *names, why)
        if (one.after, one.new) != (two.after, two.new):
            why = f"{scope(one)}: {_wish(one)} and {_wish(two)}"
            yield Conflict(one.place, "value", *names, why)


def _wish(change: Change) -> str:
    return f"{'keep' if change.action == 'none' else 'set'} {set_value(change.new)}"


def _of_scopes(pair: Pair) -> Iterator[Conflict]:
    """Yield entries of one that hide an entry of the other: another VO, or a key that is asked first."""
    names = (pair[0].name, pair[1].name)
    for one in pair[0].proposal.changes:
        for two in pair[1].proposal.changes:
            if one.action == two.action == "none":
                continue
            if one.place == two.place and one.vo != two.vo:
                why = f"one is for {scope(one)}, the other for {scope(two)}: which of them acts changes"
                yield Conflict(one.place, "base", *names, why)
            for special, general in ((one, two), (two, one)):
                if special.place != general.place and general.place in _asked_after(special):
                    why = (
                        f"where {special.key} is set, {general.key} is not asked: each was measured "
                        "without the other"
                    )
                    yield Conflict(special.place, "base", *names, why)


def _asked_after(change: Change) -> set[str]:
    """Return the places that are asked where a key has no entry.

    Scopes may hold underscores, so a key can be read in two ways: as few or as many characters for the first scope.
    """
    row = known.find(change.key, change.app, change.component)
    places: set[str] = set()
    for template, scope_text in product(chain(row.key).keys, ("(.+?)", "(.+)")):
        parts = re.split(PLACEHOLDER, template)
        result = re.fullmatch(scope_text.join(map(re.escape, parts[::2])), change.key)
        if result is None:
            continue
        asked = expand(row.key, dict(zip(parts[1::2], result.groups(), strict=True)))
        if change.key in asked:
            later = asked[asked.index(change.key) + 1 :]
            places.update(f"{change.app}/{change.component}/{key}" for key in later)
    return places - {change.place}


def _of_bases(pair: Pair) -> Iterator[Conflict]:
    """Yield that two proposals were made for different configurations."""
    first, second = pair
    if first.proposal.digests.config == second.proposal.digests.config:
        return
    places = (first.proposal.places, second.proposal.places)
    every = sorted(places[0].keys() | places[1].keys())
    differ = [place for place in every if places[0].get(place) != places[1].get(place)]
    more = f" and {len(differ) - SHOWN} more" if len(differ) > SHOWN else ""
    what = ", ".join(differ[:SHOWN]) + more if differ else "the order or the times of entries"
    hint = "give the present configuration, or make one of them again"
    for one, other in (pair, pair[::-1]):
        touched = {change.place for change in one.proposal.changes if change.action != "none"}
        if differ and set(differ) <= touched:
            hint = (
                f"what {one.name} changes is all that differs: {other.name} may have been made "
                "after it was applied"
            )
    why = f"made for different configurations, which differ in {what}; {hint}"
    yield Conflict(THE_CONFIGURATION, "base", first.name, second.name, why)


def _of_defaults(pair: Pair, config: Config) -> Iterator[Conflict]:
    """Yield values that act differently as soon as the other proposal is in: defaults made from other keys."""
    for one, other in (pair, pair[::-1]):
        after = with_changes(config, one.proposal.changes)
        for where, change in by_entry(other).items():
            problem = base_problem(after, change)
            fitted = base_problem(config, change) is None
            if problem and fitted and where not in by_entry(one):
                why = f"{one.name} changes what {other.name} was made for"
                yield Conflict(change.place, "base", pair[0].name, pair[1].name, why)


def _with_config(part: Filed, config: Config, *, touched_only: bool) -> Iterator[Conflict]:
    """Yield what of a proposal does not fit the configuration that acts now."""
    state = state_of(part.proposal, config)
    names = (part.name, THE_CONFIGURATION)
    if state.word == "applied already":
        keys = ", ".join(change.place for change in part.proposal.changes)
        why = "applied already: leave it out, or take it back first"
        yield Conflict(keys, "base", *names, why)
    elif state.word == "base changed":
        for line in state.why:
            place, _, why = line.partition(": ")
            yield Conflict(place, "base", *names, why or "differs")
    elif state.why and not touched_only:
        why = "; ".join(state.why[:SHOWN])
        more = f" and {len(state.why) - SHOWN} more" if len(state.why) > SHOWN else ""
        yield Conflict(THE_CONFIGURATION, "base", *names, why + more)


def _of_guard_rails(pair: Pair) -> Iterator[Conflict]:
    """Yield values that are sound in each proposal and not in both."""
    names = (pair[0].name, pair[1].name)
    mine, other = (by_entry(part) for part in pair)
    for where in mine.keys() & other.keys():
        one, two = mine[where], other[where]
        low, high = tighter(one, two)
        number = _number(one.new)
        if not same(one, two) or one.new == one.old or number is None:
            continue
        if not within(number, low, high):
            why = f"{number:g} is outside {low} to {high}, the rails of both"
            yield Conflict(one.place, "guard rails", *names, why)
    for first, second in ((mine, other), (other, mine)):
        yield from _disordered(first.values(), second.values(), names)


def _disordered(
    lower: Iterable[Change], upper: Iterable[Change], names: tuple[str, str]
) -> Iterator[Conflict]:
    """Yield keys of one proposal that come to lie above the key of the other that bounds them."""
    ends = {change.place: change for change in upper}
    for change in lower:
        bound = ends.get(f"{change.app}/{change.component}/{_bound_of(change.key)}")
        if bound is None or change.action == bound.action == "none":
            continue
        value, limit = _number(change.new), _number(bound.new)
        if value is not None and limit is not None and value > limit:
            why = f"{value:g} is above {bound.key} = {limit:g}"
            yield Conflict(change.place, "guard rails", *names, why)


def _bound_of(key: str) -> str | None:
    """Return the key that bounds another from above; null = none.

    Example:
        >>> _bound_of("NQUEUELIMIT_Express_MCORE*")
        'NQUEUECAP_Express_MCORE*'
    """
    for low, high in ORDERED.items():
        if key == low:
            return high
        if low.endswith("*") and key.startswith(low[:-1]):
            return high[:-1] + key[len(low) - 1 :]
    return None


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def tighter(first: Change, second: Change) -> tuple[float | None, float | None]:
    """Return the guard rails that hold under both changes."""
    lows = [rail for rail in (first.minimum, second.minimum) if rail is not None]
    highs = [rail for rail in (first.maximum, second.maximum) if rail is not None]
    return max(lows, default=None), min(highs, default=None)


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
            keys=changes_digest(changes),
            archive=_only({source.archive for source in sources}),
            rules=_only({source.rules for source in sources}),
        ),
        places=shared.places if config is None else places_of(config),
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
