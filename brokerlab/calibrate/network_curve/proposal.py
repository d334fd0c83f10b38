"""The proposal document on NW_QUEUE_IMPORTANCE, from what the judge says."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from brokerlab.brokerage.network_weight import NetworkSettings
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.calibrate.network_curve.evidence import Links
from brokerlab.calibrate.network_curve.ranks import COVERAGE_SOURCE
from brokerlab.calibrate.network_curve.study import LOSS, RISE, TOP_RISE, Study
from brokerlab.calibrate.network_curve.weights import files_per_unit
from brokerlab.calibrate.verdict import Wording, document_of, evidence_of, sentence_of
from brokerlab.gdpconfig.proposal import Proposal, Window
from brokerlab.rulesets import RuleSetName
from brokerlab.words import measured, short_percent

KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
PLACE = "jedi/jobbroker"
QUANTITY = "rank correlation of the network weight with how soon the queue of a link is delivered"
DECIMALS = 3


def keys_of(rules: RuleSetName) -> tuple[str, ...]:
    """Return the keys that the queued weight of a rule set reads: in ``document`` its line ends at 300 files, whatever the cap."""
    return KEYS if ProductionRules(rules).queued_line == "cap" else KEYS[:1]


def sentence_on(exchange: Study, links: Links) -> str:
    """Say what the judge says, with numbers and their certainty."""
    settings = links.settings
    judged, gain, now = exchange.judgement, exchange.gain, settings.queue_importance
    values = dict(zip(KEYS, (now, settings.link_cap), strict=True))
    new = float(judged.setting)
    files = files_per_unit(NetworkSettings(new, settings.link_cap), links.rules)
    gained = measured(gain["diff"], gain["diff_lo"], gain["diff_hi"], DECIMALS)
    rise = judged.quantity(RISE)["after"]
    wrong = f"{short_percent(abs(rise))} {'less' if rise < 0 else 'more'}"
    wording = Wording(
        actions=f"{'Raise' if new > now else 'Lower'} {KEYS[0]} from {now:g} to {new:g} ({files:.0f} waiting files per unit of "
        "throughput weight)",
        kept="Keep " + " and ".join(f"{key} = {values[key]:g}" for key in keys_of(links.rules)),
        effects=f"the rank correlation with how soon queues are delivered rises by {gained}, of the top tenth {wrong} "
        "is ranked wrongly",
        now=f"rank correlation {1 - judged.candidates.filter('is_current')[LOSS][0]:.{DECIMALS}f}",
        limit=f"{short_percent(TOP_RISE)} more of the top tenth ranked wrongly",
        keeping=f"{KEYS[0]} = {judged.cheapest_within} is the best that keeps it",
        loss="1 - rank correlation",
        units="links",
        unknown=f"on links not seen the rank correlation rises by {gained} with {KEYS[0]} = {judged.best}, but one snapshot shows "
        "nothing that was delivered later",
    )
    return sentence_of(judged, wording)


def propose_importance(exchange: Study, links: Links, *, created_at: datetime) -> Proposal | None:
    """Return the document that a person can check, apply and take back; none without an answer."""
    judged, spans = exchange.judgement, links.evidence["metrics"].spans
    scored = Window("scored", spans[1 if spans[1:] else 0][0], spans[-1][1])
    first = [Window("first choice", spans[0][0], scored.start)] if spans[1:] else []
    effect = {"label": QUANTITY, "unit": "1", **exchange.gain, "coverage": judged.coverage}
    kept = keys_of(links.rules)
    verb = f"Set {KEYS[0]} to {judged.setting}" if judged.acts else f"Keep {' and '.join(kept)}"
    return document_of(
        judged,
        links.config,
        {f"{PLACE}/{KEYS[0]}": float(judged.setting)},
        [f"{PLACE}/{key}" for key in kept],
        title=verb,
        created_at=created_at,
        evidence=evidence_of(
            judged,
            sentence_on(exchange, links),
            effects=pl.DataFrame([effect]),
            windows=[*first, scored],
            units="links",
            numbers={
                "max_top_rise": TOP_RISE,
                "inner_limit": judged.inner * TOP_RISE,
                "coverage_measured_on": COVERAGE_SOURCE,
            },
            synthetic=links.synthetic,
        ),
        archive_digest=links.digests[0] if links.digests else None,
        rules_digest=links.rules,
    )
