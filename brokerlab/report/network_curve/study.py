"""Fit, choose and prove: the throughput curve on each source, the closeness fallback, queue against throughput."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from brokerlab.calibrate.network_curve import (
    CurveStudy,
    Evidence,
    study_curve,
    study_exchange,
    study_fallback,
)
from brokerlab.calibrate.network_curve import ExchangeStudy as Exchange
from brokerlab.calibrate.network_curve import FallbackStudy as Fallback
from brokerlab.calibrate.network_curve.study import DOCUMENT, FITTED, SITES
from brokerlab.errors import InsufficientDataError
from brokerlab.report.network_curve.inputs import Inputs

__all__ = [
    "DOCUMENT",
    "FITTED",
    "LABELS",
    "PRODUCTION",
    "SIDES",
    "SITES",
    "Curve",
    "Exchange",
    "Fallback",
    "Study",
    "Unanswered",
    "study",
]

T = TypeVar("T")
PRODUCTION = "production"
LABELS = {
    "isotonic": "isotonic, any number of steps",
    "log_throughput": "log throughput",
    "log_throughput_long": "log throughput, longest window",
    "closeness": "closeness alone",
    "sites": "names of the sites alone",
    "nothing_hidden": "nothing hidden",
    "queue_only": "queue only",
    "throughput_only": "throughput only",
    "log_ratio": "log throughput − log queue",
}
SIDES = {
    "proof": "later, links not seen (the proof)",
    "proof_by_source": "the same, sources resampled",
    "proof_by_destination": "the same, destinations resampled",
    "silent_as_0": "the same, links that delivered nothing count as 0",
    "above_1_mbps": "the same, only links above 1 MB/s",
    "later_seen": "later, links that were seen",
    "earlier_unseen": "earlier, links not seen",
    "earlier_seen": "earlier, links that were seen (where it was fitted)",
}


@dataclass(frozen=True, kw_only=True)
class Curve(CurveStudy):
    """The throughput curve on one source."""

    name: str
    evidence: Evidence

    @property
    def told(self) -> dict[str, dict[str, Any]]:
        """Curve -> what it tells apart."""
        return {row.pop("curve"): row for row in self.pairs.to_dicts()}


@dataclass(frozen=True)
class Unanswered:
    """A question that the data do not answer."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """Everything the page shows.

    Attributes:
        inputs: What was loaded.
        curves: Source -> its curve.
        fallback: Of the metrics.
        exchange: Of the metrics.
        n_boot: Bootstrap replicates.
        seed: Of every draw.
    """

    inputs: Inputs
    curves: dict[str, Curve | Unanswered]
    fallback: Fallback | Unanswered
    exchange: Exchange | Unanswered
    n_boot: int
    seed: int


def study(
    inputs: Inputs, *, steps: int = 8, unseen_share: float = 0.5, n_boot: int = 500, seed: int = 1
) -> Study:
    """Fit and prove everything that the evidence allows.

    Args:
        inputs: What was loaded.
        steps: Steps of the throughput curve at most.
        unseen_share: Share of the links that no fit sees; mirrored links stay on one side.
        n_boot: Bootstrap replicates.
        seed: Of the draw of links and of the bootstrap.
    """
    dice: dict[str, Any] = {"unseen_share": unseen_share, "n_boot": n_boot, "seed": seed}
    curves: dict[str, Curve | Unanswered] = {
        name: Unanswered(reason) for name, reason in inputs.refused.items()
    }
    for name, evidence in inputs.evidence.items():
        curves[name] = _answered(partial(_curve, name, evidence, steps, dice))
    metrics = inputs.evidence.get("metrics")
    if metrics is None:
        reason = inputs.refused.get("metrics", "transfers tell neither closeness nor files waiting")
        fallback: Fallback | Unanswered = Unanswered(reason)
        exchange: Exchange | Unanswered = Unanswered(reason)
    else:
        fallback = _answered(partial(study_fallback, metrics, **dice))
        exchange = _answered(partial(study_exchange, metrics, inputs.settings, **dice))
    return Study(
        inputs=inputs, curves=curves, fallback=fallback, exchange=exchange, n_boot=n_boot, seed=seed
    )


def _curve(name: str, evidence: Evidence, steps: int, dice: dict[str, Any]) -> Curve:
    return Curve(
        name=name, evidence=evidence, **vars(study_curve(evidence, most_steps=steps, **dice))
    )


def _answered(work: Callable[[], T]) -> T | Unanswered:
    try:
        return work()
    except InsufficientDataError as problem:
        return Unanswered(str(problem))
