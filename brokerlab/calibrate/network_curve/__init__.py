"""Curves of the network weight from what links deliver: fit on some links, prove later on others.

``read_links`` reads what links showed and what they delivered later (``from_metrics``, ``from_transfers``);
``study_curve``, ``study_fallback`` and ``study_exchange`` fit on some links and score on links and times that the fit has
not seen; ``judge`` says what that proves, ``propose_importance`` writes it down. A fitted curve is a
:class:`brokerlab.brokerage.curves.ThroughputCurve`: data that ``network_weight.links(curve=...)`` and the sensitivity of
a brokerage take.

Source: network-weight.md; design.md, idea 6.
"""

from brokerlab.calibrate.network_curve import alternatives
from brokerlab.calibrate.network_curve.answers import (
    Answer,
    CurveStudy,
    ExchangeStudy,
    FallbackStudy,
    LinkStudy,
)
from brokerlab.calibrate.network_curve.evidence import Evidence, mirror_groups, unseen
from brokerlab.calibrate.network_curve.exchange import (
    ExchangeFit,
    exchange_keys,
    files_per_unit,
    fit_exchange,
    importance,
    marks,
    prove_exchange,
)
from brokerlab.calibrate.network_curve.fallback import FallbackFit, fit_fallback, prove_fallback
from brokerlab.calibrate.network_curve.metrics import from_metrics
from brokerlab.calibrate.network_curve.periods import from_transfers
from brokerlab.calibrate.network_curve.proposal import propose_importance
from brokerlab.calibrate.network_curve.resolution import (
    beside_document,
    bounds_of,
    corners,
    later_by_step,
    resolution,
    told_apart,
)
from brokerlab.calibrate.network_curve.scores import Judgement, Scores, compare, judge
from brokerlab.calibrate.network_curve.sources import Links, read_links
from brokerlab.calibrate.network_curve.steps import LEAST, StepFit, fit_steps
from brokerlab.calibrate.network_curve.study import (
    study_curve,
    study_exchange,
    study_fallback,
    study_links,
)

__all__ = [
    "LEAST",
    "Answer",
    "CurveStudy",
    "Evidence",
    "ExchangeFit",
    "ExchangeStudy",
    "FallbackFit",
    "FallbackStudy",
    "Judgement",
    "LinkStudy",
    "Links",
    "Scores",
    "StepFit",
    "alternatives",
    "beside_document",
    "bounds_of",
    "compare",
    "corners",
    "exchange_keys",
    "files_per_unit",
    "fit_exchange",
    "fit_fallback",
    "fit_steps",
    "from_metrics",
    "from_transfers",
    "importance",
    "judge",
    "later_by_step",
    "marks",
    "mirror_groups",
    "propose_importance",
    "prove_exchange",
    "prove_fallback",
    "read_links",
    "resolution",
    "study_curve",
    "study_exchange",
    "study_fallback",
    "study_links",
    "told_apart",
    "unseen",
]
