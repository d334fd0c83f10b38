"""The proposal document on NW_QUEUE_IMPORTANCE: a change that was proven later, or a reasoned keep."""

from __future__ import annotations

from datetime import datetime

from brokerlab.gdpconfig.proposal import Effect, Evidence, Proposal, Window
from brokerlab.report.network_curve import sentences as say
from brokerlab.report.network_curve.study import Exchange, Study

KEYS = ("NW_QUEUE_IMPORTANCE", "NQUEUED_SAT_CAP")
PLACE = "jedi/jobbroker"
CONFIDENCE = 0.95


def document(study: Study, *, created_at: datetime) -> Proposal | None:
    """Return the proposal; null without an answer.

    Args:
        study: The study.
        created_at: UTC without zone.
    """
    found = study.exchange
    if not isinstance(found, Exchange):
        return None
    inputs = study.inputs
    evidence = _evidence(study, found)
    digest = inputs.digests[0] if inputs.digests else None
    value = say.proposed(found, inputs.settings)
    if value is None:
        return Proposal.to_keep(
            inputs.config,
            [f"{PLACE}/{key}" for key in KEYS],
            title="Keep NW_QUEUE_IMPORTANCE and NQUEUED_SAT_CAP",
            created_at=created_at,
            evidence=evidence,
            archive_digest=digest,
        )
    return Proposal.to_change(
        inputs.config,
        {f"{PLACE}/{KEYS[0]}": value},
        title=f"Set NW_QUEUE_IMPORTANCE to {value:g}",
        created_at=created_at,
        evidence=evidence,
        archive_digest=digest,
    )


def _evidence(study: Study, found: Exchange) -> Evidence:
    """Collect what a reader needs to judge the values."""
    sentence = say.exchange(found, study.inputs.settings).sentence
    judged = found.judgement
    effect = Effect(
        quantity="rank correlation of the network weight with how soon the queue of a link is delivered",
        unit="1",
        current=judged.reference,
        proposed=judged.value,
        difference=judged.diff,
        low=judged.lo,
        high=judged.hi,
        level=CONFIDENCE,
    )
    return Evidence(
        sentence,
        (effect,),
        _windows(study),
        numbers={
            "files_per_unit": found.fit.files,
            "files_per_unit_lo": found.fit.files_lo,
            "files_per_unit_hi": found.fit.files_hi,
            "links_proof": found.scores.n_links,
            "bootstrap_replicates": study.n_boot,
            "seed": study.seed,
        },
        synthetic=study.inputs.synthetic,
    )


def _windows(study: Study) -> tuple[Window, ...]:
    """Return choice and proof of the links as periods; none where they are windows of one snapshot."""
    found = []
    for name, text in study.inputs.evidence["metrics"].stages.items():
        try:
            start, end = (datetime.fromisoformat(day) for day in text.split(" to "))
        except ValueError:
            continue
        found.append(Window(name, start, end))
    return tuple(found)
