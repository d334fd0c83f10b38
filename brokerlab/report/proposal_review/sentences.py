"""The sentences of the review, every number taken from the study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from brokerlab.gdpconfig.proposal import Change, Effect
from brokerlab.gdpconfig.proposal.listing import scope, set_value
from brokerlab.gdpconfig.proposal.words import both, untold
from brokerlab.report.content import Kind, Verdict
from brokerlab.report.proposal_review.statements import BASE
from brokerlab.report.proposal_review.study import Item, Study, named
from brokerlab.words import listed, number, thin

SURE = "beyond doubt"
KEYS_NAMED = 4
"""Changes named in the verdict; a longer list says how many more."""


def verdict(study: Study) -> Verdict:
    """Return the answer as a whole."""
    found = study.inputs
    where = found.folder.as_posix()
    if study.decide:
        return _agenda(study)
    if study.outdated:
        n = len(study.outdated)
        return _verdict(
            "no_answer",
            f"No answer: {counted(n, 'proposal')} in {where} {_be(n)} not made for the configuration that acts now: run "
            f"{listed(sorted({item.filed.report or item.filed.name for item in study.outdated}))} again.",
        )
    if found.broken:
        n = len(found.broken)
        return _verdict(
            "no_answer",
            f"No answer: {counted(n, 'file')} in {where} {_be(n)} named like a proposal and {_be(n)} no sound one.",
        )
    if study.kept or study.applied:
        parts = [
            *([f"{counted(len(study.kept), 'proposal')} to keep {_keys(study.kept)}"] if study.kept else []),
            *([f"{counted(len(study.applied), 'change')} applied already"] if study.applied else []),
        ]  # fmt: skip
        return _verdict("keep", f"Keep: nothing to decide; {where} holds {listed(parts)}.")
    return _verdict("finding", f"Nothing to decide: there is no proposal in {where}.")


def _verdict(kind: Kind, sentence: str) -> Verdict:
    return Verdict(kind=kind, sentence=thin(sentence))


def _agenda(study: Study) -> Verdict:
    n = len(study.decide)
    every = [change for item in study.decide for change in item.changes]
    shown = [f"{one.key} {arrow(one)}" for one in every[:KEYS_NAMED]]
    more = [f"{len(every) - KEYS_NAMED} more keys"] if len(every) > KEYS_NAMED else []
    n_keys = len({(change.place, change.vo) for change in every})
    text = f"Decide on {counted(n, 'proposal')} to change {counted(n_keys, 'key')}: {listed([*shown, *more])}. {_sure(study)}"
    if n > 1:
        text += f" {together(study)}"
    if study.asked:
        text += f" {_drifted(study)}"
    if study.synthetic:
        text += " Made from synthetic archives: not to be set anywhere."
    return _verdict("change", text)


def _drifted(study: Study) -> str:
    """Say what became of the proofs on a later archive."""
    found = Counter(drift_words(item) for item in study.decide)
    words = listed([f"{number(n)} {word}" for word, n in sorted(found.items())])
    return f"Asked again on {study.later}: {words}."


def rest(study: Study) -> Verdict:
    """Return what is said of everything that is not on the agenda."""
    if not study.decide:
        return verdict(study)
    counts = {
        "kept as it is": len(study.kept),
        "applied already": len(study.applied),
        "made for another configuration": len(study.outdated),
        "from a synthetic archive": len(study.made_up),
        "in files that are no sound proposal": len(study.inputs.broken),
    }
    return _verdict("finding", f"Not on the agenda: {listed([f'{number(n)} {word}' for word, n in counts.items() if n])}.")  # fmt: skip


def _sure(study: Study) -> str:
    """Say how many of the promised effects differ from nothing."""
    effects = all_effects(study)
    sure = sum(certainty(effect) == SURE for effect in effects)
    if not effects:
        return "No effect is told: ask for the reports behind them."
    if all(effect.low is None or effect.high is None for effect in effects):
        return f"{counted(len(effects), 'effect')} told, none with an interval: nothing is certain."
    if sure == len(effects):
        what = "The effect told lies" if sure == 1 else f"All {number(sure)} effects told lie"
        return f"{what} beyond doubt on the proof periods."
    lie = "lies" if sure == 1 else "lie"
    return (
        f"Of {counted(len(effects), 'effect')} told {number(sure)} {lie} beyond doubt on the proof periods; "
        f"{'the other' if len(effects) - sure == 1 else 'the others'} may be nothing."
    )


def together(study: Study) -> str:
    """Say whether the agenda can be applied as one."""
    if study.conflicts:
        n = len(study.conflicts)
        return f"They cannot all be applied: {counted(n, 'conflict')} must be settled first."
    if study.merged is None:
        return "They cannot be put into one proposal; decide on each alone."
    return "They do not exclude each other and can be applied together; what they do together was not measured."


def item_verdict(item: Item) -> Verdict:
    """Return what one proposal says of itself."""
    kind: Kind = "change" if item.proposal.kind == "change" else "keep"
    subject = f"{item.label} · {origin(item)}".strip(" ·")
    return Verdict(kind=kind, subject=subject, sentence=thin(item.proposal.evidence.verdict))


def title(item: Item) -> str:
    """Return the heading of one proposal."""
    return f"{item.label}. {listed([f'{one.key} {arrow(one)}' for one in item.changes])}"


def origin(item: Item) -> str:
    """Return the report behind a proposal, or its file."""
    return item.filed.report or item.filed.name


def arrow(change: Change) -> str:
    """Return a change with its unit; the VO is named where it is not for all.

    Example:
        >>> from brokerlab.gdpconfig import Config
        >>> from brokerlab.gdpconfig.proposal.base import changes_of
        >>> (one,) = changes_of(Config.empty(), ["NQUEUED_SAT_CAP"], {"NQUEUED_SAT_CAP": 200})
        >>> arrow(one)
        '150 → 200 files'
    """
    unit = f" {change.unit}" if change.unit else ""
    where = "" if change.vo is None else f" ({scope(change)})"
    if change.action == "none":
        return f"stays {set_value(change.old)}{unit}{where}"
    return f"{set_value(change.old)} → {set_value(change.new)}{unit}{where}"


def certainty(effect: Effect) -> str:
    """Say how sure an effect is: ``beyond doubt, may be nothing, unchanged, no interval``.

    Example:
        >>> certainty(Effect("kills", "%", 7.5, 4.5, -3.0, -3.5, -2.5)), certainty(Effect("used", "h", 7, 7, 0, 0, 0))
        ('beyond doubt', 'unchanged')
    """
    if effect.low is None or effect.high is None:
        return "no interval"
    if effect.low == effect.high == 0:
        return "unchanged"
    return "may be nothing" if effect.low <= 0 <= effect.high else SURE


def all_effects(study: Study) -> list[Effect]:
    """Return everything that the agenda promises, but for what stays as it is."""
    every = [effect for item in study.decide for effect in item.effects]
    return [effect for effect in every if certainty(effect) != "unchanged"]


def gains(item: Item) -> str:
    """Say which groups a document is silent about, and who gains by one thing and loses by another."""
    evidence = item.proposal.evidence
    said = []
    if not evidence.helps and not evidence.hurts:
        said.append("The document names nobody who gains or loses.")
    elif silent := untold(evidence):
        said.append(f"Nothing is told of {listed(silent, 'or')}.")
    if torn := both(evidence):
        said.append(f"{listed(torn)} gain by one thing and lose by another.")
    return " ".join(said)


def state(item: Item) -> str:
    """Say how a proposal stands to the configuration that acts."""
    if item.state.word != "applicable, other keys changed":
        return ""
    why = [line.partition(": ")[0] for line in item.state.why]
    more = f" and {len(why) - 3} more" if len(why) > 3 else ""
    return thin(
        f"The keys are as it found them; others have changed since ({', '.join(why[:3])}{more}): what it was "
        "measured with does not act any more."
    )


def not_again(study: Study, item: Item) -> str:
    """Say that a later run has not found the same again."""
    run = study.inputs.not_again.get(item.proposal.digest)
    if run is None:
        return ""
    return f"Run {run} of the report, later and with the same parameters, did not propose it again: read that first."


def cannot_tell(study: Study) -> tuple[str, ...]:
    """Return what the page cannot tell, from what was found."""
    found = study.inputs
    said = []
    if study.synthetic:
        said.append(
            "Anything about a real system: every proposal here was made from a synthetic archive."
        )
    if len(study.decide) > 1:
        said.append(
            "What the changes do together: each was measured with its own keys alone, against the settings before."
        )
    silent = [item for item in study.decide if gains(item)]
    said += [f"{named(item)}: {gains(item)}" for item in silent]
    bare = [
        item for item in study.decide if all(certainty(effect) != SURE for effect in item.effects)
    ]
    said += [f"Whether {named(item)} changes anything: no effect of it is told beyond doubt." for item in bare]  # fmt: skip
    lost = [item for item in study.decide if item.filed.page is None]
    said += [f"What proves {named(item)}: the file lies beside no report, ask who sent it." for item in lost]  # fmt: skip
    if study.decide and not study.asked:
        said.append("Whether the proofs still hold: no later archive was asked (parameter later).")
    unchecked = [item for item in study.asked if item.drift and item.drift.status == "cannot_be_checked"]  # fmt: skip
    said += [f"Whether {named(item)} still holds. {item.drift.sentence}" for item in unchecked if item.drift]  # fmt: skip
    if study.made_up:
        n = len(study.made_up)
        said.append(
            f"{counted(n, 'change')} from synthetic archives {_be(n)} listed and not put on the agenda."
        )
    if found.replaced:
        n = len(found.replaced)
        said.append(
            f"{counted(n, 'older proposal')} {_be(n)} not looked at: a later run of the same report on the same archive wrote "
            "another in its place."
        )
    return tuple(thin(sentence) for sentence in said)


def drift_words(item: Item) -> str:
    """Return whether a proposal still holds, in a few words."""
    if item.drift is None:
        return "not asked"
    return item.drift.status.replace("_", " ")


def files(name: str, written: Collection[str]) -> str:
    """Say where the statements of a proposal lie, and in which forms."""
    told = []
    if f"{name}.sql" in written:
        told.append(f"apply/{name}.sql and apply/{name}-take-back.sql for the table CONFIG")
    told.append(f"apply/{name}.json and apply/{name}-take-back.json with parameters")
    told.append(f"apply/{name}.patch.json, a JSON Patch of apply/{BASE}, and apply/{name}-take-back.patch.json behind it")  # fmt: skip
    return f"Beside this page: {listed(told)}. Nothing was set."


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "key"), counted(3, "key")
        ('1 key', '3 keys')
    """
    return f"{number(n)} {noun}{'' if n == 1 else 's'}"


def _be(n: int) -> str:
    return "is" if n == 1 else "are"


def _keys(items: Sequence[Item]) -> str:
    return counted(len({one.place for item in items for one in item.changes}), "key")
