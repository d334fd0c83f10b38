"""The proposal document on NW_QUEUE_IMPORTANCE: a change that was proven later, or a reasoned keep."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.calibrate.network_curve.answers import ExchangeStudy
from brokerlab.calibrate.network_curve.sources import Links
from brokerlab.gdpconfig.proposal import Effect, Evidence, Proposal, Window
from brokerlab.intervals import CONFIDENCE
from brokerlab.words import measured, number

KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
PLACE = "jedi/jobbroker"
QUANTITY = "rank correlation of the network weight with how soon the queue of a link is delivered"
DECIMALS = 3


def propose_importance(
    exchange: ExchangeStudy, links: Links, *, created_at: datetime, n_boot: int, seed: int
) -> Proposal:
    """Return the document that a person can check, apply and take back.

    Args:
        exchange: The study of the links' metrics.
        links: What it was made from.
        created_at: UTC without zone.
        n_boot: Bootstrap replicates of the study.
        seed: Seed of the study.
    """
    judged = exchange.judgement
    effect = Effect(
        quantity=QUANTITY,
        unit="1",
        current=judged.reference,
        proposed=judged.value,
        difference=judged.diff,
        low=judged.diff_lo,
        high=judged.diff_hi,
        level=CONFIDENCE,
    )
    evidence = Evidence(
        sentence_on(exchange, links.settings),
        (effect,),
        tuple(Window(name, *span) for name, span in links.evidence["metrics"].spans.items()),
        numbers={
            "files_per_unit": exchange.fit.files,
            "files_per_unit_lo": exchange.fit.files_lo,
            "files_per_unit_hi": exchange.fit.files_hi,
            "links_proof": exchange.scores.n_links,
            "bootstrap_replicates": n_boot,
            "seed": seed,
        },
        synthetic=links.synthetic,
    )
    common: dict[str, Any] = {
        "created_at": created_at,
        "evidence": evidence,
        "archive_digest": links.digests[0] if links.digests else None,
    }
    value = exchange.proposed
    if value is None:
        return Proposal.to_keep(
            links.config,
            [f"{PLACE}/{key}" for key in KEYS],
            title=f"Keep {' and '.join(KEYS)}",
            **common,
        )
    return Proposal.to_change(
        links.config, {f"{PLACE}/{KEYS[0]}": value}, title=f"Set {KEYS[0]} to {value:g}", **common
    )


def sentence_on(exchange: ExchangeStudy, settings: NetworkSettings) -> str:
    """Say what was found, with numbers and their certainty."""
    fit, judged = exchange.fit, exchange.judgement
    gain = measured(judged.diff, judged.diff_lo, judged.diff_hi, DECIMALS)
    files = f"{measured(fit.files, fit.files_lo, fit.files_hi, 0)} waiting files per unit of throughput weight"
    if exchange.proposed is not None:
        verb = "Raise" if exchange.proposed > settings.queue_importance else "Lower"
        return (
            f"{verb} {KEYS[0]} from {settings.queue_importance:g} to {exchange.proposed:g} ({files}): the rank "
            f"correlation with how soon queues are delivered rises by {gain}, proven later on "
            f"{number(exchange.scores.n_links)} links that the fit had not seen."
        )
    reason = {
        "worse": "it ranks other links worse",
        "worse_at_top": "it ranks the best tenth of other links worse",
        "better": "no importance that leaves both parts a say has it"
        if exchange.later
        else "one snapshot cannot prove a change",
        "not_proven": "the interval of the gain includes 0",
    }[judged.outcome]
    return (
        f"Keep {KEYS[0]} = {settings.queue_importance:g} and {KEYS[1]} = {settings.link_cap:g}: the best exchange of "
        f"the links seen, {files}, changes the rank correlation on other links by {gain}; {reason}."
    )
