"""Proposals on NW_QUEUE_IMPORTANCE: the judge asked again on later links, with what was accepted as current."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.drift.answer import Again, Drift, NotRepeatableError, answered, unmerged
from brokerlab.calibrate.network_curve import Evidence, files_per_unit, study_exchange
from brokerlab.calibrate.network_curve.study import LOSS, gain_of
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.rulesets import RuleSetName
from brokerlab.words import measured, number

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
        A :class:`Drift`, see :func:`.answer.answered`. ``cannot_be_checked``: the document does not say what was set.

    Source: network-weight.md 1, D2, D6; calibration.md 2.
    """
    return answered(proposal, lambda: _again(proposal, evidence, acting, rules))


def _again(
    proposal: Proposal, evidence: Evidence, acting: NetworkSettings, rules: RuleSetName
) -> Again:
    numbers = proposal.evidence.numbers or {}
    unmerged(proposal)
    before, accepted = _settings(proposal, acting)
    if not evidence.later_queues:
        raise InsufficientDataError("one snapshot of links has nothing later to be delivered")
    judgement = study_exchange(
        evidence,
        accepted,
        rules=rules,
        also=(before.queue_importance,),
        relevant=float(numbers.get("relevant") or 0.05),
        n_boot=int(numbers.get("bootstrap_replicates") or 500),
        seed=int(numbers.get("seed") or 0),
    ).judgement
    table = judgement.between(*(f"{one.queue_importance:g}" for one in (before, accepted)))
    gain = gain_of(table.row(by_predicate=pl.col("quantity") == LOSS, named=True))
    files = [f"{files_per_unit(one, rules):.0f}" for one in (before, accepted)]
    text = (
        "rank correlation of the network weight with how soon the queue of a link is delivered "
        f"{gain['after']:.{DECIMALS}f} with {files[1]} waiting files per unit of throughput weight"
    )
    effects = {}
    if proposal.kind != "keep":
        effects = {(one.quantity, one.unit): (gain, False) for one in proposal.evidence.effects}
        difference = measured(gain["diff"], gain["diff_lo"], gain["diff_hi"], DECIMALS)
        text += (
            f", {gain['before']:.{DECIMALS}f} with {files[0]} as before, difference {difference}"
        )
    window = evidence.spans[0][0], evidence.spans[-1][1]
    return Again(
        judgement=judgement,
        table=table,
        where=f"{window[0]:%Y-%m-%d} to {window[1]:%Y-%m-%d}, {number(judgement.n_units)} links",
        findings=text,
        better=f"{KEY} = {judgement.setting}",
        effects=effects,
        units="links",
        window=window,
    )


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
