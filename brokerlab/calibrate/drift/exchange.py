"""Proposals on NW_QUEUE_IMPORTANCE: the judge asked again on later links, with what was accepted as current."""

from __future__ import annotations

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.drift.answer import (
    WORDS,
    Drift,
    NotRepeatableError,
    effects_beside,
    judged_in_words,
    refused,
    status_of,
    unmerged,
)
from brokerlab.calibrate.network_curve import Evidence, files_per_unit, study_exchange
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.rulesets import RuleSetName
from brokerlab.words import number

KEY, CAP = "NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"
DECIMALS = 3


def is_of_exchange(proposal: Proposal) -> bool:
    """Whether a proposal is on the importance of the queue in the network weight."""
    keys = {change.key for change in proposal.changes}
    return KEY in keys and keys <= {KEY, CAP}


def exchange_drift(
    proposal: Proposal,
    evidence: Evidence,
    *,
    acting: NetworkSettings,
    rules: RuleSetName = "document",
) -> Drift:
    """Judge the accepted importance of the queue on later links.

    Args:
        proposal: On NW_QUEUE_IMPORTANCE, of kind "change" or "keep".
        evidence: Of metrics of links from after the proposal's own data.
        acting: Settings of the later archive, for the cap where it is not in the proposal.
        rules: Rule set that weighs links.

    Returns:
        A :class:`Drift`, see :func:`status_of`. ``cannot_be_checked``: the document does not say what was set.

    Source: network-weight.md 1, D2, D6; calibration.md 2.
    """
    numbers = proposal.evidence.numbers or {}
    try:
        unmerged(proposal)
        before, accepted = _settings(proposal, acting)
        study = study_exchange(
            _series(evidence),
            accepted,
            rules=rules,
            also=(before.queue_importance,),
            relevant=float(numbers.get("relevant") or 0.05),
            n_boot=int(numbers.get("bootstrap_replicates") or 500),
            seed=int(numbers.get("seed") or 0),
        )
    except InsufficientDataError as error:
        return refused(error)
    judged = study.judgement
    then, now = (study.of(f"{one.queue_importance:g}") for one in (before, accepted))
    keep = proposal.kind == "keep"
    status = status_of(judged, then, keep=keep)  # its loss is what the former ranks better
    window = evidence.spans[0][0], evidence.spans[-1][1]
    text = (
        f"{WORDS[status]} on {window[0]:%Y-%m-%d} to {window[1]:%Y-%m-%d}, {number(judged.n_units)} links: rank correlation of "
        f"the network weight with how soon the queue of a link is delivered {now['spearman']:.{DECIMALS}f} with "
        f"{files_per_unit(accepted, rules):.0f} waiting files per unit of throughput weight"
    )
    turned = (("", ""), ("_lo", "_hi"), ("_hi", "_lo"))
    gained = {
        f"diff{end}": None if then[f"diff{other}"] is None else 0.0 - then[f"diff{other}"]
        for end, other in turned
    }
    if not keep:
        text += f", {then['spearman']:.{DECIMALS}f} with {files_per_unit(before, rules):.0f} as before, difference {gained['diff']:+.{DECIMALS}f}"
        if gained["diff_lo"] is not None:
            text += f" ({gained['diff_lo']:+.{DECIMALS}f} to {gained['diff_hi']:+.{DECIMALS}f})"
    text += f"; {judged_in_words(judged, f'{KEY} = {judged.setting}')}."
    found = (
        {} if keep else {(e.quantity, e.unit): (gained, False) for e in proposal.evidence.effects}
    )
    effects = effects_beside(proposal, found)
    return Drift(status, text, effects, judged, window)


def _series(evidence: Evidence) -> Evidence:
    if not evidence.later_queues:
        raise InsufficientDataError("one snapshot of links has nothing later to be delivered")
    return evidence


def _settings(
    proposal: Proposal, acting: NetworkSettings
) -> tuple[NetworkSettings, NetworkSettings]:
    """Return what acted before, and what was accepted."""
    change = next(one for one in proposal.changes if one.key == KEY)
    cap = next((one.old for one in proposal.changes if one.key == CAP), acting.link_cap)
    found = []
    for share in (change.old, change.old if proposal.kind == "keep" else change.new):
        if not isinstance(share, int | float) or not isinstance(cap, int | float):
            raise NotRepeatableError(f"{KEY} = {share!r} and {CAP} = {cap!r} are no numbers")
        if not 0 < share < 1:
            raise NotRepeatableError(f"{KEY} = {share!r} is no share between 0 and 1")
        try:
            found.append(NetworkSettings(float(share), float(cap)))
        except ConfigError as error:
            raise NotRepeatableError(str(error)) from error
    return found[0], found[1]
