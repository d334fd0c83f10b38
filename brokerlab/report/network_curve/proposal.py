"""The proposal document on NW_QUEUE_IMPORTANCE: a change that was proven later, or a reasoned keep."""

from __future__ import annotations

from datetime import datetime

from brokerlab.calibrate.network_curve import propose_importance
from brokerlab.gdpconfig.proposal import Proposal
from brokerlab.report.network_curve.study import Exchange, Study


def document(study: Study, *, created_at: datetime) -> Proposal | None:
    """Return the proposal; null without an answer."""
    if not isinstance(study.exchange, Exchange):
        return None
    return propose_importance(
        study.exchange, study.inputs, created_at=created_at, n_boot=study.n_boot, seed=study.seed
    )
