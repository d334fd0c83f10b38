"""Proposals on NW_QUEUE_IMPORTANCE: the rank correlation behind them again, on later links."""

from __future__ import annotations

import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings, throughput_curve
from brokerlab.calibrate.drift.answer import (
    SCHEMA,
    WORDS,
    Drift,
    NotRepeatableError,
    Status,
    apart,
    refused,
    unmerged,
)
from brokerlab.calibrate.network_curve import Evidence, Judgement, importance, judge, prove_exchange
from brokerlab.calibrate.network_curve.exchange import (
    LEAST_IMPORTANCE,
    MOST_IMPORTANCE,
    ExchangeFit,
    files_per_unit,
)
from brokerlab.errors import ConfigError, InsufficientDataError
from brokerlab.gdpconfig.proposal import Proposal

KEY, CAP = "NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP"
DECIMALS = 3


def is_of_exchange(proposal: Proposal) -> bool:
    """Whether a proposal is on the importance of the queue in the network weight."""
    keys = {change.key for change in proposal.changes}
    return KEY in keys and keys <= {KEY, CAP}


def exchange_drift(proposal: Proposal, evidence: Evidence, *, acting: NetworkSettings) -> Drift:
    """Score the proposed exchange of waiting files and throughput against the one before it on later links.

    Args:
        proposal: On NW_QUEUE_IMPORTANCE, of kind "change" or "keep".
        evidence: Of metrics of links from after the proposal's own data.
        acting: Settings of the later archive, for the cap where it is not in the proposal.

    Returns:
        A :class:`Drift`. A change ``holds`` if links are ranked better (95 % interval excludes 0), the top tenth no
        worse, and ``does_not_hold`` if one of them is worse. A keep holds unless the exchange that it was compared with
        ranks links better. ``cannot_tell``: anything between, or too few links;
        ``cannot_be_checked``: the document does not tell what was compared.

    Source: network-weight.md 2, D2, D6; design.md, idea 6.
    """
    try:
        unmerged(proposal)
        fit, usable = _compared(proposal, acting)
        _series(evidence)
        scores = prove_exchange(
            evidence.queues,
            throughput_curve(),
            fit,
            n_boot=int(_number(proposal, "bootstrap_replicates") or 500),
            seed=int(_number(proposal, "seed") or 0),
        )
    except InsufficientDataError as error:
        return refused(error)
    judged = judge(scores)
    status = _status(judged, keep=proposal.kind == "keep", usable=usable)
    text = (
        f"{WORDS[status]} on {_when(evidence)}, {scores.n_links:,} links: rank correlation of the network weight with how "
        f"soon the queue of a link is delivered {judged.value:.{DECIMALS}f} with {fit.files:.0f} waiting files per "
        f"unit of throughput weight, {judged.reference:.{DECIMALS}f} with {fit.current:.0f} as before, difference "
        f"{judged.diff:+.{DECIMALS}f} ({judged.diff_lo:+.{DECIMALS}f} to {judged.diff_hi:+.{DECIMALS}f})."
    )
    return Drift(status, text, _effects(proposal, judged))


def _series(evidence: Evidence) -> None:
    """Refuse links of one instant."""
    if not evidence.later_queues:
        raise InsufficientDataError("one snapshot of links has nothing later to be delivered")


def _compared(proposal: Proposal, acting: NetworkSettings) -> tuple[ExchangeFit, bool]:
    """Return the exchange before and the one compared with it; whether an importance could have it."""
    change = next(one for one in proposal.changes if one.key == KEY)
    cap = next((one.old for one in proposal.changes if one.key == CAP), acting.link_cap)
    share = change.old
    if not isinstance(share, int | float) or not isinstance(cap, int | float):
        raise NotRepeatableError(f"{KEY} = {share!r} and {CAP} = {cap!r} are no numbers")
    try:
        current = files_per_unit(
            NetworkSettings(queue_importance=float(share), link_cap=float(cap))
        )
    except ConfigError as error:
        raise NotRepeatableError(str(error)) from error
    if proposal.kind == "keep":
        files = _number(proposal, "files_per_unit")
        if files is None:
            raise NotRepeatableError(
                "the proposal does not tell what it was compared with (files_per_unit)"
            )
    elif isinstance(change.new, int | float) and 0 < change.new < 1:
        files = files_per_unit(
            NetworkSettings(queue_importance=float(change.new), link_cap=float(cap))
        )
    else:
        raise NotRepeatableError(f"{KEY} = {change.new!r} is no share between 0 and 1")
    usable = LEAST_IMPORTANCE <= importance(files, float(cap)) <= MOST_IMPORTANCE
    nothing = pl.DataFrame()
    fit = ExchangeFit(nothing, files, files, files, at_edge=not usable, current=current, n_links=0)
    return fit, usable


def _number(proposal: Proposal, name: str) -> float | None:
    value = (proposal.evidence.numbers or {}).get(name)
    return float(value) if isinstance(value, int | float) else None


def _status(judged: Judgement, *, keep: bool, usable: bool) -> Status:
    if keep:
        return "does_not_hold" if judged.outcome == "better" and usable else "holds"
    if judged.outcome == "better":
        return "holds"
    return "does_not_hold" if judged.outcome in ("worse", "worse_at_top") else "cannot_tell"


def _when(evidence: Evidence) -> str:
    """Say from when to when, of both stages together."""
    return f"{evidence.spans['choice'][0]:%Y-%m-%d} to {evidence.spans['proof'][1]:%Y-%m-%d}"


def _effects(proposal: Proposal, judged: Judgement) -> pl.DataFrame:
    """Set the told difference beside the one that was found."""
    rows = [
        (effect.quantity, effect.unit, effect.difference, effect.low, effect.high,
         judged.diff, judged.diff_lo, judged.diff_hi, apart(effect.low, effect.high, judged.diff_lo, judged.diff_hi))
        for effect in proposal.evidence.effects
        if effect.difference is not None
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
